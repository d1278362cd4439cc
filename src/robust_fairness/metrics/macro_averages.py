"""Precision and recall, averaged over classes (finDML, D.4).

Which classes are averaged over decides the number. ``macro_precision`` and ``macro_recall`` average
over the classes that occur among the labels *or the predictions* of the rows, as scikit-learn does
unless told otherwise, and as the published tables must have: a group with few classes is then
marked down for every further class that it is mistaken for. ``*_present`` average over the classes
that the rows have. D.4 divides by the number of all classes, and what it calls false positives and
false negatives are each other; both are taken the usual way here.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from robust_fairness.metrics._rates import by_group, rates
from robust_fairness.metrics.base import Score, metric


@metric(better="higher")
def macro_precision(y: np.ndarray, prediction: np.ndarray) -> Score:
    """Share of the rows predicted as a class that are of it, over classes of rows or predictions.

    0 for a class that is never predicted.
    """
    return _of_all(macro_precision_by_group, y, prediction)


@metric(better="higher")
def macro_recall(y: np.ndarray, prediction: np.ndarray) -> Score:
    """Share of the rows of a class that are predicted so, over classes of rows or predictions.

    0 for a class without rows.
    """
    return _of_all(macro_recall_by_group, y, prediction)


@metric(better="higher")
def macro_precision_present(y: np.ndarray, prediction: np.ndarray) -> Score:
    """``macro_precision`` over the classes that the rows have."""
    return _of_all(macro_precision_present_by_group, y, prediction)


@metric(better="higher")
def balanced_accuracy(y: np.ndarray, prediction: np.ndarray) -> Score:
    """``macro_recall`` over the classes that the rows have: balanced accuracy."""
    return _of_all(balanced_accuracy_by_group, y, prediction)


@metric(better="higher")
def macro_precision_by_group(
    y: np.ndarray, prediction: np.ndarray, group: np.ndarray, groups: tuple[str, ...]
) -> dict[str, Score]:
    """``macro_precision`` of each group's rows."""
    return _means(y, prediction, group, groups)


@metric(better="higher")
def macro_recall_by_group(
    y: np.ndarray, prediction: np.ndarray, group: np.ndarray, groups: tuple[str, ...]
) -> dict[str, Score]:
    """``macro_recall`` of each group's rows."""
    return _means(prediction, y, group, groups)


@metric(better="higher")
def macro_precision_present_by_group(
    y: np.ndarray, prediction: np.ndarray, group: np.ndarray, groups: tuple[str, ...]
) -> dict[str, Score]:
    """``macro_precision_present`` of each group's rows."""
    return _means(y, prediction, group, groups, present=y)


@metric(better="higher")
def balanced_accuracy_by_group(
    y: np.ndarray, prediction: np.ndarray, group: np.ndarray, groups: tuple[str, ...]
) -> dict[str, Score]:
    """``balanced_accuracy`` of each group's rows."""
    return _means(prediction, y, group, groups, present=y)


def _of_all(
    of_groups: Callable[..., dict[str, Score]], y: np.ndarray, prediction: np.ndarray
) -> Score:
    return of_groups(y, prediction, np.zeros_like(y), ("all",))["all"]


def _means(
    one: np.ndarray,
    among: np.ndarray,
    group: np.ndarray,
    groups: tuple[str, ...],
    present: np.ndarray | None = None,
) -> dict[str, Score]:
    """Share of the rows of each class in ``among`` that are so in ``one``: means over classes.

    Args:
        one: class of every row ``[n]``.
        among: the other class of every row ``[n]``: predicted for precision, true for recall.
        group: group of every row ``[n]``.
        groups: names of the groups.
        present: classes ``[n]`` that count in the row's group; those of both unless given.

    Returns:
        One score a group, which rests on the group's rows. A share is 0 where ``among`` has no
        row of the class.
    """
    classes = max(int(one.max(initial=0)), int(among.max(initial=0))) + 1
    cells = [group * classes + labels for labels in (one, among)]
    counting = cells if present is None else [group * classes + present]
    counted = np.sort(pd.unique(np.concatenate(counting)))  # hashed: np.unique sorts the rows
    number, occurring = pd.factorize(cells[1], sort=True)
    hits, _ = rates(one == among, number, len(occurring))
    found = np.isin(counted, occurring)
    shares = np.zeros(len(counted))
    shares[found] = hits[np.searchsorted(occurring, counted[found])]
    means, _ = rates(shares, counted // classes, len(groups))
    return by_group(means, np.bincount(group, minlength=len(groups)), groups)
