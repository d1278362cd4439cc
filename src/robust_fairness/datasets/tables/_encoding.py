"""Codes and missing cells as features."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError

MISSING = "missing"
INFREQUENT = "infrequent"


def coded(codes: pd.Series, names: Mapping[int, str], missing: str = "") -> pd.Series:
    """Numeric codes as categories, in the order of ``names``."""
    kinds = [*dict.fromkeys(names.values()), *([missing] if missing else [])]
    values = codes.map(dict(names)).astype("object")
    if missing:
        values = values.where(codes.notna(), missing)
    for code in codes[values.isna()]:
        raise InputError(
            f"column {codes.name}: code {code:g}, allowed: {', '.join(map(str, names))}"
        )
    return values.astype(pd.CategoricalDtype(kinds))


def two_categories(second: pd.Series, names: tuple[str, str]) -> pd.Series:
    """Truth values as two categories: the first name where false, the second where true."""
    codes = second.to_numpy(np.int8)
    return pd.Series(pd.Categorical.from_codes(codes, pd.Index(names)), second.index)


def grouped(codes: pd.Series, first: Mapping[str, int], missing: str) -> pd.Series:
    """Numeric codes as categories of consecutive codes.

    Args:
        codes: whole numbers; NaN where a cell is missing.
        first: the smallest code of each category, ascending.
        missing: name of the additional category of missing cells.
    """
    kinds = [*first, missing]
    index = np.searchsorted(list(first.values()), codes.to_numpy(), side="right") - 1
    index[codes.isna()] = len(first)
    return pd.Series(
        pd.Categorical.from_codes(index, pd.Index(kinds)), codes.index, name=codes.name
    )


def with_indicators(table: pd.DataFrame, incomplete: Iterable[str]) -> pd.DataFrame:
    """The table with 0 for missing numbers and one 0/1 column ``name=missing`` per such column.

    The indicator columns exist whether or not a cell is missing, so that features do not depend
    on the rows.
    """
    names = [name for name in incomplete if name in table]
    indicators = table[names].isna().astype("uint8").add_suffix(f"={MISSING}")
    filled = pd.concat([table.fillna(dict.fromkeys(names, 0)), indicators], axis="columns")
    for name in filled.columns[filled.isna().any()]:
        raise InputError(f"column {name}: {filled[name].isna().sum()} cells are missing")
    return filled


def frequent(values: pd.Series, share: float) -> pd.Series:
    """Categories with rare ones merged into ``infrequent``, the last category."""
    codes, names = pd.factorize(values, sort=True)
    kept = np.bincount(codes, minlength=len(names)) >= share * len(values)
    index = np.where(kept, kept.cumsum() - 1, kept.sum())[codes]
    kinds = pd.Index([*names[kept], *([] if kept.all() else [INFREQUENT])])
    return pd.Series(pd.Categorical.from_codes(index, kinds), values.index, name=values.name)
