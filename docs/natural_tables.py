"""Write the tables of results/natural.md from the scores that lie beside it.

    python docs/natural_tables.py

The text between the two comments of a table is replaced; everything else is written by hand.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from robust_fairness.core import tables
from robust_fairness.reporting import Results
from robust_fairness.reporting.natural_shift import changes, gaps, matrix

RESULTS = Path(__file__).resolve().parent / "results"
PAGE, SCORES, CELLS = (
    RESULTS / name for name in ("natural.md", "natural_scores.parquet", "natural_cells.csv")
)


def square(data: str, metric: str, results: Results) -> pd.DataFrame:
    """A measure by source and target: at home on the diagonal, elsewhere its change."""
    rows = matrix(results).query("data == @data and metric == @metric")
    changed = rows.pivot_table(index="trained_on", columns="tested_on", values="change")
    home = rows.groupby("trained_on")["at_home"].first()
    found = changed.map("{:+.3f}".format)
    for state, value in home.items():
        found.loc[state, state] = f"**{value:.3f}**"
    return found.rename_axis(index="trained on", columns=None).reset_index()


def short(make: Callable[[Results], pd.DataFrame], results: Results) -> pd.DataFrame:
    """A view with three decimals and an interval in one column."""
    rows = make(results)
    interval = rows["low"].map("{:+.3f} to ".format) + rows["high"].map("{:+.3f}".format)
    names = ["data", "metric", "says", "at_home", "elsewhere", "change"]
    found = rows[names].assign(interval=interval, domains=rows["domains"])
    numbers = {name: found[name].map("{:.3f}".format) for name in ("at_home", "elsewhere")}
    return found.assign(
        **numbers, change=found["change"].map("{:+.3f}".format),
        needed_domains=rows["needed_domains"],
    )  # fmt: skip


TABLES: dict[str, Callable[[Results], pd.DataFrame]] = {
    "income_accuracy": partial(square, "acs_income", "accuracy"),
    "income_gap": partial(square, "acs_income", "delta_eo"),
    "coverage_accuracy": partial(square, "acs_public_coverage", "accuracy"),
    "coverage_gap": partial(square, "acs_public_coverage", "delta_eo"),
    "changes": partial(short, changes),
    "gaps": partial(short, gaps),
}


def written(page: str, results: Results) -> str:
    """The page with new tables."""
    return tables.in_page(page, {name: partial(make, results) for name, make in TABLES.items()})


def results_beside() -> Results:
    """The scores beside the page."""
    cells = pd.read_csv(CELLS, keep_default_na=False)
    return Results.of(pd.read_parquet(SCORES), cells=cells)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(), results_beside()))
