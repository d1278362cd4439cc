"""Rows of the tables of claims: what a paper says, our paired difference, and a verdict."""

from typing import Any

import pandas as pd

from robust_fairness.core.intervals import Interval
from robust_fairness.reporting.statistics import paired_difference, verdict

COLUMNS = ["claim", "dataset", "ordering", "ours", "low", "high", "n", "verdict"]


def difference(
    claim: str, dataset: str, ordering: str, first: pd.Series, second: pd.Series
) -> dict[str, Any]:
    """The claim that first < second, from values by seed."""
    found = paired_difference(first, second)
    return row(claim, dataset, ordering, found, verdict(found))


def row(claim: str, dataset: str, ordering: str, found: Interval, said: str) -> dict[str, Any]:
    """One row of the table."""
    return {
        "claim": claim,
        "dataset": dataset,
        "ordering": ordering,
        "ours": found.mean,
        "low": found.low,
        "high": found.high,
        "n": found.n,
        "verdict": said,
    }


def table(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """The rows as a frame with ``COLUMNS``."""
    return pd.DataFrame(rows, columns=COLUMNS)
