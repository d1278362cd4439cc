"""Balanced subgroups: weights of rows, and subsets of equally many rows."""

from typing import Literal

import torch
from torch import Tensor

from robust_fairness.methods.base import Batch, Problem, SubgroupMethodParameters, TrainingRows
from robust_fairness.methods.erm import Erm
from robust_fairness.models.base import Model


class GroupUpweighting(Erm):
    """Weight each row's loss by the rarity of its subgroup (Sagawa et al. 2020).

    Rows of unknown group have weight 1. "Up Wt" of the bias mitigation study; RWG of Idrissi et al.
    (2022) with weights instead of draws; with ``subgroups: class`` RWY.

    Fails if the network fits all training rows, whose weights then have no effect.
    """

    name = "group_upweighting"

    class Parameters(SubgroupMethodParameters):
        """How a row is weighted by N_g, the training rows of its subgroup.

        1 / N_g (the paper), N / N_g (its code), or ``balanced``: N / (G N_g) over the G subgroups
        that occur, whose mean is 1, so that learning rates are comparable with other methods.
        """

        weighting: Literal["balanced", "total_over_count", "inverse_count"] = "balanced"

    weight: Tensor

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        counts = problem.subgroup_counts
        total, occurring = counts.sum(1, keepdim=True), (counts > 0).sum(1, keepdim=True)
        numerator = {
            "balanced": total / occurring,
            "total_over_count": total,
            "inverse_count": torch.ones_like(total),
        }[hparams.weighting]
        self.register_buffer("weight", numerator / counts.clamp(min=1))

    def row_weight(self, batch: Batch) -> Tensor:
        weight = self.weight.gather(1, batch.subgroup.clamp(min=0))
        return torch.where(batch.subgroup >= 0, weight, 1)


class Subsampling(Erm):
    """Train on equally many rows of every subgroup, drawn once by the seed (Idrissi et al. 2022).

    As many as the smallest subgroup has: SUBG, and with ``subgroups: class`` SUBY. Rows of unknown
    group are left out. The subset is visited again until an epoch has as many rows as with other
    methods, so that all have the same number of updates.

    Fails if the smallest subgroup has few rows, since all others are cut to as many.

    Source: "Simple data balancing achieves competitive worst-group-accuracy" (CLeaR 2022).
    """

    name = "subsampling"
    Parameters = SubgroupMethodParameters
    priority: Tensor

    def __init__(self, hparams: SubgroupMethodParameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        self.register_buffer("priority", problem.heads.uniform((problem.rows,), 1.0))

    def visiting_order(self, rows: TrainingRows, generator: torch.Generator) -> Tensor:
        return balanced_visits(rows, self.priority, generator)


def balanced_visits(rows: TrainingRows, priority: Tensor, generator: torch.Generator) -> Tensor:
    """Positions in ``rows`` of balanced ones, as many as there are rows, int64 ``[m]``.

    ``priority`` ``[replica, row]`` decides which rows of the dataset are kept; they are visited in
    random order, again and again.
    """
    kept = balanced(rows.subgroup, priority[rows.replica, rows.rows])
    order = [
        kept[torch.randperm(len(kept), generator=generator, device=generator.device)]
        for _ in range(-(-len(rows.y) // len(kept)))
    ]
    return torch.cat(order)[: len(rows.y)]


def balanced(subgroup: Tensor, priority: Tensor) -> Tensor:
    """Positions of equally many rows of every subgroup, those of the lowest priority, int64.

    Both are ``[m]``; rows of subgroup -1 are left out.
    """
    result, counts = subgroup[subgroup >= 0].unique(return_counts=True)
    order = priority.argsort()
    few = int(counts.min())
    chosen = [order[subgroup[order] == item][:few] for item in result]
    return torch.cat(chosen).sort().values
