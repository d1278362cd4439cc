"""Joining tables of which some may have failed."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from robust_fairness.core import tables

# ``epochs`` are those of all its trials and seeds together.
STATES = {"method": "str", "state": "str", "reason": "str", "trials": "int64", "epochs": "int64"}


def join(parts: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of all parts that are tables; a failed part has left none."""
    frames = [part for part in parts.values() if isinstance(part, pd.DataFrame)]
    return pd.concat([tables.table(tables.METRICS, []), *frames], ignore_index=True)


def states(
    cells: Mapping[str, Any], history: Mapping[str, Any], trials: Mapping[str, Any]
) -> pd.DataFrame:
    """State of every cell of a dataset: done, or failed and why; and how much it has trained.

    Args:
        cells: metrics of every cell, or its failure, by label.
        history: curves likewise.
        trials: what was tried likewise.
    """
    rows: list[dict[str, object]] = []
    for method, part in cells.items():
        failed = not isinstance(part, pd.DataFrame)
        curves, tried = history.get(method), trials.get(method)
        epochs = ["trial", "seed", "epoch"]
        rows.append(
            {
                "method": method,
                "state": "failed" if failed else "done",
                "reason": str(part) if failed else "",
                "trials": len(tried) if isinstance(tried, pd.DataFrame) else 0,
                "epochs": len(curves[epochs].drop_duplicates())
                if isinstance(curves, pd.DataFrame)
                else 0,
            }
        )
    return tables.table(STATES, rows)
