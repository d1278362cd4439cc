"""Group upweighting (Sagawa et al. 2020)."""

from typing import Literal

import torch
from torch import Tensor

from robust_fairness.bench.methods.base import Batch, Problem, SubgroupMethodParameters
from robust_fairness.bench.methods.erm import Erm
from robust_fairness.bench.models.base import Model


class GroupUpweighting(Erm):
    """Weight each row's loss by the rarity of its subgroup (Sagawa et al. 2020).

    Rows of unknown group have weight 1. "Up Wt" of the bias mitigation study; RWG of Idrissi et al.
    (2022) with weights instead of draws; with ``subgroups: class`` RWY.

    Fails if the network fits all training rows, whose weights then have no effect.
    """

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
