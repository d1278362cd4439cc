"""Curvature matching, Equalized Robustness Eqs. 4 to 11 (Wang et al. 2023)."""

from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor

from robust_fairness.maths.curvature import change_of_gradient, one_step
from robust_fairness.maths.kernels import BANDWIDTHS, mean_pairwise_mmd
from robust_fairness.methods.adv_debias import AdvDebias
from robust_fairness.methods.base import Batch
from robust_fairness.models.base import Model


class Cuma(AdvDebias):
    r"""Adversarial debiasing that also matches the groups' distributions of loss curvature.

    .. math:: L_{clf} - \alpha L_{adv} + \gamma MMD^2(C(X_1), C(X_2))

    With more than two groups the distance is the mean over all pairs of groups with at least
    two rows in the batch.

    Fails if batches have few rows of a group, whose curvature is then not matched.
    """

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
            losses = model.task_loss(model(batch.x, noise), batch.y)
        gradient, moved = one_step(losses / scale, batch.x, p.h, create_graph=True)
        losses = model.task_loss(model(moved, noise), batch.y)
        curvature = change_of_gradient(gradient, losses / scale, moved, p.h, create_graph=True)
        groups = self.problem.groups
        return p.gamma * mean_pairwise_mmd(curvature, batch.group, groups, p.bandwidths)
