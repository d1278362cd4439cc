"""Learning invariant predictors by selective augmentation, LISA (Yao et al. 2022)."""

from collections.abc import Iterator
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.bench.methods.base import (
    Batch,
    Method,
    Problem,
    Step,
    SubgroupMethodParameters,
)
from robust_fairness.bench.methods.mixup import mixed_loss, require_numbers, symmetric_beta
from robust_fairness.bench.models.base import Model


class Lisa(Method):
    r"""Mixup of rows that share a class or a domain, but not both (Yao et al. 2022).

    Rows of the same class are of other domains, and rows of the same domain of other classes. A
    batch is mixed in the first way with probability :math:`p_{sel}`. Rows without such a partner in
    the batch stay as they are.

    Fails if a batch has no such partners, or a mixture of rows is no plausible row.

    Source: "Improving Out-of-Distribution Robustness via Selective Augmentation" (ICML 2022),
    Algorithm 1.
    """

    class Parameters(SubgroupMethodParameters):
        """How far and with which rows a row is mixed.

        ``subgroups``: the groups of the attributes (subpopulation shift), or the domains that are
        trained on.
        """

        subgroups: Literal["group", "domain"] = "group"
        alpha: float = Field(2.0, gt=0, description="alpha of the Beta distribution")
        same_class: float = Field(0.5, ge=0, le=1, description="p_sel, share of mixes in a class")

    reads = ("sample_weight",)

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        problem.require_classes(self.name)
        require_numbers(self.name, model)

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        draw, rows = self.problem.mining, batch.y.shape[1]
        in_class = draw.uniform((1,), 0.5) + 0.5 < self.hparams.same_class.unsqueeze(-1)
        share = symmetric_beta(draw.uniform((rows,), 0.5) + 0.5, self.hparams.alpha)
        allowed = partners(batch.y, batch.subgroup, in_class)
        likes = draw.uniform((rows, rows), 0.5) + 1
        best = torch.where(allowed, likes, 0).max(-1)
        share = torch.where(best.values > 0, share, 1)
        yield Step({"model": mixed_loss(model, batch, best.indices, share)})


def partners(y: Tensor, domain: Tensor, in_class: Tensor) -> Tensor:
    """Whether a row may be mixed with another, bool ``[replica, row, row]``.

    ``y`` and ``domain`` (-1 where missing) are ``[replica, row]``; ``in_class`` ``[replica, 1]`` is
    whether classes are to agree and domains to differ, or the reverse.
    """
    same_class = y.unsqueeze(-1) == y.unsqueeze(-2)
    same_domain = domain.unsqueeze(-1) == domain.unsqueeze(-2)
    known = (domain >= 0).unsqueeze(-1) & (domain >= 0).unsqueeze(-2)
    differ = torch.where(
        in_class.unsqueeze(-1), same_class & ~same_domain, same_domain & ~same_class
    )
    return differ & known
