"""How far two domains differ in their features, and the weights that make them comparable."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from robust_fairness.auditing.why.columns import NAMES_DOMAIN, Columns, domain_columns, folds

FOLDS = 3
LEARNING_RATE = 0.2  # of boosted trees
MOST = 20_000  # rows of a domain that classifiers and trees are fitted on
FEWEST = 50  # rows of a domain, or of a group in it, for which classifiers are fitted
LITTLE_OVERLAP = 0.95  # AUC above which a shared distribution rests on few rows
FEWEST_EFFECTIVE = 0.1  # of the rows


@dataclass(frozen=True)
class Overlap:
    r"""Two domains seen by a classifier that tells them apart.

    With :math:`\pi(x)` the probability of being elsewhere and :math:`\alpha` the share of rows
    elsewhere, the weights of the shared distribution :math:`s(x) \propto p(x) t(x) / (p(x) + t(x))`
    are

    .. math:: w_P = \frac{\pi}{(1-\alpha) \pi + \alpha (1-\pi)}, \quad
        w_T = \frac{1-\pi}{(1-\alpha) \pi + \alpha (1-\pi)}

    Source: Cai, Namkoong and Yadlowsky, "Diagnosing Model Performance Under Distribution Shift"
    (2023, arXiv 2303.02011).

    Attributes:
        pi_home: probabilities of being elsewhere of the rows at home ``[n]``, by classifiers that
            were not fitted on them.
        pi_away: those of the rows elsewhere ``[m]``.
    """

    pi_home: np.ndarray
    pi_away: np.ndarray

    @cached_property
    def auc(self) -> float:
        """Area under the ROC curve of the classifier; 0.5 if the domains are alike."""
        sizes = [len(self.pi_home), len(self.pi_away)]
        pi = np.concatenate([self.pi_home, self.pi_away])
        return float(roc_auc_score(np.repeat([False, True], sizes), pi))

    @cached_property
    def home(self) -> np.ndarray:
        """Weights of the rows at home ``[n]``, with sum 1."""
        weights = self.pi_home / self._both(self.pi_home)
        return np.asarray(weights / weights.sum())

    @cached_property
    def away(self) -> np.ndarray:
        """Weights of the rows elsewhere ``[m]``, with sum 1."""
        weights = (1 - self.pi_away) / self._both(self.pi_away)
        return np.asarray(weights / weights.sum())

    def _both(self, pi: np.ndarray) -> np.ndarray:
        alpha = len(self.pi_away) / (len(self.pi_home) + len(self.pi_away))
        return np.asarray((1 - alpha) * pi + alpha * (1 - pi))

    @property
    def effective_rows(self) -> tuple[float, float]:
        """Effective sample sizes of both weights, 1 / sum of squares."""
        return float(1 / np.sum(self.home**2)), float(1 / np.sum(self.away**2))

    @property
    def little(self) -> bool:
        """Whether the domains share too little for a decomposition to say anything."""
        few = (
            size < FEWEST_EFFECTIVE * len(weights)
            for size, weights in zip(self.effective_rows, (self.home, self.away), strict=True)
        )
        return self.auc > LITTLE_OVERLAP or any(few)


def some(rows: int) -> np.ndarray:
    """Numbers of all rows, or of ``MOST`` of them drawn at random, the same at every call."""
    if rows <= MOST:
        return np.arange(rows)
    return np.sort(np.random.default_rng(0).choice(rows, MOST, replace=False))


def _model(
    categorical: np.ndarray | None, classes: bool = True, learning_rate: float = LEARNING_RATE
) -> HistGradientBoostingClassifier | HistGradientBoostingRegressor:
    """Boosted trees of a fixed, small size: they need no scaling and see interactions."""
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return kind(
        max_iter=30,
        learning_rate=learning_rate,
        max_leaf_nodes=8,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=0,
        categorical_features=categorical,
    )


@threadpool_limits.wrap(limits=1)  # threads that wait for busy cores take 60 times as long
def cross_fitted(
    x: Columns,
    target: np.ndarray,
    fold: np.ndarray,
    weight: np.ndarray | None = None,
    among: np.ndarray | None = None,
    at: Sequence[Columns] = (),
    learning_rate: float = LEARNING_RATE,
) -> np.ndarray:
    """The mean of a target given columns, by boosted trees fitted without the fold of the row.

    Args:
        x: columns of the rows.
        target: numbers, or 0 and 1, ``[n]``.
        fold: fold of each row ``[n]``.
        weight: weights of the rows ``[n]``; equal if None. Equal ones are left out: the trees would
            take half of their time for weighted percentiles.
        among: the rows that are fitted on, bool ``[n]``; all if None.
        at: other values of the columns, for each of which means are predicted; ``x`` if empty.
        learning_rate: of the trees.

    Returns:
        Means of all rows, float64 ``[n]``, or ``[values, n]`` of other values.
    """
    of_rows = [part.values for part in at or [x]]
    fitted = np.empty((len(of_rows), len(target)))
    if weight is not None and (weight == weight[0]).all():
        weight = None
    for number in range(FOLDS):
        out = fold == number
        rows = ~out if among is None else ~out & among
        values = np.unique(target[rows])
        if len(values) < 2:  # noqa: PLR2004 - nothing to fit; 0 where nothing is known
            fitted[:, out] = values.sum()
            continue
        classes = np.array_equal(values, [0, 1])
        model = _model(x.categorical, classes, learning_rate)
        model.fit(x.values[rows], target[rows], None if weight is None else weight[rows])
        for place, part in enumerate(of_rows):
            seen = part[out]
            fitted[place, out] = model.predict_proba(seen)[:, 1] if classes else model.predict(seen)
    return fitted if at else fitted[0]


@dataclass(frozen=True, eq=False)
class ComparedRows:
    """Rows of two domains: home and elsewhere, or an earlier period and this one.

    Attributes:
        away: whether a row is from elsewhere, bool ``[n]``.
        columns: their columns, the sensitive attributes among them.
        unit: number of the unit of each row ``[n]``, such as a person.
        weight: of the rows, with mean 1 in each domain.
    """

    away: np.ndarray
    columns: Columns
    unit: np.ndarray
    weight: np.ndarray

    @cached_property
    def fold(self) -> np.ndarray:
        """The fold of each row; the rows of a unit are in one."""
        return folds(FOLDS, len(self.unit), self.unit)

    @cached_property
    def column_aucs(self) -> pd.Series:
        """How well each column alone tells the domains apart, see ``domain_columns``."""
        return domain_columns(self.columns, self.away, self.unit)

    @cached_property
    def naming(self) -> tuple[str, ...]:
        """The columns that name the domain; all others are X."""
        return tuple(self.column_aucs.index[self.column_aucs >= NAMES_DOMAIN])

    @cached_property
    def overlap(self) -> Overlap:
        """The overlap in all columns."""
        if self.naming:
            later = cross_fitted(self.columns, self.away, self.fold, self.weight)
        else:
            later = self.given_x(self.away, np.ones(len(self.away), bool))
        return Overlap(later[~self.away], later[self.away])

    @cached_property
    def x(self) -> Columns:
        """All columns but those that name the domain."""
        return self.columns.without(self.naming)

    def given_x(self, target: np.ndarray, among: np.ndarray) -> np.ndarray:
        """Means of a target given X, see ``cross_fitted``; fitted once for all models of a run."""
        key = target.tobytes(), among.tobytes()
        if key not in self._given_x:
            self._given_x[key] = cross_fitted(self.x, target, self.fold, self.weight, among)
        return self._given_x[key]

    @cached_property
    def _given_x(self) -> dict[tuple[bytes, bytes], np.ndarray]:
        return {}

    @cached_property
    def two_sample(self) -> tuple[float, float]:
        """AUC and p-value of the classifier two-sample test of all columns."""
        columns = self.columns
        return two_sample_test(
            columns.values, self.away, self.unit, categorical=columns.categorical
        )

    def smallest(self, rows: np.ndarray) -> int:
        """The number of some rows in the domain with fewer of them."""
        away = int((rows & self.away).sum())
        return min(away, int(rows.sum()) - away)

    def errors(self, scores: np.ndarray) -> np.ndarray:
        """Standard errors of sums of scores ``[values, n]``, by unit within domains."""
        variance = np.zeros(len(scores))
        for rows in (~self.away, self.away):
            unit = np.unique(self.unit[rows], return_inverse=True)[1]
            for place, score in enumerate(scores):
                sums = np.bincount(unit, score[rows])
                variance[place] += len(sums) * sums.var(ddof=1) if len(sums) > 1 else np.nan
        return np.sqrt(variance)


def two_sample_test(
    x: np.ndarray,
    elsewhere: np.ndarray,
    units: np.ndarray | None = None,
    permutations: int = 200,
    seed: int = 0,
    categorical: np.ndarray | None = None,
) -> tuple[float, float]:
    """AUC of a domain classifier on rows that it was not fitted on, and its p-value.

    The classifier is fitted once, on half of the units; labels of the other half are permuted, by
    unit. Source: Lopez-Paz and Oquab, "Revisiting Classifier Two-Sample Tests" (ICLR 2017).

    Args:
        x: features of the rows of both domains, float ``[n, d]``.
        elsewhere: whether a row is of the other domain, bool ``[n]``; the same for all rows of a
            unit, or a unit counts as where its first row is.
        units: units ``[n]``; every row on its own if None.
        permutations: how many; no p-value is below ``1 / (permutations + 1)``.
        seed: of the halves and permutations.
        categorical: the features that are codes of categories, bool ``[d]``; none if None.
    """
    generator = np.random.default_rng(seed)
    names, first, unit = np.unique(
        np.arange(len(x)) if units is None else units, return_index=True, return_inverse=True
    )
    half = generator.permutation(len(names)) % 2 == 0
    fitted = half[unit]
    model = _model(categorical).fit(x[fitted], elsewhere[fitted])
    ranks = stats.rankdata(model.predict_proba(x[~fitted])[:, 1])
    # ranks and rows of each unit of the other half: all that the AUC needs of them
    others = np.flatnonzero(~half)
    tested = np.searchsorted(others, unit[~fitted])
    sums, rows = np.bincount(tested, ranks), np.bincount(tested)
    where = elsewhere[first][others]
    shuffled = np.array([where, *(generator.permutation(where) for _ in range(permutations))])
    away = shuffled @ rows
    auc = (shuffled @ sums - away * (away + 1) / 2) / (away * (len(ranks) - away))
    return float(auc[0]), float(np.mean(auc >= auc[0]))
