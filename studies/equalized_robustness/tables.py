"""The tables of Equalized Robustness beside published numbers."""

from functools import partial

import pandas as pd

from robust_fairness.papers.equalized_robustness import views as equalized_robustness
from robust_fairness.report import Results
from robust_fairness.report.results import CELL, UNSHIFTED, where
from robust_fairness.report.statistics import over_seeds
from robust_fairness.report.views import published
from studies.study import PERCENT, Study, ends
from tools.pages import spread


def reproduced(results: Results) -> pd.DataFrame:
    """Published means of Tables 1 to 3, and 8 and 9 under noise, within two deviations of ours."""
    views = [f"table_{number}" for number in (1, 2, 3, 8, 9)]
    rows = pd.concat([equalized_robustness.beside_studies(view, results) for view in views])
    rows = where(rows, dataset=equalized_robustness.SENSITIVE)
    rows = rows[rows["seeds"] > 1].drop_duplicates(
        ["dataset", "method", "shift", "severity", "metric"]
    )
    near = (rows["published"] - rows["ours"]).abs() <= 2 * rows["std"]
    counts = near.groupby(rows["metric"], sort=False).agg(["sum", "size"])
    return counts.set_axis(["within", "cells"], axis=1).reset_index()


def beside_published(view: str, results: Results) -> pd.DataFrame:
    """A table in percent: measures across; data, methods and trials down, if there are several."""
    rows = equalized_robustness.beside_studies(view, results).query("seeds > 0")
    shift = ", " + rows["shift"] + " " + rows["severity"].map("{:g}".format)
    titles = rows["metric"].str.cat(shift.mask(rows["shift"] == UNSHIFTED, ""))
    theirs = (100 * rows["published"]).map(" ({:.1f})".format).where(rows["published"].notna(), "")
    cells = rows.assign(across=titles, cell=spread(rows, **PERCENT) + theirs)
    down = [name for name in (*CELL, "trial") if cells[name].nunique() > 1]
    wide = cells.pivot(index=down, columns="across", values="cell")
    return cells[down].drop_duplicates().merge(wide[titles.drop_duplicates()].reset_index())


ROBUSTNESS = ("delta_er", "delta_er_one_shot")


def robustness(results: Results) -> pd.DataFrame:
    """Delta-ER in percent, exact and by one step, of every form of the data, beside the paper's."""
    rows = where(results.scores, metric=ROBUSTNESS, shift=UNSHIFTED)
    rows = where(equalized_robustness.of_studies(results, rows), trial="default")
    keys = ["dataset", "study", "method"]
    means = over_seeds(rows, [*keys, "metric"])
    wide = means.assign(cell=spread(means, **PERCENT)).pivot(
        index=keys, columns="metric", values="cell"
    )
    theirs = where(published(equalized_robustness.PAPER), metric="delta_er", trial="default")
    theirs = where(theirs, view=["table_1", "table_2", "table_3"]).rename(
        columns={"dataset": "study"}
    )
    theirs = theirs.assign(published=(100 * theirs["value"]).map("{:.1f}".format))
    order = means[keys].drop_duplicates()
    shown = order.merge(wide.reset_index()).merge(theirs[["study", "method", "published"]], "left")
    return shown.drop(columns="study").rename(columns={"dataset": "data"}).fillna("")


def trade_off(results: Results) -> pd.DataFrame:
    """Figure 3: accuracy and Delta-EO in percent by the weight of the adversary, unshifted."""
    rows = where(equalized_robustness.figure_3(results), shift=UNSHIFTED)
    cells = (100 * rows["accuracy"]).map("{:.1f}".format)
    cells += ", " + (100 * rows["delta_eo"]).map("{:.1f}".format)
    wide = rows.assign(cell=cells).pivot(index=CELL, columns="alpha", values="cell")
    return wide.rename(columns="alpha {:g}".format).reset_index().fillna("")


FAIRER = "CUMA is fairer than plain training under shift"


def against_plain_training(study: Study) -> str:
    """How much CUMA lowers Delta-EO."""
    left = ends(study.sizes(FAIRER, "^C&C(?!.*all)"))
    (adult,) = study.sizes(FAIRER, "^Adult$", digits=1)
    (printed,) = study.sizes(FAIRER, "^Adult$", "published", digits=1)
    every = study.sizes(FAIRER, "all rows", digits=1)
    return (
        f"Delta-EO is lower by {left} points on C&C and by {adult} on Adult (published: {printed}) "
        f"with the test rows that validation leaves, and by {ends(every)} with all of them"
    )


def forecast(study: Study) -> str:
    """The rank correlation of Delta-ER and of Delta-EO under shift."""
    claim = "Delta-ER, measured without shift, predicts fairness under shift"
    found = ends(study.sizes(claim, unit=1, digits=2))
    return f"The rank correlation over the four methods within a seed is {found} (published: 1)"


STUDY = Study(
    equalized_robustness.PAPER,
    {
        **{f"table_{n}": partial(beside_published, f"table_{n}") for n in (1, 2, 3, 6, 7, 8, 9)},
        "robustness": robustness,
        "trade_off": trade_off,
        "reproduced": reproduced,
    },
    sentences={"against_plain_training": against_plain_training, "forecast": forecast},
    metrics=("delta_er_one_shot", equalized_robustness.CURVATURE),
    by_group=(equalized_robustness.CURVATURE,),
    stored=("counts",),
    attributes=tuple({*equalized_robustness.SENSITIVE.values()}),
)
