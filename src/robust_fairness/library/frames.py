"""Tables of users: pandas, polars, Arrow, or columns by name."""

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals
import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError


def as_pandas(frame: Any) -> pd.DataFrame:
    """A data frame of any library that narwhals reads, or columns by name, in pandas.

    Raises:
        InputError: it is neither.
    """
    if isinstance(frame, Mapping):
        return pd.DataFrame(frame)
    try:
        return narwhals.from_native(frame, eager_only=True).to_pandas()
    except TypeError:
        raise InputError(
            f"a table of type {type(frame).__name__}, allowed: a data frame of pandas, polars or "
            "Arrow, or columns by name"
        ) from None


def with_column(table: pd.DataFrame, role: str, values: Any) -> tuple[pd.DataFrame, str]:
    """The table with a column of a role, and its name: one that it has, or values, one per row."""
    if isinstance(values, str):
        return table, values
    column = np.asarray(values)
    if column.shape != (len(table),):
        raise InputError(
            f"{role}: shape {column.shape}, allowed: the name of a column, or one value for each "
            f"of the {len(table)} rows"
        )
    return table.assign(**{role: column}), role


def with_columns(table: pd.DataFrame, values: Any) -> tuple[pd.DataFrame, list[str]]:
    """The table with the sensitive features, and their names.

    ``values`` are names of columns, one name, a frame, or columns by name.
    """
    if isinstance(values, str):
        return table, [values]
    if isinstance(values, Sequence) and all(isinstance(one, str) for one in values):
        return table, list(values)
    if isinstance(values, pd.Series):
        values = values.to_frame(values.name or "sensitive_feature")
    own = as_pandas(values)
    if len(own) != len(table):
        raise InputError(f"sensitive_features: {len(own)} rows, allowed: {len(table)}")
    kept = table.drop(columns=[name for name in own if name in table])
    joined = pd.concat([kept.reset_index(drop=True), own.reset_index(drop=True)], axis=1)
    return joined, [str(name) for name in own]
