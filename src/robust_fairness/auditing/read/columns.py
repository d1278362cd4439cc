"""Types of the columns of a table without a documented schema: numbers or categories.

- A missing cell stays missing.
- A column is numeric if every cell is a finite number and categorical if none is (``True`` and
  ``False`` are categories). A column with both is refused: its type has to be declared.
- A numeric attribute with at most ``MOST_CODES`` distinct values is categorical unless it is
  declared a number.
- Categories are ordered as numbers if all of them are numbers, and alphabetically otherwise.
"""

import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_float_dtype, is_numeric_dtype

from robust_fairness.auditing.read.cleaning import MOST_CODES, WITH_COMMA, DateUnit, is_placeholder
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.numbers import as_decimal, counted, exact

MOST_CATEGORIES = 100
REST = "rest"  # all values of a target that are not positive
FIRST_ROWS = 1000
LARGEST = float(np.finfo(np.float32).max)
MOST_DECIMALS = 16  # of a short float that is found by arithmetic; 10 ** 16 is exact in float64
WHOLE = 2**11  # below which each whole number is one of float16 and float32

Kind = Literal["number", "category"]
Period = Literal["year", "quarter", "month", "day", "number"]
PANDAS_PERIODS = {"year": "Y", "quarter": "Q", "month": "M", "day": "D"}
NumberBins = int | tuple[float, ...]
Bins = NumberBins | DateUnit


def row_of(places: np.ndarray) -> int:
    """Number, from 1, of the first row where ``places`` (bool ``[n]``) is true."""
    return int(np.flatnonzero(places)[0]) + 1


def as_categories(cells: pd.Series, place: str, most: int = MOST_CATEGORIES) -> pd.Series:
    """The cells as categories."""
    if is_float_dtype(cells.dtype):
        cells = pd.Series(_numbers(cells), index=cells.index, name=cells.name)
    codes, values = pd.factorize(cells)
    if not len(values):
        raise InputError(f"{place}: no cell has a value")
    if len(values) > most:
        raise InputError(
            f"{place}: {len(values)} distinct values, allowed: at most {most} categories; drop the "
            "column, merge rare values, or divide numbers into bins"
        )
    names = [name_of_category(value, place) for value in values]
    kinds = pd.Index(sorted(set(names)), dtype=object)
    numbers = parsed(kinds)
    if np.isfinite(numbers).all():
        kinds = kinds[numbers.argsort(kind="stable")]
    result = np.append(kinds.get_indexer(pd.Index(names, dtype=object)), -1)[codes]
    return pd.Series(pd.Categorical.from_codes(result, kinds), index=cells.index, name=cells.name)


def as_numbers(cells: pd.Series, place: str) -> pd.Series:
    """The cells as float64; missing ones are NaN."""
    values = _numbers(cells)
    known = cells.notna().to_numpy()
    wrong = known & ~np.isfinite(values)
    if wrong.any():
        row = row_of(wrong)
        text = str(cells.iloc[row - 1])
        hint = "; if it means missing, declare it (missing)" if is_placeholder(text) else ""
        if WITH_COMMA.fullmatch(text):
            hint = "; if the comma separates decimals, declare it (decimal)"
        raise InputError(f"{place}, row {row}: {text!r}, allowed: a finite number{hint}")
    too_large = np.abs(values) > LARGEST
    if too_large.any():
        row = row_of(too_large)
        raise InputError(
            f"{place}, row {row}: {str(cells.iloc[row - 1])!r}, allowed: at most {LARGEST:.3g} in "
            "size (float32)"
        )
    if not known.any():
        raise InputError(f"{place}: no cell has a value")
    return pd.Series(values, index=cells.index, name=cells.name)


def canonical(name: str) -> str:
    """A name of a class or group without differences that have no meaning.

    1.0 is 1, YES is yes; blanks at the ends or several in a row, invisible characters and other
    code points of the same letters (Unicode NFKC) do not count.
    """
    text = unicodedata.normalize("NFKC", name)
    visible = "".join(
        letter for letter in text
        if letter.isspace() or unicodedata.category(letter) not in ("Cc", "Cf")
    )  # fmt: skip
    number = as_decimal(visible)
    if number is not None and number == number.to_integral_value():
        return exact(number)
    return " ".join(visible.split()).casefold()


def require_one_spelling(values: pd.Series, place: str, by_values: bool = True) -> pd.Series:
    """The categories, unless two of them differ in nothing that has a meaning, see ``canonical``.

    Args:
        values: categories.
        place: of the column, for messages.
        by_values: whether a field ``values`` can merge spellings.

    Raises:
        InputError: it has the rows of each spelling, and how to merge them.
    """
    counts = values.value_counts()
    for names in alike(values):
        rows = ", ".join(f"{ascii(name)} ({counted({'rows': counts[name]})})" for name in names)
        merged = ""
        if by_values:
            merged = f" or by values: {{{values.name}: {json.dumps({names[0]: names[1:]})}}}"
        raise InputError(
            f"{place}: {rows} differ only in case, blanks or invisible characters, or in "
            f"how a number is written, allowed: one spelling of each in the table{merged}"
        )
    return values


def alike(values: pd.Series) -> list[list[str]]:
    """The categories that differ in nothing that has a meaning, see ``canonical``, together."""
    counts = values.value_counts()
    spellings: dict[str, list[str]] = {}
    for name in counts.index[counts > 0]:
        spellings.setdefault(canonical(str(name)), []).append(str(name))
    return [names for names in spellings.values() if len(names) > 1]


def require_same_spelling(here: Iterable[str], there: Iterable[str], places: Sequence[str]) -> None:
    """Refuse a name of one table that is another spelling of a name of another.

    Args:
        here: names of a table.
        there: of the other one.
        places: of both, for the message.
    """
    new, old = set(here) - set(there), set(there) - set(here)
    spelled = {canonical(name): name for name in sorted(old)}
    for name in sorted(new):
        if canonical(name) in spelled:
            raise InputError(
                f"{places[0]} has {name!r}, {places[1]} has {spelled[canonical(name)]!r}; allowed: "
                "one spelling in both"
            )


def merged_spellings(cells: pd.Series, names: Mapping[str, Sequence[str]], place: str) -> pd.Series:
    """The cells with other spellings replaced by the name that they belong to."""
    known = list(map(str, pd.factorize(cells)[1]))
    new = {text: name for name, texts in names.items() for text in texts}
    for text in new:
        if text not in known:
            raise InputError(f"values: {place}: {unknown_name('value', text, known)}")
    return _mapped(cells, lambda text: new.get(text, text))


def without_suffix(cells: pd.Series, suffix: str) -> pd.Series:
    """The cells without a unit of measure at their end, such as kg of 45 kg."""
    return _mapped(cells, lambda text: text.strip().removesuffix(suffix).strip())


def _mapped(cells: pd.Series, change: Callable[[str], str]) -> pd.Series:
    """The cells as text, each distinct one changed; missing ones stay."""
    codes, values = pd.factorize(cells)
    texts = np.array([*map(change, map(str, values)), None], dtype=object)
    return pd.Series(texts[codes], index=cells.index, name=cells.name)


def typed(
    cells: pd.Series, place: str, kind: Kind | None = None, most: int = MOST_CATEGORIES
) -> pd.Series:
    """The cells as float64 or categories, of the declared type or by the rules of this module."""
    if kind == "number":
        return as_numbers(cells, place)
    if kind == "category" or is_bool_dtype(cells.dtype):
        return as_categories(cells, place, most)
    known = cells.notna().to_numpy()
    numbers = known & np.isfinite(_numbers(cells))
    if is_numeric_dtype(cells.dtype) or (numbers == known).all():
        return as_numbers(cells, place)
    if numbers.any():
        row = row_of(known & ~numbers)
        raise InputError(
            f"{place}: {numbers.sum()} cells are numbers and {(known & ~numbers).sum()} are not, "
            f"first {str(cells.iloc[row - 1])!r} in row {row}; declare the type (number or "
            "category), or declare that value missing"
        )
    return as_categories(cells, place, most)


def attribute(
    cells: pd.Series, place: str, kind: Kind | None = None, bins: NumberBins | None = None
) -> pd.Series:
    """A sensitive attribute: categories of one spelling each that define groups, or float64."""
    values = as_groups(cells, place, kind, bins)
    if isinstance(values.dtype, pd.CategoricalDtype) and bins is None:
        values = require_one_spelling(values, place)
    return values


def as_groups(
    cells: pd.Series, place: str, kind: Kind | None = None, bins: NumberBins | None = None
) -> pd.Series:
    """Categories that define groups, or float64."""
    if bins is not None:
        values = binned(as_numbers(cells, place), place, bins)
    elif kind is None and is_numeric_dtype(cells.dtype) and has_at_most(cells, MOST_CODES):
        values = as_categories(cells, place)
    else:
        values = typed(cells, place, kind)
        if kind is None and is_float_dtype(values.dtype) and has_at_most(cells, MOST_CODES):
            values = as_categories(cells, place)
    return require_two_values(values, place)


def as_periods(cells: pd.Series, place: str, period: Period, form: str = "ISO8601") -> pd.Series:
    """Dates as text such as ``2014``, ``2014Q1`` and ``2014-03``, or as days since 1970.

    ``form`` is a format of ``strptime``. Time zones are converted to UTC.
    """
    codes, values = pd.factorize(cells)
    dates = pd.to_datetime(pd.Series(values), format=form, errors="coerce", utc=True)
    if dates.isna().any():
        row = row_of(np.isin(codes, np.flatnonzero(dates.isna())))
        raise InputError(
            f"{place}, row {row}: {str(cells.iloc[row - 1])!r}, allowed: dates in the format "
            f"{form} (see date_format)"
        )
    dates = dates.dt.tz_localize(None)
    if period == "number":
        days = (dates - pd.Timestamp(0)) / pd.Timedelta(days=1)
        return pd.Series(np.append(days, np.nan)[codes], index=cells.index, name=cells.name)
    names = dates.dt.to_period(PANDAS_PERIODS[period]).astype(str)
    result = pd.Series([*names, None], dtype=object).iloc[codes]
    return pd.Series(pd.Categorical(result), index=cells.index, name=cells.name)


def binned(values: pd.Series, place: str, bins: NumberBins) -> pd.Series:
    """Numbers as categories such as ``age < 30``, ``30 <= age < 60`` and ``age >= 60``.

    Edges are compared, and named, without any rounding.
    """
    cuts = list(quantile_edges(values, place, bins) if isinstance(bins, int) else bins)
    edges = [exact(cut) for cut in cuts]
    if not cuts or not np.isfinite(cuts).all() or sorted(set(cuts)) != cuts:
        raise InputError(
            f"{place}: bin edges {', '.join(edges) or '(none)'} must increase and be "
            "finite; with quantile bins, choose fewer"
        )
    column = str(values.name)
    between = [f"{low} <= {column} < {high}" for low, high in zip(edges, edges[1:], strict=False)]
    names = [f"{column} < {edges[0]}", *between, f"{column} >= {edges[-1]}"]
    codes = np.searchsorted(cuts, values, side="right")
    codes[values.isna()] = -1
    for code, name in enumerate(names):
        if not (codes == code).any():
            raise InputError(f"{place}: bin {name} is empty; choose other bins")
    kinds = pd.Index(names, dtype=object)
    return pd.Series(pd.Categorical.from_codes(codes, kinds), index=values.index, name=values.name)


def quantile_edges(values: pd.Series, place: str, bins: int) -> tuple[float, ...]:
    """Edges of as many bins of equal numbers of rows; missing values are ignored."""
    if not 2 <= bins <= MOST_CATEGORIES:
        raise InputError(f"{place}: {bins} bins, allowed: from 2 to {MOST_CATEGORIES}")
    shares = np.arange(1, bins) / bins
    return tuple(np.quantile(values.dropna(), shares).tolist())


def has_at_most(values: pd.Series, most: int) -> bool:
    """Whether there are no more than so many distinct values; a look at few rows often tells."""
    return values.head(FIRST_ROWS).nunique() <= most and values.nunique() <= most


def require_two_values(values: pd.Series, place: str) -> pd.Series:
    """The column, unless it is constant: it would separate no groups or classes."""
    if has_at_most(values, 1) and values.notna().any():
        only = values.dropna().iloc[0]
        raise InputError(f"{place}: every row has the value {only}; at least two are needed")
    return values


def require_distinct(names: pd.Series | pd.Index, place: str) -> None:
    """Refuse two rows of one name."""
    twice = names[names.duplicated()]
    if len(twice):
        raise InputError(f"{place}: {list(twice)[0]} occurs in two rows; values must be unique")


def _numbers(cells: pd.Series) -> np.ndarray:
    """Cells as float64 ``[n]``; NaN where they are missing or not a number."""
    if is_numeric_dtype(cells.dtype) and not is_bool_dtype(cells.dtype):
        kind: Any = getattr(cells.dtype, "numpy_dtype", cells.dtype)
        few = np.dtype(kind) in (np.float16, np.float32)
        return as_written(cells.to_numpy(kind if few else np.float64, na_value=np.nan))
    codes, values = pd.factorize(cells)
    return np.append(parsed(values), np.nan)[codes]


def as_written(values: np.ndarray) -> np.ndarray:
    """Numbers as float64; those of fewer bits are the shortest decimals that a file has of them.

    float32 0.7 is 0.7, as in a CSV file, rather than 0.699999988: a table and its file have the
    same decisions and bins.

    >>> as_written(np.array([0.7, 0.1, 16777216.0], np.float32)).tolist()
    [0.7, 0.1, 16777216.0]
    """
    result = values.astype(np.float64)
    if values.dtype not in (np.float16, np.float32):
        return result
    left = np.flatnonzero((result != 0) & np.isfinite(result))
    for decimals in range(MOST_DECIMALS if len(left) else 0):
        shorter = np.rint(result[left] * 10.0**decimals) / 10.0**decimals
        same = (shorter.astype(values.dtype) == values[left]) & (abs(shorter) < WHOLE)
        result[left[same]] = shorter[same]
        left = left[~same]
    result[left] = [float(str(value)) for value in values[left]]
    return result


def parsed(values: Any) -> np.ndarray:
    """Values as float64; NaN for text and booleans."""
    objects = np.asarray(values, dtype=object)
    plain = [None if value is True or value is False else value for value in objects]
    numbers = pd.to_numeric(pd.Series(plain, dtype=object), errors="coerce")
    return numbers.to_numpy(np.float64)


def name_of_category(value: object, place: str) -> str:
    """Name of a category; whole numbers have no decimal point."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return str(value)
    if isinstance(value, float | np.floating):
        return str(int(value)) if float(value).is_integer() else exact(value)
    kind = type(value).__name__
    raise InputError(
        f"{place}: cells are of type {kind}, allowed: text, numbers, booleans; convert the column "
        "to text (in pandas: .astype(str)), or replace intervals by the numbers and bins"
    )


def typed_as_number(cells: pd.Series) -> bool:
    """Whether every cell is missing or a finite number."""
    known = cells.notna().to_numpy()
    return bool(np.isfinite(_numbers(cells)[known]).all())


def two_classes(
    values: pd.Series,
    positive: Sequence[str],
    place: str,
    negative: Sequence[str] = (REST,),
    rest: str = "negative: rest",
) -> pd.Series:
    """Categories merged into two classes, of which the second is positive.

    ``negative`` are the values of the first class, all others if it is ``rest``; it is needed if
    there are several. ``rest`` is how a user writes that, for messages.

    The classes are named after their values: ``not good`` if several values are negative,
    ``good or fair`` if several are positive.
    """
    present = list(values.cat.remove_unused_categories().cat.categories)
    for name in positive:
        if name not in present:
            raise InputError(f"{place}: {unknown_name('positive value', name, present)}")
    others = [name for name in present if name not in positive]
    if not others:
        raise InputError(f"{place}: every value is positive; at least one must be negative")
    counts = values.value_counts()
    if len(others) > 1 and tuple(negative) != (REST,):
        left = [name for name in others if name not in negative]
        if left:
            rows = ", ".join(f"{name!r} ({counted({'rows': counts[name]})})" for name in left)
            raise InputError(
                f"{place}: neither positive nor negative: {rows}, allowed: every value in one of "
                f"them; {rest} takes all other values"
            )
    if tuple(negative) != (REST,):
        for name in negative:
            if name not in others:
                raise InputError(f"{place}: {unknown_name('negative value', name, others)}")
    second = " or ".join(positive)
    first = others[0] if len(others) == 1 else f"not {second}"
    codes = values.isin(list(positive)).to_numpy().astype(np.int64)
    kinds = pd.Index([first, second], dtype=object)
    return pd.Series(pd.Categorical.from_codes(codes, kinds), index=values.index, name=values.name)
