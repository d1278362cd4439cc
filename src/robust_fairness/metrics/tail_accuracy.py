"""Accuracy on rare and on frequent answers of a local group (Kervadec et al. 2021, GQA-OOD).

An answer class is in the tail of a group if it is rarer there than the group's answers are on
average. Source: "An Investigation of Critical Issues in Bias Mitigation Techniques" (WACV 2022),
A.1.
"""

import numpy as np

from robust_fairness.metrics._rates import by_group, missing, rates
from robust_fairness.metrics.base import Score, metric
from robust_fairness.samples.questions import in_tail

SIDES = ("head", "tail")


@metric(better="higher")
def tail_accuracy(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    classes: tuple[str, ...],
    *,
    beta: float = 0.2,
) -> Score:
    """Accuracy on the rows of tail classes, see ``in_tail``."""
    tail = in_tail(y, group, len(classes), beta)
    return by_group(*rates(prediction == y, tail.astype(np.int64), len(SIDES)), SIDES)["tail"]


@metric(better="higher")
def head_accuracy(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    classes: tuple[str, ...],
    *,
    beta: float = 0.2,
) -> Score:
    """Accuracy on all other rows."""
    tail = in_tail(y, group, len(classes), beta)
    return by_group(*rates(prediction == y, tail.astype(np.int64), len(SIDES)), SIDES)["head"]


@metric(better="lower")
def head_tail_difference(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    classes: tuple[str, ...],
    *,
    beta: float = 0.2,
) -> Score:
    """Accuracy on the head less that on the tail, as a share of the latter (GQA-OOD).

    Missing where either side has no row, or no row of the tail is right.
    """
    tail = in_tail(y, group, len(classes), beta)
    (head_rate, tail_rate), counts = rates(prediction == y, tail.astype(np.int64), len(SIDES))
    if absent := missing(counts, SIDES):
        return absent
    if not tail_rate:
        return Score(None, len(y), "accuracy of the tail is 0")
    return Score(float((head_rate - tail_rate) / tail_rate), len(y))
