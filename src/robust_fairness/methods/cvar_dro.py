"""Distributionally robust optimisation of the conditional value at risk (Levy et al. 2020)."""

from collections.abc import Iterator

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.methods.base import Batch, Method, MethodParameters, Step
from robust_fairness.models.base import Model


class CvarDro(Method):
    r"""Minimise the mean loss of the worst share alpha of the rows of a batch.

    .. math:: \max_p \sum_i p_i L_i \quad \text{subject to} \quad 0 \le p_i \le 1 / \alpha m,
        \; \sum_i p_i = 1

    The estimate of a batch is biased; with fewer than one row in the share it is the largest loss.

    Fails if the share is below that of wrong labels, which it then trains on alone.

    Source: "Large-Scale Methods for Distributionally Robust Optimization" (NeurIPS 2020).
    """

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
