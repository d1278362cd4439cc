"""Adversarially fair training: the frame that AdvDebias, LAFTR and CUMA fill in."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.methods.base import Batch, GroupMethodParameters, Method, Problem, Step
from robust_fairness.models.base import Model


class AdversarialParameters(GroupMethodParameters):
    """Weight of the adversary, and order of updates, which the papers leave open.

    ``alternating``: the adversary first, then the network, as in LAFTR's code; ``reversed``: both
    from one pass, as a gradient reversal layer does.
    """

    alpha: float = Field(1.0, ge=0, description="weight of the adversary's loss (Eq. 10)")
    update: Literal["alternating", "reversed"] = "alternating"


class AdversarialMethod(Method):
    r"""Train features from which an adversary cannot tell the group.

    .. math:: \min_{s,t} \max_a L_{clf} - \alpha L_{adv} + R

    with R the method's own regulariser, 0 unless overridden (Equalized Robustness, Eq. 10), which
    ``differentiates_inputs`` or does not.
    """

    differentiates_inputs: ClassVar[bool] = False

    def __init__(self, hparams: AdversarialParameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        problem.require_groups(self.name)
        self.adversary = self.new_adversary(model)

    def new_adversary(self, model: Model) -> torch.nn.Module:
        """The adversary h_a: a head of the network's own structure, on its features."""
        return model.new_head(self.problem.groups, self.problem.heads)

    @abstractmethod
    def adversary_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        """Loss of the adversary ``[replica]`` from its logits ``[replica, row, group]``."""

    def audited(self, features: Tensor, outputs: Tensor) -> Tensor:
        """What the adversary sees ``[replica, row, width]``: the features."""
        return features

    def regulariser(self, model: Model, batch: Batch, losses: Tensor) -> Tensor:
        """Further term of the network's objective, ``[replica]``."""
        return torch.zeros_like(losses[..., 0])

    def model_step(self, model: Model, objective: Tensor, audit: Tensor) -> Step:
        """The network's update, from its objective and the adversary's loss, ``[replica]`` each."""
        return Step({"model": objective - self.hparams.alpha * audit})

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        """The adversary's step and the network's, in turn or from one pass."""
        batch.x.requires_grad_(self.differentiates_inputs)
        features = model.features(batch.x, batch.noise)
        outputs = model.head(features, batch.noise)
        seen = self.audited(features, outputs)
        alternating = self.hparams.update == "alternating"
        if alternating:
            adversary_logits = self.adversary(seen.detach(), batch.noise)
            yield Step({"adversary": self.adversary_loss(adversary_logits, batch)})
        audit = self.adversary_loss(self.adversary(seen, batch.noise), batch)
        losses = model.task_loss(outputs, batch.y)
        objective = losses.mean(-1) + self.regulariser(model, batch, losses)
        step = self.model_step(model, objective, audit)
        if not alternating:
            step.losses["adversary"] = audit
        yield step
