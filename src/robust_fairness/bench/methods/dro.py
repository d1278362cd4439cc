"""Distributionally robust optimisation over the rows of a batch (Levy et al. 2020)."""

from collections.abc import Iterator

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.bench.methods.base import Batch, Method, MethodParameters, Step
from robust_fairness.bench.models.base import Model


class CvarDro(Method):
    r"""Distributionally robust optimisation of the conditional value at risk (Levy et al. 2020).

    Minimise the mean loss of the worst share alpha of the rows of a batch.

    .. math:: \max_p \sum_i p_i L_i \quad \text{subject to} \quad 0 \le p_i \le 1 / \alpha m,
        \; \sum_i p_i = 1

    The estimate of a batch is biased; with fewer than one row in the share it is the largest loss.

    Fails if the share is below that of wrong labels, which it then trains on alone.

    Source: "Large-Scale Methods for Distributionally Robust Optimization" (NeurIPS 2020).
    """

    name = "cvar_dro"

    class Parameters(MethodParameters):
        """Share of the rows; 1 is plain training."""

        worst_share: float = Field(0.5, gt=0, le=1, description="alpha, share of the worst rows")

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        losses = model.task_loss(model(batch.x, batch.noise), batch.y)
        yield Step(
            {"model": (worst_rows(losses.detach(), self.hparams.worst_share) * losses).sum(-1)}
        )


def worst_rows(losses: Tensor, share: Tensor) -> Tensor:
    """Weights p of losses ``[replica, row]`` for shares ``[replica]``, with sum 1."""
    order = losses.argsort(dim=-1, descending=True)
    worst = (share * losses.shape[-1]).unsqueeze(-1)
    place = torch.arange(losses.shape[-1], device=losses.device)
    weights = (worst - place).clamp(0, 1) / worst
    return torch.zeros_like(losses).scatter(-1, order, weights)


class ChiSquareDro(Method):
    r"""Distributionally robust optimisation in a chi-squared ball (Levy et al. 2020).

    Minimise the largest mean loss of a batch under other weights of its rows.

    .. math:: \max_p \sum_i p_i L_i \quad \text{subject to} \quad
        \frac{1}{2 m} \sum_i (m p_i - 1)^2 \le \rho, \; p \ge 0, \; \sum_i p_i = 1

    Fails if labels are noisy: wrong labels have the largest losses.

    Source: "Large-Scale Methods for Distributionally Robust Optimization" (NeurIPS 2020).
    """

    name = "chi_square_dro"

    class Parameters(MethodParameters):
        """Size of the ball; 0 is plain training."""

        radius: float = Field(1.0, ge=0, description="rho, largest divergence from equal weights")

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        losses = model.task_loss(model(batch.x, batch.noise), batch.y)
        weights = worst_weights(losses.detach(), self.hparams.radius)
        yield Step({"model": (weights * losses).sum(-1)})


def worst_weights(losses: Tensor, radius: Tensor) -> Tensor:
    r"""Weights p of losses ``[replica, row]`` for radii ``[replica]``, with sum 1, in closed form.

    They are proportional to :math:`(L_i - \eta)_+`. With the k largest losses above :math:`\eta`,
    of mean :math:`\mu` and variance v, and with :math:`t = \mu - \eta`, the constraint
    holds with equality where :math:`m (v + t^2) = (1 + 2 \rho) k t^2`.
    """
    m = losses.shape[-1]
    k = torch.arange(1, m + 1, device=losses.device, dtype=losses.dtype)
    ordered = losses.sort(dim=-1, descending=True).values
    mean = ordered.cumsum(-1) / k
    # means of squares around the largest loss, which rounding keeps positive
    below = ordered - ordered[..., :1]
    variance = (below.square().cumsum(-1) / k - (below.cumsum(-1) / k).square()).clamp(min=0)
    size = 1 + 2 * radius.unsqueeze(-1)
    # the smallest k whose next loss is below eta
    gap = (mean[..., :-1] - ordered[..., 1:]).clamp(min=0)
    fits = m * (variance[..., :-1] + gap.square()) <= size * k[:-1] * gap.square()
    fits = fits & (gap > 0)
    place = torch.cat([fits, torch.ones_like(fits[..., :1])], dim=-1).int().argmax(-1, keepdim=True)
    count, centre = k[place], mean.gather(-1, place)
    spread = (
        m
        * variance.gather(-1, place)
        / (size * count - m).clamp(min=torch.finfo(losses.dtype).tiny)
    )
    t = spread.sqrt()
    slope = torch.where(t > 0, (losses - centre) / t.where(t > 0, 1), 0)
    above = losses >= ordered.gather(-1, place)
    weights = torch.where(above, 1 + slope, 0).clamp(min=0)
    return weights / weights.sum(-1, keepdim=True)
