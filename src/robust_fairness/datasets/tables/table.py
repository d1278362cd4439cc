"""A table that a user brings, CSV or Parquet, made a dataset by parameters alone."""

from dataclasses import replace
from typing import Annotated

import pandas as pd
from pydantic import PositiveInt

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.datasets.base import TableDataset
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw import columns as raw_columns
from robust_fairness.datasets.raw.labels import RawTableParameters, complete_rows, labels_of
from robust_fairness.datasets.tables._tables import one_hot, to_samples
from robust_fairness.samples import Samples


class Parameters(RawTableParameters, extra="forbid", frozen=True):
    """Parameters of a table.

    Attributes:
        features: the columns that are features, in this order; unless given all but the target,
            the id, the split and the unit.
        drop: columns that are no features, where ``features`` is not given.
        drop_sensitive: leave the sensitive columns out of the features as well.
        most_categories: how many categories a feature may have, each a column of 0 and 1.
    """

    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    drop_sensitive: bool = False
    most_categories: Annotated[int, PositiveInt] = raw_columns.MOST_CATEGORIES


def load(parameters: Parameters, files: Files, splits: int) -> Samples:
    """Numbers as they are, then categories one-hot; class 1 of a binary target is positive.

    Args:
        parameters: what the columns of the table are.
        files: where it is found.
        splits: number of named splits; one where a column gives it.

    Raises:
        InputError: the file is missing, damaged, too large or empty, a column does not exist, is
            constant where it may not be, or has a cell that does not fit, or a part of a split
            lacks rows or a class.
    """
    wanted = parameters.features
    named = None if wanted is None else tuple(dict.fromkeys((*parameters.columns, *wanted)))
    table = parameters.read(files, named, parameters.drop)
    names = _features(list(table.columns), parameters)
    parameters.require_typed([*parameters.columns, *names])
    optional = set(parameters.sensitive) - set(names)
    needed = dict.fromkeys([*parameters.columns, *names])
    rows = complete_rows(table, [name for name in needed if name not in optional], parameters)
    labels = labels_of(rows, parameters, splits)
    features = {
        name: raw_columns.typed(
            rows[name], f"{parameters.file}, column {name}", parameters.types.get(name),
            parameters.most_categories,
        )
        for name in names
    }  # fmt: skip
    samples = to_samples(
        features=one_hot(pd.DataFrame(features)),
        target=labels.target,
        attributes={str(name): values for name, values in labels.attributes.items()},
        sensitive=parameters.sensitive,
        parameters=parameters,
        splits=labels.splits,
        sources=files.sources,
    )
    return replace(samples, id=labels.id)


def _features(columns: list[str], parameters: Parameters) -> list[str]:
    """Names of the columns that are features, in order.

    Raises:
        InputError: there is none, one is the target, or a column to drop does not exist.
    """
    for name in (*parameters.columns, *parameters.drop):
        if name not in columns:
            raise InputError(f"{parameters.file}: {unknown_name('column', name, columns)}")
    if parameters.features is not None and parameters.drop:
        raise InputError("drop: allowed where features are not given")
    no_feature = {parameters.target, parameters.id, parameters.split, *parameters.drop}
    if parameters.features is None:
        no_feature.add(parameters.unit)
    if parameters.drop_sensitive:
        no_feature |= set(parameters.sensitive)
    names = list(parameters.features or columns)
    for role in (parameters.target, parameters.id, parameters.split):
        if parameters.features is not None and role in names:
            raise InputError(f"features: {role} is the target, id or split, allowed: others")
    found = [name for name in dict.fromkeys(names) if name not in no_feature]
    if not found:
        raise InputError(f"{parameters.file}: no column is left as a feature")
    return found


class Table(TableDataset):
    """``load`` with parameters."""

    Parameters = Parameters

    def load(self, files: Files, splits: int) -> Samples:
        """The samples."""
        return load(self.parameters, files, splits)
