"""Periods of a table: days to years of a column of dates, numbers, or names."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pandas as pd

from robust_fairness.auditing.read.columns import canonical, row_of
from robust_fairness.core.errors import InputError
from robust_fairness.core.numbers import as_decimal, exact

Length = Literal["day", "week", "month", "quarter", "year"]
Unit = Literal["day", "week", "month", "quarter", "half", "year"]
FREQUENCY = {"day": "D", "month": "M", "quarter": "Q", "year": "Y"}
# The units into which dates of a unit are divided.
PARTS: dict[Unit, tuple[str, ...]] = {
    "day": ("day", "week", "month", "quarter", "half", "year"),
    "week": ("week",),
    "month": ("month", "quarter", "half", "year"),
    "quarter": ("quarter", "half", "year"),
    "half": ("half", "year"),
    "year": ("year",),
}
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    "oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
DAY = r"\d{4}-\d\d-\d\d(?:[T ].*)?"
WITH_ZONE = r".*[T ].*(?:Z|[+-]\d\d:?\d\d)"
YEAR, GAP = r"(?P<year>(?:19|20)\d\d)", r"[-_ /]?"
# Forms of periods: their unit, and the groups year, part of the year and day of a week.
WRITTEN: tuple[tuple[Unit, str], ...] = (
    ("half", rf"{YEAR}{GAP}H(?P<part>[12])"), ("half", rf"H(?P<part>[12]){GAP}{YEAR}"),
    ("quarter", rf"{YEAR}{GAP}Q(?P<part>[1-4])"), ("quarter", rf"Q(?P<part>[1-4]){GAP}{YEAR}"),
    ("month", rf"{YEAR}[-.](?P<part>0[1-9]|1[0-2])"),
    ("month", rf"(?P<part>{MONTH})\.? {YEAR}"), ("month", rf"{YEAR} (?P<part>{MONTH})"),
    ("week", r"(?P<year>\d{4})-?W(?P<part>\d\d)"),
    ("day", r"(?P<year>\d{4})-?W(?P<part>\d\d)-?(?P<day>[1-7])"),
)  # fmt: skip
FORMS = [(unit, re.compile(form, re.IGNORECASE)) for unit, form in WRITTEN]
# Dates, weeks and years of other forms: their order is not that of numbers, and unknown for a text.
OTHER = re.compile(
    r"\d{1,2}([./-])\d{1,2}\1\d{4}(?: .*)?"  # 31.05.2024
    r"|\d{4}([./-])\d{1,2}\2\d{1,2}(?: .*)?|\d{4}/\d{1,2}|\d{4}-\d"  # 2024/05/31, 2024-5
    r"|\d\d([./-])\d\d\3\d\d(?: .*)?|\d{1,2}/\d{1,2}/\d\d"  # 31.05.24
    r"|(?:0?[1-9]|1[0-2])[/-](?:19|20)\d\d"  # 05/2024
    rf"|(?=.*\d)[\d\s.,:/'-]*(?:{MONTH})[\d\s.,:/'-]*"  # 31 May 2024
    r"|\d{4}[-_ /]?W\d{1,2}|(?:W|KW|week) ?\d{1,2}[-_ /]\d{4}"  # 2024-W7
    r"|FY ?'?\d\d",  # of 1999 and 2000
    re.IGNORECASE,
)
OTHER_NUMBER = re.compile(r"(?:0?[1-9]|1[0-2])\.(?:19|20)\d\d")  # 05.2024
YEAR_AND_MONTH = r"(?:19|20)\d\d\.(?:0?[1-9]|1[0-2])"  # 2024.9 is before 2024.10
NUMBERED = re.compile(r"\D*\d+\D*|v?\d+(?:\.\d+)+", re.IGNORECASE)  # FY2024, wave 3, v1.10
OF_A_YEAR = re.compile(r"(?:Q|H|M|W|KW|week|quarter|month) ?\d{1,2}", re.IGNORECASE)
WRITE = "2024-05-31 (a day), 2024-W22 (a week), 2024-05 (a month) or 2024Q2 (a quarter)"
MOST = 10_000  # periods


@dataclass(frozen=True)
class Periods:
    """The period of every row.

    Attributes:
        codes: number of the period of each row, int64 ``[n]``.
        names: of the periods in their order.
        kind: what the order is: a ``Unit`` of dates, ``number``, ``numbered``: that of the numbers
            in names, or ``name``: that of the rows.
        note: what was taken for what; "" if nothing was.
    """

    codes: np.ndarray
    names: tuple[str, ...]
    kind: str
    note: str = ""

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


def order_of(kind: str, name: str) -> Any:
    """What periods of a kind are sorted by.

    >>> order_of("numbered", "v1.9") < order_of("numbered", "v1.10")
    True
    """
    if kind == "numbered":
        return [int(number) for number in re.findall(r"\d+", name)]
    return Decimal(name) if kind == "number" else name


def periods_of(cells: pd.Series, length: Length | None, place: str) -> Periods:
    """The periods of a column, in the order of what they mean.

    - Numbers of any size, such as 2024, 20240531 or 1.5, are periods in their order; 2024.10 is a
      month.
    - Dates such as 2024-05-31 are in periods of a length, by default months; 2024-05, May 2024,
      2024-W22, 2024Q2, Q2 2024 and 2024H1 are periods of their own length, or in longer ones. Times
      with a zone are converted to UTC.
    - Names with one number, such as FY2024 and wave 3, and versions are in the order of numbers.
    - Names without any, such as ``spring``, are periods in the order of the rows, where each has
      its rows together.

    Args:
        cells: the column.
        length: of a period of dates, to which 20240531 then belongs too; None: as above.
        place: of the column, for messages.

    Raises:
        InputError: a cell is missing, is a date of another form, or is in no period of that
            length, names have no order, or rows of a name are not together.
    """
    codes, values = pd.factorize(cells)
    texts = pd.Series(values).astype(str).str.strip()
    blank = np.append(texts == "", True)[codes]
    if blank.any():
        raise InputError(f"{place}, row {row_of(blank)}: no period; every row needs one")
    if len(values) == 0:
        raise InputError(f"{place}: has no rows")
    numbers = _numbers(texts, codes, place)
    months = texts.str.fullmatch(YEAR_AND_MONTH).all() and texts.str.len().eq(len("2024.10")).all()
    note = (
        "times are in UTC, and so are the periods" if texts.str.fullmatch(WITH_ZONE).any() else ""
    )
    keys: list[Any]
    kind = "number"
    if numbers is not None and length is None and not months:
        keys = [exact(number) for number in numbers]
    else:
        written = texts if numbers is None or months else pd.Series(list(map(exact, numbers)))
        units = _units(written, length is not None)
        if length is not None or any(units):
            kind = length or _common(units)
            keys = _dates(written, units, codes, kind, place)
        else:
            kind, keys = _named(texts, codes, place), list(texts)
    if kind == "name":
        note = f"the periods are in the order of the rows: {span(list(dict.fromkeys(keys)))}"
    distinct = list(dict.fromkeys(keys))
    if kind != "name":
        distinct.sort(key=lambda name: order_of(kind, name))
    if len(distinct) > MOST:
        raise InputError(f"{place}: {len(distinct):,} periods, allowed: at most {MOST:,}; see --by")
    number = {key: code for code, key in enumerate(distinct)}
    of_rows = np.array([number[key] for key in keys])[codes]
    return Periods(of_rows, tuple(distinct), kind, note and f"{place}: {note}")


def _units(texts: pd.Series, also_numbers: bool) -> list[Unit | None]:
    """The unit of each text that is a date or a period of the calendar.

    ``also_numbers``: whether 20240531 is a day and 2024 a year.
    """

    def unit(text: str) -> Unit | None:
        return next((unit for unit, form in FORMS if form.fullmatch(text)), None)

    days = texts.str.fullmatch(rf"{DAY}|\d{{8}}" if also_numbers else DAY)
    years = texts.str.fullmatch(r"\d{4}") & also_numbers
    return [
        "day" if is_day else "year" if is_year else unit(text)
        for text, is_day, is_year in zip(texts, days, years, strict=True)
    ]


def _common(units: Sequence[Unit | None]) -> str:
    """The unit of the periods of dates of some units: months of days, otherwise the longest."""
    known = {unit for unit in units if unit}
    if "day" in known:
        known = known - {"day"} or {"month"}
    return max(known, key=list(PARTS).index)


def _named(texts: pd.Series, codes: np.ndarray, place: str) -> str:
    """Whether names are in the order of their numbers or of the rows."""
    _require(~texts.str.fullmatch(OTHER), texts, codes, place, f"is a date; write {WRITE}")
    spellings = texts.map(canonical)
    twice = spellings.duplicated(keep=False) & ~texts.duplicated(keep=False)
    _require(~twice, texts, codes, place, "is a period in several spellings; write one of them")
    digits = texts.str.contains(r"\d")
    starts = codes[np.flatnonzero(np.diff(codes, prepend=-1))]
    in_order = [str(texts[code]) for code in starts]
    if digits.any():
        same = texts.str.replace(r"\d+", "#", regex=True).str.casefold().nunique() == 1
        numbers = [order_of("numbered", name) for name in in_order]
        clear = not texts.str.fullmatch(OF_A_YEAR).any() or numbers == sorted(numbers)
        _require(
            texts.str.fullmatch(NUMBERED) & same & clear, texts, codes, place,
            f"has no clear place in the order of time; write {WRITE}, or names such as wave 3",
        )  # fmt: skip
        return "numbered"
    repeated = pd.Series(in_order).ne(pd.Series(in_order).shift())
    of_names = pd.Series(in_order)[repeated]
    if of_names.duplicated().any():
        name = of_names[of_names.duplicated()].iloc[0]
        changes = np.flatnonzero(np.diff(codes, prepend=-1))
        row = int(changes[of_names.index[of_names.duplicated()][0]])
        raise InputError(
            f"{place}, row {row + 1}: {name!r} after rows of another period; "
            f"allowed: dates such as {WRITE}, numbers, or names whose rows are together"
        )
    return "name"


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
    if texts.str.fullmatch(YEAR_AND_MONTH).all() and texts.str.len().nunique() > 1:
        raise InputError(f"{place}, row 1: {texts[codes[0]]!r} may be a month; write 2024-05")
    decimals = texts.str.extract(r"\.(\d+)$", expand=False).fillna("").replace("0", "")
    unclear = decimals.str.endswith("0") & (decimals.str.len().nunique() > 1)
    _require(
        ~unclear, texts, codes, place,
        "is a number or a version; write all numbers with as many decimals, or versions as v1.10",
    )  # fmt: skip
    return numbers


def _dates(
    texts: pd.Series, units: Sequence[Unit | None], codes: np.ndarray, length: str, place: str
) -> list[str]:
    """The names of the periods of distinct dates."""
    fits = pd.Series([unit is not None and length in PARTS[unit] for unit in units])
    plain = pd.Series([unit in ("day", "year") for unit in units]) & ~texts.str.contains("W")
    dates = pd.to_datetime(texts.where(fits & plain), format="ISO8601", errors="coerce", utc=True)
    dates = dates.dt.tz_localize(None)
    dates[fits & ~plain] = pd.to_datetime(texts[fits & ~plain].map(_first_day))
    problem = f"is no date that has a {length}; write {WRITE}; numbers and names take no --by"
    _require(dates.notna(), texts, codes, place, problem)
    if length == "week":
        iso = dates.dt.isocalendar()
        return [
            f"{year:04d}-W{week:02d}" for year, week in zip(iso["year"], iso["week"], strict=True)
        ]
    if length == "half":
        return [f"{day.year:04d}H{1 + (day.month > 6)}" for day in dates]  # noqa: PLR2004
    return [str(period) for period in dates.dt.to_period(FREQUENCY[length])]


def _first_day(text: str) -> date | None:
    """The first day of a period of ``FORMS``; None if its year has no such week."""
    unit, parts = next((unit, parts) for unit, form in FORMS if (parts := form.fullmatch(text)))
    year, part = int(parts["year"]), parts["part"]
    if unit in ("week", "day"):
        day = int(parts["day"]) if unit == "day" else 1
        try:
            return date.fromisocalendar(year, int(part), day)
        except ValueError:
            return None
    number = int(part) if part.isdigit() else MONTHS.index(part[:3].lower()) + 1
    months = {"half": 6, "quarter": 3, "month": 1}[unit]
    return date(year, (number - 1) * months + 1, 1)


def _require(
    allowed: pd.Series, texts: pd.Series, codes: np.ndarray, place: str, problem: str
) -> None:
    """Raise an error of the first row whose text is not allowed."""
    wrong = ~allowed.to_numpy(bool)
    if wrong.any():
        row = row_of(wrong[codes])
        raise InputError(f"{place}, row {row}: {texts[codes[row - 1]]!r} {problem}")
