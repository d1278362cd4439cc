"""Arrays and tables of users: numpy, pandas, polars, Arrow, or columns by name."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import narwhals
import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from robust_fairness.core.arrays import as_rows, exact_integers, is_tensor, require_same_rows
from robust_fairness.core.errors import InputError, first_line
from robust_fairness.core.extras import needed_by


def as_pandas(frame: Any) -> pd.DataFrame:
    """A data frame of any library that narwhals reads, or columns by name, in pandas.

    Lazy frames of polars and relations of DuckDB are computed. Whole numbers stay exact.

    Raises:
        InputError: it is neither, columns do not have the same rows, or two have the same name.
    """
    if isinstance(frame, Mapping):
        columns = {name: _column(str(name), as_rows(values)) for name, values in frame.items()}
        require_same_rows("table", columns)
        index = next((values.index for values in columns.values() if is_indexed(values)), None)
        arrays = {name: pd.Series(values).array for name, values in columns.items()}
        return pd.DataFrame(arrays, index=index)
    try:
        with needed_by(f"a table of type {type(frame).__name__}"):
            table = narwhals.from_native(frame).lazy().collect()
            converted = table.to_pandas()
            exact = {
                name: exact_integers(table[name])
                for name, kind in table.schema.items()
                if kind.is_integer() and converted[name].dtype.kind == "f"
            }
            return dense(converted.assign(**exact) if exact else converted)
    except TypeError:
        raise InputError(
            f"a table of type {type(frame).__name__}, allowed: a data frame of pandas, polars, "
            "Arrow or DuckDB, or columns by name"
        ) from None
    except narwhals.exceptions.DuplicateError:
        raise InputError("table: two columns have the same name") from None


def dense(values: Any) -> Any:
    """What was given, a frame of pandas with its sparse columns as plain ones."""
    kinds = values.dtypes.items() if isinstance(values, pd.DataFrame) else ()
    plain = {name: kind.subtype for name, kind in kinds if isinstance(kind, pd.SparseDtype)}
    return values.astype(plain) if plain else values


def _column(name: str, values: Any) -> Any:
    if np.ndim(values) != 1:
        raise InputError(f"{name}: shape {np.shape(values)}, allowed: one value per row")
    return values


@contextmanager
def naming_text(place: str, X: Any) -> Iterator[None]:
    """Add to an error of an estimator which columns of its features are no numbers."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kinds = X.dtypes if isinstance(X, pd.DataFrame) else pd.Series(dtype=object)
        columns = [str(name) for name, kind in kinds.items() if not is_numeric_dtype(kind)]
        if isinstance(error, InputError) or not columns:
            raise
        raise InputError(
            f"{place}: {first_line(error)}; columns of X that are no numbers: "
            f"{', '.join(columns)}; allowed: numbers, or an estimator that encodes them"
        ) from error


def is_indexed(values: Any) -> bool:
    """Whether values have an index of their own that says which rows they are, as pandas' do."""
    if isinstance(values, Mapping):
        return any(is_indexed(column) for column in values.values())
    return isinstance(values, pd.Series | pd.DataFrame)


def rows_of(values: Any, made: pd.DataFrame | pd.Series) -> Any:
    """What was made of values, for ``require_same_rows``: its index counts only if it is theirs."""
    return made if is_indexed(values) else range(len(made))


def with_column(
    table: pd.DataFrame, role: str, values: Any, rows: dict[str, Any]
) -> tuple[pd.DataFrame, str]:
    """The table with a column of a role, and its name: one that it has, or values, one per row.

    ``rows`` has what was given by role so far, the same rows of which the values must have.
    """
    if isinstance(values, str):
        return table, values
    rows[role] = column = _column(role, as_rows(values))
    require_same_rows("audit", rows)
    return table.assign(**{role: pd.Series(column).array}), role


def with_columns(
    table: pd.DataFrame, role: str, values: Any, rows: dict[str, Any], named: bool = True
) -> tuple[pd.DataFrame, list[str]]:
    """The table with the columns of a role, and their names.

    ``values`` are names of columns, one name, or what ``sensitive_columns`` takes, which text is
    too unless ``named``; ``rows`` as in ``with_column``.
    """
    if named and isinstance(values, str):
        return table, [values]
    if named and isinstance(values, Sequence) and all(isinstance(name, str) for name in values):
        return table, list(values)
    columns = sensitive_columns(values, role)
    rows[role] = rows_of(values, columns)
    require_same_rows("audit", rows)
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
        rowwise = narwhals.dependencies.is_into_series(values) or is_tensor(values)
        frame = (
            as_pandas(values) if tabular else pd.DataFrame(as_rows(values) if rowwise else values)
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
