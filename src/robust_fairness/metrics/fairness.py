"""Group fairness of predictions (Equalized Robustness, Eqs. 1 to 3, and their usual relatives).

The positive class is class 1. A gap over a group, or a group and class, without rows is missing
with a count of 0. The plain gaps are defined for two groups and two classes; for more there are
the largest one-vs-rest gaps, under their own names, which are the same for two.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from robust_fairness.metrics._rates import by_group, missing, other_groups, rates
from robust_fairness.metrics.base import NOT_APPLICABLE, Score, metric

TWO = 2


def _of_two(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give 'not applicable' unless there are two classes, and two groups for a gap."""

    @wraps(function)
    def guarded(**arguments: Any) -> Any:
        classes, groups = len(arguments["classes"]), len(arguments["groups"])
        if classes != TWO:
            return Score(None, 0, f"{NOT_APPLICABLE}{classes} classes, defined for two")
        if groups != TWO and not function.__name__.endswith("_by_group"):
            return Score(None, 0, f"{NOT_APPLICABLE}{groups} groups, defined for two")
        return function(**arguments)

    return guarded


def _gap(hits: np.ndarray, group: np.ndarray, groups: tuple[str, ...], where: np.ndarray) -> Score:
    """Absolute difference of the two groups' means."""
    means, counts = rates(hits, group, len(groups), where)
    return missing(counts, groups) or Score(float(abs(means[0] - means[1])), int(counts.sum()))


def _everywhere(group: np.ndarray) -> np.ndarray:
    return np.ones(len(group), dtype=bool)


@metric(better="lower")
@_of_two
def delta_dp(
    prediction: np.ndarray, group: np.ndarray, groups: tuple[str, ...], classes: tuple[str, ...]
) -> Score:
    """Demographic parity gap, |P(Y'=1 | A=0) - P(Y'=1 | A=1)| (Eq. 1)."""
    return _gap(prediction == 1, group, groups, _everywhere(group))


@metric(better="lower")
@_of_two
def delta_eo(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    groups: tuple[str, ...],
    classes: tuple[str, ...],
) -> Score:
    """Equalised odds gap: the *sum* over y of |P(Y'=y | A=0, y) - P(Y'=y | A=1, y)| (Eq. 2).

    Others take the mean or the largest of the two; between 0 and 2 here.
    """
    total = 0.0
    for label, name in enumerate(classes):
        gap = _gap(prediction == y, group, groups, y == label)
        if gap.value is None:
            return Score(None, 0, f"{gap.note} in class {name}")
        total += gap.value
    return Score(total, len(y))


@metric(better="lower")
@_of_two
def delta_eopp(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    groups: tuple[str, ...],
    classes: tuple[str, ...],
) -> Score:
    """Equal opportunity gap as printed: on y = 0 (Eq. 3), a gap of true negative rates."""
    return _gap(prediction == 0, group, groups, y == 0)


@metric(better="lower")
@_of_two
def equal_opportunity_difference(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    groups: tuple[str, ...],
    classes: tuple[str, ...],
) -> Score:
    """Equal opportunity gap of Hardt et al. 2016: on y = 1, a gap of true positive rates."""
    return _gap(prediction == 1, group, groups, y == 1)


@metric(better="higher")
@_of_two
def disparate_impact(
    prediction: np.ndarray, group: np.ndarray, groups: tuple[str, ...], classes: tuple[str, ...]
) -> Score:
    """The lower positive rate over the higher one: 1 is parity, below 0.8 fails the 80 % rule.

    Missing where no group has a positive prediction (0/0).
    """
    means, counts = rates(prediction == 1, group, len(groups))
    if absent := missing(counts, groups):
        return absent
    if means.max() == 0:
        return Score(None, len(group), "no positive prediction in any group")
    return Score(float(means.min() / means.max()), len(group))


@metric(better="lower")
def delta_dp_one_vs_rest(
    prediction: np.ndarray, group: np.ndarray, groups: tuple[str, ...], classes: tuple[str, ...]
) -> Score:
    """Largest gap over classes c and groups a of |P(Y'=c | A=a) - P(Y'=c | A!=a)|."""
    gaps = []
    for label in range(len(classes)):
        inside, counts = rates(prediction == label, group, len(groups))
        outside, rest = other_groups(prediction == label, group, len(groups))
        if absent := missing(np.minimum(counts, rest), groups, " or beside it"):
            return absent
        gaps.append(np.abs(inside - outside))
    return Score(float(np.max(gaps)), len(group))


@metric(better="lower")
def delta_eo_one_vs_rest(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    groups: tuple[str, ...],
    classes: tuple[str, ...],
) -> Score:
    """Largest over groups a of the sum over y of |P(Y'=y | A=a, y) - P(Y'=y | A!=a, y)|."""
    total = np.zeros(len(groups))
    for label, name in enumerate(classes):
        inside, counts = rates(prediction == y, group, len(groups), y == label)
        outside, rest = other_groups(prediction == y, group, len(groups), y == label)
        if absent := missing(np.minimum(counts, rest), groups, f" or beside it in class {name}"):
            return absent
        total += np.abs(inside - outside)
    return Score(float(total.max()), len(y))


@metric(better="higher")
@_of_two
def selection_rate_by_group(
    prediction: np.ndarray, group: np.ndarray, groups: tuple[str, ...], classes: tuple[str, ...]
) -> dict[str, Score]:
    """Share of positive predictions within each group."""
    return by_group(*rates(prediction == 1, group, len(groups)), groups)


@metric(better="higher")
@_of_two
def true_positive_rate_by_group(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    groups: tuple[str, ...],
    classes: tuple[str, ...],
) -> dict[str, Score]:
    """Share of the rows of class 1 that are predicted so, within each group."""
    return by_group(*rates(prediction == 1, group, len(groups), y == 1), groups)


@metric(better="higher")
@_of_two
def true_negative_rate_by_group(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    groups: tuple[str, ...],
    classes: tuple[str, ...],
) -> dict[str, Score]:
    """Share of the rows of class 0 that are predicted so, within each group."""
    return by_group(*rates(prediction == 0, group, len(groups), y == 0), groups)
