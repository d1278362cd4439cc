"""How two domains differ: columns, how far they overlap, and shares of classes and groups."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special, stats
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from robust_fairness.core.samples import Samples
from robust_fairness.numbers.estimate import LEVEL

MOST_LEVELS = 255  # of a column that the boosted trees take as a category
NAMES_DOMAIN = 0.9  # AUC from which a single column names the domain
LEAVES = 32
FOLDS = 3
LEARNING_RATE = 0.2  # of boosted trees
MOST = 20_000  # rows of a domain that classifiers and trees are fitted on
FEWEST = 50  # rows of a domain, or of a group in it, for which classifiers are fitted
LITTLE_OVERLAP = 0.95  # AUC above which a shared distribution rests on few rows
FEWEST_EFFECTIVE = 0.1  # of the rows


@dataclass(frozen=True)
class Columns:
    """Columns of some rows.

    Attributes:
        values: numbers, or codes of categories, float32 ``[n, columns]``.
        names: what they are called.
        categorical: which of them are categories, bool ``[columns]``.
    """

    values: np.ndarray
    names: tuple[str, ...]
    categorical: np.ndarray

    @classmethod
    def of(cls, samples: Samples) -> "Columns":
        """The columns of samples whose features are numbers; one-hot features are one column."""
        x = np.asarray(samples.x, dtype=np.float32)
        names = samples.columns or samples.features or tuple(map(str, range(x.shape[1])))
        places = pd.Series(np.arange(len(names))).groupby(list(names), sort=False)
        parts = {str(name): part.to_numpy() for name, part in places}
        values = [
            x[:, part[0]] if len(part) == 1 else x[:, part].argmax(1) for part in parts.values()
        ]
        levels = np.array([len(part) for part in parts.values()])
        return cls(
            np.column_stack(values).astype(np.float32),
            tuple(parts),
            (levels > 1) & (levels <= MOST_LEVELS),
        )

    def take(self, rows: np.ndarray) -> "Columns":
        """The columns of some rows."""
        return replace(self, values=self.values[rows])

    def joined(self, others: dict[str, np.ndarray], categories: bool = True) -> "Columns":
        """These columns and further ones, numbers or codes of categories ``[n]``, by name."""
        return Columns(
            np.column_stack([self.values, *others.values()]).astype(np.float32),
            (*self.names, *others),
            np.append(self.categorical, np.full(len(others), categories)),
        )


def folds(number: int, rows: int, units: np.ndarray | None) -> np.ndarray:
    """The fold of each row ``[rows]``, from 0; rows of a unit are in one, if there are units."""
    names, unit = np.unique(np.arange(rows) if units is None else units, return_inverse=True)
    return np.asarray((np.random.default_rng(0).permutation(len(names)) % number)[unit])


def domain_columns(
    columns: Columns, elsewhere: np.ndarray, units: np.ndarray | None = None
) -> pd.Series:
    """How well each column alone tells two domains apart, the best first: AUC by name.

    A small tree is fitted on half of the units and scored on the other half; categories are ordered
    by their share elsewhere in the first half. From ``NAMES_DOMAIN`` on a column names the domain:
    no rows of the two domains can be compared, however alike they are otherwise.

    Args:
        columns: columns of the rows of both domains.
        elsewhere: whether a row is of the other domain, bool ``[n]``.
        units: rows of the same unit are in one half, ``[n]``; every row on its own if None.
    """
    fitted = folds(2, len(elsewhere), units) == 0
    aucs = {}
    for name, values, categorical in zip(
        columns.names, columns.values.T, columns.categorical, strict=True
    ):
        ordered = values
        if categorical:
            index = values.astype(np.int64)
            counts = np.bincount(index[fitted], minlength=index.max() + 1)
            away = np.bincount(index[fitted], elsewhere[fitted], minlength=index.max() + 1)
            ordered = ((away + elsewhere.mean()) / (counts + 1))[index]
        tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, min_samples_leaf=5, random_state=0)
        tree.fit(ordered[fitted, None], elsewhere[fitted])
        score = tree.predict_proba(ordered[~fitted, None])[:, -1]
        aucs[name] = float(roc_auc_score(elsewhere[~fitted], score))
    return pd.Series(aucs, dtype=np.float64).sort_values(ascending=False, kind="stable")


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
        auc: area under the ROC curve of the classifier; 0.5 if the domains are alike.
        home: weights of the rows at home ``[n]``, with sum 1.
        away: weights of the rows elsewhere ``[m]``, with sum 1.
        effective_rows: effective sample sizes of both weights, 1 / sum of squares.
        little: whether the domains share too little for a decomposition to mean anything.

    Args:
        pi: probabilities of being elsewhere of the rows of both domains, by classifiers that were
            not fitted on them.
        elsewhere: whether a row is of the other domain, bool.
    """

    def __init__(self, pi: np.ndarray, elsewhere: np.ndarray) -> None:
        self.auc = float(roc_auc_score(elsewhere, pi))
        alpha = elsewhere.mean()
        weights = np.where(elsewhere, 1 - pi, pi) / ((1 - alpha) * pi + alpha * (1 - pi))
        self.home, self.away = weights[~elsewhere], weights[elsewhere]
        self.home, self.away = self.home / self.home.sum(), self.away / self.away.sum()
        self.effective_rows = float(1 / np.sum(self.home**2)), float(1 / np.sum(self.away**2))
        few = (
            size < FEWEST_EFFECTIVE * len(weights)
            for size, weights in zip(self.effective_rows, (self.home, self.away), strict=True)
        )
        self.little = self.auc > LITTLE_OVERLAP or any(few)


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


@dataclass(eq=False)
class ComparedRows:
    """Rows of two domains: home and elsewhere, or an earlier period and this one.

    Attributes:
        away: whether a row is from elsewhere, bool ``[n]``.
        columns: their columns, the sensitive attributes among them.
        unit: number of the unit of each row ``[n]``, such as a person.
        weight: of the rows, with mean 1 in each domain.
        fold: fold of each row ``[n]``; the rows of a unit are in one.
        column_aucs: how well each column alone tells the domains apart, see ``domain_columns``.
        naming: the columns that name the domain.
        x: all other columns.
    """

    away: np.ndarray
    columns: Columns
    unit: np.ndarray
    weight: np.ndarray
    fold: np.ndarray = field(init=False)
    column_aucs: pd.Series = field(init=False)
    naming: tuple[str, ...] = field(init=False)
    x: Columns = field(init=False)
    _given_x: dict[tuple[bytes, bytes], np.ndarray] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.fold = folds(FOLDS, len(self.unit), self.unit)
        self.column_aucs = domain_columns(self.columns, self.away, self.unit)
        self.naming = tuple(self.column_aucs.index[self.column_aucs >= NAMES_DOMAIN])
        names, kept = self.columns.names, ~np.isin(self.columns.names, self.naming)
        self.x = Columns(
            self.columns.values[:, kept],
            tuple(name for name in names if name not in self.naming),
            self.columns.categorical[kept],
        )

    @cached_property
    def overlap(self) -> Overlap:
        """The overlap in all columns."""
        if self.naming:
            later = cross_fitted(self.columns, self.away, self.fold, self.weight)
        else:
            later = self.given_x(self.away, np.ones(len(self.away), bool))
        return Overlap(later, self.away)

    def given_x(self, target: np.ndarray, among: np.ndarray) -> np.ndarray:
        """Means of a target given X, see ``cross_fitted``; fitted once for all models of a run."""
        key = target.tobytes(), among.tobytes()
        if key not in self._given_x:
            self._given_x[key] = cross_fitted(self.x, target, self.fold, self.weight, among)
        return self._given_x[key]

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


class ShareChange(NamedTuple):
    """A share in two domains, and its change with the normal 95 % interval.

    Attributes:
        p: p-value of no change; missing where the share does not vary in either domain.
    """

    at_home: float
    away: float
    change: float
    low: float
    high: float
    p: float


def share_change(
    home: np.ndarray,
    away: np.ndarray,
    units: tuple[np.ndarray, np.ndarray] | None = None,
    weights: tuple[np.ndarray, np.ndarray] | None = None,
) -> ShareChange:
    """The change of a share between independent samples, whose units may have several rows.

    The standard error of a mean is that of sums over units of the rows' differences from it, the
    cluster-robust one; with a row per unit it is the usual one.

    Args:
        home: whether each row at home is of the class or group, bool ``[n]``.
        away: the same of the rows elsewhere ``[m]``.
        units: units of the rows; every row on its own if None.
        weights: weights of the rows; equal ones if None.
    """
    samples = (home, away)
    of_units = units or tuple(np.arange(len(values)) for values in samples)
    of_rows = weights or tuple(np.ones(len(values)) for values in samples)
    shares, errors = [], []
    for values, unit, weight in zip(samples, of_units, of_rows, strict=True):
        share = float(np.average(values, weights=weight))
        sums = np.bincount(np.unique(unit, return_inverse=True)[1], weight * (values - share))
        variance = len(sums) / max(1, len(sums) - 1) * np.sum(sums**2)
        shares.append(share)
        errors.append(np.sqrt(variance) / weight.sum())
    change, error = shares[1] - shares[0], float(np.hypot(*errors))
    half = float(special.ndtri(1 - LEVEL / 2)) * error
    p = float(2 * special.ndtr(-abs(change) / error)) if error else np.nan
    return ShareChange(shares[0], shares[1], change, change - half, change + half, p)


def estimated_shares(
    predicted: np.ndarray, label: np.ndarray, predicted_away: np.ndarray, classes: int
) -> np.ndarray:
    r"""Shares of the classes elsewhere, estimated without labels of there, ``[classes]``.

    With the confusion :math:`C_{ij} = P(f = i, Y = j)` at home and :math:`\mu_i = P(f = i)`
    elsewhere, :math:`C w = \mu` has the weights :math:`w_j = P_T(j) / P_P(j)`, if the features of a
    class are the same in both domains. If the estimate is far from the true shares, they are not:
    the shift is no label shift. Negative weights are set to 0. Source: Lipton, Wang and Smola,
    "Detecting and Correcting for Label Shift with Black Box Predictors" (ICML 2018), black box
    shift estimation.

    Args:
        predicted: predicted classes at home ``[n]``.
        label: classes at home ``[n]``.
        predicted_away: predicted classes elsewhere ``[m]``.
        classes: number of classes.

    Returns:
        The shares, missing where the confusion matrix is singular.
    """
    confusion = np.zeros((classes, classes))
    np.add.at(confusion, (predicted, label), 1 / len(label))
    if np.linalg.matrix_rank(confusion) < classes:
        return np.full(classes, np.nan)
    away = np.bincount(predicted_away, minlength=classes) / len(predicted_away)
    shares = np.maximum(np.linalg.solve(confusion, away), 0) * confusion.sum(0)
    return shares / shares.sum()
