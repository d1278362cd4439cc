"""Adversarial debiasing (Zhang et al. 2018), in the frame of Equalized Robustness."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.methods._adversarial import AdversarialMethod, AdversarialParameters
from robust_fairness.methods.base import Batch, Step
from robust_fairness.models.base import Model
from robust_fairness.models.losses import cross_entropy, mean_where


class AdvDebias(AdversarialMethod):
    """Train features from which an adversary cannot predict the group, by cross-entropy (Eq. 11).

    Fails if the adversary is too weak to find the group, or the groups differ in the label itself.
    """

    class Parameters(AdversarialParameters):
        """Options on which papers and code disagree.

        Zhang et al. audit the outputs; Equalized Robustness compares the same two-headed network
        with LAFTR and CUMA, so that CUMA with gamma = 0 is this method. Zhang et al. also remove
        from the task's gradient its component along the adversary's (``projection``).
        """

        audits: Literal["features", "outputs"] = "features"
        projection: bool = Field(
            False, description="remove the part of the gradient that helps h_a"
        )

    def new_adversary(self, model: Model) -> torch.nn.Module:
        outputs = max(self.problem.classes, 1)
        width = outputs if self.hparams.audits == "outputs" else None
        return model.new_head(self.problem.groups, self.problem.heads, width)

    def audited(self, features: Tensor, outputs: Tensor) -> Tensor:
        return outputs if self.hparams.audits == "outputs" else features

    def adversary_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        known = batch.group >= 0
        return mean_where(cross_entropy(logits, batch.group.clamp(min=0)), known)

    def model_step(self, model: Model, objective: Tensor, audit: Tensor) -> Step:
        if not self.hparams.projection:
            return super().model_step(model, objective, audit)
        weights = list(model.parameters())
        task = torch.autograd.grad(objective.sum(), weights, retain_graph=True)
        unfair = torch.autograd.grad(
            audit.sum(), weights, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        alpha = self.hparams.alpha
        gradients = [projected(g, h, alpha) for g, h in zip(task, unfair, strict=True)]
        return Step({"model": objective - alpha * audit}, {"model": gradients})


def projected(task: Tensor, unfair: Tensor, alpha: Tensor) -> Tensor:
    """``g - proj_h g - alpha h`` of gradients ``[replica, ...]`` (Zhang et al. 2018, Eq. 1)."""
    g, h = task.flatten(1), unfair.flatten(1)
    square = (h * h).sum(1, keepdim=True)
    share = (g * h).sum(1, keepdim=True) / torch.where(square > 0, square, torch.ones_like(square))
    return (g - (share + alpha.unsqueeze(1)) * h).view_as(task)
