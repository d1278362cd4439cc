"""Tables of plain training in eight states, for study_tables.py, from the scores beside them."""

from collections.abc import Callable
from functools import cache, partial

import pandas as pd
from pages import RESULTS

from robust_fairness.reporting import Results
from robust_fairness.reporting.natural_shift import changes, gaps, matrix

SCORES, CELLS = (RESULTS / name for name in ("natural_scores.parquet", "natural_cells.csv"))


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
    return found.assign(**numbers, change=found["change"].map("{:+.3f}".format))


@cache
def results_beside() -> Results:
    """The scores beside the page."""
    cells = pd.read_csv(CELLS, keep_default_na=False)
    return Results.of(pd.read_parquet(SCORES), cells=cells)


def of_scores(make: Callable[[Results], pd.DataFrame]) -> Callable[[], pd.DataFrame]:
    """A table of the scores beside the page."""
    return lambda: make(results_beside())


TABLES = {
    "plain_income_accuracy": of_scores(partial(square, "acs_income", "accuracy")),
    "plain_income_gap": of_scores(partial(square, "acs_income", "delta_eo")),
    "plain_coverage_accuracy": of_scores(partial(square, "acs_public_coverage", "accuracy")),
    "plain_coverage_gap": of_scores(partial(square, "acs_public_coverage", "delta_eo")),
    "plain_changes": of_scores(partial(short, changes)),
    "plain_gaps": of_scores(partial(short, gaps)),
}
