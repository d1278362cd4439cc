"""A table of a user, CSV or Parquet, described by parameters alone."""

from dataclasses import replace
from typing import Annotated

import pandas as pd
from pydantic import PositiveInt

from robust_fairness.auditing.read import columns as raw_columns
from robust_fairness.bench.datasets.base import TableDataset, TypedTable
from robust_fairness.bench.datasets.labels import RawTableParameters, complete_rows, typed_table
from robust_fairness.bench.datasets.tables._tables import MISSING
from robust_fairness.core.errors import Collected, InputError, unknown_name
from robust_fairness.core.raw_files import Files


class TableOfColumns(TableDataset):
    """Columns of a table; class 1 of a binary target is the positive one."""

    class Parameters(RawTableParameters):
        """Parameters of a table.

        Attributes:
            features: the columns that are features, in this order; by default all but the target,
                the id, the split, the unit and the domain.
            drop: columns that are no features, where ``features`` is not given.
            most_categories: how many categories a feature may have, each a column of 0 and 1.
        """

        features: tuple[str, ...] | None = None
        drop: tuple[str, ...] = ()
        drop_sensitive: bool = False
        most_categories: Annotated[int, PositiveInt] = raw_columns.MOST_CATEGORIES

    def required_files(self) -> tuple[str, ...]:
        return (self.parameters.file,)

    def read(self, files: Files, splits: int) -> TypedTable:
        parameters = self.parameters
        wanted = parameters.features
        named = None if wanted is None else tuple(dict.fromkeys((*parameters.columns, *wanted)))
        table = parameters.read(files, named, parameters.drop)
        names = _features(list(table.columns), parameters)
        parameters.require_typed([*parameters.columns, *names])
        imputed = names if parameters.incomplete == "impute" else ()
        optional = set(parameters.sensitive) - set(names) | set(imputed)
        needed = dict.fromkeys([*parameters.columns, *names])
        wrong, features = Collected(), {}
        with wrong.noting():
            table = complete_rows(
                table, [item for item in needed if item not in optional], parameters
            )
        for name in names:
            with wrong.noting():
                kind, most = parameters.types.get(name), parameters.most_categories
                features[name] = raw_columns.typed(table[name], parameters.place(name), kind, most)
        typed = typed_table(table, pd.DataFrame(features), parameters, wrong)
        return replace(typed, features=_with_missing(typed.features))


def _with_missing(features: pd.DataFrame) -> pd.DataFrame:
    """Incomplete numbers with an indicator column, incomplete categories with one of their own."""
    result: dict[str, pd.Series] = {}
    for name in map(str, features.columns):
        cells, missing = features[name], features[name].isna()
        if isinstance(cells.dtype, pd.CategoricalDtype) and missing.any():
            kinds = [*cells.cat.categories, *({MISSING} - set(cells.cat.categories))]
            result[name] = cells.cat.set_categories(kinds).fillna(MISSING)
        else:
            result[name] = cells
            if missing.any():
                result[f"{name}={MISSING}"] = missing.astype("uint8")
    return pd.DataFrame(result)


def _features(columns: list[str], parameters: TableOfColumns.Parameters) -> list[str]:
    """Names of the columns that are features, in order."""
    for name in (*parameters.columns, *parameters.drop):
        if name not in columns:
            raise InputError(f"{parameters.file}: {unknown_name('column', name, columns)}")
    if parameters.features is not None and parameters.drop:
        raise InputError("drop: not allowed together with features")
    no_feature = {parameters.target, parameters.id, parameters.split, *parameters.drop}
    if parameters.features is None:
        no_feature |= {parameters.unit, parameters.domain}
    if parameters.drop_sensitive:
        no_feature |= set(parameters.sensitive)
    names = list(parameters.features or columns)
    for role in (parameters.target, parameters.id, parameters.split):
        if parameters.features is not None and role in names:
            raise InputError(f"features: {role} is the target, id or split and cannot be a feature")
    result = [name for name in dict.fromkeys(names) if name not in no_feature]
    if not result:
        raise InputError(f"{parameters.file}: no column is left as a feature")
    return result
