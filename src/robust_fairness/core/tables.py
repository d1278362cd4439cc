"""The columns of the tables that travel: one definition for code, schemas and tests."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

METRICS = {
    "dataset": "str", "method": "str", "network": "str", "trial": "str", "seed": "int64",
    "selection": "str", "shift": "str", "severity": "float64", "domain": "str", "attribute": "str",
    "group": "str", "metric": "str", "value": "float64", "n": "int64", "note": "str",
}  # fmt: skip
SELECTION = {"selection": "str", "trial": "str", "seed": "int64", "score": "float64"}
# Every cell of the grid; ``method`` is its label, ``algorithm`` the name of its method. A column
# ``facets.<name>`` for every facet that some cell or its dataset has.
CELLS = {"dataset": "str", "method": "str", "algorithm": "str", "network": "str"}
# Every trial that was tried: ``stage`` 0 of those given, ``state`` complete or pruned. A column
# ``hparams.<field>`` for every hyperparameter that some trial of the cell changes.
TRIALS = {
    "dataset": "str", "method": "str", "trial": "str", "stage": "int64", "state": "str",
    "epochs": "int64", "criterion": "str", "score": "float64",
}  # fmt: skip
# What each criterion chooses of a cell's trials; ``used`` where the run went on with it.
CHOICES = {
    "dataset": "str", "method": "str", "criterion": "str", "used": "bool", "trial": "str",
    "score": "float64", "trials": "int64",
}  # fmt: skip
# Sizes of named splits; ``reused`` is the share of a split's test rows that another one trains on.
SPLITS = {
    "dataset": "str", "split": "str", "train_rows": "int64", "test_rows": "int64",
    "reused": "float64",
}  # fmt: skip
HISTORY = {"trial": "str", "seed": "int64", "epoch": "int64", "quantity": "str", "value": "float64"}
# How far test sets are from the training set, and how well a classifier of real rows knows
# generated ones.
DISTANCES = {
    "dataset": "str", "shift": "str", "severity": "float64", "space": "str", "value": "float64",
    "n": "int64",
}  # fmt: skip
GENERATOR_QUALITY = {
    "generator": "str", "classifier": "str", "rows": "int64", "accuracy": "float64",
    "real_rows": "int64", "real_accuracy": "float64",
}  # fmt: skip
# Validation embeddings in the plane, for their figures: a row a point and attribute. ``space`` is
# one of ``embedding`` and ``attribute_embedding``; ``row`` is that of the dataset's samples.
PLANES = {
    "dataset": "str", "method": "str", "seed": "int64", "space": "str", "row": "int64",
    "x": "float64", "y": "float64", "label": "str", "attribute": "str", "group": "str",
}  # fmt: skip


def table(columns: dict[str, str], rows: list[dict]) -> pd.DataFrame:
    """Data frame of the given rows with exactly these columns and types; text is "" by default."""
    text: dict[Any, str] = {name: "" for name, kind in columns.items() if kind == "str"}
    frame = pd.DataFrame(rows, columns=list(columns)).astype(dict.fromkeys(text, object))
    return frame.fillna(text).astype(columns)


def with_fields(
    columns: dict[str, str], rows: list[dict], prefix: str, fields: list[dict]
) -> pd.DataFrame:
    """``table`` with further columns, each ``prefix`` and the name of a field.

    Args:
        columns: as in ``table``.
        rows: as in ``table``.
        prefix: such as "facets.".
        fields: values of further columns, one mapping per row. Lists become text joined by "+". A
            column holds numbers where all its values are numbers, else text.
    """
    names = list(dict.fromkeys(name for one in fields for name in one))
    values = [{name: _plain(value) for name, value in one.items()} for one in fields]
    further = pd.DataFrame(
        {f"{prefix}{name}": _column([one.get(name) for one in values]) for name in names},
        index=range(len(rows)),
    )
    return pd.concat([table(columns, rows), further], axis=1)


def join_rows(columns: dict[str, str], frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of several tables that have these columns, and of their further columns all."""
    joined = pd.concat([table(columns, []), *frames], ignore_index=True)
    for name in joined.columns.difference(list(columns), sort=False):
        joined[name] = _column(joined[name].tolist())
    return joined


def _plain(value: Any) -> Any:
    """A value as a table holds it: lists as text joined by "+"."""
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else value


def _column(values: Sequence[Any]) -> pd.Series:
    """Numbers where all values are numbers or missing, else text with "" for missing values."""
    missing = [value == "" or pd.isna(value) for value in values]
    known = [value for value, lacks in zip(values, missing, strict=True) if not lacks]
    if known and all(isinstance(one, int | float) and not isinstance(one, bool) for one in known):
        return pd.to_numeric(pd.Series(values).where(~pd.Series(missing))).astype("float64")
    text = ["" if lacks else str(value) for value, lacks in zip(values, missing, strict=True)]
    return pd.Series(text, dtype="str")


def markdown(frame: pd.DataFrame) -> str:
    """A data frame as a Markdown table, missing values blank."""
    rows = [list(frame.columns), ["---"] * len(frame.columns)]
    rows += frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)
