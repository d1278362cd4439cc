r"""Performance and gaps of predictions without labels: confidence-based estimation (CBPE).

With calibrated probabilities :math:`c_i` of the positive class and decisions :math:`h_i`, expected
counts are :math:`TP = \sum c_i h_i`, :math:`FN = \sum c_i (1 - h_i)`,
:math:`FP = \sum (1 - c_i) h_i` and :math:`TN = \sum (1 - c_i)(1 - h_i)`; every metric of cells
follows from them. The calibrator is fitted on a reference with labels, whose rows are weighted by
the ratio of the shares of the groups now and then, so that another mix of groups is taken into
account. Rates within groups use a calibrator of the group where it has enough labels: one
calibrator for all groups hides the miscalibration of a group.

The assumption is that P(y | score), within groups, is that of the reference. Without labels it
cannot be checked: a change of Y given X moves no estimate.

Source: Kuberski et al., CBPE of NannyML 0.13, whose values these are where weights are equal.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.auditing.scores import AUDIT
from robust_fairness.core import tables
from robust_fairness.metrics import Metric, Score, find_metric
from robust_fairness.numbers.counts import TWO, Counts
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.groups import Groups, everyone
from robust_fairness.numbers.quantities import GROUPED

ASSUMPTION = (
    "Estimated without labels: assumes that a score means the same probability as in the "
    "reference, within every group. Where Y given X may have changed, nothing is known: such a "
    "change cannot be seen, and intervals leave it out"
)
FOLDS, TEST, SEED, BINS = 10, 0.1, 42, 10  # of the decision whether to calibrate, as in NannyML
SEPARABLE = 0.999  # area under the ROC curve above which nothing is calibrated
LEAST_LABELS = 200  # of each class, for a calibrator of a group
RESAMPLES = 100
MOST_ROWS = 20_000  # of a resample
CLASSES = ("0", "1")
SUMS = ("delta_eo", "delta_eo_one_vs_rest")  # of two differences, up to 2


@dataclass(frozen=True)
class ScoredRows:
    """Rows with scores ``[n]``, decisions bool ``[n]``, groups by attribute and weights ``[n]``.

    Those of a reference have labels ``y``, 0 and 1, int64 ``[n]``; others none.
    """

    score: np.ndarray
    positive: np.ndarray
    groups: Mapping[str, Groups]
    weight: np.ndarray | None = None
    y: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    def take(self, rows: np.ndarray) -> "ScoredRows":
        """Some rows, by number."""
        groups = {name: grouping.take(rows) for name, grouping in self.groups.items()}
        weight = None if self.weight is None else self.weight[rows]
        y = self.y[rows] if len(self.y) else self.y
        return ScoredRows(self.score[rows], self.positive[rows], groups, weight, y)

    @property
    def weights(self) -> np.ndarray:
        """The weights, 1 where there are none."""
        return np.ones(len(self.score)) if self.weight is None else self.weight


def calibrated(
    y: np.ndarray, score: np.ndarray, new: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """Probabilities ``[m]`` of new scores by isotonic regression on labelled ones ``[n]``.

    Args:
        y: labels, 0 and 1.
        score: their scores.
        new: new scores ``[m]``.
        weight: weights of the labelled rows; equal ones if None.
    """
    from sklearn.isotonic import IsotonicRegression

    probability: np.ndarray = (
        IsotonicRegression(out_of_bounds="clip").fit(score, y, sample_weight=weight).predict(new)
    )
    return probability


def needs_calibration(y: np.ndarray, score: np.ndarray) -> bool:
    """Whether isotonic regression reduces the calibration error of probabilities on held-out rows.

    NannyML's rule: ten stratified splits with a tenth of the rows held out, whose calibration error
    in ten bins of equal size is compared.
    """
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import StratifiedShuffleSplit

    if len(np.unique(y)) < TWO or score.min() < 0 or score.max() > 1:
        return len(np.unique(y)) == TWO
    if roc_auc_score(y, score) > SEPARABLE:
        return False
    parts = [
        (calibrated(y[fit], score[fit], score[held]), score[held], y[held])
        for fit, held in StratifiedShuffleSplit(FOLDS, test_size=TEST, random_state=SEED).split(
            score, y
        )
    ]
    after, before, labels = (np.concatenate(some) for some in zip(*parts, strict=True))
    return _calibration_error(labels, before) > _calibration_error(labels, after)


def _calibration_error(y: np.ndarray, probability: np.ndarray) -> float:
    """Mean over rows of the calibration error of their bin; bins have equal numbers of rows."""
    order = np.argsort(probability, kind="stable")
    bins = np.array_split(order, BINS)
    gaps = [abs(probability[rows].sum() - y[rows].sum()) for rows in bins]
    return float(np.sum(gaps) / len(y))


def expected_counts(rows: ScoredRows, probability: np.ndarray, groups: Groups) -> Counts:
    """Expected sums by group, class and decision, of labels that are 1 with a probability."""
    decided = rows.positive.astype(np.int64)
    first, second = (
        Counts.of(groups, np.full(len(decided), label), decided, CLASSES, rows.weights * share,
                  None, share)
        for label, share in enumerate((1 - probability, probability))
    )  # fmt: skip
    return first + second


def group_weights(now: ScoredRows, then: ScoredRows, attribute: str) -> np.ndarray:
    """Share of the group of every earlier row now over that then, float64 ``[n]``; 1 if unknown."""

    def shares(rows: ScoredRows) -> dict[str, float]:
        groups, known = rows.groups[attribute], rows.groups[attribute].index >= 0
        sums = np.bincount(groups.index[known], rows.weights[known], len(groups.names))
        return dict(zip(groups.names, sums / max(sums.sum(), 1e-300), strict=True))

    current, before = shares(now), shares(then)
    ratio = [current.get(name, 0.0) / share if share else 1.0 for name, share in before.items()]
    return np.array([*ratio, 1.0])[then.groups[attribute].index]


Key = tuple[str, str, str]  # attribute, group and metric; the first two are "" for all rows
Labels = Callable[[np.ndarray], np.ndarray]


def values(
    now: ScoredRows,
    reference: ScoredRows,
    calibrate: bool,
    metrics: Sequence[Metric],
    labels: Labels = np.asarray,
) -> dict[Key, Score]:
    """Estimates of metrics of cells; those that do not apply are left out.

    Args:
        now: the rows without labels.
        reference: rows with labels.
        calibrate: whether scores are calibrated where rows of all groups are taken together.
        metrics: the metrics.
        labels: from probabilities to what is counted; default: the probabilities.
    """
    plain = _common(now, reference, calibrate)
    cells = {"": expected_counts(now, labels(plain), everyone(len(now.score)))}
    for attribute, groups in now.groups.items():
        weight = group_weights(now, reference, attribute)
        probability = _by_group(
            now, reference, attribute, _common(now, reference, calibrate, weight)
        )
        cells[attribute] = expected_counts(now, labels(probability), groups)
    return {
        (attribute, group, metric.name): score
        for attribute, of_attribute in cells.items()
        for metric in metrics
        if (GROUPED in metric.needs) == bool(attribute)
        for group, score in metric.of(of_attribute).items()
        if score.applies
    }


def _common(
    now: ScoredRows, reference: ScoredRows, calibrate: bool, weight: np.ndarray | float = 1.0
) -> np.ndarray:
    """Probabilities by one calibrator for all rows, or the scores themselves."""
    if not calibrate:
        return now.score
    return calibrated(reference.y, reference.score, now.score, reference.weights * weight)


def _by_group(
    now: ScoredRows, reference: ScoredRows, attribute: str, common: np.ndarray
) -> np.ndarray:
    """Probabilities by a calibrator per group; the common ones where labels are too few."""
    groups, before = now.groups[attribute], reference.groups[attribute]
    probability = common.copy()
    for code, name in enumerate(groups.names):
        labelled = before.index == (before.names.index(name) if name in before.names else None)
        of_group = groups.index == code
        rows = reference.take(np.flatnonzero(labelled))
        if of_group.any() and np.bincount(rows.y, minlength=TWO).min() >= LEAST_LABELS:
            probability[of_group] = calibrated(
                rows.y, rows.score, now.score[of_group], rows.weights
            )
    return probability


def estimate(
    now: ScoredRows, reference: ScoredRows, name: str, metrics: Sequence[str], small: int,
    suppress: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Estimated rows of an audit, with the columns ``AUDIT``, without groups below ``suppress``.

    Metrics that are no function of cells are left out. An interval is the estimate plus and minus
    the 95 % quantile of its error in ``RESAMPLES`` bootstrap samples of the reference and of the
    current rows (at most ``MOST_ROWS`` of each), for which calibrators are fitted again and labels
    are drawn.
    """
    estimated = [metric for metric in map(find_metric, metrics) if metric.is_counted]
    calibrate = needs_calibration(reference.y, reference.score)
    centre = values(now, reference, calibrate, estimated)
    generator = np.random.default_rng(0)
    errors: dict[Key, list[float]] = {key: [] for key in centre}

    def drawn(probability: np.ndarray) -> np.ndarray:
        return generator.binomial(1, probability).astype(np.float64)

    for _ in range(RESAMPLES):
        some = now.take(_resampled(len(now.score), generator))
        labelled = reference.take(_resampled(len(reference.y), generator))
        for key, score in values(some, labelled, calibrate, estimated, drawn).items():
            value = centre[key].value if key in centre else None
            if value is not None and score.value is not None:
                errors[key].append(abs(score.value - value))
    rows = [
        {**_place(key, now, small), **_bounds(key[2], score, errors[key]), "dataset": name}
        for key, score in centre.items()
    ]
    table = tables.table(AUDIT, rows)
    return table[(table["group"] == "") | (table["n"] >= suppress)].reset_index(drop=True)


def _resampled(rows: int, generator: np.random.Generator) -> np.ndarray:
    return generator.integers(0, rows, min(rows, MOST_ROWS))


def _bounds(metric: str, score: Score, errors: Sequence[float]) -> dict[str, Any]:
    """Value and interval; none where no resample has a value."""
    if score.value is None or not errors:
        return {"value": score.value, "note": score.note or "no rows of a class"}
    radius, most = float(np.quantile(errors, 1 - LEVEL)), 2.0 if metric in SUMS else 1.0
    return {
        "value": score.value, "low": max(0.0, score.value - radius),
        "high": min(most, score.value + radius), "interval": "bootstrap, CBPE", "note": "",
    }  # fmt: skip


def _place(key: Key, now: ScoredRows, small: int) -> dict[str, Any]:
    """Attribute, group and metric, and the rows that they rest on."""
    attribute, group, metric = key
    n = len(now.score)
    if attribute:
        counts = dict(zip(now.groups[attribute].names, now.groups[attribute].counts, strict=True))
        n = int(counts[group]) if group else int(sum(counts.values()))
    return {
        "attribute": attribute, "group": group, "metric": metric, "n": n,
        "small": bool(group) and n < small, "applies": True,
    }  # fmt: skip
