"""Mixup (Zhang et al. 2018)."""

from collections.abc import Iterator

import torch
from pydantic import Field
from scipy.special import betaincinv
from torch import Tensor

from robust_fairness.bench.methods.base import (
    Batch,
    Method,
    MethodParameters,
    Problem,
    Step,
    row_weights,
)
from robust_fairness.bench.models.base import Model
from robust_fairness.core.errors import InputError


class Mixup(Method):
    r"""Train on convex combinations of two rows of a batch and their labels (Zhang et al. 2018).

    .. math:: \tilde x = \lambda x_i + (1 - \lambda) x_j, \quad
        \lambda L(\tilde x, y_i) + (1 - \lambda) L(\tilde x, y_j), \quad
        \lambda \sim \mathrm{Beta}(\alpha, \alpha)

    with one draw of lambda for a batch and j a permutation of its rows. Columns of categories
    become fractions.

    Fails if a mixture of rows is no plausible row: columns of categories become fractions.

    Source: "mixup: Beyond Empirical Risk Minimization" (ICLR 2018), Eqs. 1 and 2.
    """

    class Parameters(MethodParameters):
        """How far rows are mixed; near 0 this is plain training."""

        alpha: float = Field(0.2, gt=0, description="alpha of the Beta distribution")

    reads = ("sample_weight",)

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        require_numbers(self.name, model)

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        draw = self.problem.mining
        share = symmetric_beta(draw.uniform((1,), 0.5) + 0.5, self.hparams.alpha)
        partner = draw.uniform(batch.y.shape[1:], 0.5).argsort(-1)
        yield Step({"model": mixed_loss(model, batch, partner, share)})


def require_numbers(method: str, model: Model) -> None:
    """Raise if rows are questions."""
    if model.reads_questions:
        raise InputError(
            f"method {method}: the words of questions cannot be mixed, allowed: features or images"
        )


def symmetric_beta(uniform: Tensor, alpha: Tensor) -> Tensor:
    """Draws of Beta(alpha, alpha) by replica, from uniform numbers ``[replica, n]``, likewise."""
    shape = alpha.unsqueeze(-1).double().cpu().numpy()
    quantiles = betaincinv(shape, shape, uniform.double().cpu().numpy())
    return torch.from_numpy(quantiles).to(alpha)


def mixed_loss(model: Model, batch: Batch, partner: Tensor, share: Tensor) -> Tensor:
    """Mean loss of rows mixed with others of their batch, ``[replica]``.

    Each of both labels has the weight of its row.

    Args:
        model: the networks.
        batch: the rows.
        partner: the other row of every row, int64 ``[replica, row]``.
        share: weight of the row itself, ``[replica, row]`` or ``[replica, 1]``.
    """
    axes = (..., *[None] * (batch.x.ndim - 2))
    replica = torch.arange(len(partner), device=partner.device).unsqueeze(1)
    other = batch.x[replica, partner]
    outputs = model(other.lerp(batch.x, share[axes].expand_as(other)), batch.noise)
    unmixed = model.task_loss(outputs, batch.y)
    others = model.task_loss(outputs, batch.y.gather(1, partner))
    weight = row_weights(batch)
    weighted = weight.gather(1, partner) * (1 - share) * others
    return (weight * share * unmixed + weighted).mean(-1)
