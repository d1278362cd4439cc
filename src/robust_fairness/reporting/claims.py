"""Tables of claims: what a paper says as an ordering first < second, and what we found.

A difference is first minus second, paired over seeds: the claim ``holds`` if its whole 95 %
interval is below 0, ``does not hold`` if it is above, and is ``inconclusive`` if it includes 0,
without correction for multiple comparisons.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from robust_fairness.core.intervals import Interval
from robust_fairness.reporting.results import where
from robust_fairness.reporting.statistics import paired_difference, verdict

COLUMNS = ["claim", "dataset", "ordering", "ours", "low", "high", "n", "verdict"]


def by_seed(rows: pd.DataFrame, /, **place: object) -> pd.Series:
    """Values by seed, the mean of several, of the rows that have these values in their columns."""
    return where(rows, **place).groupby("seed")["value"].mean()


def compared(
    rows: pd.DataFrame, claim: str, dataset: str, ordering: str, **pairs: Sequence[object]
) -> dict[str, Any]:
    """The claim that first < second, the values by seed at the two values of each column."""
    first, second = (by_seed(rows, **place) for place in _places(pairs))
    return difference(claim, dataset, ordering, first, second)


def where_run(
    rows: pd.DataFrame, claim: str, dataset: str, ordering: str, **pairs: Sequence[object]
) -> Iterator[dict[str, Any]]:
    """``compared`` if there are rows at both values, else nothing."""
    if all(len(where(rows, **place)) for place in _places(pairs)):
        yield compared(rows, claim, dataset, ordering, **pairs)


def _places(pairs: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    return [dict(zip(pairs, values, strict=True)) for values in zip(*pairs.values(), strict=True)]


def difference(
    claim: str, dataset: str, ordering: str, first: pd.Series, second: pd.Series
) -> dict[str, Any]:
    """The claim that first < second, from values by seed."""
    found = paired_difference(first, second)
    return row(claim, dataset, ordering, found, verdict(found))


def row(claim: str, dataset: str, ordering: str, found: Interval, said: str) -> dict[str, Any]:
    """One row of the table."""
    values = (claim, dataset, ordering, found.mean, found.low, found.high, found.n, said)
    return dict(zip(COLUMNS, values, strict=True))


def table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """The rows as a data frame with ``COLUMNS``."""
    return pd.DataFrame(rows, columns=COLUMNS)
