"""Adversarially fair training: AdvDebias, LAFTR and CUMA."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from robust_fairness.bench.maths.curvature import change_of_gradient, one_step
from robust_fairness.bench.maths.kernels import BANDWIDTHS, mean_pairwise_mmd
from robust_fairness.bench.methods.base import (
    Batch,
    GroupMethodParameters,
    Method,
    Problem,
    Step,
    row_weights,
)
from robust_fairness.bench.models.base import Model
from robust_fairness.bench.models.layers import loss_of_rows, mean_where


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

    reads = ("sample_weight",)
    differentiates_inputs: ClassVar[bool] = False

    def __init__(self, hparams: AdversarialParameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
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
        objective = (row_weights(batch) * losses).mean(-1) + self.regulariser(model, batch, losses)
        step = self.model_step(model, objective, audit)
        if not alternating:
            step.losses["adversary"] = audit
        yield step


class AdvDebias(AdversarialMethod):
    """Adversarial debiasing (Zhang et al. 2018), in the frame of Equalized Robustness.

    Train features from which an adversary cannot predict the group, by cross-entropy (Eq. 11).

    Fails if the adversary is too weak to find the group, or the groups differ in the label itself.
    """

    name = "adv_debias"

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
        return mean_where(loss_of_rows(logits, batch.group.clamp(min=0)), known)

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


class Laftr(AdversarialMethod):
    r"""Learned adversarially fair representations (Madras et al. 2018) without the decoder.

    Train features from which an adversary cannot predict the group, by a balanced L1 distance.

    .. math:: \sum_g \frac{1}{|D_g|} \sum_{i \in D_g} (1 - p_{i,g})

    which for two groups is the \|h(f(x)) - a\| of Madras et al., Eq. 3; p is the softmax.

    Fails if the adversary is too weak to find the group, or the groups differ in the label itself.
    """

    name = "laftr"

    class Parameters(AdversarialParameters):
        """Rows that count equally in the group-normalised L1 loss.

        By ``group`` (demographic parity, Madras et al. Eq. 3) or ``group_and_class`` (equalised
        odds, Eq. 4).
        """

        weighting: Literal["group", "group_and_class"] = "group"

    def adversary_loss(self, logits: Tensor, batch: Batch) -> Tensor:
        known = batch.group >= 0
        group = batch.group.clamp(min=0)
        distance = 1 - functional.softmax(logits, -1).gather(-1, group.unsqueeze(-1)).squeeze(-1)
        part, parts = group, self.problem.groups
        if self.hparams.weighting == "group_and_class":
            part, parts = group * self.problem.classes + batch.y, parts * self.problem.classes
        losses = [mean_where(distance, known & (part == number)) for number in range(parts)]
        return torch.stack(losses).sum(0)


class Cuma(AdvDebias):
    r"""Curvature matching, Equalized Robustness Eqs. 4 to 11 (Wang et al. 2023).

    Adversarial debiasing that also matches the groups' distributions of loss curvature.

    .. math:: L_{clf} - \alpha L_{adv} + \gamma MMD^2(C(X_1), C(X_2))

    With more than two groups the distance is the mean over all pairs of groups with at least
    two rows in the batch.

    Fails if batches have few rows of a group, whose curvature is then not matched.
    """

    name = "cuma"

    class Parameters(AdvDebias.Parameters):
        """Weights of Eq. 10 and two choices that the text leaves open.

        ``curvature_dropout``: the mask of the batch in both gradients of Eq. 8 (``shared``), or
        none. ``curvature_loss``: the loss of the ``row``, or the ``mean`` over the batch, which
        divides every curvature by the batch size.
        """

        gamma: float = Field(1.0, ge=0, description="weight of the curvature distance (Eq. 10)")
        h: float = Field(1.0, gt=0, description="step of the finite difference (Eq. 8)")
        bandwidths: tuple[float, ...] = Field(
            BANDWIDTHS, description="widths of the kernel (Eq. 7)"
        )
        curvature_dropout: Literal["shared", "off"] = "shared"
        curvature_loss: Literal["row", "mean"] = "row"

    differentiates_inputs: ClassVar[bool] = True

    def regulariser(self, model: Model, batch: Batch, losses: Tensor) -> Tensor:
        p = self.hparams
        noise = batch.noise if p.curvature_dropout == "shared" else None
        scale = batch.y.shape[-1] if p.curvature_loss == "mean" else 1
        if noise is not batch.noise:
            outputs = model.head(model.features(batch.x, noise), noise)
            losses = model.task_loss(outputs, batch.y)
        gradient, moved = one_step(losses / scale, batch.x, p.h, create_graph=True)
        losses = model.task_loss(model.head(model.features(moved, noise), noise), batch.y)
        curvature = change_of_gradient(gradient, losses / scale, moved, p.h, create_graph=True)
        groups = self.problem.groups
        return p.gamma * mean_pairwise_mmd(curvature, batch.group, groups, p.bandwidths)
