"""Write the tables of the README from the scores that lie beside it.

    python -m studies.estimators.tables [--runs ID]

With a run of ``adult_budget``, ``acs_income_budget`` and ``readmission_budget``, its scores and the
numbers of its trials are put there first.
"""

from collections.abc import Sequence
from functools import partial

import pandas as pd

from robust_fairness.catalog import files
from robust_fairness.report.views import published
from robust_fairness.runs import provenance
from tools.pages import STUDIES, Page, intervals, main

FOLDER = STUDIES / "estimators"
SCORES, BUDGETS = (FOLDER / f"{name}.csv" for name in ("scores", "budgets"))
GAP, ACCURACY = "equalized_odds_difference", "accuracy"
BY_ACCURACY = "accuracy"
BY_GAP = "equalized_odds_difference subject to 0.97 of the best accuracy"
DATASETS = ("adult_budget", "acs_income_budget", "readmission_budget")
# what TableShift's estimators are called in the grid
OURS = {
    "XGBoost": "xgboost",
    "LightGBM": "lightgbm",
    "MLP": "erm",
    "CORAL": "coral",
    "DANN": "dann",
}
SHOWN = ("CatBoost", *OURS)
KEYS = ["dataset", "selection", "method", "metric", "shift", "severity", "domain"]


def take(run_ids: Sequence[str]) -> None:
    """Put means over seeds of the needed scores of a run, and its budgets, beside the page."""
    (run_id,) = run_ids
    metrics = provenance.load(run_id, "metrics", files.table)
    needed = metrics["metric"].isin([GAP, ACCURACY]) & (metrics["group"] == "")
    needed &= (metrics["domain"] == "") | (metrics["shift"] == "domain")
    rows = metrics[needed].drop_duplicates([*KEYS, "seed", "trial"])
    means = rows.groupby(KEYS, sort=False)["value"].agg(["mean", "std", "count"])
    means.dropna(subset="mean").reset_index().to_csv(SCORES, index=False, float_format="%.4f")
    names = ["trials", "cells"]
    trials, cells = (provenance.load(run_id, name, files.table) for name in names)
    cell = ["dataset", "method"]
    counted = trials[trials["state"] == "complete"].groupby(cell, sort=False)
    budgets = counted.agg(trials=("trial", "nunique"), epochs=("epochs", "sum")).reset_index()
    budgets.merge(cells[[*cell, "sees"]], on=cell).to_csv(BUDGETS, index=False)


def scores() -> pd.DataFrame:
    """The scores beside the page, with the test set as text: its domain, or shift and severity."""
    means = pd.read_csv(SCORES, keep_default_na=False, na_values={"std": ""})
    shift = means["shift"] + " " + means["severity"].map("{:g}".format)
    name = means["domain"].where(means["domain"] != "", shift)
    return means.assign(test_set=name.mask(name == "none 0", "in distribution"))


def compared(dataset: str, selection: str) -> pd.DataFrame:
    """Accuracy and gap of every method on every test set of a dataset."""
    rows = scores()
    rows = rows[(rows["dataset"] == dataset) & (rows["selection"] == selection)]
    shown = rows.assign(shown=rows["mean"].map("{:.3f}".format))
    sets = list(dict.fromkeys(shown["test_set"]))
    wide = shown.pivot(index="method", columns=["metric", "test_set"], values="shown")
    budgets = pd.read_csv(BUDGETS, keep_default_na=False).query("dataset == @dataset")
    wide = wide.loc[budgets["method"]]
    columns = {f"accuracy, {test_set}": wide[ACCURACY, test_set].to_numpy() for test_set in sets}
    columns |= {f"gap, {test_set}": wide[GAP, test_set].to_numpy() for test_set in sets}
    methods = ("`" + budgets["method"] + "`").to_numpy()
    return pd.DataFrame({"method": methods, "sees": budgets["sees"].to_numpy(), **columns})


def budget() -> pd.DataFrame:
    """Trials of a method on each dataset."""
    rows = pd.read_csv(BUDGETS).pivot(index="method", columns="dataset", values="trials")
    return rows[list(DATASETS)].reset_index()


def tableshift() -> pd.DataFrame:
    """Accuracies that TableShift published on readmission beside those of the grid."""
    ours = scores().query("dataset == 'readmission_budget' and metric == 'accuracy'")
    ours = ours[ours["selection"] == BY_ACCURACY]
    ours = ours.set_index(["method", "shift"])["mean"].map("{:.3f}".format)
    theirs = published("tableshift").set_index(["field", "shift"])
    columns: dict[str, list[str]] = {"TableShift": [*SHOWN]}
    for column, shift in {"in distribution": "none", "emergency room": "domain"}.items():
        printed = intervals(theirs.xs(shift, level="shift").loc[[*SHOWN]], "value", "{:.3f}")
        columns[f"{column}, published"] = printed.tolist()
        columns[f"{column}, ours"] = [ours.get((OURS.get(name, ""), shift), "") for name in SHOWN]
    return pd.DataFrame(columns)


TABLES = {
    **{name: partial(compared, name, BY_ACCURACY) for name in DATASETS},
    **{f"{name}_fair": partial(compared, name, BY_GAP) for name in DATASETS},
    "budgets": budget,
    "tableshift": tableshift,
}


PAGES = [Page(FOLDER / "README.md", TABLES)]

if __name__ == "__main__":
    main(PAGES, take)
