r"""Performance and gaps of predictions without labels: confidence-based estimation (CBPE).

With calibrated probabilities :math:`c_i` of the positive class and decisions :math:`h_i`, expected
counts are :math:`TP = \sum c_i h_i`, :math:`FN = \sum c_i (1 - h_i)`,
:math:`FP = \sum (1 - c_i) h_i` and :math:`TN = \sum (1 - c_i)(1 - h_i)`; every measure follows
from them. The calibrator is fitted on a reference with labels, whose rows are weighted by the ratio
of the shares of the groups now and then, so that another mix of groups is taken into account. Rates
within groups use a calibrator of the group where it has enough labels: one calibrator for all
groups hides the miscalibration of a group.

The assumption is that P(y | score), within groups, is that of the reference. Without labels it
cannot be checked: a change of Y given X moves no estimate.

Source: Kuberski et al., CBPE of NannyML 0.13, whose values these are where weights are equal.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.auditing.report import AUDIT, SHARE
from robust_fairness.core import tables
from robust_fairness.core.intervals import CONFIDENCE, wilson_interval
from robust_fairness.samples import Groups

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
TWO = 2


@dataclass(frozen=True)
class Scored:
    """Rows with scores ``[n]``, decisions bool ``[n]`` and the groups of every attribute."""

    score: np.ndarray
    positive: np.ndarray
    groups: Mapping[str, Groups]

    def take(self, rows: np.ndarray) -> "Scored":
        """Some rows, by number."""
        groups = {name: Groups(one.index[rows], one.names) for name, one in self.groups.items()}
        return Scored(self.score[rows], self.positive[rows], groups)


@dataclass(frozen=True)
class Reference:
    """Scored rows with their labels, 0 and 1, int64 ``[n]``."""

    rows: Scored
    y: np.ndarray

    def take(self, rows: np.ndarray) -> "Reference":
        """Some rows, by number."""
        return Reference(self.rows.take(rows), self.y[rows])


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

    found: np.ndarray = (
        IsotonicRegression(out_of_bounds="clip").fit(score, y, sample_weight=weight).predict(new)
    )
    return found


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
    gaps = [abs(probability[one].sum() - y[one].sum()) for one in bins]
    return float(np.sum(gaps) / len(y))


def expected_counts(probability: np.ndarray, positive: np.ndarray, groups: Groups) -> np.ndarray:
    """Expected rows by group, class and decision, float64 ``[groups, 2, 2]``."""
    shape = (len(groups.names), TWO)
    known = groups.index >= 0
    cell = np.ravel_multi_index((groups.index[known], positive[known].astype(np.int64)), shape)
    counts = [
        np.bincount(cell, weights=share[known], minlength=int(np.prod(shape))).reshape(shape)
        for share in (1 - probability, probability)
    ]
    return np.stack(counts, axis=1)


def rates(counts: np.ndarray) -> dict[str, np.ndarray]:
    """Rates by name, float64 ``[groups]``, from counts by group, class and decision."""
    (tn, fp), (fn, tp) = np.moveaxis(counts, 0, -1)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = {
            "accuracy": (tp + tn) / (tn + fp + fn + tp),
            "selection_rate": (tp + fp) / (tn + fp + fn + tp),
            "true_positive_rate": tp / (tp + fn),
            "false_positive_rate": fp / (fp + tn),
            "precision": tp / (tp + fp),
        }
        found["balanced_accuracy"] = (
            found["true_positive_rate"] + 1 - found["false_positive_rate"]
        ) / TWO
    return found


def gaps(of_groups: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Measures between groups from rates within them; NaN where a group has no rate."""
    spread = {name: float(np.max(one) - np.min(one)) for name, one in of_groups.items()}
    odds = (spread["true_positive_rate"], spread["false_positive_rate"])
    return {
        "demographic_parity_difference": spread["selection_rate"],
        "equal_opportunity_difference": spread["true_positive_rate"],
        "equalized_odds_difference": max(odds) if not np.isnan(odds).any() else float("nan"),
        "worst_group_accuracy": float(np.min(of_groups["accuracy"])),
    }


def group_weights(now: Groups, then: Groups) -> np.ndarray:
    """Share of the group of every earlier row now over that then, float64 ``[n]``; 1 if unknown."""
    shares = dict(zip(now.names, now.counts / max(1, now.counts.sum()), strict=True))
    before = then.counts / max(1, then.counts.sum())
    ratio = [
        shares.get(name, 0.0) / share if share else 1.0
        for name, share in zip(then.names, before, strict=True)
    ]
    return np.array([*ratio, 1.0])[then.index]


Key = tuple[str, str, str]  # attribute, group and metric; the first two are "" for all rows
Labels = Callable[[np.ndarray], np.ndarray]


def values(
    now: Scored, reference: Reference, calibrate: bool, labels: Labels = np.asarray
) -> dict[Key, float]:
    """Estimates of all measures.

    Args:
        now: the rows without labels.
        reference: rows with labels.
        calibrate: whether scores are calibrated where rows of all groups are taken together.
        labels: from probabilities to what is counted; default: the probabilities.
    """
    found: dict[Key, float] = {}
    everyone = Groups(np.zeros(len(now.score), np.int64), ("",))
    plain = _common(now, reference, calibrate)
    for name, value in rates(expected_counts(labels(plain), now.positive, everyone)).items():
        found["", "", name] = float(value[0])
    for attribute, groups in now.groups.items():
        weight = group_weights(groups, reference.rows.groups[attribute])
        own = _by_group(now, reference, attribute, _common(now, reference, calibrate, weight))
        of_groups = rates(expected_counts(labels(own), now.positive, groups))
        for name, every in of_groups.items():
            for group, value in zip(groups.names, every, strict=True):
                found[attribute, group, f"{name}_by_group"] = float(value)
        found |= {(attribute, "", name): gap for name, gap in gaps(of_groups).items()}
    return found


def _common(
    now: Scored, reference: Reference, calibrate: bool, weight: np.ndarray | None = None
) -> np.ndarray:
    """Probabilities by one calibrator for all rows, or the scores themselves."""
    if not calibrate:
        return now.score
    return calibrated(reference.y, reference.rows.score, now.score, weight)


def _by_group(now: Scored, reference: Reference, attribute: str, common: np.ndarray) -> np.ndarray:
    """Probabilities by a calibrator per group; the common ones where labels are too few."""
    groups, before = now.groups[attribute], reference.rows.groups[attribute]
    found = common.copy()
    for code, name in enumerate(groups.names):
        labelled = before.index == (before.names.index(name) if name in before.names else None)
        own = groups.index == code
        y, score = reference.y[labelled], reference.rows.score[labelled]
        if own.any() and np.bincount(y, minlength=TWO).min() >= LEAST_LABELS:
            found[own] = calibrated(y, score, now.score[own])
    return found


def estimate(
    now: Scored, reference: Reference, name: str, small: int, suppress: int = 0
) -> pd.DataFrame:
    """Estimated rows of an audit, with the columns ``AUDIT``, without groups below ``suppress``.

    An interval is the estimate plus and minus the 95 % quantile of its error in ``RESAMPLES``
    bootstrap samples of the reference and of the current rows (at most ``MOST_ROWS`` of each), for
    which calibrators are fitted again and labels are drawn.
    """
    calibrate = needs_calibration(reference.y, reference.rows.score)
    centre = values(now, reference, calibrate)
    generator = np.random.default_rng(0)
    errors: dict[Key, list[float]] = {key: [] for key in centre}

    def drawn(probability: np.ndarray) -> np.ndarray:
        return generator.binomial(1, probability)

    for _ in range(RESAMPLES):
        some = now.take(_resampled(len(now.score), generator))
        labelled = reference.take(_resampled(len(reference.y), generator))
        for key, value in values(some, labelled, calibrate, drawn).items():
            errors[key].append(abs(value - centre[key]))
    rows = [
        {**_place(key, now, small), **_bounds(value, errors[key]), "dataset": name}
        for key, value in centre.items()
    ]
    found = tables.table(AUDIT, [*rows, *_shares(now, name, small)])
    return found[(found["group"] == "") | (found["n"] >= suppress)].reset_index(drop=True)


def _resampled(rows: int, generator: np.random.Generator) -> np.ndarray:
    return generator.integers(0, rows, min(rows, MOST_ROWS))


def _bounds(value: float, errors: Sequence[float]) -> dict[str, Any]:
    """Value and interval; none where no resample has a value."""
    known = np.asarray(errors)[np.isfinite(errors)]
    if not len(known) or np.isnan(value):
        return {"value": value, "note": "no rows of a class", "low": np.nan, "high": np.nan}
    radius = np.quantile(known, CONFIDENCE)
    return {
        "value": value, "low": max(0.0, value - radius), "high": min(1.0, value + radius),
        "interval": "bootstrap, CBPE", "note": "",
    }  # fmt: skip


def _place(key: Key, now: Scored, small: int) -> dict[str, Any]:
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


def _shares(now: Scored, name: str, small: int) -> Iterator[dict[str, Any]]:
    """Shares of the groups, which need no labels, with Wilson's interval."""
    for attribute, groups in now.groups.items():
        known = groups.counts.sum()
        shares = groups.counts / known
        low, high = wilson_interval(shares, np.full(len(shares), known))
        for code, group in enumerate(groups.names):
            place = _place((attribute, group, SHARE), now, small)
            yield {
                **place, "dataset": name, "value": shares[code], "low": low[code],
                "high": high[code], "interval": "Wilson", "note": "",
            }  # fmt: skip
