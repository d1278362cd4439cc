"""Penalties on the dependence of predictions on attributes: FairCOCCO, FACL and FARMI."""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.methods.base import (
    Batch,
    GroupMethodParameters,
    Method,
    Problem,
    Step,
    require_softmax,
)
from robust_fairness.models.base import Model


class DependenceParameters(GroupMethodParameters):
    """Weight of the penalty and what must not depend on the attributes.

    ``notion``: with prediction S, outcome Y and attribute A, ``dp`` (demographic parity,
    independence) asks for S independent of A, ``eo`` (equalised odds, separation) for the same
    given Y, ``cal`` (calibration, sufficiency) for Y independent of A given S. A dataset may name
    an attribute instead of Y.
    """

    weight: float = Field(1.0, ge=0, description="lambda, weight of the penalty")
    notion: Literal["dp", "eo", "cal"] = "eo"


@dataclass(frozen=True)
class Variable:
    """An attribute or outcome of the rows of a batch.

    Attributes:
        values: one column with a number, or one column of 0 and 1 per category; all 0 where it is
            missing. ``[replica, row, column]``.
        known: bool, where it is not missing ``[replica, row]``.
    """

    values: Tensor
    known: Tensor

    @property
    def continuous(self) -> bool:
        return self.values.shape[-1] == 1

    def where(self, other: "Variable") -> "Variable":
        """The same, but known only where the other is."""
        known = self.known & other.known
        return Variable(torch.where(known.unsqueeze(-1), self.values, 0), known)


def variable(numbers: Tensor) -> Variable:
    """The variable of these columns ``[replica, row, column]``, NaN where it is missing."""
    known = numbers.isfinite().all(-1)
    return Variable(torch.where(known.unsqueeze(-1), numbers, 0), known)


class DependenceMethod(Method):
    r"""Add a measure of dependence D to the task's loss, :math:`L + \lambda D`."""

    Parameters = DependenceParameters
    reads = ("attributes",)

    def __init__(self, hparams: DependenceParameters, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        problem.require_attributes(self.name)
        require_softmax(self.name, model)

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        outputs = model(batch.x, batch.noise)
        losses = model.task_loss(outputs, batch.y)
        penalty = self.penalty(outputs, batch)
        yield Step({"model": losses.mean(-1) + self.hparams.weight * penalty})

    @abstractmethod
    def penalty(self, outputs: Tensor, batch: Batch) -> Tensor:
        """Dependence of outputs ``[replica, row, output]`` on the attributes, ``[replica]``."""


class SummedDependenceMethod(DependenceMethod):
    """A measure of one attribute at a time, summed over them.

    Rows where an attribute, or the outcome that the notion names, is missing do not count for it.
    """

    def penalty(self, outputs: Tensor, batch: Batch) -> Tensor:
        attributes = map(variable, batch.attributes.split(self.problem.attribute_widths, dim=-1))
        outcome = None if self.hparams.notion == "dp" else variable(batch.conditioning)
        found = [
            self.dependence(outputs, attribute.where(outcome) if outcome else attribute, outcome)
            for attribute in attributes
        ]
        return torch.stack(found).sum(0)

    @abstractmethod
    def dependence(self, outputs: Tensor, attribute: Variable, outcome: Variable | None) -> Tensor:
        """The dependence of outputs ``[replica, row, output]`` on an attribute, ``[replica]``.

        The attribute is known where ``outcome`` is, on which the notion conditions (not ``dp``).
        """
