"""Columns of a table that nobody has declared: which are numbers, which are categories.

The rules, for files that a dataset or an audit is made of:

- A missing cell stays missing.
- A column is *numbers* if every cell is a finite number, *categories* if none is (``True`` and
  ``False`` are categories). A column of both is refused: its type has to be declared.
- An attribute of numbers with at most ``MOST_CODES`` different values is taken for codes, that is
  for categories, unless it is declared a number; one with more is continuous.
- Categories are ordered as numbers where all of them are numbers, and by their names otherwise.
"""

from typing import Literal

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from robust_fairness.core.errors import InputError

MOST_CODES = 10  # different numbers that are still taken for codes of groups
MOST_CATEGORIES = 100

Kind = Literal["number", "category"]
Bins = int | tuple[float, ...]


def row_of(places: np.ndarray) -> int:
    """Number of the first row for which ``places`` (bool ``[n]``) holds; rows count from 1."""
    return int(np.flatnonzero(places)[0]) + 1


def as_categories(cells: pd.Series, place: str, most: int = MOST_CATEGORIES) -> pd.Series:
    """The cells as categories of text, missing ones missing.

    Args:
        cells: text, truth values, numbers or categories ``[n]``.
        place: file and column, for the error.
        most: how many different ones there may be.

    Raises:
        InputError: there are more, none, or they are neither text nor numbers.
    """
    codes, values = pd.factorize(cells)
    if not len(values):
        raise InputError(f"{place}: no cell has a value")
    if len(values) > most:
        raise InputError(
            f"{place}: {len(values)} different values, allowed: at most {most} categories; leave "
            "it out, merge rare values, or cut numbers by bins"
        )
    names = np.array([_name(value, place) for value in values], dtype=object)
    distinct, merged = np.unique(names, return_inverse=True)
    numbers = _parsed(distinct)
    order = (
        numbers.argsort(kind="stable") if np.isfinite(numbers).all() else np.arange(len(numbers))
    )
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    found = np.append(ranks[merged], -1)[codes]
    kinds = pd.Index(distinct[order], dtype=object)
    return pd.Series(pd.Categorical.from_codes(found, kinds), index=cells.index, name=cells.name)


def as_numbers(cells: pd.Series, place: str) -> pd.Series:
    """The cells as finite numbers, float64; missing ones are NaN.

    Args:
        cells: text or numbers ``[n]``.
        place: file and column, for the error.

    Raises:
        InputError: a cell is no finite number, or none has a value.
    """
    values = _numbers(cells)
    known = cells.notna().to_numpy()
    wrong = known & ~np.isfinite(values)
    if wrong.any():
        row = row_of(wrong)
        raise InputError(
            f"{place}, row {row}: {str(cells.iloc[row - 1])!r}, allowed: a finite number"
        )
    if not known.any():
        raise InputError(f"{place}: no cell has a value")
    return pd.Series(values, index=cells.index, name=cells.name)


def typed(
    cells: pd.Series, place: str, kind: Kind | None = None, most: int = MOST_CATEGORIES
) -> pd.Series:
    """The cells as numbers or categories, as declared or by the rules of this module.

    Args:
        cells: text, truth values, numbers or categories ``[n]``.
        place: file and column, for the error.
        kind: what they are declared to be.
        most: how many categories there may be.

    Returns:
        float64 or categorical.

    Raises:
        InputError: a cell does not fit, or the rules do not say what the column is.
    """
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
            f"first {str(cells.iloc[row - 1])!r} in row {row}; declare the type, number or "
            "category, or that such a cell is missing"
        )
    return as_categories(cells, place, most)


def attribute(
    cells: pd.Series, place: str, kind: Kind | None = None, bins: Bins | None = None
) -> pd.Series:
    """A sensitive attribute: categories that define groups, or numbers.

    Args:
        cells: text, truth values, numbers or categories ``[n]``.
        place: file and column, for the error.
        kind: what they are declared to be.
        bins: how numbers are cut into groups, see ``binned``.

    Returns:
        float64 or categorical, with at least two different values.

    Raises:
        InputError: a cell does not fit, there are too many categories, or a single value.
    """
    if bins is not None:
        values = binned(as_numbers(cells, place), place, bins)
    else:
        values = typed(cells, place, kind)
        codes = kind is None and values.nunique() <= MOST_CODES
        if codes and not isinstance(values.dtype, pd.CategoricalDtype):
            values = as_categories(cells, place)
    require_two_values(values, place)
    return values


def binned(values: pd.Series, place: str, bins: Bins) -> pd.Series:
    """Numbers cut into groups, categories such as ``age < 30``, ``30 <= age < 60``, ``age >= 60``.

    Args:
        values: float64 ``[n]``; NaN stays missing.
        place: file and column, for the error.
        bins: rising cut points; or how many groups of about equal size, cut at quantiles of all
            rows.

    Raises:
        InputError: there is no cut, cuts do not rise, or a group would have no row.
    """
    if isinstance(bins, int):
        shares = np.arange(1, bins) / max(bins, 1)
        cuts = np.quantile(values.dropna(), shares).tolist()
    else:
        cuts = list(bins)
    if not cuts or sorted(set(cuts)) != cuts:
        raise InputError(
            f"{place}: cut at {', '.join(f'{cut:g}' for cut in cuts) or 'nothing'}, allowed: "
            "rising cut points, or so few groups of equal size that they are apart"
        )
    edges = [f"{cut:g}" for cut in cuts]
    column = str(values.name)
    between = [f"{low} <= {column} < {high}" for low, high in zip(edges, edges[1:], strict=False)]
    names = [f"{column} < {edges[0]}", *between, f"{column} >= {edges[-1]}"]
    codes = np.searchsorted(cuts, values, side="right")
    codes[values.isna()] = -1
    for code, name in enumerate(names):
        if not (codes == code).any():
            raise InputError(f"{place}: no row has {name}, allowed: bins that all have rows")
    kinds = pd.Index(names, dtype=object)
    return pd.Series(pd.Categorical.from_codes(codes, kinds), index=values.index, name=values.name)


def require_two_values(values: pd.Series, place: str) -> None:
    """Refuse a constant column, which tells no group or class from another.

    Raises:
        InputError: all known values are equal.
    """
    if values.nunique() < 2:  # noqa: PLR2004
        only = values.dropna().iloc[0]
        raise InputError(f"{place}: every row has the value {only}; at least two are needed")


def _numbers(cells: pd.Series) -> np.ndarray:
    """Cells as float64 ``[n]``; NaN where they are missing or no number."""
    if is_numeric_dtype(cells.dtype) and not is_bool_dtype(cells.dtype):
        return cells.to_numpy(np.float64, na_value=np.nan)
    codes, values = pd.factorize(cells)
    parsed = _parsed(np.asarray(values, dtype=object))
    return np.append(parsed, np.nan)[codes]


def _parsed(values: np.ndarray) -> np.ndarray:
    """Values as float64, NaN where one is no number; a truth value is none."""
    text = pd.Series([None if isinstance(one, bool) else one for one in values], dtype=object)
    return pd.to_numeric(text, errors="coerce").to_numpy(np.float64)


def _name(value: object, place: str) -> str:
    """How a cell is called as a category: whole numbers have no decimal point."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return str(value)
    if isinstance(value, float | np.floating):
        return str(int(value)) if float(value).is_integer() else repr(float(value))
    kind = type(value).__name__
    raise InputError(f"{place}: cells are of type {kind}, allowed: text, numbers, truth values")


def typed_as_number(cells: pd.Series) -> bool:
    """Whether every cell that has a value is a finite number, and none is a truth value."""
    known = cells.notna().to_numpy()
    return bool(np.isfinite(_numbers(cells)[known]).all())
