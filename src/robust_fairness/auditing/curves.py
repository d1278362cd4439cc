"""Accuracy and the gap between groups over the threshold of the positive class."""

from dataclasses import dataclass

import numpy as np

from robust_fairness.samples import Groups

STEPS = 100  # of the range of thresholds
KEPT = 0.97  # share of the best accuracy that a threshold has to keep
TWO = 2
BLOCK = 2**20  # rows that are counted at once


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
    # the last group are the rows without one
    counts = np.zeros((len(groups.names) + 1, TWO, STEPS + 2), np.int64)
    for start in range(0, len(y), BLOCK):
        rows = slice(start, start + BLOCK)
        reached = np.searchsorted(threshold, score[rows], side="right")  # thresholds up to it
        group = np.remainder(groups.codes[rows], len(counts), dtype=np.int64)
        cell = np.ravel_multi_index((group, y[rows], reached), counts.shape)
        counts += np.bincount(cell, minlength=counts.size).reshape(counts.shape)
    known = counts[:-1].sum(-1)
    if (known == 0).any() or len(known) < TWO:
        return None
    rates = _positive(counts[:-1]) / known[..., None]
    hits = _positive(counts.sum(0))
    accuracy = (hits[1] + len(y) - y.sum() - hits[0]) / len(y)
    return Curve(threshold, accuracy, np.ptp(rates, axis=0).max(0))


def _positive(counts: np.ndarray) -> np.ndarray:
    """Rows that are predicted positive by threshold, ``[..., STEPS + 1]``."""
    positive: np.ndarray = counts[..., ::-1].cumsum(-1)[..., ::-1][..., 1:]
    return positive
