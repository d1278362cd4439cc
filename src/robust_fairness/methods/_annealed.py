"""A penalty with a weight of 1 in the first steps, of ``irmv1`` and ``vrex``."""

from typing import Any

import torch
from torch import Tensor

from robust_fairness.methods.base import Method, Problem, Step
from robust_fairness.models.base import Model


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
