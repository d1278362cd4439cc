"""Write the tables of methods, shifts, measures and the tables of a run from their declarations.

    python -m tools.plugin_tables

The first sentence of a method's docstring says what it optimises, the one that begins with "Fails"
when it fails, and the docstring of its module may name the source. Ranges for a search are those of
``conf/base/parameters.yml``.
"""

import re
import sys
from inspect import getdoc
from math import inf

import pandas as pd
import yaml

from robust_fairness.core import registry
from robust_fairness.core.tables import TABLES
from robust_fairness.metrics import metric_names
from robust_fairness.numbers.quantities import DEFINITIONS
from tools.pages import DOCS, ROOT, Page

PARAMETERS = ROOT / "conf" / "base" / "parameters.yml"
SOURCE = re.compile(r"\(([^()]*\d{4}[^()]*)\)")
FAILS = re.compile(r"^Fails .*?\.$", re.MULTILINE | re.DOTALL)
SIDES = {224: "ImageNet-C, 224", 64: "64 x 64", 32: "CIFAR-10-C, 32"}


def methods() -> pd.DataFrame:
    """A row per method of the package."""
    spaces = yaml.safe_load(PARAMETERS.read_text())["spaces"]
    return pd.DataFrame(
        [method_row(name, spaces.get(name, {})) for name in registry.names("method")]
    )


def method_row(name: str, space: dict) -> dict[str, str]:
    """What a method is, sees and optimises, its ranges and when it fails."""
    method = registry.find("method", name)
    text = (getdoc(method) or "").replace("``", "`")
    optimises = text.split("\n\n")[0].replace("\n", " ")
    source = SOURCE.search(sys.modules[method.__module__].__doc__ or "")
    if source and source[1] not in optimises:
        optimises = f"{optimises.removesuffix('.')} ({source[1]})."
    written = yaml.safe_dump(space, default_flow_style=True, sort_keys=False, width=1000).strip()
    return {
        "method": f"`{name}`",
        "sees": ", ".join(method.Parameters().sees),
        "optimises": optimises,
        "search": f"`{written[1:-1]}`" if space else "",
        "fails": FAILS.findall(text)[0].removeprefix("Fails ").replace("\n", " "),
    }


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
    Page(DOCS / "methods.md", {"methods": methods}),
    Page(DOCS / "shifts.md", {"shifts": shifts, "levels": levels}),
    Page(DOCS / "measures.md", {"metrics": metrics}),
]

if __name__ == "__main__":
    for page in PAGES:
        page.write()
