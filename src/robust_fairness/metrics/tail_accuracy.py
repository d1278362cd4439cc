"""Accuracy on rare and on frequent answers of a local group (Kervadec et al. 2021, GQA-OOD).

An answer class is in the tail of a group if it is rarer there than the group's answers are on
average. Source: "An Investigation of Critical Issues in Bias Mitigation Techniques" (WACV 2022),
A.1.
"""

from fractions import Fraction

import numpy as np

from robust_fairness.metrics._metric import Score, metric
from robust_fairness.metrics._rates import by_group, missing, rates

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


def in_tail(y: np.ndarray, group: np.ndarray, classes: int, beta: float) -> np.ndarray:
    r"""Whether each row is of a tail class of its group, bool ``[n]``.

    .. math:: |a| < (1 + \beta) \mu(a)

    |a| counts the class in the group, mu is the mean count of the classes that occur there. A.1
    prints <=, the published labels follow <. The comparison is exact: beta is the decimal number
    that was written, not the nearest binary one.

    Args:
        y: class of every row ``[n]``.
        group: group of every row ``[n]``.
        classes: number of classes.
        beta: size of the tail, 0.2 in the source.
    """
    keys, index, counts = np.unique(group * classes + y, return_inverse=True, return_counts=True)
    _, group_of, present = np.unique(keys // classes, return_inverse=True, return_counts=True)
    totals = np.zeros(len(present), dtype=np.int64)
    np.add.at(totals, group_of, counts)
    factor = 1 + Fraction(str(beta))
    # Whole numbers of any size: |a| * present * denominator < numerator * total
    left = counts * present[group_of].astype(object) * factor.denominator
    right = totals[group_of].astype(object) * factor.numerator
    return (left < right).astype(bool)[index]
