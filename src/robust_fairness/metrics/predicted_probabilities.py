"""How predicted probabilities are distributed within groups (FairCOCCO, Figure 3)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from robust_fairness.numbers.groups import Groups, as_groups
from robust_fairness.numbers.quantities import RowValues, Score, means_of, measure

BINS = tuple(f"{k / 10:.1f} to {(k + 1) / 10:.1f}" for k in range(10))


def _shares(y_score: np.ndarray, groups: Groups) -> dict[str, Score]:
    """Share of the rows of each group in each bin, named ``group, 0.1 to 0.2``.

    A bin includes its lower bound, and the last one 1 as well.
    """
    bins = np.minimum((y_score * len(BINS)).astype(np.int64), len(BINS) - 1)
    result: dict[str, Score] = {}
    for number, interval in enumerate(BINS):
        means = means_of(RowValues(bins == number), groups)
        shares = means._replace(variance=np.full(len(means.value), np.nan)).scores(groups.names)
        result |= {f"{name}, {interval}": score for name, score in shares.items()}
    return result


@measure(better="higher", needs=("y_score", "sensitive_features"), binary=True, unshifted_only=True)
def probability_shares_by_group(
    y_score: np.ndarray, *, sensitive_features: Any
) -> dict[str, Score]:
    """Share of predicted probabilities of the positive class in ten bins, within each group.

    A distribution, of which no part is better; under demographic parity it is the same in all
    groups.
    """
    return _shares(y_score, as_groups(sensitive_features))


@measure(
    better="higher",
    needs=("y_true", "y_score", "sensitive_features", "classes"),
    binary=True,
    unshifted_only=True,
)
def probability_shares_by_subgroup(
    y_true: np.ndarray,
    y_score: np.ndarray,
    *,
    sensitive_features: Any,
    classes: Sequence[str] = ("0", "1"),
) -> dict[str, Score]:
    """The same within each group and class, named ``group & class, 0.1 to 0.2``.

    Under equalised odds it is the same in all groups of a class.
    """
    groups = as_groups(sensitive_features)
    names = tuple(f"{name} & {label}" for name in groups.names for label in classes)
    return _shares(y_score, Groups.named(groups.index * 2 + y_true, names))
