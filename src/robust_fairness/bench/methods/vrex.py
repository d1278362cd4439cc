"""Variance risk extrapolation, V-REx (Krueger et al. 2021)."""

from collections.abc import Iterator

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.bench.maths.kernels import indicators
from robust_fairness.bench.methods.base import (
    Batch,
    Method,
    Step,
    SubgroupMethodParameters,
    Subgroups,
    row_weights,
)
from robust_fairness.bench.models.base import Model


class Vrex(Method):
    r"""Penalise the variance of the mean losses of environments (Krueger et al. 2021).

    .. math:: \frac{1}{E} \sum_e L_e + \beta \, \mathrm{Var}_e(L_e)

    over the environments with a row in the batch; rows of unknown environment do not count.

    Fails if environments are few, or their labels are not equally noisy.

    Source: "Out-of-Distribution Generalization via Risk Extrapolation" (ICML 2021), Eq. 8, with
    means instead of sums.
    """

    class Parameters(SubgroupMethodParameters):
        """Weight of the penalty, by default that of DomainBed; an environment is a subgroup."""

        subgroups: Subgroups = "domain"
        weight: float = Field(10.0, ge=0, description="beta, weight of the penalty")

    reads = ("sample_weight",)

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        losses = model.task_loss(model(batch.x, batch.noise), batch.y)
        environments = self.problem.subgroup_counts.shape[1]
        members = indicators(batch.subgroup, environments, losses.dtype)
        mean, variance = mean_and_variance(losses, members * row_weights(batch).unsqueeze(-1))
        yield Step({"model": mean + self.hparams.weight * variance})


def mean_and_variance(losses: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and population variance over environments of their mean losses, ``[replica]`` each.

    ``losses`` are ``[replica, row]``, ``members`` the weight of a row in its environment and 0
    elsewhere ``[replica, row, environment]``. Environments without rows do not count.
    """
    rows = members.sum(1)
    least = torch.finfo(rows.dtype).tiny
    means = (losses.unsqueeze(-1) * members).sum(1) / rows.clamp(min=least)
    share = (rows > 0).to(losses.dtype)
    share = share / share.sum(1, keepdim=True).clamp(min=1)
    mean = (share * means).sum(1)
    return mean, (share * (means - mean.unsqueeze(1)).square()).sum(1)
