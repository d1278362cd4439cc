"""A table of a user, CSV or Parquet, described by parameters alone."""

from typing import Annotated

import pandas as pd
from pydantic import PositiveInt

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.datasets.base import TableDataset, TypedTable
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.labels import RawTableParameters, complete_rows, typed_table
from robust_fairness.datasets.raw import columns as raw_columns


class Table(TableDataset):
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
        optional = set(parameters.sensitive) - set(names)
        needed = dict.fromkeys([*parameters.columns, *names])
        rows = complete_rows(table, [name for name in needed if name not in optional], parameters)
        features = {
            name: raw_columns.typed(
                rows[name], parameters.place(name), parameters.types.get(name),
                parameters.most_categories,
            )
            for name in names
        }  # fmt: skip
        return typed_table(rows, pd.DataFrame(features), parameters, splits)


def _features(columns: list[str], parameters: Table.Parameters) -> list[str]:
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
    found = [name for name in dict.fromkeys(names) if name not in no_feature]
    if not found:
        raise InputError(f"{parameters.file}: no column is left as a feature")
    return found
