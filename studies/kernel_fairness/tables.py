"""The tables of FairCOCCO: the fairest trials of penalties, weights, and estimates."""

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd

from robust_fairness.papers.kernel_fairness import views as kernel_fairness
from robust_fairness.report import Results
from robust_fairness.report.results import where
from robust_fairness.report.statistics import over_seeds
from robust_fairness.report.views import published
from studies.study import Study, ends
from tools.pages import spread

NUMBERS = {name: kernel_fairness.SENSITIVE[name] for name in kernel_fairness.REGRESSION}
CLASSES = {
    name: attribute for name, attribute in kernel_fairness.SENSITIVE.items() if name not in NUMBERS
}
LINEAR = {f"{name}_linear": attribute for name, attribute in kernel_fairness.TRADE_OFF.items()}
SEARCHED = {f"{name}_searched": attribute for name, attribute in kernel_fairness.TRADE_OFF.items()}
ESTIMATED = [
    f"{kernel_fairness.SCORES[notion]}(rows={rows})"
    for notion in kernel_fairness.NOTIONS
    for rows in (64, 128, 256, 512, 1024, 2048, 4096)
]
QUALITY = ("accuracy", "constant_accuracy", "balanced_accuracy", "roc_auc")
ERROR = "unexplained_variance"
TESTED = ("score", "p")
BESIDE_OURS = ("table_9", "table_10", "table_11", "table_12")
OF_TRIAL = ["dataset", "penalised", "method", "metric"]
SHORT = {
    "constant_accuracy": "a constant",
    "balanced_accuracy": "balanced",
    "roc_auc": "AUROC",
    ERROR: "unexplained variance",
}


def fairest(
    attributes: Mapping[str, str], measures: Sequence[str], results: Results
) -> pd.DataFrame:
    """Measures, score and p of data sets by the attribute that is penalised, the fairest trials.

    Those of every split with 97 % of the best accuracy, or 75 % of the error; of plain training the
    best. The gap is the disparate impact or Delta-EO. Without notions that were not run.
    """
    parts = []
    for notion in kernel_fairness.NOTIONS:
        names = _names(notion)
        rows = where(kernel_fairness.selected(results, notion), dataset=attributes, group="")
        penalised = rows["attribute"] == rows["dataset"].map(attributes)
        rows = rows[
            (penalised | (rows["attribute"] == "")) & rows["metric"].isin([*measures, *names])
        ]
        rows = rows.assign(metric=rows["metric"].replace(names), penalised=notion)
        run = rows.groupby("dataset")["method"].transform("nunique") > 1
        parts.append(over_seeds(rows[run], OF_TRIAL))
    beside = pd.concat(parts).merge(_printed(attributes), how="left", on=OF_TRIAL)
    cells = beside.assign(cell=_beside_printed(beside))
    wide = cells.pivot(index=OF_TRIAL[:-1], columns="metric", values="cell")
    wide = wide.reindex(columns=[*measures, *TESTED]).fillna("")
    return wide.rename(columns=SHORT).reset_index()


def _names(notion: str) -> dict[str, str]:
    """What tables call the measures of a notion."""
    names = {kernel_fairness.SCORES[notion]: "score", kernel_fairness.P_VALUES[notion]: "p"}
    return names | ({kernel_fairness.GAPS[notion]: "gap"} if notion in kernel_fairness.GAPS else {})


def _printed(attributes: Mapping[str, str]) -> pd.DataFrame:
    """The numbers of Tables 9 to 12; impacts above 1 as their inverse."""
    theirs = where(published(kernel_fairness.PAPER), view=BESIDE_OURS)
    theirs = theirs.replace({"dataset": {"adult_complete": "adult_official"}})
    theirs = theirs[theirs["attribute"].isin(["", *attributes.values()])]
    folded = kernel_fairness.folded(theirs.rename(columns={"value": "published"}))
    names = dict.fromkeys(kernel_fairness.SCORES.values(), "score")
    names |= {"mean_squared_error": ERROR, "disparate_impact": "gap"}
    theirs = theirs.assign(
        published=folded.fillna(theirs["value"]), metric=theirs["metric"].replace(names)
    )
    theirs = theirs.rename(columns={"notion": "penalised"})
    return theirs[[*OF_TRIAL, "published"]].drop_duplicates(OF_TRIAL)


def _beside_printed(beside: pd.DataFrame) -> pd.Series:
    """As ``spread``, with the published number and missing splits."""
    printed = beside["published"].map(" ({:.2f})".format).where(beside["published"].notna(), "")
    all_splits = beside.groupby(OF_TRIAL[:1])["seeds"].transform("max")
    fewer = ", " + beside["seeds"].astype(str) + " of " + all_splits.astype(str)
    cells = spread(beside) + printed + fewer.where(beside["seeds"] < all_splits, "")
    return cells.where(beside["seeds"] > 0, "–" + printed).str.replace(" ± ", "±")


def weights(results: Results) -> pd.DataFrame:
    """Table 13, and linear models: accuracy, score and splits where p is below 5 % by weight."""
    trials = kernel_fairness.table_13(results, {**kernel_fairness.TRADE_OFF, **LINEAR})
    measures = [
        _names(notion).get(metric, metric)
        for notion, metric in zip(trials["notion"], trials["metric"], strict=True)
    ]
    trials = trials.assign(
        cell=spread(trials),
        measure=measures,
        accuracy=trials["ours"].map("{:.3f}".format),
        rejected=trials["rejected"].map("{:.0f}".format),
    )
    keys = ["dataset", "notion", "weight"]
    shown = {"accuracy": "accuracy", "score": "cell", "p": "rejected"}
    parts = [
        trials[trials["measure"] == measure].set_index(keys)[column]
        for measure, column in shown.items()
    ]
    cells = pd.concat(parts, axis=1).agg("; ".join, axis=1)
    return cells.unstack("weight", "").rename(columns="weight {:g}".format).reset_index()


def of_searched(results: Results, dataset: str, searched: bool, metric: str) -> float:
    """A mean over splits of plain training with one setting, or selected among several."""
    criterion = "mean_squared_error" if dataset in NUMBERS else "accuracy"
    attributes = ["", kernel_fairness.SENSITIVE[dataset]]
    rows = where(results.metrics, method="erm", metric=metric, attribute=attributes, group="")
    rows = where(
        rows,
        dataset=f"{dataset}_searched" if searched else dataset,
        selection=f"{criterion}, per seed" if searched else "every",
    )
    return float(rows["value"].mean())


def regressions(study: Study) -> str:
    """What the penalty changes on C&C and Students, and what plain training is compared with."""
    (fall,) = study.sizes(
        "The penalty is fairer than plain training under demographic", "^score", unit=1, digits=3
    )
    both = [
        " instead of ".join(
            f"{of_searched(study.results, 'communities_continuous', searched, metric):.3f}"
            for searched in (True, False)
        )
        for metric in (ERROR, "faircocco_dp", "faircocco_eo")
    ]
    return (
        f"The penalty lowers the score under demographic parity by {fall} in the mean. Plain "
        "training overfits C&C at one setting, so that it has the same search as the penalty: its "
        f"unexplained variance is {both[0]}, its score {both[1]} under demographic parity and "
        f"{both[2]} under equalised odds"
    )


def larger_weights(study: Study) -> str:
    """What a weight of 2 changes, and what was possible."""
    claim = "A larger weight is fairer"
    ours, printed = (
        study.sizes(claim, column=column, unit=1, digits=3) for column in ("ours", "published")
    )
    names = where(study.effects, claim=claim)["part"]
    lower = " and ".join(
        f"{change} under {name} (published: {size})"
        for change, name, size in zip(ours, names, printed, strict=True)
    )
    scores = [
        f"{of_searched(study.results, dataset, True, metric):.3f}"
        for dataset in kernel_fairness.TRADE_OFF
        for metric in ("faircocco_dp", "faircocco_eo")
    ]
    return (
        f"A weight of 2 lowers the score by {lower}. Plain training with a search has scores of "
        f"{ends(scores)}, so that a fall of half of the published size is not possible"
    )


def above_a_constant(study: Study) -> str:
    """Accuracy of searched plain training beside the most frequent class, in points."""
    above = [
        f"{100 * (accuracy - constant):.1f} on {name}"
        for dataset, name in {"compas": "COMPAS", "german": "German", "drugs": "Drugs"}.items()
        for accuracy, constant in [
            [of_searched(study.results, dataset, True, metric) for metric in QUALITY[:2]]
        ]
    ]
    return (
        "Searched plain training is more accurate than the most frequent class by "
        f"{', '.join(above)} (points)"
    )


def estimates(study: Study) -> str:
    """How much an estimate of few rows differs from one of many."""
    parts = where(study.effects, claim="The estimate is stable from 256 rows on")
    said = [
        f"{row.ours:+.3f} ({row.part})"
        for row in parts.itertuples()
        if row.state in ("holds", "undecided")
    ]
    margin = parts["margin"].iloc[0]
    return (
        f"The estimate of 256 rows minus that of 4,096 is {', '.join(said)}; the margin is {margin}"
    )


STUDY = Study(
    kernel_fairness.PAPER,
    {
        "classes": partial(fairest, CLASSES, (*QUALITY, "gap")),
        "searched": partial(fairest, SEARCHED, (*QUALITY, "gap")),
        "numbers": partial(fairest, NUMBERS, (ERROR,)),
        "weights": weights,
    },
    sentences={
        "regressions": regressions,
        "larger_weights": larger_weights,
        "above_a_constant": above_a_constant,
        "estimates": estimates,
    },
    metrics=(
        *QUALITY,
        ERROR,
        "delta_eo",
        "faircocco_eo",
        *kernel_fairness.P_VALUES.values(),
        *ESTIMATED,
    ),
)
