"""Tables of claims: what a paper says, our paired difference, and a verdict."""

from collections.abc import Iterator, Mapping
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
    rows: pd.DataFrame, claim: str, dataset: str, ordering: str, *places: Mapping[str, object]
) -> dict[str, Any]:
    """The claim that first < second, each the values of ``by_seed`` at one of two places."""
    first, second = (by_seed(rows, **place) for place in places)
    return difference(claim, dataset, ordering, first, second)


def where_run(
    rows: pd.DataFrame, claim: str, dataset: str, ordering: str, *places: Mapping[str, object]
) -> Iterator[dict[str, Any]]:
    """``compared`` if both places have rows, else nothing."""
    if all(len(by_seed(rows, **place)) for place in places):
        yield compared(rows, claim, dataset, ordering, *places)


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
