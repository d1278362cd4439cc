"""Features of the same distribution in several domains: the frame of CORAL, MMD and DANN."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.methods.base import (
    Batch,
    Information,
    Method,
    MethodParameters,
    Problem,
    Step,
    Subgroups,
)
from robust_fairness.models.base import Model

SEEN: dict[str, tuple[Information, ...]] = {
    "domains": ("domains",),
    "groups": ("groups",),
    "target": ("target rows",),
}


class AlignmentParameters(MethodParameters):
    """Weight of the penalty, and the distributions that are to be alike.

    ``align``: the ``domains`` that are trained on (domain generalisation); the ``groups`` of the
    sensitive attributes; or ``target``, all training rows and the unlabelled rows out of
    distribution (unsupervised domain adaptation), which include the test rows.
    """

    weight: float = Field(1.0, ge=0, description="weight of the penalty")
    align: Literal["domains", "groups", "target"] = "domains"

    @property
    def subgroup_definition(self) -> Subgroups:
        return "domain" if self.align == "domains" else "group"

    @property
    def sees(self) -> tuple[Information, ...]:
        return SEEN[self.align]


class AlignmentMethod(Method):
    """Penalise differences between the features of environments.

    ``environments`` is their number. Rows of unknown environment do not count for the penalty.
    """

    Parameters = AlignmentParameters

    def __init__(self, hparams: AlignmentParameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        problem.require_subgroups(self.name, hparams)
        with_target = hparams.align == "target"
        self.environments = 2 if with_target else problem.subgroup_counts.shape[1]

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        features = model.features(batch.x, batch.noise)
        loss = model.task_loss(model.head(features, batch.noise), batch.y).mean(-1)
        yield self.step(loss, *self._environments(model, batch, features), batch)

    def _environments(self, model: Model, batch: Batch, features: Tensor) -> tuple[Tensor, Tensor]:
        """Features ``[replica, row, ...]`` of all rows, and environments ``[replica, row]``."""
        if self.hparams.align != "target":
            return features, batch.subgroup
        target = self.problem.target_batch(features.shape[1])
        both = torch.cat([features, model.features(target, batch.noise)], dim=1)
        source = torch.zeros_like(batch.subgroup)
        return both, torch.cat([source, source + 1], dim=1)

    @abstractmethod
    def step(self, loss: Tensor, features: Tensor, environment: Tensor, batch: Batch) -> Step:
        """The update from the task loss ``[replica]``, features and environments."""
