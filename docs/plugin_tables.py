"""Write the tables of shifts, measures and the tables of a run from their declarations.

python docs/plugin_tables.py
"""

from inspect import getdoc
from math import inf

import pandas as pd
from pages import DOCS, Page

from robust_fairness.core import registry
from robust_fairness.core.tables import TABLES
from robust_fairness.metrics import metric_names
from robust_fairness.metrics.base import DEFINITIONS

SIDES = {224: "ImageNet-C, 224", 64: "64 x 64", 32: "CIFAR-10-C, 32"}


def shifts() -> pd.DataFrame:
    """Every shift with its severities."""
    rows = []
    for name, text in registry.descriptions("shift").items():
        unit, low, high = registry.find("shift", name).severities
        if low == -inf:  # the shift checks its severities itself
            unit = allowed = "see below"
        else:
            allowed = f"{low:g} to {high:g}" if high < inf else f"at least {low:g}"
        rows.append((f"`{name}`", text, unit, allowed))
    return pd.DataFrame(rows, columns=["shift", "description", "severity", "allowed"])


def levels() -> pd.DataFrame:
    """The published levels of the shifts that have some."""
    rows = []
    for name in registry.descriptions("shift"):
        if published := getattr(registry.find("shift", name), "LEVELS", None):
            shown = {
                title: ", ".join(f"{level:.3g}" for level in published[side])
                for side, title in SIDES.items()
            }
            rows.append({"shift": f"`{name}`", **shown})
    return pd.DataFrame(rows)


def metrics() -> pd.DataFrame:
    """Every quantity and measure with its definition."""
    rows = []
    for name in metric_names():
        definition = DEFINITIONS[name]
        text = (getdoc(definition.function) or "").partition("\n")[0].replace("``", "")
        rows.append((name, text, definition.better or ""))
    return pd.DataFrame(rows, columns=["measure", "definition", "better"])


def run_tables() -> pd.DataFrame:
    """Every table of a run with what a row is."""
    rows = [(f"`{table.name}`", table.meaning) for table in TABLES.values()]
    return pd.DataFrame(rows, columns=["table", "row"])


def run_columns() -> pd.DataFrame:
    """Every declared column of the tables of a run; those with a prefix are named by the run."""
    rows = [
        (table.name, name, column.meaning)
        for table in TABLES.values()
        for name, column in table.columns.items()
    ]
    rows += [
        (table.name, f"{table.fields}<name>", "named by the run")
        for table in TABLES.values()
        if table.fields
    ]
    return pd.DataFrame(rows, columns=["table", "column", "meaning"])


PAGES = [
    Page(DOCS / "architecture.md", {"run_tables": run_tables, "columns": run_columns}),
    Page(DOCS / "shifts.md", {"shifts": shifts, "levels": levels}),
    Page(DOCS / "measures.md", {"metrics": metrics}),
]

if __name__ == "__main__":
    for page in PAGES:
        page.write()
