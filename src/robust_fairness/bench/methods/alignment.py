"""Features of the same distribution in several domains: CORAL, MMD and DANN."""

from abc import abstractmethod
from collections.abc import Iterator
from math import exp
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.bench.maths.kernels import indicators, mean_over_pairs
from robust_fairness.bench.methods.base import (
    Batch,
    Information,
    Method,
    MethodParameters,
    Problem,
    Step,
    Subgroups,
    row_weights,
)
from robust_fairness.bench.models.base import Model
from robust_fairness.bench.models.layers import loss_of_rows, mean_where

SEEN: dict[str, tuple[Information, ...]] = {
    "domains": ("domains",),
    "groups": ("groups",),
    "target": ("target rows",),
}
STEEPNESS = 10  # gamma of the source


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
    reads = ("sample_weight",)

    def __init__(self, hparams: AlignmentParameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        with_target = hparams.align == "target"
        self.environments = 2 if with_target else problem.subgroup_counts.shape[1]

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        features = model.features(batch.x, batch.noise)
        losses = model.task_loss(model.head(features, batch.noise), batch.y)
        loss = (row_weights(batch) * losses).mean(-1)
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


class Coral(AlignmentMethod):
    r"""Correlation alignment, deep CORAL (Sun and Saenko 2016).

    Penalise differences between the covariances of the features of environments.

    .. math:: L + \lambda \frac{1}{4 d^2} \| C_s - C_t \|_F^2

    averaged over the pairs of environments with two rows or more in the batch.

    Fails if labels depend on inputs in another way in every environment, or shares of classes
    differ.

    Source: "Deep CORAL: Correlation Alignment for Deep Domain Adaptation" (ECCV 2016), Eq. 1.
    """

    name = "coral"

    class Parameters(AlignmentParameters):
        """What is compared.

        ``moments``: ``covariance`` as printed, or ``mean_and_covariance``, the mean squared
        differences of the entries of both, as in DomainBed, WILDS and TableShift.
        """

        moments: Literal["covariance", "mean_and_covariance"] = "covariance"

    def step(self, loss: Tensor, features: Tensor, environment: Tensor, batch: Batch) -> Step:
        members = indicators(environment, self.environments, features.dtype)
        both = self.hparams.moments == "mean_and_covariance"
        flat = features.flatten(2)
        distances = (moment_distances if both else covariance_distances)(flat, members)
        penalty = mean_over_pairs(distances, members.sum(1))
        return Step({"model": loss + self.hparams.weight * penalty})


def means_and_covariances(features: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
    """Means ``[replica, environment, d]`` and covariances ``[replica, environment, d, d]``.

    ``features`` are ``[replica, row, d]``, ``members`` 1 where a row is of an environment and 0
    elsewhere ``[replica, row, environment]``. Covariances divide by the number of rows minus 1.
    """
    weights = members.mT  # [replica, environment, row]
    rows = weights.sum(-1, keepdim=True)
    means = weights @ features / rows.clamp(min=1)
    centred = (features.unsqueeze(1) - means.unsqueeze(2)) * weights.unsqueeze(-1)
    return means, centred.mT @ centred / (rows - 1).clamp(min=1).unsqueeze(-1)


def covariance_distances(features: Tensor, members: Tensor) -> Tensor:
    """Squared Frobenius distances of covariances over 4 d^2, ``[replica, env., env.]``."""
    return _mean_square_differences(means_and_covariances(features, members)[1]) / 4


def moment_distances(features: Tensor, members: Tensor) -> Tensor:
    """Mean squared differences of means plus those of covariances, ``[replica, env., env.]``."""
    means, covariances = means_and_covariances(features, members)
    return _mean_square_differences(means) + _mean_square_differences(covariances)


def _mean_square_differences(values: Tensor) -> Tensor:
    """Of every two environments, over entries ``[replica, environment, ...]``."""
    flat = values.flatten(2)
    return (flat.unsqueeze(2) - flat.unsqueeze(1)).square().mean(-1)


class Mmd(AlignmentMethod):
    r"""Maximum mean discrepancy between the features of domains (Li et al. 2018).

    Penalise the squared MMD between the features of environments.

    .. math:: L + \lambda \| \mu_s - \mu_t \|_H^2, \quad
        k(a, b) = \sum_\gamma e^{-\gamma \|a - b\|^2}

    as the biased V-statistic, averaged over the pairs of environments with two rows or more in
    the batch.

    Fails if shares of classes differ between environments, or no kernel width fits the features.

    Source: "Domain Generalization with Adversarial Feature Learning" (CVPR 2018), Eq. 4, without
    its adversarial autoencoder, as in DomainBed and WILDS, whose kernel widths are the default.
    """

    name = "mmd"

    class Parameters(AlignmentParameters):
        """Widths of the kernel."""

        gammas: tuple[float, ...] = Field(
            (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0), min_length=1
        )

    def step(self, loss: Tensor, features: Tensor, environment: Tensor, batch: Batch) -> Step:
        members = indicators(environment, self.environments, features.dtype)
        distances = mmd_distances(features.flatten(2), members, self.hparams.gammas)
        penalty = mean_over_pairs(distances, members.sum(1))
        return Step({"model": loss + self.hparams.weight * penalty})


def mmd_distances(features: Tensor, members: Tensor, gammas: tuple[float, ...]) -> Tensor:
    """Squared MMD of every two environments, ``[replica, environment, environment]``.

    ``features`` are ``[replica, row, d]``, ``members`` 1 where a row is of an environment and 0
    elsewhere ``[replica, row, environment]``.
    """
    squares = features.square().sum(-1)
    products = features @ features.mT
    square = (squares.unsqueeze(-1) + squares.unsqueeze(-2) - 2 * products).clamp(min=0)
    kernel = torch.stack([torch.exp(-gamma * square) for gamma in gammas]).sum(0)
    weights = members / members.sum(1, keepdim=True).clamp(min=1)
    means = weights.mT @ kernel @ weights
    within = means.diagonal(dim1=-2, dim2=-1)
    return within.unsqueeze(-1) - 2 * means + within.unsqueeze(-2)


class Dann(AlignmentMethod):
    r"""Domain-adversarial training, DANN (Ganin et al. 2016).

    Train features from which an adversary cannot tell the environment.

    .. math:: \min_{s,t} \max_a L_{clf} - \lambda \lambda_p L_{adv}, \quad
        \lambda_p = \frac{2}{1 + e^{-10 p}} - 1

    with p the share of the epochs that are done; both players move from one pass, as a gradient
    reversal layer does.

    Fails if shares of the classes differ between environments: aligned features cannot be right in
    all of them.

    Source: "Domain-Adversarial Training of Neural Networks" (JMLR 2016), section 5.2.2.
    """

    name = "dann"

    class Parameters(AlignmentParameters):
        """Weight of the adversary's loss."""

        weight: float = Field(1.0, ge=0, description="lambda, weight of the adversary's loss")

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        self.adversary = model.new_head(self.environments, problem.heads)

    def step(self, loss: Tensor, features: Tensor, environment: Tensor, batch: Batch) -> Step:
        losses = loss_of_rows(self.adversary(features, batch.noise), environment.clamp(min=0))
        audit = mean_where(losses, environment >= 0)
        weight = self.hparams.weight * reversal(self.progress(batch.epoch))
        return Step({"model": loss - weight * audit, "adversary": audit})

    def progress(self, epoch: int) -> float:
        """Share of the epochs after the warm-up that are done."""
        warm_up = self.hparams.warm_up_epochs
        return (epoch - warm_up) / (self.problem.epochs - warm_up)


def reversal(progress: float) -> float:
    """Factor of the reversed gradient by progress in [0, 1]."""
    return 2 / (1 + exp(-STEEPNESS * progress)) - 1
