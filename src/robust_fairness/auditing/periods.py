"""Periods of a table: days to years of a column of dates, numbers, or names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.raw.columns import row_of

Length = Literal["day", "week", "month", "quarter", "year"]
FREQUENCY = {"day": "D", "month": "M", "quarter": "Q", "year": "Y"}
DATE = re.compile(r"\d{4}-\d\d(-\d\d.*)?")  # how an ISO date is written
OTHER_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\b.*")  # a date in another form
WRITE = "write dates as 2024-05-31 (ISO 8601), or days as 20240531"
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


def periods_of(cells: pd.Series, length: Length | None, place: str) -> Periods:
    """The periods of a column.

    ISO dates such as 2024-05-31 are in a day, week, month (by default), quarter or year, and so are
    days such as 20240531 if ``length`` is given; other numbers such as 2024 or 1000001 are periods
    of their own in their order, and names such as ``spring`` in the order of the rows, where each
    has its rows together. Weeks may be written as 2024-W07.

    Raises:
        InputError: a cell is missing or no date among dates, dates have another form, there is
            nothing to group by ``length``, or rows of a name are not together.
    """
    codes, values = pd.factorize(cells)
    if (codes < 0).any():
        raise InputError(f"{place}, row {row_of(codes < 0)}: no period; every row needs one")
    if len(values) == 0:
        raise InputError(f"{place}: has no rows")
    texts = [str(value) for value in values]
    numbers = [_number(text) for text in texts]
    if pd.api.types.is_datetime64_any_dtype(cells) or DATE.fullmatch(texts[0]):
        dates = pd.to_datetime(pd.Series(texts), format="ISO8601", errors="coerce", utc=True)
        keys, kind = _grouped(dates, cells, codes, length or "month", place), length or "month"
    elif None not in numbers and length is not None:
        dates = pd.to_datetime(pd.Series(texts), format="%Y%m%d", errors="coerce", utc=True)
        keys, kind = _grouped(dates, cells, codes, length, place), length
    elif None not in numbers:
        keys, kind = numbers, "number"
    else:
        if OTHER_DATE.fullmatch(texts[0]):
            raise InputError(f"{place}, row 1: {texts[0]!r} is a date in another form; {WRITE}")
        if length is not None:
            raise InputError(f"{place}, row 1: {texts[0]!r} has no {length}; {WRITE}")
        keys, kind = texts, "name"
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        repeated = pd.Series(codes[starts]).duplicated()
        if repeated.any():
            row = int(starts[int(repeated.argmax())])
            raise InputError(
                f"{place}, row {row + 1}: {str(cells.iloc[row])!r} after rows of another period; "
                f"names need their rows together; {WRITE}"
            )
    ordered = list(dict.fromkeys(keys))
    if kind != "name":
        ordered.sort()
    if len(ordered) > MOST:
        raise InputError(f"{place}: {len(ordered):,} periods, allowed: at most {MOST:,}")
    number = {key: code for code, key in enumerate(ordered)}
    names = tuple(map(str, ordered))
    return Periods(np.array([number[key] for key in keys])[codes], names, kind)


def _number(text: str) -> Decimal | None:
    """A number of any size, exactly; None of another text."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite():
        return None
    return Decimal(int(number)) if number == number.to_integral_value() else number.normalize()


def _grouped(
    dates: pd.Series, cells: pd.Series, codes: np.ndarray, length: Length, place: str
) -> list[str]:
    """The names of the periods of distinct dates, in the order of time where they are sorted."""
    wrong = dates.isna().to_numpy()[codes]
    if wrong.any():
        row = row_of(wrong)
        raise InputError(f"{place}, row {row}: {str(cells.iloc[row - 1])!r} is no date; {WRITE}")
    if length == "week":
        weeks = dates.dt.isocalendar()
        return [f"{year}-W{week:02d}" for year, week in zip(weeks.year, weeks.week, strict=True)]
    return [str(date) for date in dates.dt.tz_localize(None).dt.to_period(FREQUENCY[length])]
