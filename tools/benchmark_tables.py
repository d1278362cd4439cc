"""Write the tables of performance.md, inference.md and repair.md from benchmarks/results.

python -m tools.benchmark_tables
"""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd

from tools.pages import DOCS, ROOT, Page

RESULTS = ROOT / "benchmarks" / "results"


def measured() -> dict[str, dict[str, Any]]:
    """The results of every benchmark by the name of its script."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}


def figures(result: dict[str, Any]) -> pd.DataFrame:
    """The rows that a benchmark measured, numbers as they are written."""
    return pd.DataFrame(result["rows"]).map(shown)


def shown(value: Any) -> Any:
    """A number in full with separators of thousands; other values as they are."""
    if pd.isna(value):
        return ""
    return f"{value:,.10g}" if pd.api.types.is_number(value) else value


def machines(results: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """What every benchmark was run on and with which options."""
    rows = []
    for script, result in results.items():
        options = [
            f"--{name.replace('_', '-')} {value}" for name, value in result["options"].items()
        ]
        rows.append({"script": f"`{script}.py`", **result["machine"], "options": " ".join(options)})
    return pd.DataFrame(rows)


def on_gpu() -> pd.DataFrame:
    """What ``benchmarks/gpu.py`` measured of every method, in a row."""
    sections = json.loads((RESULTS / "gpu" / "gpu.json").read_text())["sections"]
    parts = []
    for name, rows in sections.items():
        part = pd.DataFrame(rows).set_index("what")
        if "difference" in part:
            on = name.removeprefix("against the CPU, ")
            parts.append(
                part[["difference"]].map("{:.1g}".format).rename(columns=f"{on}: {{}}".format)
            )
            parts.append(part[["same bits twice"]].rename(columns=f"{on}: {{}}".format))
        elif name == "images":
            parts.append(part.drop(columns="replica steps/s").map("{:g}".format))
    return pd.concat(parts, axis=1).fillna("").reset_index(names="method")


def page_tables() -> dict[str, Callable[[], pd.DataFrame]]:
    """Every table of the page by name."""
    results = measured()
    of_scripts: dict[str, Callable[[], pd.DataFrame]] = {
        script: partial(figures, result) for script, result in results.items() if script != "repair"
    }
    return {**of_scripts, "machines": partial(machines, results), "gpu": on_gpu}


def simulated(name: str) -> pd.DataFrame:
    """A table of ``benchmarks/inference.py``, as it is written."""
    return pd.read_csv(RESULTS / f"inference_{name}.csv", dtype="str", keep_default_na=False)


def drawn(script: str) -> pd.DataFrame:
    """What a script of ``benchmarks`` simulated."""
    return figures(json.loads((RESULTS / "simulated" / f"{script}.json").read_text()))


SIMULATED = {name: partial(simulated, name) for name in ("false_changes", "simulation")}
SIMULATED |= {script: partial(drawn, script) for script in ("claims", "why")}


def of_repair(on_tables: bool) -> pd.DataFrame:
    """The rows of ``benchmarks/repair.py`` that are on tables, or simulated."""
    rows = measured()["repair"]["rows"]
    return figures({"rows": [row for row in rows if ("table" in row) == on_tables]})


REPAIR = {"simulation": partial(of_repair, False), "tables": partial(of_repair, True)}
PAGES = [
    Page(DOCS / "performance.md", page_tables()),
    Page(DOCS / "inference.md", SIMULATED),
    Page(DOCS / "repair.md", REPAIR),
]

if __name__ == "__main__":
    for page in PAGES:
        page.write()
