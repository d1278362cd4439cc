"""The tables of bias mitigation: Biased MNIST at 24 and at 96 pixels, and CelebA."""

from collections.abc import Mapping
from functools import partial

import pandas as pd

from robust_fairness.papers.bias_mitigation import bias_variables
from robust_fairness.papers.bias_mitigation import views as bias_mitigation
from robust_fairness.report import Results
from robust_fairness.report.results import where
from robust_fairness.report.statistics import over_seeds
from studies.bias_mitigation import papers_size
from studies.study import PERCENT, Study, ends
from tools.pages import across, rounded, spread

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


def claimed_at_the_papers_size() -> pd.DataFrame:
    """The scores at the paper's size that claims may take."""
    known = papers_size.known()
    return known.drop(where(known, **papers_size.ANOTHER_SAMPLER).index)


LFF = "Learning from failure is above the standard model on Biased MNIST"


def learning_from_failure(study: Study) -> str:
    """Its accuracy beside the standard model's, in points."""
    (large,), (small,) = (study.sizes(LFF, f"^{size} pixels", digits=1) for size in (96, 24))
    (printed,) = study.sizes(LFF, "^96", "published", digits=1)
    return (
        f"At the paper's size it is {large} points above the standard model (published: {printed}) "
        "in the mean of two seeds, one of which is near it; at the reduced size it is "
        f"{small} points below"
    )


def explicit_methods(study: Study) -> str:
    """How far they are below the standard model at the reduced size, in points."""
    below = ends(study.sizes("Explicit methods are below", "^[^,]*[^e], 24 pixels"))
    return f"All are below the standard model in the mean, by {below} points"


def seven_variables(study: Study) -> str:
    """What group DRO gains with all variables, in points."""
    claim = "Explicit methods lose accuracy when they are given many variables"
    (ours,) = study.sizes(claim, "group DRO", digits=1)
    (printed,) = study.sizes(claim, "group DRO", "published", digits=1)
    return (
        f"Group DRO gains {ours} points when it is given all variables, where the paper loses "
        f"{printed}"
    )


def one_permutation(study: Study) -> str:
    """What the sampler of the code costs group DRO, in points."""
    rows = where(study.results.unshifted, metric="unbiased_accuracy", dataset=CHANGED)
    means = 100 * rows.groupby(["dataset", "method"])["value"].mean()
    lower = [
        f"{means[name, 'group_dro'] - means[name, 'group_dro_of_the_code']:.1f}" for name in CHANGED
    ]
    return (
        f"At the reduced size accuracy with one permutation is {' and '.join(lower)} points lower "
        "in the mean"
    )


def near_the_print(study: Study) -> str:
    """The largest distance of the standard model from Table A4, in points."""
    cells = papers_size.by_variable(papers_size.known())["erm"]
    numbers = cells.str.extract(r"^(\S+).*\((\S+)\)$").astype(float)
    largest = (numbers[0] - numbers[1]).abs().max()
    return (
        "Every difference of the standard model is within "
        f"{largest:.1f} points of the published one"
    )


STUDY = Study(
    bias_variables.PAPER,
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
        **{
            name: lambda _, make=make: make(papers_size.known())
            for name, make in papers_size.TABLES.items()
        },
    },
    sentences={
        "learning_from_failure": learning_from_failure,
        "explicit_methods": explicit_methods,
        "seven_variables": seven_variables,
        "one_permutation": one_permutation,
        "near_the_print": near_the_print,
    },
    metrics=tuple(COLUMNS),
    by_group=("accuracy_by_subgroup",),
    further=claimed_at_the_papers_size,
)
