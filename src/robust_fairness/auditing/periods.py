"""Periods of a table: months, quarters or years of a column of dates, numbers, or names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.raw.columns import row_of

Length = Literal["month", "quarter", "year"]
FREQUENCY = {"month": "M", "quarter": "Q", "year": "Y"}
DATE = re.compile(r"\d{4}-\d\d")  # how an ISO date begins
MOST = 10_000  # periods


@dataclass(frozen=True)
class Periods:
    """The period of every row.

    Attributes:
        codes: number of the period of each row, int64 ``[n]``.
        names: of the periods in their order.
        kind: what the order is: that of dates or numbers, or of the rows if the periods have names.
    """

    codes: np.ndarray
    names: tuple[str, ...]
    kind: str

    @property
    def last(self) -> np.ndarray:
        """The rows of the last period, bool ``[n]``."""
        return np.asarray(self.codes == len(self.names) - 1)

    @property
    def before(self) -> str:
        """Name of all periods but the last one."""
        return span(self.names[:-1])


def span(names: Sequence[str]) -> str:
    """Name of consecutive periods."""
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def periods_of(cells: pd.Series, length: Length, place: str) -> Periods:
    """The periods of a column.

    ISO dates such as 2024-05-31 are in a month, quarter or year; numbers such as 2024 are periods
    in their order, and names such as ``spring`` in the order of the rows, where each has its rows
    together.

    Raises:
        InputError: a cell is missing or no date among dates, or rows of a name are not together.
    """
    codes, values = pd.factorize(cells)
    if (codes < 0).any():
        raise InputError(f"{place}, row {row_of(codes < 0)}: no period; every row needs one")
    if len(values) == 0:
        raise InputError(f"{place}: has no rows")
    texts = pd.Series(values).astype(str)
    numbers = pd.to_numeric(texts, errors="coerce")
    kind = "number"
    if pd.api.types.is_datetime64_any_dtype(cells) or DATE.match(texts[0]):
        kind, keys = length, _dates(cells, codes, texts, length, place)
    elif numbers.notna().all():
        keys = [f"{number:g}" for number in numbers]
        texts = numbers
    else:
        kind, keys = "name", texts.tolist()
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        repeated = pd.Series(codes[starts]).duplicated()
        if repeated.any():
            row = int(starts[int(repeated.argmax())])
            raise InputError(
                f"{place}, row {row + 1}: {str(cells.iloc[row])!r} after rows of another period; "
                "allowed: ISO dates such as 2024-05-31, numbers, or names whose rows are together"
            )
    names = list(dict.fromkeys(keys))
    if kind == "number":
        names.sort(key=float)
    elif kind != "name":
        names.sort()
    if len(names) > MOST:
        raise InputError(f"{place}: {len(names):,} periods, allowed: at most {MOST:,}; see --by")
    number = {name: code for code, name in enumerate(names)}
    return Periods(np.array([number[key] for key in keys])[codes], tuple(names), kind)


def _dates(
    cells: pd.Series, codes: np.ndarray, texts: pd.Series, length: Length, place: str
) -> list[str]:
    """The names of the periods of distinct dates."""
    dates = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True)
    wrong = dates.isna().to_numpy()[codes]
    if wrong.any():
        row = row_of(wrong)
        raise InputError(
            f"{place}, row {row}: {str(cells.iloc[row - 1])!r} is no date; allowed: ISO dates such "
            "as 2024-05-31"
        )
    return [str(date) for date in dates.dt.tz_localize(None).dt.to_period(FREQUENCY[length])]
