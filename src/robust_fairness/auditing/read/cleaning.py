"""Columns as people write them, cleaned once: a rule sees each distinct text, never the rows."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from robust_fairness.core.errors import InputError
from robust_fairness.core.numbers import as_decimal, exact

Decimals = Literal[".", ","]
DateUnit = Literal["decade", "year", "quarter", "month", "day"]

BLANK = re.compile(r"[\s\u200b-\u200d\u2060\ufeff]*")  # a no-break space and zero width ones, too
# Texts that tables use for a missing value, and that may be a group or a class, casefolded.
PLACEHOLDERS = (
    "na", "n/a", "n.a.", "#n/a", "nan", "null", "none", "missing", "unknown", "?", "-", "--", ".",
    "..",
)  # fmt: skip
WITH_COMMA = re.compile(r"[-+]?(\d+|[1-9]\d{0,2}(?:[.\s]\d{3})+)?(?:,\d+)?")  # 0,31 and 1.234,5
WITH_POINTS = re.compile(r"[-+]?[1-9]\d{0,2}(?:\.\d{3})*")  # 1.234, which is 1.234 or 1234
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:,\d{3})+")  # 1,234, which is 1.234 or 1234
CODE = re.compile(r"[-+]?(0|[1-9]\d*)\.0+")  # 1.0 is the code 1
DATE_FORMS = (
    (re.compile(r"\d{4}-\d\d-\d\d(?:[T ].*)?"), "ISO8601"),
    (re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"), "%d.%m.%Y"),
)
UNITS: dict[DateUnit, str] = {"year": "Y", "quarter": "Q", "month": "M", "day": "D"}
READ_AS = "read_as"  # what a reader took for what, in ``attrs`` of its table
WRITTEN = "written"  # likewise texts of columns that are read as numbers, see ``telling``
MOST_CODES = 10  # distinct values of an attribute that are groups as they are


def is_placeholder(text: str) -> bool:
    """Whether a text may mean a missing value.

    >>> [is_placeholder(text) for text in ("N/A", " - ", "nobody")]
    [True, True, False]
    """
    return text.strip().casefold() in PLACEHOLDERS


def plain_code(text: str) -> str:
    """A whole number without decimals; other texts as they are, also numbers with leading zeros.

    >>> plain_code("1.0"), plain_code("01.0"), plain_code("1.10")
    ('1', '01.0', '1.10')
    """
    return exact(Decimal(text)) if CODE.fullmatch(text) else text


@dataclass(frozen=True)
class Cleaning:
    """How the cells of a table are written.

    Attributes:
        missing: texts of missing values, besides null, empty and blank cells.
        decimal: the decimal separator of numbers in text; found out for each column if None.
    """

    missing: Sequence[str] = ()
    decimal: Decimals | None = None

    def cleaned(self, cells: pd.Series, place: str, names: float) -> tuple[pd.Series, str]:
        """A column whose missing cells are null and whose numbers have decimal points.

        Args:
            cells: the column; text becomes categories.
            place: of the column, for messages.
            names: up to so many distinct texts such as 0,31 and 31 % are names and no numbers.

        Returns:
            The column, and in a line how its numbers were read; "" if as they are.
        """
        if is_numeric_dtype(cells.dtype) or is_bool_dtype(cells.dtype):
            declared = [number for text in self.missing if (number := as_decimal(text)) is not None]
            return (cells.mask(cells.isin(list(map(float, declared)))) if declared else cells), ""
        codes: np.ndarray
        if not isinstance(cells.dtype, pd.CategoricalDtype):
            codes, distinct = pd.factorize(cells)
        else:
            codes, distinct = cells.cat.codes.to_numpy(), cells.cat.categories
        texts = list(distinct)
        scalars = (str, int, float, bool, np.number, np.bool_)
        has_text = any(isinstance(text, str) for text in texts)
        if not has_text or not all(isinstance(text, scalars) for text in texts):
            return cells, ""
        texts = list(map(str, texts))
        known = [not BLANK.fullmatch(text) and text not in self.missing for text in texts]
        named, how = self.names([text for text, is_ in zip(texts, known, strict=True) if is_],
                                place, len(texts) > names)  # fmt: skip
        places = {text: code for code, text in enumerate(dict.fromkeys(named))}
        order = iter(named)
        of_text = [places[next(order)] if is_known else -1 for is_known in known]
        result = np.array([*of_text, -1], np.int32)[codes]
        kinds = pd.Index(list(places), dtype=object)
        values = pd.Categorical.from_codes(result, kinds)
        return pd.Series(values, index=cells.index, name=cells.name), how

    def names(self, texts: Sequence[str], place: str, numbers: bool) -> tuple[list[str], str]:
        """Distinct texts, with decimal points if they are numbers, and how these were written."""
        if numbers:
            bodies = {text: text.strip() for text in texts if not is_placeholder(text)}
            percent = all(body.endswith("%") for body in bodies.values())
            if percent:
                bodies = {text: body[:-1].rstrip() for text, body in bodies.items()}
            points = self._points(list(bodies.values()), place)
            if points is not None and (percent or points != list(bodies.values())):
                plain = [exact(Decimal(text) / 100) if percent else text for text in points]
                named = dict(zip(bodies, plain, strict=True))
                text = next(iter(named), "")
                how = f"{place}: numbers such as {text!r} are read as {named.get(text, '')}"
                return [named.get(text, text) for text in texts], how
        return list(map(plain_code, texts)), ""

    def _points(self, texts: Sequence[str], place: str) -> list[str] | None:
        """Numbers with decimal points; None if some text is no number."""
        if self.decimal != "," and all(as_decimal(text) is not None for text in texts):
            return list(texts)
        if self.decimal == "." and all(
            THOUSANDS.fullmatch(text) or as_decimal(text) is not None for text in texts
        ):
            return [text.replace(",", "") for text in texts]
        if self.decimal == "." or not all(WITH_COMMA.fullmatch(text) for text in texts):
            return None
        commas = [text for text in texts if "," in text]
        if self.decimal is None and commas and all(map(THOUSANDS.fullmatch, commas)):
            raise InputError(
                f"{place}: the comma of {commas[0]!r} may separate decimals or thousands; declare "
                "the decimal separator, ',' or '.' (decimal)"
            )
        return [re.sub(r"[.\s]", "", text).replace(",", ".") for text in texts]


def telling(texts: Iterable[str]) -> list[str]:
    """At most four of the texts of a column, which say about its points what all of them say.

    >>> telling(["1.234", "2.345", "", "5,5"])
    ['5,5', '1.234']
    """
    known = [text.strip() for text in texts if not (BLANK.fullmatch(text) or is_placeholder(text))]
    tests: tuple[Callable[[str], bool], ...] = (
        lambda text: "," in text,
        lambda text: "." in text,
        lambda text: not WITH_COMMA.fullmatch(text),
        lambda text: not WITH_POINTS.fullmatch(text),
    )
    told = (next(filter(test, known), None) for test in tests)
    return list(dict.fromkeys(text for text in told if text is not None))


def texts_of(cells: pd.Series) -> list[str]:
    """The telling texts of a column; none of one with other cells."""
    distinct = [] if is_numeric_dtype(cells.dtype) else list(pd.factorize(cells)[1])
    return telling(distinct) if all(isinstance(text, str) for text in distinct) else []


def require_one_decimal(columns: Mapping[str, Sequence[str]]) -> None:
    """Refuse points that may separate thousands, beside another column with decimal commas.

    Args:
        columns: telling texts of columns of numbers, by their place.
    """
    with_comma = [
        place for place, texts in columns.items()
        if any("," in text for text in texts) and all(map(WITH_COMMA.fullmatch, texts))
    ]  # fmt: skip
    for place, texts in columns.items():
        points = [text for text in texts if "." in text]
        if with_comma and points and all(map(WITH_POINTS.fullmatch, texts)):
            raise InputError(
                f"{place}: the point of {points[0]!r} may separate decimals or thousands, since "
                f"{with_comma[0]} has decimal commas; declare the decimal separator, ',' or '.' "
                "(decimal)"
            )


def dates_of(cells: pd.Series) -> pd.Series | None:
    """The days of a column of dates as they are written, in any zone; None of another column."""
    codes, distinct = pd.factorize(cells)
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        dates = pd.Series(distinct).dt.tz_localize(None)
    else:
        texts = [text.strip() for text in distinct if isinstance(text, str)]
        forms = [
            form for pattern, form in DATE_FORMS
            if len(texts) == len(distinct) and texts and all(map(pattern.fullmatch, texts))
        ]  # fmt: skip
        if not forms:
            return None
        days = pd.Series(texts).str[: len("2024-05-31")]
        dates = pd.to_datetime(days, format=forms[0], errors="coerce")
        if dates.isna().any():
            return None
    of_codes = np.append(dates.to_numpy("datetime64[ns]"), np.datetime64("NaT"))
    return pd.Series(of_codes[codes], index=cells.index, name=cells.name)


def date_unit(dates: pd.Series) -> DateUnit:
    """The longest unit that divides dates into two groups or more, of years at most ten."""
    years = dates.dropna().dt.year
    if years.nunique() > MOST_CODES:
        return "decade"
    units: list[DateUnit] = ["year", "quarter", "month"]
    return next((unit for unit in units if date_names(dates, unit).nunique() > 1), "day")


def date_names(dates: pd.Series, unit: DateUnit) -> pd.Series:
    """The decade, year, quarter, month or day of every date as categories in order."""
    codes, distinct = pd.factorize(dates, sort=True)
    if unit == "decade":
        names = [f"{date.year // 10 * 10}s" for date in distinct]
    else:
        names = list(map(str, pd.DatetimeIndex(distinct).to_period(UNITS[unit])))
    kinds = pd.Index(list(dict.fromkeys(names)), dtype=object)
    places = np.append(kinds.get_indexer(pd.Index(names, dtype=object)), -1)[codes]
    return pd.Series(pd.Categorical.from_codes(places, kinds), index=dates.index, name=dates.name)
