"""Results of made-up runs."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from robust_fairness.core import tables
from robust_fairness.report import Results

Facets = Mapping[str, Mapping[str, Any]]
ROW = {
    "method": "erm", "network": "mlp", "trial": "default", "seed": 0, "selection": "every",
    "shift": "none", "severity": 0.0, "domain": "", "attribute": "", "group": "",
    "metric": "accuracy", "value": 0.5, "n": 300, "note": "",
}  # fmt: skip


def row(**fields: Any) -> dict[str, Any]:
    """A row of the table of metrics."""
    return ROW | fields


def results(
    metrics: pd.DataFrame | Sequence[Mapping[str, Any]],
    facets: Facets | None = None,
    algorithms: Mapping[str, str] | None = None,
    **further: pd.DataFrame,
) -> Results:
    """The results of a run with these metrics.

    Args:
        metrics: rows of the table; the name of a trial says what it changes.
        facets: by name of a dataset or label of a cell.
        algorithms: by label of a cell, where it is another name.
        further: further tables.
    """
    if not isinstance(metrics, pd.DataFrame):
        metrics = tables.table(tables.METRICS, list(metrics))
    facets, algorithms = facets or {}, algorithms or {}
    cells = metrics[["dataset", "method", "network"]].drop_duplicates().to_dict("records")
    trials = metrics[["dataset", "method", "trial"]].drop_duplicates().to_dict("records")
    return Results.of(
        metrics,
        cells=tables.CELLS.table(
            [
                cell | {"algorithm": algorithms.get(cell["method"], cell["method"])}
                for cell in cells
            ],
            [
                {
                    k: str(v)
                    for name in ("dataset", "method")
                    for k, v in facets.get(cell[name], {}).items()
                }
                for cell in cells
            ],
        ),
        trials=tables.TRIALS.table(
            [trial | {"stage": 0, "epochs": 1, "score": 0.0} for trial in trials],
            [changed(trial["trial"]) for trial in trials],
        ),
        **further,
    )


def changed(trial: str) -> dict[str, Any]:
    """The hyperparameters in the name of a trial, as ``trial_name`` writes it."""
    if trial == "default":
        return {}
    pairs = (part.partition("=") for part in trial.split(","))
    return {name: _number(text) for name, _, text in pairs}


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text
