"""The columns of the tables that travel: one definition for code, schemas and tests."""

import pandas as pd

METRICS = {
    "dataset": "str", "method": "str", "network": "str", "trial": "str", "seed": "int64",
    "selection": "str", "shift": "str", "severity": "float64", "attribute": "str",
    "group": "str", "metric": "str", "value": "float64", "n": "int64", "note": "str",
}  # fmt: skip
SELECTION = {"selection": "str", "trial": "str", "seed": "int64", "score": "float64"}
# Every trial that was tried: ``stage`` 0 of those given, ``state`` complete or pruned.
TRIALS = {
    "trial": "str", "stage": "int64", "state": "str", "epochs": "int64", "criterion": "str",
    "score": "float64",
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
    """Data frame of the given rows with exactly these columns and types."""
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def markdown(frame: pd.DataFrame) -> str:
    """A data frame as a Markdown table, missing values blank."""
    rows = [list(frame.columns), ["---"] * len(frame.columns)]
    rows += frame.astype(object).where(frame.notna(), "").to_numpy().tolist()
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)
