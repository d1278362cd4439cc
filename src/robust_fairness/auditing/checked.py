"""The columns that options name of a table: each exists and has one role, its cells are cleaned."""

from typing import get_args

import numpy as np
import pandas as pd

from robust_fairness.auditing.naming import option
from robust_fairness.auditing.predictions import WORDS, Options
from robust_fairness.auditing.read.cleaning import (
    MOST_CODES,
    READ_AS,
    WRITTEN,
    Cleaning,
    require_one_decimal,
    texts_of,
)
from robust_fairness.auditing.read.columns import Kind, as_numbers, row_of
from robust_fairness.core.errors import InputError, unknown_name


class Checked:
    """A table whose columns are known to exist and have one role each, with cleaned cells.

    Attributes:
        options: the options.
        name: of the table, for messages.
        table: the columns of the options.
        notes: how numbers and dates were read.
    """

    def __init__(self, table: pd.DataFrame, options: Options, name: str) -> None:
        self.options, self.name = options, name
        self.notes: list[str] = [*table.attrs.get(READ_AS, ())]
        _require_columns(table, options, name)
        cleaning, cleaned = Cleaning(options.missing, options.decimal), {}
        for column in options.columns:
            cells, place = table[column], self.place(column)
            cleaned[column], how = cleaning.cleaned(cells, place, self._names(column))
            self.notes += [how] if how else []
        if self.notes and options.decimal is None:
            numbers = [column for column in options.columns if not self._names(column)]
            written = {column: table.attrs.get(WRITTEN, {}).get(column) or texts_of(table[column])
                       for column in numbers}  # fmt: skip
            require_one_decimal({self.place(column): of for column, of in written.items()})
        self.table = pd.DataFrame(cleaned, copy=False).reset_index(drop=True)

    def place(self, column: str | None) -> str:
        """Where a column is, for messages."""
        return f"{self.name}, column {column}"

    def numbers(self, column: str) -> np.ndarray:
        """The numbers of a column, float64 ``[n]``."""
        return as_numbers(self.table[column], self.place(column)).to_numpy()

    def _names(self, column: str) -> float:
        """Up to how many distinct texts such as 0,5 or 50 % in a column are names of groups."""
        options = self.options
        declared = options.types.get(column)
        if column == options.unit or declared == "category":
            return np.inf
        groups = column in (*options.sensitive_features, *options.control_features)
        return MOST_CODES if groups and declared is None and column not in options.bins else 0

    def leave_out_incomplete(self) -> int:
        """Leave out rows without target or prediction, an error unless allowed; their number."""
        options, table, name = self.options, self.table, self.name
        lacking, some = np.zeros(len(table), bool), option("labels", "'some'")
        target = [] if options.y_true is None else [("target", options.y_true)]
        for role, column in (
            *target,
            *(("prediction", predicted) for predicted in options.predicted),
        ):
            missing = table[column].isna().to_numpy()
            if role == "target" and options.labels == "some":
                if missing.all():
                    raise InputError(
                        f"{self.place(column)}: no row has a label; without: {without_labels()}"
                    )
                continue
            if missing.any() and not options.drop_unlabelled:
                raise InputError(
                    f"{self.place(column)}, row {row_of(missing)}: no {role}; {missing.sum()} "
                    "rows lack one, but every row needs a value; "
                    f"{option('drop_unlabelled', 'True')} leaves them out"
                    + (f", {some} uses their scores" if role == "target" else "")
                )
            lacking |= missing
        if lacking.all():
            raise InputError(
                f"{name}: no row has a target and a prediction; without labels: {without_labels()}"
            )
        if lacking.any():
            self.table = table[~lacking].reset_index(drop=True)
        return int(lacking.sum())


def _require_columns(table: pd.DataFrame, options: Options, name: str) -> None:
    """Check that there are rows and that each column exists and has one role."""
    if options.labels == "some":
        _require_for_some_labels(options)
    elif options.label_probability is not None:
        raise InputError(f"label probability: only with {option('labels', repr('some'))}")
    if table.empty:
        raise InputError(f"{name}: has no rows")
    if not options.sensitive_features and not options.membership:
        raise InputError("attributes: at least one column is needed")
    for column in options.columns:
        if column not in table:
            raise unknown_name("column", column, map(str, table.columns), name)
        if options.columns.count(column) > 1:
            raise InputError(
                f"column {column} has two roles; it can be only one of target, prediction, "
                "attribute, weight, unit, control feature, feature and label probability"
            )
    attributes = [*options.sensitive_features, *options.control_features]
    typed_columns = [*attributes, *options.features]
    for place, what, named, allowed in (
        ("types", "attribute", options.types, typed_columns),
        ("bins", "attribute", options.bins, attributes),
        ("words", "word", options.words, WORDS),
    ):
        for each in named:
            if each not in allowed:
                raise unknown_name(what, each, allowed, place)
    for column, kind in options.types.items():
        if kind not in get_args(Kind):
            raise InputError(f"types: {column} is {kind!r}, allowed: {' or '.join(get_args(Kind))}")


def _require_for_some_labels(options: Options) -> None:
    """Check that what is asked for can be estimated from a few labels."""
    others = {
        "unit": options.unit, "replicate_weights": options.replicate_weights,
        "membership": options.membership, "control_features": options.control_features,
        "features": options.features, "drop_unlabelled": options.drop_unlabelled,
        "continuous": options.continuous, "metrics as functions": options.functions,
    }  # fmt: skip
    if options.y_true is None:
        raise InputError(f"labels some: needs a target ({option('y_true')})")
    if wrong := [name for name, value in others.items() if value]:
        raise InputError(f"labels some: not with {option(wrong[0])}")


def without_labels() -> str:
    """How an audit without labels is asked for."""
    return option("labels", "none") if option("y_true") != "y_true" else "leave out y_true"
