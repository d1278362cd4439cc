"""Joining tables of which some may have failed."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from robust_fairness import tables

STATES = {"method": "str", "state": "str", "reason": "str"}


def join(parts: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of all parts that are tables; a failed part has left none."""
    frames = [part for part in parts.values() if isinstance(part, pd.DataFrame)]
    return pd.concat([tables.table(tables.METRICS, []), *frames], ignore_index=True)


def states(cells: Mapping[str, Any]) -> pd.DataFrame:
    """State of every cell of a dataset: done, or failed and why."""
    return tables.table(
        STATES,
        [
            {"method": method, "state": "done", "reason": ""}
            if isinstance(part, pd.DataFrame)
            else {"method": method, "state": "failed", "reason": str(part)}
            for method, part in cells.items()
        ],
    )
