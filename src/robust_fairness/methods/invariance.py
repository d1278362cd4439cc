"""Penalties on differences between the losses of environments: IRMv1 and V-REx."""

from collections.abc import Iterator
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.core.errors import InputError
from robust_fairness.maths.kernels import indicators
from robust_fairness.methods.base import (
    Batch,
    Method,
    Problem,
    Step,
    SubgroupMethodParameters,
    Subgroups,
    TrainingRows,
    require_softmax,
)
from robust_fairness.models.base import Model

HALVES = 2


class AnnealedPenalty(Method):
    """A penalty whose ``weight`` is 1 in the first ``annealing_steps``.

    With such steps the objective is divided by a weight above 1.
    """

    updates: Tensor

    def __init__(self, hparams: Any, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        self.register_buffer("updates", torch.zeros((), dtype=torch.int64))

    def penalised(self, loss: Tensor, penalty: Tensor) -> Step:
        """The next update, from the loss and the penalty, ``[replica]`` each."""
        annealing_steps = self.hparams.annealing_steps
        weight = torch.where(self.updates < annealing_steps, 1, self.hparams.weight)
        self.updates += 1
        objective = loss + weight * penalty
        return Step({"model": objective / weight.clamp(min=1) if annealing_steps else objective})


class Irmv1(AnnealedPenalty):
    r"""Require one classifier to be optimal in every environment (Arjovsky et al. 2019).

    .. math:: L_{clf} + \lambda \sum_e \| \nabla_{w | w = 1} L_e(w z) \|^2

    Each batch holds equally many rows of environments drawn at random, with replacement. Rows of
    unknown environment are not visited.

    Fails if environments are few or alike: other solutions than invariant ones then satisfy the
    penalty.
    """

    name = "irmv1"

    class Parameters(SubgroupMethodParameters):
        """Weight of the penalty (Table A6 for Biased MNIST); an environment is a subgroup.

        ``estimator``: ``halves`` multiplies the gradients of two halves of its rows, an unbiased
        estimate of the printed squared norm (it may be negative); ``squared`` takes the norm on
        all. ``reduction`` of the penalty over environments: loss and penalty alike (``mean``), or
        as in the study's code (``sum``). ``annealing_steps``: steps with the weight 1 at the start,
        after which the loss is divided by a weight above 1, as in the original.
        """

        weight: float = Field(0.01, ge=0, description="lambda, weight of the penalty")
        environments_per_batch: int = Field(16, ge=1)
        estimator: Literal["halves", "squared"] = "halves"
        reduction: Literal["mean", "sum"] = "mean"
        annealing_steps: int = Field(0, ge=0)

    def __init__(self, hparams: Parameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        require_softmax(self.name, model)
        blocks = hparams.environments_per_batch
        if problem.batch_size % (HALVES * blocks):
            raise InputError(
                f"method irmv1: batch_size {problem.batch_size}, allowed: multiples of "
                f"{HALVES * blocks}, two for each of environments_per_batch"
            )

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        options = self.hparams
        outputs = model(batch.x, batch.noise)
        losses = model.task_loss(outputs, batch.y)
        slopes = scale_slopes(outputs, batch.y)
        blocks = slopes.unflatten(1, (options.environments_per_batch, HALVES, -1)).mean(-1)
        of_halves = options.estimator == "halves"
        penalties = blocks.prod(-1) if of_halves else blocks.mean(-1).square()
        penalty = penalties.mean(-1) if options.reduction == "mean" else penalties.sum(-1)
        yield self.penalised(losses.mean(-1), penalty)

    def visiting_order(self, rows: TrainingRows, generator: torch.Generator) -> Tensor:
        options, batch_size = self.hparams, self.problem.batch_size
        blocks = options.environments_per_batch
        batches = len(rows.y) // batch_size + 1
        result, counts = rows.subgroup[rows.subgroup >= 0].unique(return_counts=True)
        first_last = counts.cumsum(0)
        order = rows.subgroup.argsort(stable=True)[(rows.subgroup < 0).sum() :]
        device = generator.device
        drawn = torch.randint(
            len(result), (batches * blocks, 1), generator=generator, device=device
        )
        share = torch.rand(
            batches * blocks, batch_size // blocks, generator=generator, device=device
        )
        place = (share * counts[drawn]).long().clamp(max=counts[drawn] - 1)
        return order[first_last[drawn] - counts[drawn] + place].flatten()


def scale_slopes(outputs: Tensor, y: Tensor) -> Tensor:
    """Derivative of every row's loss when all outputs are scaled by w, at w = 1, ``[..., row]``.

    ``outputs`` and ``y`` are those of ``Model.task_loss``.
    """
    if y.is_floating_point():
        predicted = outputs.squeeze(-1)
        return 2 * (predicted - y) * predicted
    expected = (outputs.softmax(-1) * outputs).sum(-1)
    return expected - outputs.gather(-1, y.unsqueeze(-1)).squeeze(-1)


class Vrex(AnnealedPenalty):
    r"""Penalise the variance of the mean losses of environments (Krueger et al. 2021).

    .. math:: \frac{1}{E} \sum_e L_e + \beta \, \mathrm{Var}_e(L_e)

    over the environments with a row in the batch; rows of unknown environment do not count.

    Fails if environments are few, or their labels are not equally noisy.

    Source: "Out-of-Distribution Generalization via Risk Extrapolation" (ICML 2021), Eq. 8, with
    means instead of sums.
    """

    name = "vrex"

    class Parameters(SubgroupMethodParameters):
        """Weight of the penalty, by default that of DomainBed; an environment is a subgroup.

        ``annealing_steps``: steps with the weight 1 at the start, after which the loss is divided
        by a weight above 1, as in the authors' code.
        """

        subgroups: Subgroups = "domain"
        weight: float = Field(10.0, ge=0, description="beta, weight of the penalty")
        annealing_steps: int = Field(0, ge=0)

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        losses = model.task_loss(model(batch.x, batch.noise), batch.y)
        environments = self.problem.subgroup_counts.shape[1]
        mean, variance = mean_and_variance(
            losses, indicators(batch.subgroup, environments, losses.dtype)
        )
        yield self.penalised(mean, variance)


def mean_and_variance(losses: Tensor, members: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and population variance over environments of their mean losses, ``[replica]`` each.

    ``losses`` are ``[replica, row]``, ``members`` 1 where a row is of an environment and 0
    elsewhere ``[replica, row, environment]``. Environments without rows do not count.
    """
    rows = members.sum(1)
    means = (losses.unsqueeze(-1) * members).sum(1) / rows.clamp(min=1)
    share = (rows > 0).to(losses.dtype)
    share = share / share.sum(1, keepdim=True).clamp(min=1)
    mean = (share * means).sum(1)
    return mean, (share * (means - mean.unsqueeze(1)).square()).sum(1)
