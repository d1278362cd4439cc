"""Invariant risk minimisation, version 1 (Arjovsky et al. 2019)."""

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
    TrainingRows,
    require_softmax,
    row_weights,
)
from robust_fairness.bench.models.base import Model
from robust_fairness.core.errors import InputError

HALVES = 2


class Irmv1(Method):
    r"""Require one classifier to be optimal in every environment (Arjovsky et al. 2019).

    .. math:: L_{clf} + \lambda \sum_e \| \nabla_{w | w = 1} L_e(w z) \|^2

    Each batch holds equally many rows of environments drawn at random, with replacement. Rows of
    unknown environment are not visited.

    Fails if environments are few or alike: other solutions than invariant ones then satisfy the
    penalty.
    """

    class Parameters(SubgroupMethodParameters):
        """Weight of the penalty (Table A6 for Biased MNIST); an environment is a subgroup.

        ``estimator``: ``halves`` multiplies the gradients of two halves of its rows, an unbiased
        estimate of the printed squared norm (it may be negative); ``squared`` takes the norm on
        all. ``reduction`` of the penalty over environments: loss and penalty alike (``mean``), or
        as in the study's code (``sum``).
        """

        weight: float = Field(0.01, ge=0, description="lambda, weight of the penalty")
        environments_per_batch: int = Field(16, ge=1)
        estimator: Literal["halves", "squared"] = "halves"
        reduction: Literal["mean", "sum"] = "mean"

    reads = ("sample_weight",)

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
        weight = row_weights(batch)
        slopes = weight * scale_slopes(outputs, batch.y)
        blocks = slopes.unflatten(1, (options.environments_per_batch, HALVES, -1)).mean(-1)
        of_halves = options.estimator == "halves"
        penalties = blocks.prod(-1) if of_halves else blocks.mean(-1).square()
        penalty = penalties.mean(-1) if options.reduction == "mean" else penalties.sum(-1)
        yield Step({"model": (weight * losses).mean(-1) + options.weight * penalty})

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
