"""The tables of a run: one declaration each.

Schema, catalog entry, documentation and the collector that joins tables follow from it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

TEXT, INTEGER, NUMBER, TRUTH = "str", "int64", "float64", "bool"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        kind: its type in pandas.
        meaning: what it holds, in one line.
        missing: whether values may be missing.
    """

    kind: str
    meaning: str
    missing: bool = False


@dataclass(frozen=True, eq=False)
class Table(Mapping[str, str]):
    """The declaration of a table; as a mapping, the types of its columns by name.

    Attributes:
        name: what the catalog and the report call it.
        meaning: what a row is, in one line.
        columns: its columns by name.
        entries: patterns of its names in the catalog, with their paths below ``data``.
        layer: layer of Kedro-Viz.
        preview: number of rows that Kedro-Viz shows; 0 for none.
        fields: prefix of the names of further columns, such as "facets."; "" if there are none.
    """

    name: str
    meaning: str
    columns: Mapping[str, Column]
    entries: Mapping[str, str] = field(default_factory=dict)
    layer: str = ""
    preview: int = 0
    fields: str = ""

    def __getitem__(self, column: str) -> str:
        return self.columns[column].kind

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def table(self, rows: list[dict], fields: Sequence[Mapping[str, Any]] = ()) -> pd.DataFrame:
        """A data frame of rows with exactly the declared columns and types.

        Args:
            rows: the rows; text is "" by default.
            fields: values of further columns, one mapping per row. Lists become text joined by
                "+". A column holds numbers where all its values are numbers, else text.
        """
        found = table(self, rows)
        names = dict.fromkeys(name for one in fields for name in one)
        further = {
            f"{self.fields}{name}": _column([_plain(one.get(name)) for one in fields])
            for name in names
        }
        return pd.concat([found, pd.DataFrame(further, index=found.index)], axis=1)

    def joined(self, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """The rows of several data frames of this table, with all their further columns."""
        found = pd.concat([self.table([]), *frames], ignore_index=True)
        for name in found.columns.difference(list(self), sort=False):
            found[name] = _column(found[name].tolist())
        return found


METRICS = Table(
    "metrics",
    "One score of a replica on a test set.",
    {
        "dataset": Column(TEXT, "name of the dataset"),
        "method": Column(TEXT, "label of the cell"),
        "network": Column(TEXT, "name of the network"),
        "trial": Column(TEXT, "name of the trial"),
        "seed": Column(INTEGER, "seed of the replica"),
        "selection": Column(TEXT, "criterion that selected the trial"),
        "shift": Column(TEXT, "shift of the test set; none for the unshifted one"),
        "severity": Column(NUMBER, "severity of the shift"),
        "domain": Column(TEXT, "domain of the rows; empty where there are no domains"),
        "attribute": Column(TEXT, "attribute whose groups are compared; empty overall"),
        "group": Column(TEXT, "value of the attribute; empty for all rows"),
        "metric": Column(TEXT, "name of the metric"),
        "value": Column(NUMBER, "the score", missing=True),
        "n": Column(INTEGER, "number of rows that were scored"),
        "note": Column(TEXT, "why there is no score"),
    },
    {
        "{dataset}.{method}.metrics": "08_reporting/{dataset}/{method}/metrics.parquet",
        "{dataset}_table": "08_reporting/{dataset}/table.parquet",
        "metrics": "08_reporting/metrics.parquet",
    },
    layer="metrics",
    preview=10,
)
SELECTION = Table(
    "selection",
    "A replica that a criterion selected.",
    {
        "selection": Column(TEXT, "the criterion"),
        "trial": Column(TEXT, "name of the trial"),
        "seed": Column(INTEGER, "seed of the replica"),
        "score": Column(NUMBER, "its score by the criterion on validation rows", missing=True),
    },
    {"{dataset}.{method}.selection": "07_model_output/{dataset}/{method}/selection.parquet"},
    layer="predictions",
)
CELLS = Table(
    "cells",
    "A cell of the experiment, whether it was selected for the run or not.",
    {
        "dataset": Column(TEXT, "name of the dataset"),
        "method": Column(TEXT, "label of the cell"),
        "algorithm": Column(TEXT, "name of the method"),
        "network": Column(TEXT, "name of the network"),
    },
    {"cells": "08_reporting/cells.parquet"},
    layer="report",
    preview=20,
    fields="facets.",
)
TRIALS = Table(
    "trials",
    "A trial of a cell, with the hyperparameters that it changes.",
    {
        "dataset": Column(TEXT, "name of the dataset"),
        "method": Column(TEXT, "label of the cell"),
        "trial": Column(TEXT, "name of the trial"),
        "stage": Column(INTEGER, "stage of the search; 0 for configured trials"),
        "state": Column(TEXT, "complete or pruned"),
        "epochs": Column(INTEGER, "number of epochs that were trained"),
        "criterion": Column(TEXT, "criterion of the search"),
        "score": Column(NUMBER, "mean score by it on validation rows", missing=True),
    },
    {
        "{dataset}.{method}.trials": "06_models/{dataset}/{method}/trials.parquet",
        "{dataset}_trials": "08_reporting/{dataset}/trials.parquet",
        "trials": "08_reporting/trials.parquet",
    },
    layer="models",
    fields="hparams.",
)
CHOICES = Table(
    "choices",
    "The trial of a cell that a criterion selects, whether the run uses the criterion or not.",
    {
        "dataset": Column(TEXT, "name of the dataset"),
        "method": Column(TEXT, "label of the cell"),
        "criterion": Column(TEXT, "the criterion"),
        "used": Column(TRUTH, "whether the run uses the criterion"),
        "trial": Column(TEXT, "name of the trial"),
        "score": Column(NUMBER, "its mean score on validation rows"),
        "trials": Column(INTEGER, "number of trials"),
    },
    {
        "{dataset}.{method}.choices": "07_model_output/{dataset}/{method}/choices.parquet",
        "{dataset}_choices": "08_reporting/{dataset}/choices.parquet",
        "choices": "08_reporting/choices.parquet",
    },
    layer="predictions",
)
SPLITS = Table(
    "splits",
    "A named split of a dataset.",
    {
        "dataset": Column(TEXT, "name of the dataset"),
        "split": Column(TEXT, "name of the split"),
        "train_rows": Column(INTEGER, "number of training rows"),
        "test_rows": Column(INTEGER, "number of test rows"),
        "reused": Column(NUMBER, "share of the test rows that another split trains on"),
    },
    {
        "{dataset}_splits": "02_samples/{dataset}/splits.parquet",
        "splits": "08_reporting/splits.parquet",
    },
    layer="samples",
    preview=10,
)
HISTORY = Table(
    "history",
    "A quantity of the training of a replica after an epoch.",
    {
        "trial": Column(TEXT, "name of the trial"),
        "seed": Column(INTEGER, "seed of the replica"),
        "epoch": Column(INTEGER, "the epoch, from 0"),
        "quantity": Column(TEXT, "what was measured"),
        "value": Column(NUMBER, "its value"),
    },
    {"{dataset}.{method}.history": "06_models/{dataset}/{method}/history.parquet"},
    layer="models",
)
DISTANCES = Table(
    "distances",
    "Distance of a test set of generated images from the training set.",
    {
        "dataset": Column(TEXT, "name of the dataset"),
        "shift": Column(TEXT, "shift of the test set"),
        "severity": Column(NUMBER, "severity of the shift"),
        "space": Column(TEXT, "space in which distances are measured"),
        "value": Column(NUMBER, "the distance"),
        "n": Column(INTEGER, "number of images"),
    },
    {
        "{dataset}_distances": "08_reporting/{dataset}/distances.parquet",
        "distances": "08_reporting/distances.parquet",
    },
    layer="shifted samples",
    preview=20,
)
GENERATOR_QUALITY = Table(
    "generator_quality",
    "Accuracy of a classifier of real images on generated ones.",
    {
        "generator": Column(TEXT, "name of the generator"),
        "classifier": Column(TEXT, "network of the classifier"),
        "rows": Column(INTEGER, "number of generated images"),
        "accuracy": Column(NUMBER, "accuracy on them"),
        "real_rows": Column(INTEGER, "number of real test images"),
        "real_accuracy": Column(NUMBER, "accuracy on them"),
    },
    {
        "{dataset}_generator_quality": "08_reporting/{dataset}/generator_quality.parquet",
        "generator_quality": "08_reporting/generator_quality.parquet",
    },
    layer="shifted samples",
)
PLANES = Table(
    "planes",
    "A validation row in a 2-D projection of a cell's embeddings, by attribute.",
    {
        "dataset": Column(TEXT, "name of the dataset"),
        "method": Column(TEXT, "label of the cell"),
        "seed": Column(INTEGER, "seed of the replica"),
        "space": Column(TEXT, "embedding or attribute_embedding"),
        "row": Column(INTEGER, "row number in the dataset"),
        "x": Column(NUMBER, "first coordinate"),
        "y": Column(NUMBER, "second coordinate"),
        "label": Column(TEXT, "class of the row"),
        "attribute": Column(TEXT, "name of the attribute"),
        "group": Column(TEXT, "value of the attribute"),
    },
    {
        "{dataset}.{method}.embedding_plane": (
            "08_reporting/{dataset}/{method}/embedding_plane.parquet"
        ),
        "{dataset}_planes": "08_reporting/{dataset}/planes.parquet",
        "planes": "08_reporting/planes.parquet",
    },
    layer="report",
    preview=10,
)
STATES = Table(
    "states",
    "State of a cell of a dataset after a run.",
    {
        "method": Column(TEXT, "label of the cell"),
        "state": Column(TEXT, "done or failed"),
        "reason": Column(TEXT, "why it failed"),
        "trials": Column(INTEGER, "number of trials"),
        "epochs": Column(INTEGER, "number of epochs of all its trials and seeds"),
    },
    {"{dataset}_states": "08_reporting/{dataset}/states.parquet"},
    layer="metrics",
)
TABLES = {
    one.name: one
    for one in (
        METRICS, SELECTION, CELLS, TRIALS, CHOICES, SPLITS, HISTORY, DISTANCES, GENERATOR_QUALITY,
        PLANES, STATES,
    )
}  # fmt: skip


def table(columns: Mapping[str, str], rows: list[dict]) -> pd.DataFrame:
    """Data frame of rows with exactly these columns and types; text is "" by default."""
    text: dict[Any, str] = {name: "" for name, kind in columns.items() if kind == TEXT}
    frame = pd.DataFrame(rows, columns=list(columns)).astype(dict.fromkeys(text, object))
    return frame.fillna(text).astype(dict(columns))


def _plain(value: Any) -> Any:
    """A value as a table holds it: lists as text joined by "+"."""
    return "+".join(map(str, value)) if isinstance(value, list | tuple) else value


def _column(values: Sequence[Any]) -> pd.Series:
    """Numbers where all values are numbers or missing, else text with missing values."""
    known = [value for value in values if not pd.isna(value)]
    if known and all(isinstance(one, int | float) and not isinstance(one, bool) for one in known):
        return pd.to_numeric(pd.Series(values)).astype("float64")
    text = [None if pd.isna(value) else str(value) for value in values]
    return pd.Series(text, dtype=TEXT)


def markdown(frame: pd.DataFrame) -> str:
    """A data frame as a Markdown table, missing values blank."""
    rows = [list(frame.columns), ["---"] * len(frame.columns)]
    rows += frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)


def described(name: str) -> str:
    """The columns of a table as a Markdown table, for the documents."""
    declared = TABLES[name]
    rows = [[f"`{column}`", one.kind, one.meaning] for column, one in declared.columns.items()]
    if declared.fields:
        rows.append([f"`{declared.fields}<name>`", "str or float64", "one column per name"])
    return markdown(pd.DataFrame(rows, columns=["column", "type", "meaning"]))
