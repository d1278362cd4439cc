"""Write the tables of performance.md from what the benchmarks wrote into benchmarks/results.

    python docs/benchmark_tables.py

The text between the two comments of a table is replaced; everything else is written by hand.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from robust_fairness.core import tables

ROOT = Path(__file__).resolve().parents[1]
PAGE, RESULTS = ROOT / "docs" / "performance.md", ROOT / "benchmarks" / "results"


def measured() -> dict[str, dict[str, Any]]:
    """The results of every benchmark by the name of its script."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}


def figures(found: dict[str, Any]) -> pd.DataFrame:
    """The rows that a benchmark measured, numbers as they are written."""
    return pd.DataFrame(found["rows"]).map(shown)


def shown(value: Any) -> Any:
    """A number in full with separators of thousands; other values as they are."""
    if pd.isna(value):
        return ""
    return f"{value:,.10g}" if pd.api.types.is_number(value) else value


def machines(found: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """What every benchmark was run on and with which options."""
    rows = []
    for script, one in found.items():
        options = [f"--{name.replace('_', '-')} {value}" for name, value in one["options"].items()]
        rows.append({"script": f"`{script}.py`", **one["machine"], "options": " ".join(options)})
    return pd.DataFrame(rows)


def page_tables() -> dict[str, Callable[[], pd.DataFrame]]:
    """Every table of the page by name."""
    found = measured()
    own: dict[str, Callable[[], pd.DataFrame]] = {
        script: partial(figures, one) for script, one in found.items()
    }
    return {**own, "machines": partial(machines, found)}


if __name__ == "__main__":
    PAGE.write_text(tables.in_page(PAGE.read_text(), page_tables()))
