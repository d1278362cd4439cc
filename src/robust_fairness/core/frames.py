"""Arrays and tables of users: numpy, pandas, polars, Arrow, or columns by name."""

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals
import numpy as np
import pandas as pd

from robust_fairness.core.arrays import as_rows, exact_integers, require_same_rows
from robust_fairness.core.errors import InputError
from robust_fairness.core.extras import needed_by


def as_pandas(frame: Any) -> pd.DataFrame:
    """A data frame of any library that narwhals reads, or columns by name, in pandas.

    Lazy frames of polars and relations of DuckDB are computed. Whole numbers stay exact.

    Raises:
        InputError: it is neither, columns do not have the same rows, or two have the same name.
    """
    if isinstance(frame, Mapping):
        columns = {
            name: pd.Series(_column(str(name), as_rows(values))) for name, values in frame.items()
        }
        require_same_rows("table", columns)
        index = next((column.index for column in columns.values()), None)
        return pd.DataFrame({name: column.array for name, column in columns.items()}, index=index)
    try:
        with needed_by(f"a table of type {type(frame).__name__}"):
            table = narwhals.from_native(frame).lazy().collect()
            converted = table.to_pandas()
            exact = {
                name: exact_integers(table[name])
                for name, kind in table.schema.items()
                if kind.is_integer() and converted[name].dtype.kind == "f"
            }
            sparse = {
                name: as_rows(converted[name])
                for name, kind in converted.dtypes.items()
                if isinstance(kind, pd.SparseDtype)
            }
            changed = exact | sparse
            return converted.assign(**changed) if changed else converted
    except TypeError:
        raise InputError(
            f"a table of type {type(frame).__name__}, allowed: a data frame of pandas, polars, "
            "Arrow or DuckDB, or columns by name"
        ) from None
    except narwhals.exceptions.DuplicateError:
        raise InputError("table: two columns have the same name") from None


def _column(name: str, values: Any) -> Any:
    if np.ndim(values) != 1:
        raise InputError(f"{name}: shape {np.shape(values)}, allowed: one value per row")
    return values


def with_column(table: pd.DataFrame, role: str, values: Any) -> tuple[pd.DataFrame, str]:
    """The table with a column of a role, and its name: one that it has, or values, one per row."""
    if isinstance(values, str):
        return table, values
    column = _column(role, as_rows(values))
    require_same_rows("audit", {"table": table, role: column})
    return table.assign(**{role: pd.Series(column).array}), role


def with_columns(
    table: pd.DataFrame, values: Any, role: str = "sensitive_features"
) -> tuple[pd.DataFrame, list[str]]:
    """The table with the columns of a role, and their names.

    ``values`` are names of columns, one name, or what ``sensitive_columns`` takes.
    """
    if isinstance(values, str):
        return table, [values]
    if isinstance(values, Sequence) and all(isinstance(name, str) for name in values):
        return table, list(values)
    columns = sensitive_columns(values, role)
    require_same_rows("audit", {"table": table, role: columns})
    kept = table.drop(columns=[name for name in columns if name in table])
    return pd.concat([kept, columns.set_axis(table.index)], axis=1), [*map(str, columns)]


def sensitive_columns(values: Any, role: str = "sensitive_features") -> pd.DataFrame:
    """Sensitive features as columns: of a frame, an array ``[n]`` or ``[n, columns]``, or by name.

    Columns without a name are called ``sensitive_feature_0`` and so on, as in fairlearn, and
    likewise those of another role.

    Raises:
        InputError: it is none of these.
    """
    tabular = isinstance(values, Mapping) or narwhals.dependencies.is_into_dataframe(values)
    try:
        series = narwhals.dependencies.is_into_series(values)
        frame = (
            as_pandas(values) if tabular else pd.DataFrame(as_rows(values) if series else values)
        )
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{role}: a {type(values).__name__}, allowed: one label per row, a data "
            "frame, or columns by name"
        ) from None
    singular = role[:-1]
    names = [f"{singular}_{name}" if isinstance(name, int) else str(name) for name in frame]
    return frame.set_axis(names, axis=1)
