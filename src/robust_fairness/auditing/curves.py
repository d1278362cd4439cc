"""Accuracy and the gap between groups over the threshold of the positive class."""

from dataclasses import dataclass

import numpy as np

from robust_fairness.samples import Groups

STEPS = 100  # of the range of thresholds
KEPT = 0.97  # share of the best accuracy that a threshold has to keep
TWO = 2


@dataclass(frozen=True)
class Curve:
    """Values by threshold, float64 ``[thresholds]`` each.

    Attributes:
        threshold: lowest score of the positive class, increasing.
        accuracy: accuracy of all rows.
        gap: equalized odds difference, the larger one of the differences of true and of false
            positive rates between two groups.
    """

    threshold: np.ndarray
    accuracy: np.ndarray
    gap: np.ndarray

    @property
    def fairest(self) -> int:
        """Place of the smallest gap with at least ``KEPT`` of the best accuracy."""
        allowed = self.accuracy >= KEPT * self.accuracy.max()
        return int(np.where(allowed, self.gap, np.inf).argmin())


def curve(y: np.ndarray, score: np.ndarray, groups: Groups) -> Curve | None:
    """The curve of scores ``[n]`` of classes 0 and 1, in one pass over the rows.

    Thresholds are equally spaced between the first and the last percentile of the scores. None if
    a group lacks a class.
    """
    first, last = np.quantile(score, [0.01, 0.99])
    threshold = np.linspace(first, last, STEPS + 1)
    reached = np.searchsorted(threshold, score, side="right")  # thresholds up to the score
    correct_of_class = _counts(y, y, reached, TWO)
    known = groups.index >= 0
    counts = _counts(groups.index[known], y[known], reached[known], len(groups.names))
    rows = counts.sum(-1)
    if (rows == 0).any() or len(rows) < TWO:
        return None
    rates = _positive(counts) / rows[..., None]
    hits = _positive(correct_of_class)
    accuracy = (hits[1, 1] + len(y) - y.sum() - hits[0, 0]) / len(y)
    return Curve(threshold, accuracy, np.ptp(rates, axis=0).max(0))


def _counts(group: np.ndarray, y: np.ndarray, reached: np.ndarray, groups: int) -> np.ndarray:
    """Rows by group, class and number of thresholds reached, ``[groups, 2, STEPS + 2]``."""
    shape = (groups, TWO, STEPS + 2)
    cell = np.ravel_multi_index((group, y, reached), shape)
    return np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)


def _positive(counts: np.ndarray) -> np.ndarray:
    """Rows that are predicted positive by threshold, ``[..., STEPS + 1]``."""
    positive: np.ndarray = counts[..., ::-1].cumsum(-1)[..., ::-1][..., 1:]
    return positive
