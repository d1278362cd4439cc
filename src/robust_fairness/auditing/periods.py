"""The last period of a table with a column of dates, and the periods before it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.raw.columns import row_of

Length = Literal["month", "quarter", "year"]
FREQUENCY = {"month": "M", "quarter": "Q", "year": "Y"}
TWO = 2


@dataclass(frozen=True)
class LastPeriod:
    """The rows of the last period, bool ``[n]``, and the names of it and of all before it."""

    rows: np.ndarray
    now: str
    then: str


def last_period(cells: pd.Series, length: Length, place: str) -> LastPeriod:
    """The last month, quarter or year of a column of ISO dates, such as 2024-05-31.

    Raises:
        InputError: a cell is missing or no date, or all dates are in one period.
    """
    codes, values = pd.factorize(cells)
    dates = pd.to_datetime(
        pd.Series(values).astype(str), format="ISO8601", errors="coerce", utc=True
    )
    wrong = np.append(dates.isna(), True)[codes]
    if wrong.any():
        row = row_of(wrong)
        raise InputError(
            f"{place}, row {row}: {str(cells.iloc[row - 1])!r} is no date; allowed: ISO dates such "
            "as 2024-05-31"
        )
    periods = dates.dt.tz_localize(None).dt.to_period(FREQUENCY[length])
    every = sorted(set(periods))
    if len(every) < TWO:
        raise InputError(
            f"{place}: all rows are in the {length} {every[0]}; at least two are needed"
        )
    *before, last = every
    then = str(before[0]) if len(before) == 1 else f"{before[0]} to {before[-1]}"
    return LastPeriod((periods == last).to_numpy()[codes], str(last), then)
