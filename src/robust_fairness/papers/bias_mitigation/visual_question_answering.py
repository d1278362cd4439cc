"""The questions among the views of "An Investigation of Critical Issues in Bias Mitigation".

Shrestha, Kafle and Kanan, WACV 2022: GQA-OOD, where a method is given one of four bias variables,
of 2 to 133,328 groups. There the study's unbiased accuracy is the mean of head and tail accuracy.
"""

import pandas as pd

from robust_fairness.papers.bias_mitigation.bias_variables import (
    EXPLICIT,
    IMPLICIT,
    PAPER,
    STANDARD,
    with_variables,
)
from robust_fairness.report.results import Results, where, with_metrics
from robust_fairness.report.statistics import over_seeds, over_trials
from robust_fairness.report.views import published

DATASETS = ("gqa_ood", "generated_scenes")
DEFAULT_VARIABLE = "head_tail"  # the sensitive attribute of both
VARIABLES = (DEFAULT_VARIABLE, "answer", "global_group", "local_group")
NOT_APPLICABLE = ("rubi", "lnl")
# rows of the mean of head and tail accuracy
MEAN = {"metric": "mean_group_accuracy", "attribute": DEFAULT_VARIABLE}
TAIL = "tail_accuracy"
USUAL_BETA = 0.2
OF_LOCAL_GROUPS = {
    "head_accuracy": "head",
    TAIL: "tail",
    "head_tail_difference": "relative difference",
}
SHOWN = ["all", "head", "tail", "mean", "relative difference"]
KEYS = ["dataset", "method", "explicit", "subgroups"]
ORDER = {"dataset": DATASETS, "method": (STANDARD, *EXPLICIT, *IMPLICIT), "explicit": VARIABLES}


def by_variables(results: Results, hparams: tuple[str, ...] = ()) -> pd.DataFrame:
    """Unshifted rows of questions, of trials that change only the given variable.

    Column ``explicit`` has the variable, empty for a method that is given none.
    """
    rows = where(results.unshifted, dataset=DATASETS)
    rows = with_variables(results, rows, DEFAULT_VARIABLE, hparams)
    return rows[
        rows["explicit"].isin(VARIABLES) | (rows["explicit"].eq("") & rows["trial"].eq("default"))
    ]


def with_subgroups(results: Results) -> pd.DataFrame:
    """``by_variables`` also with the trials that change ``subgroups``, as a column.

    It says whether a method weights or draws groups alone (``group``) or with the answer
    (``group_and_class``).
    """
    rows = by_variables(results, ("subgroups",))
    return rows.assign(subgroups=rows["subgroups"].astype(object).fillna("as configured"))


def over_variables(results: Results) -> pd.DataFrame:
    """The mean of head and tail of every method by seed, averaged over the variables (6.1).

    Columns dataset, method, seed, value, trials: over the variables that were run.
    """
    return over_trials(where(by_variables(results), **MEAN))


def table_2(results: Results) -> pd.DataFrame:
    """Mean of head and tail accuracy by the given variable, published beside ours.

    The numbers of groups in the study are those of groups alone, its text describes groups with
    the class (5); both are shown beside the one published number.
    """
    ours = over_seeds(where(with_subgroups(results), **MEAN), KEYS)
    if ours.empty:
        return pd.DataFrame()
    theirs = where(published(PAPER), view="table_2", dataset=ours["dataset"])
    theirs = theirs[["dataset", "method", "explicit", "value", "note"]]
    joined = theirs.rename(columns={"value": "published"}).merge(ours, how="outer")
    joined["seeds"] = joined["seeds"].fillna(0).astype(int)
    joined = joined.fillna({"note": "", "subgroups": ""})
    joined = joined.sort_values(list(ORDER), key=_places, kind="stable")
    shown = ["published", "ours", "std", "seeds", "note"]
    return joined[[*KEYS, *shown]].reset_index(drop=True)


def _places(column: pd.Series) -> pd.Series:
    """The places of names in ``ORDER``, the empty one first; others are missing."""
    return column.map({name: n for n, name in enumerate(("", *ORDER[str(column.name)]))})


def accuracies(results: Results) -> pd.DataFrame:
    """Accuracy of all questions, of head and tail, their mean and their relative difference.

    Means over seeds, for the benchmark's size of the tail (beta = 0.2).
    """
    rows = with_subgroups(results)
    rows = with_metrics(rows, ["quantity", "beta"])
    usual = rows["beta"].isna() | (rows["beta"] == USUAL_BETA)
    local = usual & (rows["attribute"] == "local_group")
    shown = rows["quantity"].map(OF_LOCAL_GROUPS).where(local)
    shown = shown.mask(rows["metric"] == "accuracy", "all")
    shown = shown.mask(rows.index.isin(where(rows, **MEAN).index), "mean")
    rows = rows.assign(shown=shown)
    rows = rows[rows["shown"].notna()]
    if not rows["shown"].isin(["head", "tail"]).any():
        return pd.DataFrame()
    wide = rows.pivot_table(index=KEYS, columns="shown", values="value", sort=False)
    seeds = rows.groupby(KEYS)["seed"].nunique().rename("seeds")
    return wide.reindex(columns=SHOWN).join(seeds).reset_index().rename_axis(columns=None)


def figure_a9(results: Results) -> pd.DataFrame:
    """Tail accuracy by the size of the tail, a panel per variable.

    Methods that are given no variable are shown in every panel.
    """
    rows = where(by_variables(results), attribute="local_group")
    rows = where(with_metrics(rows, ["quantity", "beta"]), quantity=TAIL)
    # the usual size may occur by name and by default
    rows = rows.drop_duplicates(["dataset", "method", "trial", "seed", "beta"])
    given = rows["explicit"] != ""
    panels = rows[given][["dataset", "explicit"]].drop_duplicates()
    implicit = rows[~given].drop(columns="explicit").merge(panels)
    keys = ["dataset", "explicit", "method", "beta"]
    result = over_seeds(pd.concat([implicit, rows[given]]), keys)
    several = result.groupby("dataset")["beta"].transform("nunique") > 1
    return result[several].sort_values(keys, kind="stable").reset_index(drop=True)
