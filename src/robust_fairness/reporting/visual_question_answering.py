"""The questions among the views of "An Investigation of Critical Issues in Bias Mitigation".

Shrestha, Kafle and Kanan, WACV 2022: GQA-OOD, where a method is told one of four variables, of
2 to 133,328 groups. The study's unbiased accuracy is the mean of those of head and tail there.
"""

import re
from collections.abc import Mapping

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from robust_fairness.rendering.figures import by_column
from robust_fairness.reporting import claims as claimed
from robust_fairness.reporting._mitigators import EXPLICIT, IMPLICIT, PAPER, STANDARD, TOLD_GROUPS
from robust_fairness.reporting.statistics import distinct
from robust_fairness.reporting.views import View, over_seeds, published

GQA = "gqa_ood"
DATASETS = (GQA, "generated_scenes")
TUNING = "gqa_ood_tenth"
DEFAULT_VARIABLE = "head_tail"  # the sensitive attribute of both
VARIABLES = (DEFAULT_VARIABLE, "answer", "global_group", "local_group")
MANY_GROUPS = VARIABLES[1:]
IS_THE_CLASS = "answer"  # for which methods that predict the class from the group do not apply
NOT_APPLICABLE = ("rubi", "lnl")
AS_CONFIGURED = "as configured"
MEAN = "mean_group_accuracy"  # of head_tail
TAIL = re.compile(r"tail_accuracy(\(beta=(?P<beta>[-+.\d]+)\))?")
USUAL_BETA = 0.2
OF_LOCAL_GROUPS = {
    "head_accuracy": "head",
    "tail_accuracy": "tail",
    "head_tail_difference": "relative difference",
}
SHOWN = ["all", "head", "tail", "mean", "relative difference"]
KEYS = ["dataset", "method", "explicit", "cells"]


def explicit_variable(method: str, trial: str) -> tuple[str, str] | None:
    """The variable that a trial is told, and what its cells are; None for another trial.

    The variable is "" for a method that is told none. The default trial is told head and tail.
    Cells, of methods that weigh or draw by them, are groups alone (``group``) or with the answer
    (``group_and_class``); where the trial does not say it, they are as configured.
    """
    if trial == "default":
        return (DEFAULT_VARIABLE if method in TOLD_GROUPS else "", AS_CONFIGURED)
    given = dict(part.partition("=")[::2] for part in trial.split(","))
    if method not in TOLD_GROUPS or not given.keys() <= {"explicit", "subgroups"}:
        return None
    variable = given.get("explicit", DEFAULT_VARIABLE)
    return (variable, given.get("subgroups", AS_CONFIGURED)) if variable in VARIABLES else None


def of_variables(metrics: pd.DataFrame) -> pd.DataFrame:
    """Rows of unshifted questions once each, of trials that change the variable or the cells.

    With columns ``explicit`` and ``cells``, see ``explicit_variable``.
    """
    rows = metrics[metrics["dataset"].isin(DATASETS) & (metrics["shift"] == "none")]
    rows = distinct(rows)
    told = [
        explicit_variable(method, trial)
        for method, trial in zip(rows["method"], rows["trial"], strict=True)
    ]
    pairs = [one for one in told if one is not None]
    rows = rows[np.array([one is not None for one in told], dtype=bool)]
    return rows.assign(
        explicit=[variable for variable, _ in pairs], cells=[cells for _, cells in pairs]
    )


def means(metrics: pd.DataFrame) -> pd.DataFrame:
    """The rows of the mean of head and tail accuracy, as ``of_variables`` gives them."""
    rows = of_variables(metrics)
    return rows[(rows["metric"] == MEAN) & (rows["attribute"] == DEFAULT_VARIABLE)]


def over_variables(metrics: pd.DataFrame) -> pd.DataFrame:
    """The mean of head and tail of every method by seed, averaged over the variables (6.1).

    Columns dataset, method, seed, value, trials: over as many as were run. That is all to which
    a method applies, where all were run.
    """
    rows = means(metrics)
    rows = rows[rows["cells"] == AS_CONFIGURED]
    return rows.groupby(["dataset", "method", "seed"], as_index=False, sort=False).agg(
        value=("value", "mean"), trials=("trial", "nunique")
    )


def table_2(metrics: pd.DataFrame) -> pd.DataFrame:
    """Mean of head and tail accuracy by the variable that is told, published beside ours.

    The study writes of groups alone, by their numbers, and of groups with the class, by its text
    (5); both stand beside the one published number.
    """
    ours = over_seeds(means(metrics), KEYS)
    if ours.empty:
        return pd.DataFrame()
    theirs = published(PAPER).query("view == 'table_2'")
    told = [
        explicit_variable(method, trial)
        for method, trial in zip(theirs["method"], theirs["trial"], strict=True)
    ]
    theirs = theirs.assign(explicit=[one[0] if one else "" for one in told])
    theirs = theirs[["dataset", "method", "explicit", "value", "note"]]
    theirs = theirs[theirs["dataset"].isin(ours["dataset"])]
    joined = theirs.rename(columns={"value": "published"}).merge(ours, how="outer")
    joined["seeds"] = joined["seeds"].fillna(0).astype(int)
    joined = joined.fillna({"note": "", "cells": ""})
    order = {"dataset": DATASETS, "method": (STANDARD, *EXPLICIT, *IMPLICIT), "explicit": VARIABLES}
    joined = joined.sort_values(
        list(order), key=lambda column: column.map(_places(order[str(column.name)])), kind="stable"
    )
    shown = ["published", "ours", "deviation", "seeds", "note"]
    return joined[[*KEYS, *shown]].reset_index(drop=True)


def _places(names: tuple[str, ...]) -> Mapping[str, int]:
    """The place of every name; one that is not there has none and comes last."""
    return {name: place for place, name in enumerate(("", *names))}


def accuracies(metrics: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of all questions, of head and tail, their mean and their relative difference.

    Means over seeds, with the size of the tail that the benchmark has (beta = 0.2).
    """
    rows = of_variables(metrics)
    names = rows["metric"].str.removesuffix(f"(beta={USUAL_BETA})")
    shown = names.map(OF_LOCAL_GROUPS).where(rows["attribute"] == "local_group")
    shown = shown.mask(names.eq("accuracy"), "all")
    shown = shown.mask(names.eq(MEAN) & rows["attribute"].eq(DEFAULT_VARIABLE), "mean")
    rows = rows.assign(shown=shown)[shown.notna()]
    if rows.empty or not shown.isin(["head", "tail"]).any():
        return pd.DataFrame()
    wide = rows.pivot_table(index=KEYS, columns="shown", values="value", sort=False)
    seeds = rows.groupby(KEYS)["seed"].nunique().rename("seeds")
    wide = wide.reindex(columns=SHOWN).join(seeds)
    return wide.reset_index().rename_axis(columns=None)


def figure_a9(metrics: pd.DataFrame) -> pd.DataFrame:
    """Tail accuracy by the size of the tail, a chart a variable.

    Methods that are told none stand on every chart. Cells are as configured.
    """
    rows = of_variables(metrics)
    beta = rows["metric"].str.extract(f"^{TAIL.pattern}$")["beta"].astype(float)
    rows = rows.assign(beta=beta.fillna(USUAL_BETA))
    curve = rows["metric"].str.fullmatch(TAIL.pattern) & rows["attribute"].eq("local_group")
    rows = rows[curve & rows["cells"].eq(AS_CONFIGURED)]
    if rows.empty:
        return pd.DataFrame()
    # the usual size may stand there by name and by default
    rows = rows.drop_duplicates(["dataset", "method", "trial", "seed", "beta"])
    charts = rows[["dataset", "explicit"]][rows["explicit"] != ""].drop_duplicates()
    implicit = rows[rows["explicit"] == ""].drop(columns="explicit").merge(charts)
    everywhere = pd.concat([implicit, rows[rows["explicit"] != ""]])
    keys = ["dataset", "explicit", "method", "beta"]
    # what stands on several charts is told apart by it, as rows of groups are
    found = over_seeds(everywhere.assign(group=everywhere["explicit"]), keys)
    several = found.groupby("dataset")["beta"].transform("nunique") > 1
    return found[several].sort_values(keys, kind="stable").reset_index(drop=True)


def draw_figure_a9(rows: pd.DataFrame) -> go.Figure:
    """A line a method, a chart a variable."""
    figure = px.line(
        rows, x="beta", y="ours", facet_col="explicit", facet_row="dataset", markers=True,
        **by_column("method"),
    )  # fmt: skip
    figure.update_layout(
        title="Tail accuracy by the size of the tail", template="plotly_white", legend_title=""
    )
    return figure


TABLE_2 = View(
    "bias_table_2", "Table 2: mean of head and tail accuracy by the explicit variable", table_2
)
HEAD_AND_TAIL = View("bias_head_tail", "Accuracy of head and tail questions", accuracies)
FIGURE_A9 = View(
    "bias_figure_a9", "Figure A9: tail accuracy by the size of the tail", figure_a9, draw_figure_a9
)


def claims(metrics: pd.DataFrame) -> list[dict]:
    """What the study says of questions (6.1, 6.3), as rows of ``claims``."""
    rows: list[dict] = []
    for dataset in [name for name in DATASETS if (metrics["dataset"] == name).any()]:
        rows += _below_the_standard(metrics, dataset) + _many_groups(metrics, dataset)
    return rows


def _below_the_standard(metrics: pd.DataFrame, dataset: str) -> list[dict]:
    """Averaged over the variables, explicit methods lose (6.1)."""
    found = over_variables(metrics)
    own = found[found["dataset"] == dataset]
    values = {
        str(method): part.set_index("seed")["value"]
        for method, part in own.groupby("method", sort=False)
    }
    nothing = pd.Series(dtype=float)
    return [
        claimed.difference(
            "1: explicit methods are below the standard model",
            dataset,
            f"mean of head and tail, over the variables: {method} < {STANDARD}",
            values.get(method, nothing),
            values.get(STANDARD, nothing),
        )
        for method in EXPLICIT
    ]


def _many_groups(metrics: pd.DataFrame, dataset: str) -> list[dict]:
    """Explicit methods may gain from two groups, and lose with many; implicit ones gain (6.3)."""
    rows = means(metrics)
    rows = rows[(rows["dataset"] == dataset) & (rows["cells"] == AS_CONFIGURED)]

    def told(method: str, variable: str) -> pd.Series:
        chosen = rows[(rows["method"] == method) & (rows["explicit"] == variable)]
        return chosen.groupby("seed")["value"].mean()

    def compared(claim: str, first: tuple[str, str], second: tuple[str, str]) -> dict:
        names = [f"{method} told {variable}".removesuffix(" told ") for method, variable in
                 (first, second)]  # fmt: skip
        ordering = f"mean of head and tail: {' < '.join(names)}"
        return claimed.difference(claim, dataset, ordering, told(*first), told(*second))

    standard = (STANDARD, "")
    return [
        *(
            compared(
                "3: told head and tail, the best explicit methods are above the standard model",
                standard,
                (method, DEFAULT_VARIABLE),
            )
            for method in ("irmv1", "group_dro")
        ),
        *(
            compared(
                "3: explicit methods do not scale to many groups",
                (method, variable),
                (method, DEFAULT_VARIABLE),
            )
            for method in EXPLICIT
            for variable in MANY_GROUPS
            if not (variable == IS_THE_CLASS and method in NOT_APPLICABLE)
        ),
        *(
            compared("3: implicit methods improve on the standard model", standard, (method, ""))
            for method in IMPLICIT
        ),
    ]
