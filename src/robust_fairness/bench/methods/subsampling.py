"""Subsampling of the larger subgroups (Idrissi et al. 2022)."""

import torch
from torch import Tensor

from robust_fairness.bench.methods.base import Problem, SubgroupMethodParameters, TrainingRows
from robust_fairness.bench.methods.erm import Erm
from robust_fairness.bench.models.base import Model


class Subsampling(Erm):
    """Train on equally many rows of every subgroup, drawn once by the seed (Idrissi et al. 2022).

    As many as the smallest subgroup has: SUBG, and with ``subgroups: class`` SUBY. Rows of unknown
    group are left out. The subset is visited again until an epoch has as many rows as with other
    methods, so that all have the same number of updates.

    Fails if the smallest subgroup has few rows, since all others are cut to as many.

    Source: "Simple data balancing achieves competitive worst-group-accuracy" (CLeaR 2022).
    """

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
