"""Reductions of fairlearn for scikit-learn's classifiers (Agarwal et al. 2018); without torch."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from robust_fairness.bench.estimators import Mixture, Oracle
from robust_fairness.bench.methods._parameters import Declaration, GroupMethodParameters
from robust_fairness.core.errors import InputError

CONSTRAINTS = {
    "demographic_parity": "DemographicParity",
    "equalized_odds": "EqualizedOdds",
    "true_positive_rate_parity": "TruePositiveRateParity",
    "false_positive_rate_parity": "FalsePositiveRateParity",
}
MOST_MULTIPLIERS = 4  # fairlearn advises against grids of more axes


class ReductionParameters(GroupMethodParameters):
    """Hyperparameters of a reduction.

    ``constraint`` is on the rates of every group against those of all rows: of decisions for class
    1 (``demographic_parity``), or of these given the label.
    """

    method: ClassVar[str]
    constraint: Literal[
        "demographic_parity",
        "equalized_odds",
        "true_positive_rate_parity",
        "false_positive_rate_parity",
    ] = "equalized_odds"

    @abstractmethod
    def unfitted(self, oracle: Oracle, weight: np.ndarray, groups: int) -> Any:
        """The reduction of fairlearn, of a classifier and of weights ``[m]`` with mean 1."""

    @abstractmethod
    def shares(self, fitted: Any) -> Iterable[float]:
        """The share of every one of its ``predictors_`` in the mixture."""

    def mixture(
        self, oracle: Oracle, x: np.ndarray, y: np.ndarray, group: np.ndarray, weight: np.ndarray
    ) -> Mixture:
        """Fit to rows ``[m]`` with classes 0 and 1, groups and weights.

        Raises:
            InputError: a group has one class only, without which its rates are undefined.
        """
        cells = np.unique(np.stack([group, y]), axis=1).shape[1]
        if self.constraint != "demographic_parity" and cells < 2 * len(np.unique(group)):
            raise InputError(
                f"method {self.method}: a group has training rows of one class only, allowed: "
                "groups with both, or constraint demographic_parity"
            )
        made = self.unfitted(oracle, weight / weight.mean(), len(np.unique(group)))
        made.fit(x, y, sensitive_features=group)
        members = zip(self.shares(made), made.predictors_, strict=True)
        result = [(float(share), item) for share, item in members if share > 0]
        # fairlearn replaces the classifier where all rows have the same label
        fitted = [item for item in result if isinstance(item[1], type(oracle))]
        constant = [item for item in result if not isinstance(item[1], type(oracle))]
        return Mixture(
            [classifier.machine for _, classifier in fitted],
            [share for share, _ in fitted],
            sum((share * float(item.predict(x[:1])[0]) for share, item in constant), 0.0),
        )


def moment(constraint: str, weight: np.ndarray, **options: float) -> Any:
    """The constraint of fairlearn between rows of these weights, with mean 1.

    fairlearn's moments count rows. They are linear in the contributions of rows, in ``U`` for the
    constraint and in the errors for the objective, which are multiplied by the weights here.
    """
    from fairlearn import reductions

    base: Any = getattr(reductions, CONSTRAINTS[constraint])
    error: Any = reductions.ErrorRate
    if (weight == 1).all():
        return base(**options)

    class WeightedError(error):
        def gamma(self, predictor: Any) -> Any:
            wrong = (self.tags["label"] - np.squeeze(predictor(self.X))).abs()
            return pd.Series((weight * wrong).mean(), index=self.index)

        def signed_weights(self, lambda_vec: Any = None) -> Any:
            return weight * super().signed_weights(lambda_vec)

    class Weighted(base):
        def default_objective(self) -> Any:
            return WeightedError()

        def load_data(self, X: Any, y: Any, *, sensitive_features: Any) -> None:
            super().load_data(X, y, sensitive_features=sensitive_features)
            rows = self.tags.assign(weight=weight)
            event = rows.groupby("event")["weight"].sum() / self.total_samples
            group = rows.groupby(["event", "group_id"])["weight"].sum() / self.total_samples
            for sign, factor in (("+", 1), ("-", -1)):
                for of in group.index:
                    inside = (rows["event"] == of[0]).to_numpy()
                    among = inside & (rows["group_id"] == of[1]).to_numpy()
                    row = inside / event[of[0]] - among / group[of]
                    self.U[(sign, *of)] = factor * weight * row
            self.prob_event, self.prob_group_event = event, group

    return Weighted(**options)


class ExponentiatedGradientParameters(ReductionParameters):
    """Bound of the constraint and end of the iteration, as in fairlearn."""

    method = "exponentiated_gradient"
    difference_bound: float = Field(0.01, gt=0, le=1, description="of a group to all rows")
    eps: float = Field(0.01, gt=0, description="inverse bound of the multipliers")
    iterations: int = Field(50, ge=1, description="at most")

    def unfitted(self, oracle: Oracle, weight: np.ndarray, groups: int) -> Any:
        from fairlearn.reductions import ExponentiatedGradient

        bound = float(self.difference_bound)
        constraint = moment(self.constraint, weight, difference_bound=bound)
        return ExponentiatedGradient(
            oracle, constraint, eps=float(self.eps), max_iter=self.iterations
        )

    def shares(self, fitted: Any) -> Iterable[float]:
        return fitted.weights_


class GridSearchParameters(ReductionParameters):
    """Size of the grid and weight of the violation, as in fairlearn."""

    method = "grid_search"
    constraint_weight: float = Field(0.5, ge=0, le=1, description="of the violation")
    grid_size: int = Field(10, ge=1, description="multipliers, each a fit")
    grid_limit: float = Field(2.0, gt=0, description="largest multiplier")

    def unfitted(self, oracle: Oracle, weight: np.ndarray, groups: int) -> Any:
        from fairlearn.reductions import GridSearch

        axes = (groups - 1) * (2 if self.constraint == "equalized_odds" else 1)
        if axes > MOST_MULTIPLIERS:
            raise InputError(
                f"method grid_search: {groups} groups make a grid of {axes} axes, allowed: up to "
                f"{MOST_MULTIPLIERS}, or method exponentiated_gradient"
            )
        return GridSearch(
            oracle,
            moment(self.constraint, weight),
            constraint_weight=float(self.constraint_weight),
            grid_size=self.grid_size,
            grid_limit=float(self.grid_limit),
        )

    def shares(self, fitted: Any) -> Iterable[float]:
        return [number == fitted.best_idx_ for number in range(len(fitted.predictors_))]


class ReductionDeclaration(Declaration):
    """Fit any estimator that takes weights many times, with labels and weights by a constraint.

    Training rows of unknown group or of weight 0 are left out. Predictions are decisions, without
    scores. With ``sample_weight`` error and rates are those of the weighted rows.

    Source: Agarwal, Beygelzimer, Dudik, Langford and Wallach, "A Reductions Approach to Fair
    Classification" (ICML 2018), as in fairlearn.
    """

    Parameters = ReductionParameters
    estimators = "only"
    binary_only = True
    default_network = "estimator"
    reads = ("sample_weight",)


class ExponentiatedGradientDeclaration(ReductionDeclaration):
    r"""The exponentiated gradient reduction (Agarwal et al. 2018).

    The mixture of classifiers with the least error subject to the constraint.

    .. math:: \min_Q \max_{\|\lambda\|_1 \le 1/\epsilon}
              err(Q) + \lambda^\top (\gamma(Q) - bound)

    A row is decided by a member that is drawn at random, and is scored by the expectation.
    ``difference_bound`` is on the difference between a group and all rows: two groups may differ
    by up to twice as much. It holds on training rows.

    Fails if the classifier overfits: the constraint then holds on training rows alone.

    Source: "A Reductions Approach to Fair Classification" (ICML 2018), Algorithm 1.
    """

    Parameters = ExponentiatedGradientParameters


class GridSearchDeclaration(ReductionDeclaration):
    """The grid search reduction (Agarwal et al. 2018).

    The classifier of a grid of multipliers with the best trade-off on training rows.

    The trade-off is ``(1 - constraint_weight)`` times the error plus ``constraint_weight`` times
    the largest violation of the constraint. The grid has an axis for each group but one, and twice
    as many for ``equalized_odds``.

    Fails if there are many groups: the grid is then too coarse.

    Source: "A Reductions Approach to Fair Classification" (ICML 2018), section 3.4.
    """

    Parameters = GridSearchParameters
