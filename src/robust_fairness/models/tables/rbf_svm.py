"""Support vector machines with a Gaussian kernel, fitted by scikit-learn."""

import logging
from itertools import combinations
from math import prod
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat
from torch import Tensor
from torch.nn import functional

from robust_fairness.models.embeddings._fitted import FittedClassifier, require_classes
from robust_fairness.models.randomness import Randomness

STACKS = False
CACHE = 500  # MB of kernel values that scikit-learn keeps
LOGGER = logging.getLogger(__name__)


class Parameters(BaseModel):
    """The penalty C, the kernel's gamma, and how many training rows are taken.

    Of the protocol only preprocessing and device apply; epochs and optimiser do not.

    ``gamma``: of exp(-gamma |x - x'|^2); ``scale`` is scikit-learn's default, one over the number
    of inputs times their variance. ``max_rows``: time grows faster than the square of the rows,
    so that no more than these, drawn by the seed, are fitted. A message says so, and the saved
    model's ``rows`` holds how many were taken and how many there were.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    penalty: float = Field(1.0, gt=0, description="C, weight of the training errors")
    gamma: Literal["scale"] | PositiveFloat = "scale"
    max_rows: int = Field(5000, ge=2, description="most training rows")


class RbfSvm(FittedClassifier):
    """Decision values of the fitted machine, by torch in float64.

    Outputs are those of scikit-learn's ``decision_function``: for two classes plus and minus half
    of it, for more its one-against-one votes, in which confidences decide between equal numbers.

    Args:
        parameters: of the fit.
        inputs: numbers of a row.
        classes: number of classes.
        randomness: draws the rows where there are too many.
    """

    support: Tensor  # [vector, input]
    coefficients: Tensor  # [vector, pair of classes], 0 for vectors of other classes
    intercepts: Tensor  # [pair of classes]
    gamma: Tensor
    rows: Tensor  # how many were fitted, and how many there were

    def __init__(
        self, parameters: Parameters, inputs: int, classes: int, randomness: Randomness
    ) -> None:
        super().__init__("rbf_svm", inputs, classes)
        self.parameters_of_network, self.randomness = parameters, randomness
        empty = torch.zeros(0, inputs, dtype=torch.float64)
        self.register_buffer("support", empty)
        self.register_buffer("coefficients", empty.new_zeros(0, 0))
        self.register_buffer("intercepts", empty.new_zeros(0))
        self.register_buffer("gamma", empty.new_zeros(()))
        self.register_buffer("rows", torch.zeros(2, dtype=torch.int64))

    def numbers_of_a_row(self) -> int:
        """Kernel values with all support vectors."""
        return len(self.support)

    def values(self, x: Tensor) -> Tensor:
        """Decision values ``[row, known class]`` of inputs ``[row, input]``, float64."""
        products = x @ self.support.mT
        squares = x.square().sum(1, keepdim=True) + self.support.square().sum(1) - 2 * products
        decisions = (-self.gamma * squares).exp() @ self.coefficients + self.intercepts
        return one_against_rest(decisions, len(self.present))

    def rows_to_fit(self, count: int) -> Tensor:
        """All places, or ``max_rows`` of them, drawn by the seed, int64 ``[m]``."""
        taken = min(self.parameters_of_network.max_rows, count)
        if taken < count:
            LOGGER.warning("rbf_svm: fits %d of %d training rows (max_rows)", taken, count)
        self.keep(rows=torch.tensor([taken, count]))
        (generator,) = self.randomness.generators
        return torch.randperm(count, generator=generator)[:taken].sort().values

    def fit(self, inputs: Tensor, labels: Tensor) -> None:
        """Fit scikit-learn's machine."""
        from sklearn.svm import SVC

        p = self.parameters_of_network
        machine = SVC(C=p.penalty, gamma=p.gamma, cache_size=CACHE).fit(inputs, labels)
        self.take(machine, inputs)

    def take(self, machine: Any, inputs: Tensor) -> None:
        """Keep what a fitted ``SVC`` predicts with.

        scikit-learn turns the sign round where there are only two classes.

        Args:
            machine: the fitted ``SVC``.
            inputs: what it was fitted on ``[row, input]``.
        """
        dual = torch.tensor(machine.dual_coef_, dtype=torch.float64)  # [class - 1, vector]
        owner = torch.repeat_interleave(torch.tensor(machine.n_support_).long())
        sign = -1 if len(self.present) == 2 else 1  # noqa: PLR2004
        columns = [
            torch.where(owner == first, dual[second - 1], 0)
            + torch.where(owner == second, dual[first], 0)
            for first, second in combinations(range(len(self.present)), 2)
        ]
        scale = 1 / (inputs.shape[1] * inputs.var(correction=0))
        self.keep(
            support=inputs[torch.from_numpy(machine.support_).long()],
            coefficients=sign * torch.stack(columns, dim=1),
            intercepts=sign * torch.tensor(machine.intercept_, dtype=torch.float64),
            gamma=scale if machine.gamma == "scale" else scale.new_tensor(machine.gamma),
        )


def one_against_rest(decisions: Tensor, classes: int) -> Tensor:
    """Values of classes from those of their pairs, as scikit-learn's ``decision_function``.

    Votes of the pairs; the sum of confidences, mapped to at most a third of a vote, decides
    between classes with equally many.

    Args:
        decisions: ``[row, pair]``, positive for the first class of the pair.
        classes: number of classes; for two their values differ by the decision itself.
    """
    if classes == 2:  # noqa: PLR2004
        return torch.cat([decisions, -decisions], dim=1) / 2
    first, second = (
        functional.one_hot(torch.tensor(one, device=decisions.device), classes).to(decisions.dtype)
        for one in zip(*combinations(range(classes), 2), strict=True)
    )
    confidence = decisions @ (first - second)
    won = (decisions >= 0).to(decisions.dtype)
    votes = won @ first + (1 - won) @ second
    return votes + confidence / (3 * (confidence.abs() + 1))


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> RbfSvm:
    """A machine that is yet to be fitted, for feature vectors or pictures.

    Args:
        parameters: of the fit.
        inputs: shape of one row.
        outputs: number of classes.
        randomness: draws the rows where there are too many, for one replica.

    Raises:
        InputError: the outcome is continuous.
    """
    require_classes("rbf_svm", outputs)
    return RbfSvm(parameters, prod(inputs), outputs, randomness)
