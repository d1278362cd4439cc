"""Accuracy and gaps over every threshold, and calibration by group."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.auditing.predictions import Predictions
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.numbers.counts import TWO
from robust_fairness.numbers.estimate import wilson_interval
from robust_fairness.numbers.groups import Groups, everyone

STEPS = 200  # of thresholds; all scores where there are not more
KEPT = 0.97  # share of the best accuracy that a threshold has to keep
BINS = 10
THRESHOLDS = {
    "attribute": "str", "threshold": "float64", "accuracy": "float64", "selected": "float64",
    "true_positive": "float64", "false_positive": "float64", "gap": "float64",
}  # fmt: skip
CALIBRATION = {
    "attribute": "str", "group": "str", "label": "str", "bin": "str", "n": "int64",
    "predicted": "float64", "observed": "float64", "low": "float64", "high": "float64",
}  # fmt: skip


@dataclass(frozen=True)
class Curve:
    """Values by threshold, float64 ``[thresholds]`` each.

    Attributes:
        threshold: lowest score of the positive class, increasing; no score reaches the last one.
        accuracy: accuracy of all rows.
        selected: demographic parity difference, between two groups the largest one.
        true_positive: equal opportunity difference.
        false_positive: largest difference of false positive rates.
        gap: equalized odds difference, the larger one of the last two.
    """

    threshold: np.ndarray
    accuracy: np.ndarray
    selected: np.ndarray
    true_positive: np.ndarray
    false_positive: np.ndarray
    gap: np.ndarray

    @property
    def fairest(self) -> int:
        """Place of the smallest gap with at least ``KEPT`` of the best accuracy."""
        allowed = self.accuracy >= KEPT * self.accuracy.max()
        return int(np.where(allowed, self.gap, np.inf).argmin())


def curves(
    y: np.ndarray,
    score: np.ndarray,
    by_attribute: Mapping[str, Groups],
    sample_weight: np.ndarray | None = None,
) -> dict[str, Curve]:
    """The curves of scores ``[n]`` of classes 0 and 1 by attribute.

    Thresholds are all scores, or ``STEPS`` quantiles of them, and one above. Attributes of which a
    group lacks a class have no curve.
    """
    ordered = np.sort(score)
    threshold = ordered[np.append(True, ordered[1:] != ordered[:-1])]
    if len(threshold) > STEPS:
        places = np.linspace(0, len(score) - 1, STEPS).astype(np.int64)
        threshold = np.unique(ordered[places])
    threshold = np.append(threshold, np.nextafter(threshold[-1], np.inf))
    steps = len(threshold) + 1
    reached = np.searchsorted(threshold, score, side="right")  # thresholds up to the score
    place = (y * steps + reached).astype(np.int16)
    made = {}
    for attribute, groups in by_attribute.items():
        shape = (len(groups.values) + 1, TWO, steps)  # the last group are the rows without one
        cell = np.remainder(groups.codes, shape[0], dtype=np.int64)
        cell *= TWO * steps
        cell += place
        counts = np.bincount(cell, sample_weight, int(np.prod(shape))).reshape(shape)
        known = counts[:-1].sum(-1)
        if (known == 0).any() or len(known) < TWO:
            continue
        whole = counts.sum(0)
        # weights that are predicted positive by threshold
        of_groups, hits = (
            part[..., ::-1].cumsum(-1)[..., ::-1][..., 1:] for part in (counts[:-1], whole)
        )
        rates = np.ptp(of_groups / known[..., None], axis=0)
        selected = np.ptp(of_groups.sum(1) / known.sum(1)[:, None], axis=0)
        accuracy = (hits[1] + whole[0].sum() - hits[0]) / whole.sum()
        made[attribute] = Curve(threshold, accuracy, selected, rates[1], rates[0], rates.max(0))
    return made


def thresholds(predictions: Predictions) -> pd.DataFrame:
    """Accuracy and gaps of every attribute over all thresholds, with the columns ``THRESHOLDS``.

    Raises:
        InputError: the predictions are no scores or probabilities of two classes with labels.
    """
    if not (predictions.labelled and len(predictions.score) and predictions.score.ndim == 1):
        raise InputError("thresholds: need labels and scores or probabilities of two classes")
    drawn = curves(predictions.samples.y, predictions.score, predictions.groups, predictions.weight)
    parts = [pd.DataFrame({"attribute": name, **asdict(of)}) for name, of in drawn.items()]
    return pd.concat(parts) if parts else tables.table(THRESHOLDS, [])


def calibration(predictions: Predictions, suppress: int = 0) -> pd.DataFrame:
    """Mean probability and share of a class in ten bins of probability, by group.

    Of two classes it is that of the positive one, of several every class has its own rows. The
    first rows, without attribute, are of all groups.

    Args:
        predictions: probabilities with labels.
        suppress: bins of groups with fewer rows are left out.

    Returns:
        Rows with the columns ``CALIBRATION``; the share of the class has Wilson's 95 % interval, of
        the effective number of rows if they have weights.

    Raises:
        InputError: the predictions are no probabilities, or have no labels.
    """
    if predictions.kind != "probability" or not predictions.labelled:
        raise InputError("calibration: needs probabilities and labels")
    score, classes = predictions.score, predictions.samples.classes
    by_class = {classes[1]: score} if score.ndim == 1 else dict(zip(classes, score.T, strict=True))
    rows = [
        row
        for attribute, groups in {"": everyone(len(score)), **predictions.groups}.items()
        for label, share in by_class.items()
        for row in _bins(attribute, groups, label, share, predictions)
        if row["n"] >= max(1, suppress)
    ]
    return tables.table(CALIBRATION, rows)


def _bins(
    attribute: str, groups: Groups, label: str, share: np.ndarray, predictions: Predictions
) -> Iterator[dict[str, Any]]:
    """The bins of every group; a bin includes its lower bound, and the last one 1 as well."""
    samples, shape = predictions.samples, (len(groups.names), BINS)
    known = groups.index >= 0
    place = np.minimum((share * BINS).astype(np.int64), BINS - 1)
    cell = (groups.index * BINS + place)[known]
    weight = (np.ones(len(share)) if predictions.weight is None else predictions.weight)[known]
    hit = (samples.y == samples.classes.index(label))[known]

    def summed(values: np.ndarray) -> np.ndarray:
        return np.bincount(cell, values, shape[0] * BINS).reshape(shape)

    total = summed(weight)
    with np.errstate(divide="ignore", invalid="ignore"):
        predicted, observed = summed(weight * share[known]) / total, summed(weight * hit) / total
        low, high = wilson_interval(observed, total**2 / summed(weight**2))
    n = summed(np.ones(len(cell)))
    for group, name in enumerate(groups.names):
        for number in range(BINS):
            at = group, number
            yield {
                "attribute": attribute, "group": name, "label": label, "n": int(n[at]),
                "bin": f"{number / BINS:.1f} to {(number + 1) / BINS:.1f}",
                "predicted": predicted[at], "observed": observed[at],
                "low": low[at], "high": high[at],
            }  # fmt: skip
