"""Groups, means within them, and subgroups of group and class."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.arrays import factorised
from robust_fairness.core.errors import InputError
from robust_fairness.metrics.base import NO_ROWS, Score
from robust_fairness.samples import Groups, intersection

MOST_NAMES = 20  # in a note


def as_groups(sensitive_features: Any) -> Groups:
    """Groups of rows: themselves, by one label per row or by a frame; none may be missing.

    Of several columns the combinations that occur are the groups.
    """
    if isinstance(sensitive_features, Groups):
        return sensitive_features
    if isinstance(sensitive_features, pd.DataFrame):
        columns = [as_groups(values) for _, values in sensitive_features.items()]
        return columns[0] if len(columns) == 1 else intersection(columns)
    index, values = factorised("sensitive_features", sensitive_features)
    names = tuple(map(str, values))
    if len(set(names)) < len(names):
        raise InputError(
            "sensitive_features: different labels have the same text, such as 1 and '1'"
        )
    return Groups.named(index, names)


def as_groups_of_both(here: Any, there: Any) -> tuple[Groups, Groups]:
    """Groups of two sets of rows, where a number means the same group in both."""
    if isinstance(here, Groups) and isinstance(there, Groups):
        return here, there
    frames = [pd.DataFrame(values) for values in (here, there)]
    if list(frames[0]) != list(frames[1]):
        raise InputError("sensitive_features: other columns than in training, allowed: the same")
    both = as_groups(pd.concat(frames, ignore_index=True))
    first, second = np.split(both.index, [len(here)])
    return Groups(first, both.values), Groups(second, both.values)


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Names for a note: the first ones, and how many more there are."""
    more = len(names) - MOST_NAMES
    shown = between.join(names[:MOST_NAMES])
    return f"{shown} and {more:,} more" if more > 0 else shown


def rates(
    hits: np.ndarray,
    group: np.ndarray,
    groups: int,
    where: np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
    outside: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of ``hits`` ``[n]`` within each group, NaN without rows, and the number of rows there.

    Only rows ``where`` count, bool ``[n]``. ``outside``: of each group's complement.
    """
    rows = slice(None) if where is None else where
    group, hits = group[rows], hits[rows]
    counts = np.bincount(group, minlength=groups)
    sums, weights = np.bincount(group, hits, groups), counts
    if sample_weight is not None:
        weight = sample_weight[rows]
        sums, weights = (np.bincount(group, part, groups) for part in (hits * weight, weight))
    if outside:
        sums, weights, counts = (part.sum() - part for part in (sums, weights, counts))
    means = np.divide(sums, weights, out=np.full(groups, np.nan), where=weights > 0)
    return means, counts


def missing(
    counts: np.ndarray | Sequence[int], names: Sequence[str], among: str = ""
) -> Score | None:
    """The missing value of a gap where a group is empty, which it names; None where none is."""
    empty = [name for name, n in zip(names, counts, strict=True) if not n]
    return Score(None, 0, f"{NO_ROWS} of group {listed(empty)}{among}") if empty else None


def subgroups(
    y: np.ndarray, group: np.ndarray, y_train: np.ndarray, group_train: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Subgroups (group and class) that occur among these rows or the training rows.

    Returns:
        Group and class of every subgroup ``[subgroups, 2]``, and the subgroup of each of these
        rows and of each training row.
    """
    classes = int(max(y.max(initial=0), y_train.max(initial=0))) + 1
    here, there = group * classes + y, group_train * classes + y_train
    index, keys = pd.factorize(np.concatenate([here, there]), sort=True)
    return np.stack(np.divmod(keys, classes), axis=1), index[: len(y)], index[len(y) :]
