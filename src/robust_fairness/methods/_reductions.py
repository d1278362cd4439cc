"""Reductions of fair classification to weighted classification, by fairlearn."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

import numpy as np
from torch import Tensor

from robust_fairness.core.errors import InputError
from robust_fairness.estimators.base import Estimator, Mixture
from robust_fairness.methods.base import Batch, GroupMethodParameters, Method, Problem, Step
from robust_fairness.models.base import Model

CONSTRAINTS = {
    "demographic_parity": "DemographicParity",
    "equalized_odds": "EqualizedOdds",
    "true_positive_rate_parity": "TruePositiveRateParity",
    "false_positive_rate_parity": "FalsePositiveRateParity",
}
TWO = 2


class ReductionParameters(GroupMethodParameters):
    """Hyperparameters of a reduction.

    ``constraint`` is on the rates of every group against those of all rows: of decisions for class
    1 (``demographic_parity``), or of these given the label.
    """

    constraint: Literal[
        "demographic_parity",
        "equalized_odds",
        "true_positive_rate_parity",
        "false_positive_rate_parity",
    ] = "equalized_odds"


class Reduction(Method):
    """Fit any estimator that takes weights many times, with labels and weights by a constraint.

    Training rows of unknown group are left out. Predictions are decisions, without scores.

    Source: Agarwal, Beygelzimer, Dudik, Langford and Wallach, "A Reductions Approach to Fair
    Classification" (ICML 2018), as in fairlearn.
    """

    Parameters = ReductionParameters
    estimators = "only"

    def __init__(self, hparams: Any, model: Model, problem: Problem) -> None:
        super().__init__(hparams, model, problem)
        if problem.classes != TWO:
            raise InputError(f"method {self.name}: defined for two classes")
        problem.require_attributes(self.name)
        problem.require_groups(self.name)

    @abstractmethod
    def reduced(
        self, oracle: Any, x: np.ndarray, y: np.ndarray, group: np.ndarray
    ) -> Sequence[tuple[float, Any]]:
        """Shares and classifiers of the mixture; groups are numbers ``[m]``."""

    def fit(self, model: Estimator, batch: Batch, weight: Tensor | None) -> None:
        known = batch.group[0] >= 0
        group = batch.group[0, known].cpu().numpy()
        self._require_rates(group, batch.y[0, known].cpu().numpy())

        def reduction(oracle: Any, x: np.ndarray, y: np.ndarray) -> Mixture:
            found = [one for one in self.reduced(oracle, x, y, group) if one[0] > 0]
            # fairlearn replaces the classifier where all rows have the same label
            fitted = [one for one in found if isinstance(one[1], type(oracle))]
            constant = [one for one in found if not isinstance(one[1], type(oracle))]
            return Mixture(
                [classifier for _, classifier in fitted],
                [share for share, _ in fitted],
                sum((share * float(one.predict(x[:1])[0]) for share, one in constant), 0.0),
            )

        cast("Any", model).fit_reduction(batch.x[:, known], batch.y[:, known], reduction)

    def _require_rates(self, group: np.ndarray, y: np.ndarray) -> None:
        """Raise if a group has one class only, without which its rates are undefined."""
        cells = np.unique(np.stack([group, y]), axis=1).shape[1]
        if self.hparams.constraint != "demographic_parity" and cells < TWO * len(np.unique(group)):
            raise InputError(
                f"method {self.name}: a group has training rows of one class only, allowed: groups "
                "with both, or constraint demographic_parity"
            )

    def steps(self, model: Model, batch: Batch) -> Iterator[Step]:
        return iter(())  # classifiers are fitted in one call


def moment(constraint: str, **options: float) -> Any:
    """The constraint of fairlearn."""
    from fairlearn import reductions

    return getattr(reductions, CONSTRAINTS[constraint])(**options)
