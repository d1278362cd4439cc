"""Write the generated tables of the results pages of papers from the scores that lie beside them.

    python docs/paper_tables.py [PAGE --runs RUN ...]

With runs of ``conf/paper``, ``conf/reduced`` or ``conf/cross``, their scores of the page's
measures, cells and splits are put there first, in place of earlier ones of the same cells. A table
is made of a view of the report or of the scores, with our mean and standard deviation over seeds
and the published number in brackets, or of ``claims``: effects with verdicts.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial, reduce
from pathlib import Path

import numpy as np
import pandas as pd
import paper_slice
from pages import RESULTS, Page, across, plain, rounded, spread

from robust_fairness.catalog import files
from robust_fairness.catalog.arrays import PredictionsDataset, SamplesDataset
from robust_fairness.report import (
    Results,
    agreement,
    bias_mitigation,
    bias_variables,
    claims,
    equalized_robustness,
    fair_metric_learning,
    kernel_fairness,
    latent_shift,
)
from robust_fairness.report.results import CELL, CORRECT, UNSHIFTED, where
from robust_fairness.report.statistics import over_seeds
from robust_fairness.report.views import Section, published, section
from robust_fairness.runs import provenance

PERCENT = {"digits": 1, "unit": 100}
IMAGES = RESULTS.parent / "images"


@dataclass(frozen=True)
class Paper:
    """A results page whose scores lie beside it.

    Attributes:
        section: its views and claims.
        tables: makers of the tables of the page, by name.
        metrics: measures that they need and the paper has not.
        by_group: measures whose values by group are kept; of the others only those of all rows.
        beside: tables of its runs, and ``correct``, see ``correct_of``; counts are those of runs
            since they were kept.
    """

    section: Section
    tables: Mapping[str, Callable[[Results], pd.DataFrame]]
    metrics: tuple[str, ...] = ()
    by_group: tuple[str, ...] = ()
    beside: tuple[str, ...] = ("metrics", "cells", "splits", "trials")


def file_of(paper: str, table: str) -> Path:
    """The file of a table of the runs."""
    return RESULTS / f"{paper}_{table}.parquet"


@cache
def results_of(paper: str) -> Results:
    """The scores beside a page; those of bias mitigation also at the paper's size."""
    files = {name: file_of(paper, name) for name in PAPERS[paper].beside}
    frames = {name: pd.read_parquet(path) for name, path in files.items() if path.exists()}
    metrics = frames.pop("metrics")
    if paper == bias_variables.PAPER:
        known = paper_slice.known()
        known = known.drop(where(known, **paper_slice.ANOTHER_SAMPLER).index)
        metrics = pd.concat([metrics, known], ignore_index=True)
    return Results.of(metrics, **frames)


@cache
def effects_of(paper: str) -> pd.DataFrame:
    """The effects of a paper's claims, a row per part."""
    return PAPERS[paper].section.claims(results_of(paper))


def effects(paper: str, _: Results | None = None) -> pd.DataFrame:
    """The effects of a paper's claims with their verdicts, for a CSV."""
    shown = effects_of(paper).drop(columns=["effect", "known", "cost", "command"])
    shown["reach"] = shown["reach"].replace(np.inf, np.nan)
    numbers = ["published", "std", "ours", "low", "high", "margin", "reach", "error"]
    digits = dict.fromkeys(numbers, plain) | {"p": partial(plain, digits=4)}
    return shown.assign(**{name: shown[name].map(form) for name, form in digits.items()})


def plot(*papers: str) -> str:
    """The drawing of the claims of some papers."""
    return claims.drawn(
        {PAPERS[name].section.title if len(papers) > 1 else "": effects_of(name) for name in papers}
    )


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


GENERATED = {
    "digits_extend": "first run",
    "digits_extend_direction_1": "another direction",
    "digits_extend_generator_1": "another generator",
    "digits_overlap": "first run",
    "digits_overlap_direction_1": "another direction",
    "digits_overlap_generator_1": "another generator",
    "digits_overlap_large": "twice as many training images",
    "digits_overlap_full": "training images of the whole space",
    "digits_truncation": "first run",
    "digits_truncation_generator_1": "another generator",
}
REFERENCE = "(reference classifier)"


def accuracies(shift: str, results: Results) -> pd.DataFrame:
    """Accuracy in percent by severity, also of the classifier of real images."""
    generated = where(latent_shift.accuracies(results), shift=shift).drop(columns="severity")
    generated = generated.rename(columns={"position": "severity"})
    generated = generated.dropna(subset="severity")
    places = generated[["dataset", "severity"]].drop_duplicates()
    reference = where(results.generator_quality, shift=[shift, UNSHIFTED]).merge(places)
    both = pd.concat([generated, reference.assign(method=REFERENCE)])
    keys = ["dataset", "method"]
    wide = both.pivot_table("accuracy", keys, "severity", sort=False).sort_index(axis=1)
    shown = (100 * wide).map("{:.1f}".format).replace("nan", "")
    return _in_words(shown.rename(columns="{:g}".format).reset_index())


def slopes(results: Results) -> pd.DataFrame:
    """Slopes of the accuracy in points by degree, or by .1 of R, and net of the reference."""
    lines = where(latent_shift.slopes(results), dataset=GENERATED)
    axis = lines["shift"].map(latent_shift.AXES)
    parts = []
    for title, form in {"slope": axis, "net slope": axis + latent_shift.NET}.items():
        parts.append(lines[lines["against"] == form].assign(form=title))
    rows = pd.concat(parts)
    unit = np.where(rows["shift"] == latent_shift.TRUNCATION, 10, 100)
    numbers = rows[["slope", "low", "high"]].mul(unit, axis=0).map("{:.2f}".format)
    cells = numbers["slope"] + " (" + numbers["low"] + " to " + numbers["high"] + ")"
    rows = rows.assign(cell=cells.str.replace(" (nan to nan)", "", regex=False))
    keys = ["dataset", "shift", "method"]
    wide = rows.set_index([*keys, "form"])["cell"].unstack(sort=False)  # noqa: PD010
    return _in_words(wide.reset_index())


def linearity(results: Results) -> pd.DataFrame:
    """R squared of the lines through all cells of a shift, in functions of the distance."""
    rows = where(latent_shift.linearity(results), dataset=GENERATED)
    keys = ["dataset", "shift", "augmentation", "space"]
    wide = rows.pivot_table("R squared", keys, "linear in", sort=False).map("{:.3f}".format)
    return _in_words(wide.reset_index())


def _in_words(rows: pd.DataFrame) -> pd.DataFrame:
    """In the order of ``GENERATED``, with its words."""
    order = rows["dataset"].map([*GENERATED].index)
    rows = rows.iloc[np.argsort(order, kind="stable")]
    return rows.rename(columns={"dataset": "data"}).replace({"data": GENERATED})


RARE = {"digits_balanced": "balanced", "digits_imbalanced": "rare"}
PICTURES = {"cifar10_balanced": "balanced", "cifar10_imbalanced": "rare"}
MORE = {"digits_more_balanced": "balanced", "digits_more_imbalanced": "rare"}
GAPS = ("recall_at", "nmi", "u_kl", "accuracy", "macro_precision", "macro_recall")
RULES = {
    ("none", "lowest"): "one classifier",
    ("oversampling", "lowest"): "oversampling",
    ("domain_independent", "lowest"): "domain-independent, lowest logit",
    ("domain_independent", "no_probability"): "domain-independent, no probability",
}


def rare_classes(data: Mapping[str, str], results: Results) -> pd.DataFrame:
    """Majority minus minority by training loss, and the accuracy of all rows."""
    names = {f"{name}_majority_gap": name for name in GAPS} | {"accuracy": "overall accuracy"}
    rows = where(results.unshifted, dataset=data, metric=names, trial="default")
    return across(rows, ["method", "dataset"], names).reset_index().replace({"dataset": data})


COLOURS = {
    "accuracy": "accuracy",
    "recall_at": "recall@1",
    "nmi": "NMI",
    "worst_group_recall_at": "recall@1 of the worst colour",
    "recall_at_worst_gap": "gap of recall@1",
    "nmi_worst_gap": "gap of NMI",
    "accuracy_worst_gap": "gap of accuracy",
}


def rare_colour(results: Results) -> pd.DataFrame:
    """Digits of six colours, of which some are rare, by loss and weights of PARADE."""
    rows = where(results.unshifted, dataset="coloured_digits", metric=COLOURS, group="")
    usual = {"classifier": "logistic_regression", "rebalancing": "none"}
    rows = results.with_hparams(rows, ["alpha", "rho", *usual])
    others = rows[[*usual]].astype(object).fillna(usual)
    keys = ["method", "alpha", "rho"]
    rows = rows[(others == pd.Series(usual)).all(axis=1)].astype(dict.fromkeys(keys, object))
    return across(rows.fillna(dict.fromkeys(keys, "")), keys, COLOURS).reset_index()


def rebalanced(results: Results) -> pd.DataFrame:
    """Accuracy, and majority minus minority of it, by how the classifier was rebalanced."""
    metrics = {"accuracy": "accuracy", "accuracy_majority_gap": "gap"}
    rows = where(results.unshifted, dataset="digits_imbalanced", metric=metrics)
    rows = results.with_hparams(rows, ["rebalancing", "absent_classes"])
    usual = {"rebalancing": "none", "absent_classes": "lowest"}
    rows = rows.astype(dict.fromkeys(usual, object)).fillna(usual)
    rule = pd.Series([*zip(rows["rebalancing"], rows["absent_classes"], strict=True)], rows.index)
    rows = rows.assign(what=rule.map(RULES) + ": " + rows["metric"].map(metrics))
    order = [f"{rule}: {name}" for rule in RULES.values() for name in metrics.values()]
    titles = dict(zip(order, order, strict=True))
    return across(rows, ["method"], titles, "what").dropna().reset_index()


DRAWS = {
    "biased_mnist_tuned": "first draw of the factors",
    "biased_mnist_tuned_factors_1": "second",
    "biased_mnist_tuned_factors_2": "third",
}
CHANGED = {
    "biased_mnist_formulas": "none",
    "biased_mnist_as_published": "list of positions",
}
GIVEN = "distractor_shape"
MAJORITY_MINUS_MINORITY = "majority_minority_difference"
COLUMNS = {
    "unbiased_accuracy": "unbiased accuracy",
    "majority_minority_difference": "majority minus minority, distractor shape",
    "mean_majority_minority_difference": "mean over variables",
}
UNBIASED = {"unbiased_accuracy": "unbiased accuracy"}


def ablations(results: Results) -> pd.DataFrame:
    """Biased MNIST with one change at a time, in percent and points."""
    rows = where(results.unshifted, dataset=CHANGED, metric=COLUMNS, attribute=["", GIVEN])
    wide = across(rows, ["dataset", "method"], COLUMNS, **PERCENT).loc[list(CHANGED)]
    return wide.rename_axis(["change", "method"]).reset_index().replace({"change": CHANGED})


def by_variable(results: Results) -> pd.DataFrame:
    """Majority minus minority of every bias variable for the standard model, in points."""
    data = DRAWS | {"biased_mnist_as_published": "list of positions"}
    rows = where(results.unshifted, dataset=data, method="erm", metric=MAJORITY_MINUS_MINORITY)
    wide = across(rows, ["attribute"], data, "dataset", **PERCENT)
    return wide.rename_axis("variable").reset_index()


def given_to_lnl(results: Results) -> pd.DataFrame:
    """LNL at its own learning rate by the variable that it is given, in percent and points."""
    rows = where(results.unshifted, dataset="biased_mnist_lnl", metric=COLUMNS)
    rows = bias_variables.with_variables(results, rows, default="distractor_color")
    rows = rows[(rows["attribute"] == "") | (rows["attribute"] == rows["explicit"])]
    titles = COLUMNS | {MAJORITY_MINUS_MINORITY: "majority minus minority, given"}
    return across(rows, ["explicit"], titles, **PERCENT).rename_axis("given").reset_index()


PRECISIONS = {
    "biased_mnist_tuned": ("Biased MNIST", "float32"),
    "biased_mnist_bfloat16": ("Biased MNIST", "bfloat16"),
    "celeba_hair": ("CelebA, hair colour", "float32"),
    "celeba_hair_bfloat16": ("CelebA, hair colour", "bfloat16"),
}


SIZES = {
    "biased_mnist_tuned": "24 pixels, 20,000 images, 8 epochs",
    "biased_mnist_larger": "48 pixels, 50,000 images, 10 epochs",
}


KNOWN = {
    "biased_mnist_tuned": "one variable known",
    "biased_mnist_tuned_four": "four",
    "biased_mnist_tuned_seven": "seven",
}
STRENGTHS = {
    "biased_mnist_tuned_p_0_5": "p = .5",
    "biased_mnist_tuned": "p = .7",
    "biased_mnist_tuned_p_0_9": "p = .9",
}


def by_data(data: Mapping[str, str], results: Results) -> pd.DataFrame:
    """Unbiased accuracy in percent of the methods that were trained on all of some data sets."""
    rows = where(results.unshifted, dataset=data, metric=UNBIASED)
    return across(rows, ["method"], data, "dataset", **PERCENT).dropna().reset_index()


def tuning_distributions(results: Results) -> pd.DataFrame:
    """Figure 6: the trial that Acc(alpha) on validation rows selects, and its test accuracy.

    In percent; that of majority and minority is the mean over the variables.
    """
    rows = where(results.metrics, dataset="biased_mnist_tuned_alphas", metric=bias_mitigation.SIDES)
    rows = bias_mitigation.criteria_of_alpha(rows)
    wide = rows.pivot_table("value", ["method", "alpha", "trial"], "metric", sort=False)
    shown = wide[[*bias_mitigation.SIDES]].map(lambda value: f"{100 * value:.1f}")
    return shown.reset_index()


def precisions(results: Results) -> pd.DataFrame:
    """Unbiased accuracy in percent of plain training in both precisions."""
    rows = where(results.unshifted, dataset=PRECISIONS, method="erm", metric=UNBIASED)
    means = over_seeds(rows, ["dataset"]).set_index("dataset")
    cells = spread(means, **PERCENT)
    titles = ["data", "precision", "unbiased accuracy"]
    return pd.DataFrame(
        [(*named, cells[dataset]) for dataset, named in PRECISIONS.items()], columns=titles
    )


TRIED, TUNED = "biased_mnist_tuning", "biased_mnist_tuned"


def tuning(results: Results) -> pd.DataFrame:
    """Unbiased accuracy in percent on the unbiased validation rows, by trial."""
    rows = where(results.trials, dataset=TRIED)
    shown = rows["trial"] + ": " + (100 * rows["score"]).map("{:.1f}".format)
    number = rows.groupby("method").cumcount()
    cells = rows.assign(cell=shown.mask(number == 0, shown.str.removeprefix("default: ")))
    wide = cells.assign(number=number).pivot(index="method", columns="number", values="cell")
    named = ["setting of the tables below", "another rate", "another value"]
    wide = wide.set_axis(named, axis=1).assign(selected=best_trials(results))
    return wide.loc[rows["method"].unique()].reset_index()


def best_trials(results: Results) -> pd.Series:
    """The trial with the best score on validation rows, by method."""
    rows = where(results.trials, dataset=TRIED).set_index("method")
    best = rows.groupby(level=0, sort=False)["score"].transform("max") == rows["score"]
    return rows.loc[best, "trial"]


def by_method(dataset: str, columns: Mapping[str, str], results: Results) -> pd.DataFrame:
    """Measures of methods, in percent and points."""
    rows = where(results.unshifted, dataset=dataset, metric=columns, attribute=["", GIVEN])
    wide = across(rows, ["method"], columns, **PERCENT).loc[rows["method"].unique()]
    wide = wide.fillna("")
    return wide.loc[:, (wide != "").any()].reset_index()


def celeba_subgroups(results: Results) -> pd.DataFrame:
    """Table A3: accuracy of the subgroups in percent, the published one in brackets."""
    rows = bias_mitigation.table_a3(results)
    theirs = (100 * rows["published"]).map(" ({:.1f})".format)
    cells = rows.assign(
        group=rows["group"] + " (" + rows["rows"].astype(str) + " rows)",
        cell=spread(rows, **PERCENT) + theirs,
    )
    wide = cells.pivot(index="method", columns="group", values="cell")
    return wide.loc[cells["method"].unique()].reset_index()


ER, BIAS, KERNEL, METRIC, LATENT, CROSS = map(
    section,
    ("equalized_robustness", "bias_mitigation", "kernel_fairness", "fair_metric_learning",
     "latent_shift", "agreement"),
)  # fmt: skip
PAPERS = {
    equalized_robustness.PAPER: Paper(
        ER,
        {
            **{
                f"table_{n}": partial(beside_published, f"table_{n}") for n in (1, 2, 3, 6, 7, 8, 9)
            },
            "robustness": robustness,
            "trade_off": trade_off,
            "reproduced": reproduced,
        },
        ("delta_er_one_shot", equalized_robustness.CURVATURE),
        (equalized_robustness.CURVATURE,),
        beside=("metrics", "cells", "splits", "trials", "counts"),
    ),
    bias_variables.PAPER: Paper(
        BIAS,
        {
            "tuning": tuning,
            "tuned": partial(by_method, TUNED, COLUMNS),
            "ablations": ablations,
            "by_variable": by_variable,
            "given_to_lnl": given_to_lnl,
            "precisions": precisions,
            "sizes": partial(by_data, SIZES),
            "draws": partial(by_data, DRAWS),
            "known": partial(by_data, KNOWN),
            "strengths": partial(by_data, STRENGTHS),
            "tuning_distributions": tuning_distributions,
            "figure_a8": rounded(bias_mitigation.figure_a8),
            "celeba": partial(by_method, bias_mitigation.CELEBA, UNBIASED),
            "table_a3": celeba_subgroups,
        },
        tuple(COLUMNS),
        ("accuracy_by_subgroup",),
    ),
    kernel_fairness.PAPER: Paper(
        KERNEL,
        {
            "classes": partial(fairest, CLASSES, (*QUALITY, "gap")),
            "searched": partial(fairest, SEARCHED, (*QUALITY, "gap")),
            "numbers": partial(fairest, NUMBERS, (ERROR,)),
            "weights": weights,
        },
        (
            *QUALITY,
            ERROR,
            "delta_eo",
            "faircocco_eo",
            *kernel_fairness.P_VALUES.values(),
            *ESTIMATED,
        ),
    ),
    fair_metric_learning.PAPER: Paper(
        METRIC,
        {
            "rare_classes": partial(rare_classes, RARE),
            "rare_classes_more_rows": partial(rare_classes, MORE),
            "cifar10": partial(rare_classes, PICTURES),
            "rare_colour": rare_colour,
            "rebalanced": rebalanced,
        },
        ("accuracy", *COLOURS, *(f"{name}_majority_gap" for name in GAPS)),
    ),
    latent_shift.PAPER: Paper(
        LATENT,
        {
            **{shift: partial(accuracies, shift) for shift in latent_shift.AXES},
            "robustness": slopes,
            "linearity": linearity,
        },
        ("accuracy",),
        beside=(
            "metrics",
            "cells",
            "splits",
            "trials",
            "counts",
            "distances",
            "generator_quality",
            "correct",
        ),
    ),
    "cross": Paper(
        CROSS,
        {view.id: rounded(view.rows) for view in CROSS.views},
        agreement.MEASURES,
        beside=("metrics", "splits"),
    ),
}


SENSITIVE_OF_COUNTS = [*set(equalized_robustness.SENSITIVE.values())]
CLAIMED = tuple(claims.listed())
VERDICTS = {  # in words, for one claim and for several
    "supported": ("is supported", "are supported"),
    "partly": ("holds in part and is open in the rest", "hold in part and are open in the rest"),
    "mixed": (
        "holds in part and fails in another",
        "hold in some parts and fail in others",
    ),
    "partly contradicted": ("is contradicted in part", "are contradicted in part"),
    "contradicted": ("is contradicted", "are contradicted"),
    "excluded": (
        "has an effect smaller than its margin",
        "have effects smaller than their margins",
    ),
    "undecided": ("is undecided", "are undecided"),
    "out of reach": ("is out of reach of our data", "are out of reach of our data"),
    "not run": ("was not run", "were not run"),
}


@cache
def all_judged() -> pd.DataFrame:
    """The verdicts on all claims, with their ``paper``."""
    return pd.concat([claims.judged(effects_of(name)).assign(paper=name) for name in CLAIMED])


def counted() -> str:
    """How many claims have each verdict, as a sentence without its end."""
    count = all_judged()["verdict"].value_counts()
    said = [
        f"{count[verdict]} {words[int(count[verdict] > 1)]}"
        for verdict, words in VERDICTS.items()
        if verdict in count
    ]
    return f"Of {count.sum()} claims {', '.join(said[:-1])} and {said[-1]}"


def supported() -> str:
    """The claims that are supported, as a sentence without its end."""
    names = where(all_judged(), verdict="supported")["claim"]
    return "Supported in all their parts: " + "; ".join(names)


def by_paper() -> pd.DataFrame:
    """Numbers of claims by verdict and paper; in brackets those about these models only."""
    rows = []
    for name in CLAIMED:
        found = where(all_judged(), paper=name)
        models = found["whom"] == claims.MODELS
        counts = {}
        for verdict in VERDICTS:
            mask = found["verdict"] == verdict
            of_models = f" ({(mask & models).sum()})" if (mask & models).any() else ""
            counts[verdict] = f"{mask.sum()}{of_models}"
        rows.append({"paper": f"[{PAPERS[name].section.title}]({name}.md)", **counts})
    return pd.DataFrame(rows)


def verdicts(paper: str, _: Results | None = None) -> pd.DataFrame:
    """Every claim of a paper beside its numbers, and what would decide the rest."""
    found = claims.judged(effects_of(paper))
    alone = found["part"] == ""
    models = found["question"] == claims.MODELS
    ends = found["low"].map(plain) + " to " + found["high"].map(plain)
    ends = ends.mask(models, found["seeds"].astype(str) + " seeds: " + ends)
    ends = ends.mask(models & (found["seeds"] == 1), "one seed")
    ours = found["ours"].map(plain) + (" (" + ends + ")").where(found["low"].notna(), "")
    shown = pd.DataFrame(
        {
            "claim": found["claim"] + " (" + found["at"] + ")",
            "verdict": found["counted"],
            "ours": ours + np.where(alone | (ours == ""), "", ": " + found["part"]),
            "published": found["published"].map(plain),
            "known before": found["known_before"],
            "what would decide its open parts, and the cost": (
                found["needs"].str.removeprefix("needs ") + ": " + found["cost"]
            ).where(found["needs"] != "", ""),
        }
    )
    return shown.astype(str)


def apart(paper: str, _: Results | None = None) -> pd.DataFrame:
    """The claims of a paper that cannot fail here, each decided by itself and not counted."""
    results = results_of(paper)
    rows = PAPERS[paper].section.measured(results)
    parts = [
        claims.table([claim], rows, results).assign(why=claim.apart)
        for claim in claims.written()[paper]
        if claim.apart
    ]
    shown = pd.concat(parts)[["claim", "at", "why", "part", "state", "ours", "low", "high"]]
    return shown.assign(**{name: shown[name].map(plain) for name in ("ours", "low", "high")})


def claims_list() -> pd.DataFrame:
    """Every claim with its margins and what was known, a row each."""
    rows = []
    for name in CLAIMED:
        for claim in claims.written()[name]:
            parts = claim.each()
            margins = sorted({f"{part.size:.3g}" for part in parts}, key=float)
            before = dict.fromkeys(str(part.known_before) for part in parts)
            rows.append(
                {
                    "paper": PAPERS[name].section.title, "claim": claim.claim, "at": claim.at,
                    "effect": claim.effect, "parts": len(parts),
                    "margin": " to ".join(dict.fromkeys([margins[0], margins[-1]])),
                    "known before": " and ".join(before), "known": claim.known,
                    "note": claim.note, "cost": claim.cost,
                    "command": claim.command, "listed apart": claim.apart,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def _page(name: str, paper: Paper) -> Page:
    """A paper's page, with the table and the plot of its claims."""
    path, tables, figures = RESULTS / f"{name}.md", dict(paper.tables), {}
    if name in CLAIMED:
        tables |= {"effects": partial(effects, name), "verdicts": partial(verdicts, name)}
        if any(claim.apart for claim in claims.written()[name]):
            tables["apart"] = partial(apart, name)
        figures[IMAGES / f"claims_{name}.svg"] = partial(plot, name)
    return Page(path, tables, partial(results_of, name), figures)


SENTENCES = {"counted": counted, "supported": supported}
PAGES = [
    *(_page(name, paper) for name, paper in PAPERS.items()),
    Page(
        RESULTS / "claims.md",
        {"by_paper": by_paper, "list": claims_list},
        figures={IMAGES / "claims.svg": partial(plot, *CLAIMED)},
        sentences=SENTENCES,
    ),
    Page(RESULTS / "index.md", {}, sentences=SENTENCES),
    Page(RESULTS.parents[1] / "README.md", {}, sentences=SENTENCES),
]


def take(name: str, run_ids: Sequence[str]) -> None:
    """Put what a page needs of runs beside it, in place of earlier scores of the same cells.

    Of cells that several runs have, those of the first run are taken.
    """
    paper = PAPERS[name]
    for table in paper.beside:
        path = file_of(name, table)
        frames = [
            correct_of(run) if table == "correct" else provenance.load(run, table, files.table)
            for run in run_ids
        ]
        if table == "counts":
            frames = [where(rows, attribute=["", *SENSITIVE_OF_COUNTS]) for rows in frames]
        frames += [pd.read_parquet(path)] if path.exists() else []
        scores = reduce(_with_others, frames)
        if table == "metrics":
            theirs = () if name == "cross" else published(name)["metric"]
            kept = (scores["group"] == "") | scores["metric"].isin(paper.by_group)
            scores = scores[scores["metric"].isin({*theirs, *paper.metrics}) & kept]
        scores.to_parquet(path, index=False, compression="zstd")


def correct_of(run: str) -> pd.DataFrame:
    """Whether each test row is decided correctly: a row per replica and test set, with an array.

    The shifts keep the classes of their rows.

    Raises:
        ValueError: the share of a replica and test set is not its accuracy in the scores.
    """
    scores = provenance.load(run, "metrics", files.table)
    scores = where(scores, metric="accuracy", group="", attribute="").drop_duplicates(
        [*CELL, "trial", "seed", "shift", "severity"]
    )
    frames = []
    for (dataset, method), rows in scores.groupby(CELL, sort=False):
        place, labels = f"{dataset}.{method}.predictions", f"{dataset}.samples"
        y = provenance.load(run, labels, SamplesDataset).y
        test = None
        correct = {}
        for part in provenance.load(run, place, PredictionsDataset):
            test = y[part.rows] if part.test_set == "" else test
            correct.setdefault((part.trial, part.seed), []).append(part.outputs.argmax(-1) == test)
        for replica, of_replica in rows.groupby(["trial", "seed"], sort=False):
            known = of_replica.assign(correct=correct[replica])
            frames.append(known)
    result = pd.concat(frames, ignore_index=True)
    if not np.allclose(result["correct"].map(np.mean).astype(float), result["value"]):
        raise ValueError(f"run {run}: rows and scores differ")
    return result[CORRECT]


def _with_others(rows: pd.DataFrame, earlier: pd.DataFrame) -> pd.DataFrame:
    """With the rows of earlier ones of other cells, or other datasets."""
    cell = [name for name in CELL if name in rows]
    again = earlier.set_index(cell).index.isin(rows.set_index(cell).index)
    return pd.concat([earlier[~again], rows], ignore_index=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("page", nargs="?", choices=[*PAPERS])
    parser.add_argument("--runs", nargs="+", help="take scores, cells and splits of these runs")
    arguments = parser.parse_args()
    if arguments.runs:
        take(arguments.page, arguments.runs)
    for page in PAGES:
        page.write()
