"""Arrays and tables of users: numpy, pandas, polars, Arrow, or columns by name."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import narwhals
import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.core.extras import needed_by

EXACT = 2**53  # up to which every whole number is one of float64


def require_same_rows(place: str, arrays: Mapping[str, Any]) -> None:
    """Check that arrays have the same number of rows, and the same ones as far as indices tell.

    Rows are matched by position, as in scikit-learn. Values of pandas whose indices differ would
    mix rows up, unless one of them has no labels of its own: an index 0, 1, 2 ... as new values
    have it, beside one that is no part of such a range.

    Raises:
        InputError: lengths differ, or two indices do.
    """
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(f"{place}: arrays differ in length: {listed}")
    indices = {
        name: array.index
        for name, array in arrays.items()
        if isinstance(array, pd.Series | pd.DataFrame)
    }
    for (name, here), (other, there) in combinations(indices.items(), 2):
        if here.equals(there):
            continue
        counted = [isinstance(index, pd.RangeIndex) for index in (here, there)]
        fresh = any(_is_default(index) for index in (here, there)) and not all(counted)
        if not fresh or here.isin(there).all() or there.isin(here).all():
            raise InputError(
                f"{place}: the indices of {name} and {other} differ, but rows are matched by "
                "position; allowed: the same index, or values without one (.to_numpy())"
            )


def _is_default(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and (index.start, index.step) == (0, 1)


def as_pandas(frame: Any) -> pd.DataFrame:
    """A data frame of any library that narwhals reads, or columns by name, in pandas.

    Lazy frames of polars and relations of DuckDB are computed. Whole numbers stay exact.

    Raises:
        InputError: it is neither, columns do not have the same rows, or two have the same name.
    """
    if isinstance(frame, Mapping):
        columns = {name: pd.Series(_column(str(name), values)) for name, values in frame.items()}
        require_same_rows("table", columns)
        index = next((column.index for column in columns.values()), None)
        return pd.DataFrame({name: column.array for name, column in columns.items()}, index=index)
    try:
        with needed_by(f"a table of type {type(frame).__name__}"):
            table = narwhals.from_native(frame).lazy().collect()
            converted = table.to_pandas()
            exact = {
                name: _integers(table[name])
                for name, kind in table.schema.items()
                if kind.is_integer() and converted[name].dtype.kind == "f"
            }
            return converted.assign(**exact) if exact else converted
    except TypeError:
        raise InputError(
            f"a table of type {type(frame).__name__}, allowed: a data frame of pandas, polars, "
            "Arrow or DuckDB, or columns by name"
        ) from None
    except narwhals.exceptions.DuplicateError:
        raise InputError("table: two columns have the same name") from None


def _integers(cells: Any) -> np.ndarray | pd.arrays.IntegerArray:
    """Whole numbers with missing values: float64, or exact ones of pandas where float64 is not."""
    values, missing = cells.fill_null(0).to_numpy(), cells.is_null().to_numpy()
    if max(abs(int(values.min())), abs(int(values.max()))) > EXACT:
        return pd.arrays.IntegerArray(values.copy(), missing.copy())
    return np.where(missing, np.nan, values)


def _column(name: str, values: Any) -> Any:
    if np.ndim(values) != 1:
        raise InputError(f"{name}: shape {np.shape(values)}, allowed: one value per row")
    return values


def with_column(table: pd.DataFrame, role: str, values: Any) -> tuple[pd.DataFrame, str]:
    """The table with a column of a role, and its name: one that it has, or values, one per row."""
    if isinstance(values, str):
        return table, values
    column = _column(role, values)
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
        frame = as_pandas(values) if tabular else pd.DataFrame(values)
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
