"""Periods of a table: days to years of a column of dates, numbers, or names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.core.numbers import as_decimal, exact
from robust_fairness.datasets.raw.columns import row_of

Length = Literal["day", "week", "month", "quarter", "year"]
FREQUENCY = {"day": "D", "month": "M", "quarter": "Q", "year": "Y"}
WEEK = r"(\d{4})-?W(\d\d)(?:-?([1-7]))?"
DAY = r"\d{4}-\d\d-\d\d(?:[T ].*)?"
# Dates of ISO 8601, and the periods in which they are.
ISO: dict[str, tuple[Length, ...]] = {
    r"\d{4}": ("year",),
    r"\d{4}-\d\d": ("month", "quarter", "year"),
    r"\d{4}-?W\d\d": ("week",),
    rf"{DAY}|\d{{8}}|\d{{4}}-?W\d\d-?[1-7]": ("day", "week", "month", "quarter", "year"),
}
MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    "oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
# Dates and weeks of other forms: their order is not that of numbers, and unknown for a text.
OTHER = re.compile(
    r"\d{1,2}([./-])\d{1,2}\1\d{4}(?: .*)?"  # 31.05.2024
    r"|\d{4}([./-])\d{1,2}\2\d{1,2}(?: .*)?|\d{4}/\d{1,2}|\d{4}-\d"  # 2024/05/31, 2024-5
    r"|\d\d([./-])\d\d\3\d\d(?: .*)?|\d{1,2}/\d{1,2}/\d\d"  # 31.05.24
    r"|(?:0?[1-9]|1[0-2])[/-](?:19|20)\d\d"  # 05/2024
    rf"|(?=.*\d)[\d\s.,:/'-]*(?:{MONTH})[\d\s.,:/'-]*"  # 31 May 2024
    r"|\d{4}[-_ /]?W\d{1,2}|(?:W|KW|week) ?\d{1,2}[-_ /]\d{4}",  # 2024-W7
    re.IGNORECASE,
)
OTHER_NUMBER = re.compile(r"(?:0?[1-9]|1[0-2])\.(?:19|20)\d\d")  # 05.2024
WRITE = "2024-05-31 (a day), 2024-W22 (a week) or 2024-05 (a month)"
MOST = 10_000  # periods


@dataclass(frozen=True)
class Periods:
    """The period of every row.

    Attributes:
        codes: number of the period of each row, int64 ``[n]``.
        names: of the periods in their order.
        kind: what the order is: a ``Length`` of dates, ``number``, or ``name``: that of the rows.
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

    - Numbers of any size, such as 2024, 20240531 or 1.5, are periods in their order.
    - ISO dates such as 2024-05-31 and 2024-05 are in periods of a length, by default months, and
      ISO weeks such as 2024-W22 in weeks. Times with a zone are converted to UTC.
    - Names such as ``spring`` are periods in the order of the rows, where each has its rows
      together.

    Args:
        cells: the column.
        length: of a period of dates, to which 20240531 then belongs too; None: as above.
        place: of the column, for messages.

    Raises:
        InputError: a cell is missing, is a date of another form, or is in no period of that
            length, or rows of a name are not together.
    """
    codes, values = pd.factorize(cells)
    if (codes < 0).any():
        raise InputError(f"{place}, row {row_of(codes < 0)}: no period; every row needs one")
    if len(values) == 0:
        raise InputError(f"{place}: has no rows")
    texts = pd.Series(values).astype(str).str.strip()
    numbers = _numbers(texts, codes, place)
    keys: list[Any]
    kind: str
    if numbers is not None and length is None:
        kind, keys = "number", numbers
    elif length is not None or texts.str.fullmatch(rf"{DAY}|\d{{4}}-\d\d|{WEEK}").any():
        written = texts if numbers is None else pd.Series([exact(number) for number in numbers])
        weeks = length is None and written.str.fullmatch(WEEK).all()
        kind = length or ("week" if weeks else "month")
        keys = _dates(written, codes, kind, place)
    else:
        _require(~texts.str.fullmatch(OTHER), texts, codes, place, f"is a date; write {WRITE}")
        kind, keys = "name", [str(value) for value in values]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        repeated = pd.Series(codes[starts]).duplicated()
        if repeated.any():
            row = int(starts[int(repeated.argmax())])
            raise InputError(
                f"{place}, row {row + 1}: {str(cells.iloc[row])!r} after rows of another period; "
                f"allowed: dates such as {WRITE}, numbers, or names whose rows are together"
            )
    distinct = list(dict.fromkeys(keys))
    if kind != "name":
        distinct.sort()
    if len(distinct) > MOST:
        raise InputError(f"{place}: {len(distinct):,} periods, allowed: at most {MOST:,}; see --by")
    number = {key: code for code, key in enumerate(distinct)}
    names = tuple(exact(key) if kind == "number" else key for key in distinct)
    return Periods(np.array([number[key] for key in keys])[codes], names, kind)


def _numbers(texts: pd.Series, codes: np.ndarray, place: str) -> list[Decimal] | None:
    """The numbers that distinct texts say, exactly; None if one says none."""
    numbers = []
    for text in texts:
        number = as_decimal(text)
        if number is None:
            return None
        numbers.append(number)
    if texts.str.fullmatch(OTHER_NUMBER).all():
        raise InputError(f"{place}, row 1: {texts[codes[0]]!r} is a date; write {WRITE}")
    decimals = texts.str.extract(r"\.(\d+)$", expand=False).fillna("").replace("0", "")
    unclear = decimals.str.endswith("0") & (decimals.str.len().nunique() > 1)
    _require(
        ~unclear, texts, codes, place,
        "is a number or a version; write all numbers with as many decimals, or versions as v1.10",
    )  # fmt: skip
    return numbers


def _dates(texts: pd.Series, codes: np.ndarray, length: str, place: str) -> list[str]:
    """The names of the periods of distinct dates."""
    forms = "|".join(f"(?:{form})" for form, lengths in ISO.items() if length in lengths)
    fits, weeks = texts.str.fullmatch(forms), texts.str.contains("W", regex=False)
    dates = pd.to_datetime(texts.where(fits & ~weeks), format="ISO8601", errors="coerce", utc=True)
    dates = dates.dt.tz_localize(None)
    dates[fits & weeks] = pd.to_datetime(texts[fits & weeks].map(_day_of_week))
    problem = f"is no date that has a {length}; write {WRITE}; numbers and names take no --by"
    _require(dates.notna(), texts, codes, place, problem)
    if length == "week":
        iso = dates.dt.isocalendar()
        return [
            f"{year:04d}-W{week:02d}" for year, week in zip(iso["year"], iso["week"], strict=True)
        ]
    return [str(period) for period in dates.dt.to_period(FREQUENCY[length])]


def _day_of_week(text: str) -> date | None:
    """The day of an ISO week, its first one by default; None if that year has no such week."""
    year, week, day = re.fullmatch(WEEK, text).groups(default="1")  # type: ignore[union-attr]
    try:
        return date.fromisocalendar(int(year), int(week), int(day))
    except ValueError:
        return None


def _require(
    allowed: pd.Series, texts: pd.Series, codes: np.ndarray, place: str, problem: str
) -> None:
    """Raise an error of the first row whose text is not allowed."""
    wrong = ~allowed.to_numpy(bool)
    if wrong.any():
        row = row_of(wrong[codes])
        raise InputError(f"{place}, row {row}: {texts[codes[row - 1]]!r} {problem}")
