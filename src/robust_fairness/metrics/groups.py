"""Groups, means within them, and subgroups of group and class."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.metrics.base import NO_ROWS, Score
from robust_fairness.samples import Groups

MOST_NAMES = 20  # in a note
ALL = "all"


def as_groups(sensitive_features: Any) -> Groups:
    """Groups of rows, from themselves or from one label per row; none may be missing."""
    if isinstance(sensitive_features, Groups):
        return sensitive_features
    labels = pd.Categorical(sensitive_features)
    index = labels.codes.astype(np.int64)
    if (index < 0).any():
        raise InputError(f"sensitive_features: row {int(index.argmin())} is missing")
    names = tuple(map(str, labels.categories))
    if len(set(names)) < len(names):
        raise InputError(
            "sensitive_features: different labels have the same text, such as 1 and '1'"
        )
    return Groups(index, names)


def as_groups_of_both(here: Any, there: Any) -> tuple[Groups, Groups]:
    """Groups of two sets of rows, where a number means the same group in both."""
    if isinstance(here, Groups) and isinstance(there, Groups):
        return here, there
    both = as_groups(np.concatenate([here, there]))
    first, second = np.split(both.index, [len(here)])
    return Groups(first, both.names), Groups(second, both.names)


def one_group(rows: int) -> Groups:
    """All rows in one group, called ``all``."""
    return Groups(np.zeros(rows, dtype=np.int64), (ALL,))


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
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of ``hits`` ``[n]`` within each group, NaN without rows, and the number of rows there.

    Only rows ``where`` count, bool ``[n]``.
    """
    rows = slice(None) if where is None else where
    counts = np.bincount(group[rows], minlength=groups)
    values, totals = hits[rows], counts
    if sample_weight is not None:
        values = values * sample_weight[rows]
        totals = np.bincount(group[rows], weights=sample_weight[rows], minlength=groups)
    sums = np.bincount(group[rows], weights=values, minlength=groups)
    return np.divide(sums, totals, out=np.full(groups, np.nan), where=totals > 0), counts


def rates_outside(
    hits: np.ndarray,
    group: np.ndarray,
    groups: int,
    where: np.ndarray | None = None,
    sample_weight: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """As ``rates``, but of each group's complement."""
    rows = slice(None) if where is None else where
    counts = np.bincount(group[rows], minlength=groups)
    weights = np.ones(len(hits)) if sample_weight is None else sample_weight
    inside = np.bincount(group[rows], weights=(hits * weights)[rows], minlength=groups)
    total = np.bincount(group[rows], weights=weights[rows], minlength=groups)
    rest = total.sum() - total
    means = np.divide(inside.sum() - inside, rest, out=np.full(groups, np.nan), where=rest > 0)
    return means, counts.sum() - counts


def named_scores(means: np.ndarray, counts: np.ndarray, names: Sequence[str]) -> dict[str, Score]:
    """One score per group, missing where it has no row."""
    return {
        name: Score(float(mean), int(n)) if n else Score(None, 0, NO_ROWS)
        for name, mean, n in zip(names, means, counts, strict=True)
    }


def missing(counts: np.ndarray, names: Sequence[str], among: str = "") -> Score | None:
    """The missing value of a gap where a group is empty, which it names; None where none is."""
    if counts.all():
        return None
    empty = [name for name, n in zip(names, counts, strict=True) if not n]
    return Score(None, 0, f"{NO_ROWS} of group {listed(empty)}{among}")


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
