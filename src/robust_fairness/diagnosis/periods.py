r"""Why the values of an audited model changed between two periods.

With the distributions P then and T now of X, which are features, groups and the prediction, and the
distribution :math:`s \propto p t / (p + t)` that both share, a change is due to X (between P or T
and s) and to Y given X (on s), as Cai, Namkoong and Yadlowsky (2023) define them. Numerator and
denominator of every rate are means of :math:`a(X) + b(X) Y`. Those on s are estimated by efficient
scores: with the probability e of a row to be of now, its tilt h(e) and the outcome model m,

.. math:: \frac{\sum (h + h' (Z - e))\, m + h \frac{1 - Z}{1 - e} (O - m)}{\sum h + h' (Z - e)}

so that errors of e and m, which boosted trees estimate without the row (cross-fitting), matter to
the second order only (Crump et al. 2006; Chernozhukov et al. 2018). The intervals of all parts
follow from the scores of the rows, summed by unit where rows have units.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import special
from sklearn.ensemble import HistGradientBoostingClassifier

from robust_fairness.auditing.predictions import Predictions
from robust_fairness.auditing.result import Audit
from robust_fairness.auditing.why import (
    ALL,
    COLUMN,
    MIX,
    OF_SHARE,
    PARTS,
    REGION,
    WHY,
    Why,
)
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.core.intervals import CONFIDENCE
from robust_fairness.diagnosis.columns import MOST_LEVELS, NAMES_DOMAIN, Columns, domain_columns
from robust_fairness.diagnosis.domains import FEWEST, FOLDS, MOST, Overlap, folds
from robust_fairness.diagnosis.regions import ScoredDomain, regions

TWO = 2
EXACT = 12  # decimals of a part that no row has
LEVELS = 20  # of a category, the most frequent ones, that may bound a region
REGIONS = 2  # shown of every gap
PREDICTION = "prediction"
# Rates of a gap: rows that they are among (None: all rows) by class.
RATES: Mapping[str, int | None] = {
    "selection_rate": None, "true_positive_rate": 1, "false_positive_rate": 0,
}  # fmt: skip

Row = dict[str, object]
Parts = Callable[[np.ndarray], np.ndarray]


def explained(audit: Audit) -> Audit:
    """The audit with its changes taken apart, see ``auditing.why.Why``.

    Of a period at most ``MOST`` rows are used, drawn at random.

    Raises:
        InputError: there is no earlier period, labels are missing, or the target has not two
            classes.
    """
    now, then = audit.predictions, audit.earlier
    if then is None:
        raise InputError("features: why values changed needs an earlier period to compare with")
    if len(now.samples.classes) != TWO or not now.labelled or not then.labelled:
        raise InputError("features: why values changed needs labels of two classes in both periods")
    both = Both.of(_some(then), _some(now))
    rows = [*_changes(both, audit.options.suppress), *_shares(both, audit.options.suppress)]
    every = _sizes(both, np.ones(len(both.y), bool))
    rows += [every | {"part": COLUMN, "of": name, "auc": auc} for name, auc in both.aucs.items()]
    shared = both.overlap
    sizes = shared.effective_rows
    why = Why(
        tables.table(WHY, rows), both.naming, shared.auc,
        (sizes[0] / len(shared.home), sizes[1] / len(shared.away)), shared.little,
    )  # fmt: skip
    return replace(audit, why=why)


def _some(predictions: Predictions) -> Predictions:
    n = len(predictions.samples)
    if n <= MOST:
        return predictions
    return predictions.take(np.sort(np.random.default_rng(0).choice(n, MOST, replace=False)))


@dataclass(frozen=True, eq=False)
class Both:
    """The rows of two periods.

    Attributes:
        now: whether a row is of the later period, bool ``[n]``.
        y: class ``[n]``, 0 or 1.
        positive: predicted class ``[n]``, 0 or 1.
        weight: of the rows, with mean 1 in each period.
        unit: number of the unit of each row.
        groups: codes by attribute, -1 where unknown, and names.
        columns: features, groups and the prediction.
        features: features as a frame of numbers and categories.
    """

    now: np.ndarray
    y: np.ndarray
    positive: np.ndarray
    weight: np.ndarray
    unit: np.ndarray
    groups: Mapping[str, tuple[np.ndarray, tuple[str, ...]]]
    columns: Columns
    features: pd.DataFrame

    @classmethod
    def of(cls, then: Predictions, now: Predictions) -> "Both":
        """Those of checked predictions."""
        parts = (then, now)
        sizes = [len(part.samples) for part in parts]
        features = _stacked([part.features for part in parts])
        attributes = _stacked([part.samples.attributes for part in parts])
        categories = attributes.select_dtypes("category")
        groups = {
            str(name): (values.cat.codes.to_numpy(), tuple(map(str, values.cat.categories)))
            for name, values in categories.items()
        }
        further = attributes.drop(columns=[name for name in features if name in attributes])
        scores = [part.score if len(part.score) else part.prediction for part in parts]
        last = scores[0].ndim - 1
        every = pd.concat([features, further], axis=1).assign(
            **{PREDICTION: np.concatenate([score[:, 1] if last else score for score in scores])}
        )
        weight = [
            np.ones(size) if part.weight is None else part.weight / part.weight.mean()
            for part, size in zip(parts, sizes, strict=True)
        ]
        units = [
            np.arange(size) if part.units is None else part.units
            for part, size in zip(parts, sizes, strict=True)
        ]
        return cls(
            np.repeat([False, True], sizes),
            np.concatenate([part.samples.y for part in parts]),
            np.concatenate([part.prediction for part in parts]),
            np.concatenate(weight),
            np.concatenate([units[0], units[0].max() + 1 + units[1]]),
            groups,
            _columns(every),
            every.drop(columns=PREDICTION),
        )

    @cached_property
    def aucs(self) -> pd.Series:
        """How well each column alone tells the periods apart, the best first."""
        return domain_columns(self.columns.without((PREDICTION,)), self.now, self.unit)

    @cached_property
    def naming(self) -> tuple[str, ...]:
        """The columns that name the period."""
        return tuple(self.aucs.index[self.aucs >= NAMES_DOMAIN])

    @cached_property
    def nuisances(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Probabilities to be of now, and of class 1 then and now, ``[n]`` each.

        Each is of boosted trees that were not fitted on the row or its unit.
        """
        x = self.columns.without(self.naming)
        fold = folds(FOLDS, len(self.unit), self.unit)
        later, outcome = np.empty(len(x.values)), np.empty((TWO, len(x.values)))
        for number in range(FOLDS):
            out = fold == number
            later[out] = self._fitted(x, ~out, self.now, out)
            for period in (0, 1):
                outcome[period, out] = self._fitted(x, ~out & (self.now == period), self.y, out)
        return later, outcome[0], outcome[1]

    def _fitted(
        self, x: Columns, rows: np.ndarray, target: np.ndarray, out: np.ndarray
    ) -> np.ndarray:
        if len(np.unique(target[rows])) < TWO:
            return np.full(out.sum(), float(target[rows][0]))
        model = HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=8, l2_regularization=1.0, early_stopping=False,
            random_state=0, categorical_features=x.categorical,
        )  # fmt: skip
        model.fit(x.values[rows], target[rows], sample_weight=self.weight[rows])
        return np.asarray(model.predict_proba(x.values[out])[:, 1])

    @cached_property
    def overlap(self) -> Overlap:
        """The overlap of both periods in X."""
        later = self.nuisances[0]
        return Overlap(later[~self.now], later[self.now])

    def means(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Means of ``a + b y`` then, on s with y of then, on s with y of now, and now.

        Args:
            a: ``[outcomes, n]``.
            b: likewise.

        Returns:
            Means ``[4, outcomes]``, and the score of every row ``[4, outcomes, n]``, whose sum over
            rows is the error.
        """
        later, *models = self.nuisances
        outcome, n = a + b * self.y, len(self.now)
        alpha = self.now.mean()
        both = alpha * (1 - later) + (1 - alpha) * later
        tilt = later * (1 - later) / both
        slope = ((1 - 2 * later) * both - later * (1 - later) * (1 - 2 * alpha)) / both**2
        base = tilt + slope * (self.now - later)
        values, scores = [], []
        for period in (0, 1):
            rows = self.now == period
            of_period = self.weight * rows / (self.weight * rows).sum()
            mean = (of_period * outcome).sum(1)
            plain = mean, of_period * (outcome - mean[:, None])
            model = a + b * models[period]
            seen = rows * (later if period == 0 else 1 - later) / both
            total = (self.weight * base).sum()
            shared = (self.weight * (base * model + seen * (outcome - model))).sum(1) / total
            error = base * (model - shared[:, None]) + seen * (outcome - model)
            pair = [plain, (shared, self.weight * error / total)]
            for value, score in pair if period == 0 else pair[::-1]:
                values.append(value)
                scores.append(score)
        assert scores[0].shape[-1] == n
        return np.array(values), np.array(scores)

    def errors(self, scores: np.ndarray) -> np.ndarray:
        """Standard errors of sums of scores ``[values, n]``, by unit within periods."""
        values = np.zeros(len(scores))
        for period in (False, True):
            rows = self.now == period
            unit = np.unique(self.unit[rows], return_inverse=True)[1]
            for place, score in enumerate(scores):
                sums = np.bincount(unit, score[rows])
                values[place] += len(sums) * sums.var(ddof=1) if len(sums) > 1 else np.nan
        return np.sqrt(values)


def _stacked(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of both, with the categories of both."""
    stacked: dict[Hashable, pd.Categorical | np.ndarray] = {}
    for name in parts[0]:
        columns = [part[name] for part in parts]
        if all(isinstance(column.dtype, pd.CategoricalDtype) for column in columns):
            stacked[name] = pd.api.types.union_categoricals(columns, sort_categories=True)
        elif any(isinstance(column.dtype, pd.CategoricalDtype) for column in columns):
            stacked[name] = pd.Categorical(np.concatenate([c.astype(str) for c in columns]))
        else:
            stacked[name] = np.concatenate(columns)
    return pd.DataFrame(stacked, index=range(sum(map(len, parts))))


def _columns(frame: pd.DataFrame) -> Columns:
    """The columns of a frame; a missing category is a category."""
    values, categorical = [], []
    for _, column in frame.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            levels = len(column.cat.categories)
            values.append(column.cat.codes.where(column.notna(), levels).to_numpy(np.float32))
            categorical.append(levels < MOST_LEVELS)
        else:
            values.append(column.to_numpy(np.float32))
            categorical.append(False)
    return Columns(np.column_stack(values), tuple(map(str, frame)), np.array(categorical))


def _changes(both: Both, suppress: int) -> Iterator[Row]:
    """Accuracy and the largest differences of rates: changes, parts and regions."""
    y, positive = both.y, both.positive
    correct, every = (1.0 - positive, 2.0 * positive - 1), np.ones(len(y))
    accuracy = {"metric": "accuracy"}
    means = both.means(np.stack([correct[0], every]), np.stack([correct[1], 0 * every]))
    where = accuracy | _sizes(both, every > 0)
    yield from _taken_apart(both, where, _mix_of_groups, *means)
    for name, (codes, names) in both.groups.items():
        masks = [codes == code for code in range(len(names))]
        kept = [mask for mask in masks if _smallest(both, mask) >= max(FEWEST, suppress)]
        if len(kept) < TWO:
            continue
        known = np.any(kept, axis=0)
        share = np.array(kept, float)
        stacked = (
            np.concatenate([share * correct[0], share]),
            np.concatenate([share * correct[1], 0 * share]),
        )
        where = {"attribute": name} | accuracy | _sizes(both, known)
        yield from _taken_apart(both, where, _mix_of_groups, *both.means(*stacked))
        for metric, among in RATES.items():
            yield from _difference(both, name, metric, among, suppress)


def _difference(
    both: Both, attribute: str, metric: str, among: int | None, suppress: int
) -> Iterator[Row]:
    """The change of the difference of the two groups that is largest in both periods together."""
    codes, names = both.groups[attribute]
    counted = np.ones(len(codes), bool) if among is None else both.y == among
    masks = {
        name: codes == code
        for code, name in enumerate(names)
        if _smallest(both, (codes == code) & counted) >= max(FEWEST, suppress)
    }
    if len(masks) < TWO:
        return
    rate = {
        name: np.average(both.positive[mask & counted], weights=both.weight[mask & counted])
        for name, mask in masks.items()
    }
    first, second = max(combinations(rate, 2), key=lambda two: abs(rate[two[0]] - rate[two[1]]))
    if rate[first] < rate[second]:
        first, second = second, first
    groups = np.stack([masks[first], masks[second]]).astype(float)
    # of the rows of class 1: 0 + y; of class 0: 1 - y; of all: 1
    a, b = {None: (1.0, 0.0), 1: (0.0, 1.0), 0: (1.0, -1.0)}[among]
    among_rows = np.concatenate([groups * both.positive, groups])
    pair = masks[first] | masks[second]
    where = {"attribute": attribute, "metric": metric, "of": f"{first} less {second}"} | _sizes(
        both, pair & counted
    )
    yield from _taken_apart(
        both, where, _difference_of_rates, *both.means(a * among_rows, b * among_rows)
    )
    counted_groups = masks[first] & counted, masks[second] & counted
    for leaf in _regions(both, counted_groups, suppress):
        yield leaf | {"part": REGION, "attribute": attribute, "metric": metric}


def _regions(both: Both, groups: tuple[np.ndarray, np.ndarray], suppress: int) -> Iterator[Row]:
    """Where in the features the rate of the first rows less that of the second changes most."""
    x, overlap = _one_hot(both.features), both.overlap
    weights = np.empty(len(both.now))
    weights[~both.now], weights[both.now] = overlap.home, overlap.away
    sides: list[list[ScoredDomain]] = [[], []]
    for period in (0, 1):
        for group, sign in zip(groups, (1, -1), strict=True):
            rows = np.flatnonzero(group & (both.now == period))
            score = both.positive[rows].astype(float)
            sides[period].append(ScoredDomain(x.to_numpy()[rows], score, weights[rows], sign))
    leaves = regions(sides[0], sides[1], [str(name) for name in x], depth=2)
    leaves = leaves[leaves[["rows_home", "rows_away"]].min(axis=1) >= max(FEWEST, suppress)]
    for leaf in leaves.dropna().head(REGIONS).to_dict("records"):
        yield {
            "of": leaf["conditions"], "then": leaf["at_home"], "now": leaf["elsewhere"],
            "change": leaf["change"], "low": leaf["low"], "high": leaf["high"],
            "then_n": leaf["rows_home"], "now_n": leaf["rows_away"],
        }  # fmt: skip


def _taken_apart(
    both: Both, where: Row, parts: Parts, means: np.ndarray, scores: np.ndarray
) -> Iterator[Row]:
    """The change and its parts with their intervals, by the derivatives of ``parts``."""
    values = parts(means)
    step = 1e-20  # of complex differentiation, which is exact
    of_rows = np.zeros((len(values), scores.shape[-1]))
    for place in np.ndindex(means.shape):
        moved = means.astype(complex)
        moved[place] += 1j * step
        of_rows += (parts(moved).imag / step)[:, None] * scores[place]
    then, now, *changes = values.tolist()
    half = special.ndtri((1 + CONFIDENCE) / 2) * both.errors(of_rows[TWO:])
    changes, half = np.round(changes, EXACT).tolist(), np.round(half, EXACT)  # 0 is 0
    for name, change, width in zip((ALL, *PARTS), changes, half, strict=True):
        ends = {"then": then, "now": now} if name == ALL else {}
        if name != MIX or (parts is _mix_of_groups and where.get("attribute")):
            yield where | ends | {
                "part": name, "change": change, "low": change - width, "high": change + width,
            }  # fmt: skip


def _mix_of_groups(means: np.ndarray) -> np.ndarray:
    """Then, now, change and parts of a mean over groups, with the shares of groups of then."""
    hits, sizes = np.split(means, 2, axis=1)
    value = (sizes[0] * hits / sizes).sum(1) / sizes[0].sum()
    now = hits[3].sum() / sizes[3].sum()
    return _with_parts(value, now)


def _difference_of_rates(means: np.ndarray) -> np.ndarray:
    """Then, now, change and parts of the difference of two rates."""
    hits, sizes = np.split(means, 2, axis=1)
    rates = hits / sizes
    value = rates[:, 0] - rates[:, 1]
    return _with_parts(value, value[3])


def _with_parts(value: np.ndarray, now: complex) -> np.ndarray:
    """From values then, on s with y of then and of now, and now, with the shares of then."""
    due_to_x = (value[1] - value[0]) + (value[3] - value[2])
    return np.array([value[0], now, now - value[0], now - value[3], due_to_x, value[2] - value[1]])


def _shares(both: Both, suppress: int) -> Iterator[Row]:
    """Shares of the groups, and of class 1 in all rows and in every group."""
    every = np.ones(len(both.y), bool)
    yield from _share(both, {"metric": "positive_share"}, every, both.y == 1, suppress)
    for attribute, (codes, names) in both.groups.items():
        for code, group in enumerate(names):
            where: Row = {"attribute": attribute, "of": group}
            of_group = codes == code
            if of_group.sum() < suppress:
                continue
            yield from _share(both, where | {"metric": "group_share"}, every, of_group, suppress)
            positive = where | {"metric": "positive_share"}
            yield from _share(both, positive, of_group, both.y == 1, suppress)


def _share(
    both: Both, where: Row, among: np.ndarray, counted: np.ndarray, suppress: int
) -> Iterator[Row]:
    """The share of some rows among others then and now; nothing where these are few."""
    if _smallest(both, among) < max(FEWEST, suppress):
        return
    ends, errors = [], []
    for period in (False, True):
        weight = both.weight * (among & (both.now == period))
        share = (weight * counted).sum() / weight.sum()
        ends.append(share)
        errors.append(both.errors((weight * (counted - share) / weight.sum())[None])[0])
    half = special.ndtri((1 + CONFIDENCE) / 2) * np.hypot(*errors)
    change = ends[1] - ends[0]
    yield where | _sizes(both, among) | {
        "part": OF_SHARE, "then": ends[0], "now": ends[1], "change": change, "low": change - half,
        "high": change + half,
    }  # fmt: skip


def _sizes(both: Both, rows: np.ndarray) -> Row:
    now = int((rows & both.now).sum())
    return {"then_n": int(rows.sum()) - now, "now_n": now}


def _smallest(both: Both, rows: np.ndarray) -> int:
    """The number of rows of the period with fewer of them."""
    now = int((rows & both.now).sum())
    return min(now, int(rows.sum()) - now)


def _one_hot(features: pd.DataFrame) -> pd.DataFrame:
    """Numbers, and a 0/1 column per frequent category."""
    parts = {}
    for name, column in features.items():
        if not isinstance(column.dtype, pd.CategoricalDtype):
            parts[str(name)] = column.to_numpy(np.float32)
            continue
        for level in column.value_counts().index[:LEVELS]:
            parts[f"{name}={level}"] = (column == level).to_numpy(np.float32)
        if column.isna().any():
            parts[f"{name} missing"] = column.isna().to_numpy(np.float32)
    return pd.DataFrame(parts)
