"""Group distributionally robust optimisation (Sagawa et al. 2020)."""

import logging
from collections.abc import Iterable, Iterator
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
    TrainingRows,
    row_weights,
    shuffled,
)
from robust_fairness.bench.models.base import Model

LOGGER = logging.getLogger(__name__)
MOST_SPREAD = 1e6  # above it subgroups are as good as absent
LEAST_SPREAD = 1.1  # largest over smallest weight of a subgroup; below it sampling is balanced


class GroupDro(Method):
    r"""Minimise the loss of the worst subgroups of attribute and class.

    .. math:: q_g \leftarrow q_g e^{\eta L_g} / \sum_{g'} q_{g'} e^{\eta L_{g'}},
              \quad L = \sum_g q_g L_g

    with L_g the mean loss of the subgroup in the batch by ``sample_weight``, 0 where it has no row
    there; the weights are updated before they are used, and are constants in the gradient. Rows of
    unknown group do not contribute to the loss.

    The default step is that of the published code.

    Logarithms of the weights are kept: the exponential of a large loss overflows, and a weight
    that underflows could never grow again.

    Fails if the network fits all training rows, or if weights stay nearly uniform because the step
    is small or updates are few, which a warning says.
    """

    class Parameters(SubgroupMethodParameters):
        """Step size of the subgroup weights, and how rows are drawn.

        ``balanced`` draws every subgroup equally often; ``uniform`` visits every row once.
        ``shuffled_weights`` permutes the weights of ``balanced`` between the rows, once for the
        whole training, as the study's code did until July 2022: the same few rows are drawn most
        often in every epoch, whatever their subgroup.
        """

        step_size: float = Field(0.01, ge=0, description="eta, step of the group weights")
        sampler: Literal["balanced", "shuffled_weights", "uniform"] = "balanced"

    reads = ("sample_weight",)
    log_weight: Tensor
    priority: Tensor

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        occurs = (problem.subgroup_counts > 0).to(torch.get_default_dtype())
        # a subgroup without training rows keeps minus infinity
        self.register_buffer("log_weight", occurs.log().log_softmax(1))
        if hparams.sampler == "shuffled_weights":  # the order of these numbers is the permutation
            self.register_buffer("priority", problem.heads.uniform((problem.rows,), 1.0))

    @property
    def group_weight(self) -> Tensor:
        """The weights q, ``[replica, subgroup]``."""
        return self.log_weight.exp()

    def start_epoch(self, model: Model, epoch: int) -> Iterable[str]:
        """Log before the last epoch how far the weights have moved apart."""
        if epoch < self.problem.epochs - 1:
            return ()
        occurs = self.log_weight.isfinite()
        largest = self.log_weight.amax(1)
        smallest = self.log_weight.masked_fill(~occurs, torch.inf).amin(1)
        for seed, spread in zip(
            self.problem.seeds, (largest - smallest).exp().tolist(), strict=True
        ):
            LOGGER.info(
                "group_dro, seed %d: the largest weight of a subgroup is %.3g times the smallest",
                seed, spread,
            )  # fmt: skip
            if spread > MOST_SPREAD:
                LOGGER.warning(
                    "group_dro, seed %d: one subgroup has %.3g times the weight of another, which "
                    "hardly counts any more, allowed: a smaller step_size or fewer epochs",
                    seed, spread,
                )  # fmt: skip
            if spread < LEAST_SPREAD and self.hparams.sampler != "uniform":
                LOGGER.warning(
                    "group_dro, seed %d: weights of subgroups differ by a factor of %.3g only: "
                    "this is balanced sampling, allowed: a larger step_size or more epochs",
                    seed, spread,
                )  # fmt: skip
        return ()

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        losses = model.task_loss(model(batch.x, batch.noise), batch.y)
        known = (batch.subgroup >= 0) * row_weights(batch)
        subgroup = batch.subgroup.clamp(min=0)
        zeros = torch.zeros_like(self.log_weight)
        rows = zeros.scatter_add(1, subgroup, known)
        least = torch.finfo(rows.dtype).tiny
        means = zeros.scatter_add(1, subgroup, known * losses) / rows.clamp(min=least)
        step_size = self.hparams.step_size.unsqueeze(-1)
        self.log_weight = (self.log_weight + step_size * means.detach()).log_softmax(1)
        yield Step({"model": (self.group_weight * means).sum(1)})

    def visiting_order(self, rows: TrainingRows, generator: torch.Generator) -> Tensor:
        sampler = self.hparams.sampler
        if sampler == "uniform":
            return shuffled(rows, generator)
        counts = torch.bincount(rows.subgroup[rows.subgroup >= 0])
        weight = torch.where(rows.subgroup >= 0, 1 / counts[rows.subgroup.clamp(min=0)], 0)
        if sampler == "shuffled_weights":
            weight = weight[self.priority[rows.replica, rows.rows].argsort(stable=True)]
        return torch.multinomial(weight, len(weight), replacement=True, generator=generator)
