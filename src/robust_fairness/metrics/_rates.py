"""Means within groups, the piece that all group metrics are made of."""

from collections.abc import Sequence

import numpy as np

from robust_fairness.metrics.base import Score

EMPTY = "no rows"
MOST_TOLD = 20  # names in a note


def listed(names: Sequence[str], between: str = ", ") -> str:
    """Names for a note: the first ones, and how many more there are."""
    more = len(names) - MOST_TOLD
    told = between.join(names[:MOST_TOLD])
    return f"{told} and {more:,} more" if more > 0 else told


def rates(
    hits: np.ndarray, group: np.ndarray, groups: int, where: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean of ``hits`` within each group and the number of rows there.

    Args:
        hits: numbers or booleans ``[n]``.
        group: int64 group of every row ``[n]``.
        groups: number of groups.
        where: rows that count, bool ``[n]``; all unless given.

    Returns:
        Means float64 ``[groups]``, NaN where a group has no row, and counts int64 ``[groups]``.
    """
    rows = slice(None) if where is None else where
    counts = np.bincount(group[rows], minlength=groups)
    sums = np.bincount(group[rows], weights=hits[rows], minlength=groups)
    return np.divide(sums, counts, out=np.full(groups, np.nan), where=counts > 0), counts


def by_group(means: np.ndarray, counts: np.ndarray, groups: Sequence[str]) -> dict[str, Score]:
    """One score a group, missing where it has no row."""
    return {
        name: Score(float(mean), int(n)) if n else Score(None, 0, EMPTY)
        for name, mean, n in zip(groups, means, counts, strict=True)
    }


def missing(counts: np.ndarray, groups: Sequence[str], among: str = "") -> Score | None:
    """The missing value of a gap where a group is empty, which it names; None where none is."""
    if counts.all():
        return None
    empty = [name for name, n in zip(groups, counts, strict=True) if not n]
    return Score(None, 0, f"{EMPTY} of group {listed(empty)}{among}")


def other_groups(
    hits: np.ndarray, group: np.ndarray, groups: int, where: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """As ``rates``, but of each group's complement."""
    rows = slice(None) if where is None else where
    means, counts = rates(hits, group, groups, where)
    inside = np.where(counts > 0, means, 0) * counts
    total, rest = float(np.sum(hits[rows])), counts.sum() - counts
    return np.divide(total - inside, rest, out=np.full(groups, np.nan), where=rest > 0), rest
