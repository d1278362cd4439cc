"""Support vector machines with a Gaussian kernel, fitted by scikit-learn."""

import logging
from itertools import combinations
from typing import ClassVar, Literal

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor
from torch.nn import functional

from robust_fairness.core.registry import PluginParameters
from robust_fairness.estimators.base import Classifier

LOGGER = logging.getLogger(__name__)


class RbfSvm(Classifier):
    """Decision values of the fitted machine, computed by torch in float64.

    Outputs equal scikit-learn's ``decision_function``: for two classes plus and minus half of it,
    for more its one-against-one votes, with ties broken by confidences.
    """

    keeps_training_rows = True  # the support vectors

    class Parameters(PluginParameters):
        """The penalty C, the kernel's gamma, and the number of training rows to use.

        ``gamma``: of exp(-gamma |x - x'|^2); ``scale`` is scikit-learn's default, one over the
        product of the number of inputs and their variance. ``max_rows``: fitting time grows faster
        than the square of the rows, so at most this many, drawn by the seed, are used. This is
        logged, and the saved model's ``rows`` holds how many were used and available.
        """

        penalty: float = Field(1.0, gt=0, description="C, weight of the training errors")
        gamma: Literal["scale"] | PositiveFloat = "scale"
        max_rows: int = Field(5000, ge=2, description="maximum number of training rows")

    buffers_of: ClassVar = {
        **dict.fromkeys(("support", "coefficients", "intercepts", "gamma"), torch.float64),
        "rows": torch.int64,
    }
    support: Tensor  # [vector, input]
    coefficients: Tensor  # [vector, pair of classes], 0 for vectors of other classes
    intercepts: Tensor  # [pair of classes]
    gamma: Tensor
    rows: Tensor  # how many were used, and how many were available

    def numbers_of_a_row(self) -> int:
        return len(self.support)

    def values(self, x: Tensor) -> Tensor:
        products = x @ self.support.mT
        squares = x.square().sum(1, keepdim=True) + self.support.square().sum(1) - 2 * products
        decisions = (-self.gamma * squares).exp() @ self.coefficients + self.intercepts
        return one_against_rest(decisions, len(self.present))

    def fit(self, x: Tensor, y: Tensor, sample_weight: Tensor | None = None) -> None:
        rows = self._drawn(y.shape[1]).to(x.device)
        super().fit(x[:, rows], y[:, rows])

    def _drawn(self, count: int) -> Tensor:
        """Positions of the rows to fit to among ``count``, int64 ``[m]``."""
        taken = min(self.hparams.max_rows, count)
        if taken < count:
            LOGGER.warning("rbf_svm: fits %d of %d training rows (max_rows)", taken, count)
        self.keep(rows=torch.tensor([taken, count]))
        (generator,) = self.randomness.generators
        return torch.randperm(count, generator=generator)[:taken].sort().values

    def learn(self, inputs: Tensor, labels: Tensor) -> None:
        from sklearn.svm import SVC

        p = self.hparams
        # cache_size: MB of kernel values
        machine = SVC(C=p.penalty, gamma=p.gamma, cache_size=500).fit(inputs, labels)
        dual = torch.tensor(machine.dual_coef_, dtype=torch.float64)  # [class - 1, vector]
        owner = torch.repeat_interleave(torch.tensor(machine.n_support_).long())
        sign = -1 if len(self.present) == 2 else 1  # of two classes it is reversed
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
    """Values of classes from those of their pairs ``[row, pair]``, as in scikit-learn.

    Votes of the pairs, positive for the first class; ties are broken by the sum of confidences,
    scaled to below a third of a vote. With two classes the values differ by the decision itself.
    """
    if classes == 2:
        return torch.cat([decisions, -decisions], dim=1) / 2
    first, second = (
        functional.one_hot(torch.tensor(combination, device=decisions.device), classes).to(
            decisions.dtype
        )
        for combination in zip(*combinations(range(classes), 2), strict=True)
    )
    confidence = decisions @ (first - second)
    won = (decisions >= 0).to(decisions.dtype)
    votes = won @ first + (1 - won) @ second
    return votes + confidence / (3 * (confidence.abs() + 1))
