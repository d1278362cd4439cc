"""How predicted probabilities are distributed within groups (FairCOCCO, Figure 3)."""

from collections.abc import Sequence

import numpy as np

from robust_fairness.metrics._rates import by_group, rates
from robust_fairness.metrics.base import NOT_APPLICABLE, Score, metric

BINS = 10
TWO = 2


def bin_names() -> tuple[str, ...]:
    """Names of the ten bins: ``0.0 to 0.1``, ``0.1 to 0.2`` and so on."""
    return tuple(f"{k / BINS:.1f} to {(k + 1) / BINS:.1f}" for k in range(BINS))


def bins_of(outputs: np.ndarray) -> np.ndarray:
    """Bin of the probability of class 1 of every row, int64 ``[n]``.

    A bin holds its lower bound, and the last one 1 as well.

    Args:
        outputs: logits of two classes ``[n, 2]``.
    """
    # exp(-logaddexp(0, x)) is 1 / (1 + exp(x)) without overflow
    difference = outputs[:, 0].astype(np.float64) - outputs[:, 1].astype(np.float64)
    probability = np.exp(-np.logaddexp(0, difference))
    return np.minimum((probability * BINS).astype(np.int64), BINS - 1)


def shares(bins: np.ndarray, cell: np.ndarray, names: Sequence[str]) -> dict[str, Score]:
    """Share of the rows of each cell that lie in each bin, named ``cell, 0.1 to 0.2``.

    Args:
        bins: bin of every row ``[n]``.
        cell: int64 cell of every row ``[n]``.
        names: names of the cells.
    """
    found: dict[str, Score] = {}
    for number, interval in enumerate(bin_names()):
        means, counts = rates(bins == number, cell, len(names))
        found |= by_group(means, counts, [f"{name}, {interval}" for name in names])
    return found


@metric(better="higher", unshifted_only=True)
def probability_shares_by_group(
    outputs: np.ndarray, group: np.ndarray, groups: tuple[str, ...], classes: tuple[str, ...]
) -> Score | dict[str, Score]:
    """Share of predicted probabilities of class 1 in ten bins, within each group.

    A distribution, of which no part is better; demographic parity asks for the same in all
    groups. Defined for two classes.
    """
    if len(classes) != TWO:
        return Score(None, 0, f"{NOT_APPLICABLE}{len(classes)} classes, defined for two")
    return shares(bins_of(outputs), group, groups)


@metric(better="higher", unshifted_only=True)
def probability_shares_by_subgroup(
    y: np.ndarray,
    outputs: np.ndarray,
    group: np.ndarray,
    groups: tuple[str, ...],
    classes: tuple[str, ...],
) -> Score | dict[str, Score]:
    """The same within each group and class, named ``group & class, 0.1 to 0.2``.

    Equalised odds asks for the same in all groups of a class.
    """
    if len(classes) != TWO:
        return Score(None, 0, f"{NOT_APPLICABLE}{len(classes)} classes, defined for two")
    names = [f"{name} & {label}" for name in groups for label in classes]
    return shares(bins_of(outputs), group * TWO + y, names)
