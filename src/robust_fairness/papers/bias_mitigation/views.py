"""Views and claims of "An Investigation of Critical Issues in Bias Mitigation Techniques".

Shrestha, Kafle and Kanan, WACV 2022. The published numbers are for Biased MNIST at 96 pixels;
ours are shown beside them for any size of a dataset of that name, which the manifest has. Facets
of a dataset: ``study``, the dataset of the paper that it varies, and ``p_bias``.
"""

from collections.abc import Sequence

import pandas as pd

from robust_fairness.bench.experiment.experiment import DEFAULT_TRIAL
from robust_fairness.core.numbers import exact
from robust_fairness.papers.bias_mitigation import visual_question_answering as questions
from robust_fairness.papers.bias_mitigation.bias_variables import PAPER, STANDARD, with_variables
from robust_fairness.report.claims.row_variances import of_small, with_row_variances
from robust_fairness.report.results import CELL, UNSHIFTED, Results, objectives, where, with_metrics
from robust_fairness.report.statistics import over_seeds, over_trials
from robust_fairness.report.views import About, published, selected_beside, subgroups

DEFAULT_VARIABLE = "distractor_shape"
VARIABLES = (
    "background_color", "digit_color", "digit_position", "distractor_shape",
    "distractor_color", "texture", "texture_color",
)  # fmt: skip
PUBLISHED_ORDER = (
    "distractor_shape", "texture", "digit_color", "background_color",
    "texture_color", "distractor_color", "digit_position",
)  # fmt: skip
STUDIES = ("biased_mnist", "biased_mnist_tuned", "biased_digits")
CELEBA = "celeba_hair"
GRID = "biased_mnist_tuned_alphas"  # of rates and decays
MINORITY = "Male & Blond_Hair"
ALPHAS = ("accuracy_at", "mean_accuracy_at")  # criteria of Figure 6
UNBIASED, DIFFERENCE = "unbiased_accuracy", "majority_minority_difference"
SIDES = {"majority_accuracy": "majority", "minority_accuracy": "minority", UNBIASED: "unbiased"}
ABOUT = About(PAPER, (*STUDIES, CELEBA, *questions.DATASETS))


def by_variables(results: Results, metric: str) -> pd.DataFrame:
    """Unshifted rows of a metric, of the trials that change no more than the bias variables.

    Columns ``explicit``, the variables given to the method, ``variables``, their number, and
    ``given``, whether the attribute of the row is one of them. The default trial mitigates the
    dataset's own choice, the shape of the distractors, with which the paper tunes (A.2).
    """
    rows = where(results.unshifted, metric=metric)
    rows = with_variables(results, rows, DEFAULT_VARIABLE)
    names = [set(text.split("+")) - {""} for text in rows["explicit"]]
    return rows.assign(
        variables=[len(some) for some in names],
        given=[attribute in some for attribute, some in zip(rows["attribute"], names, strict=True)],
    )


def of_studies(
    results: Results, rows: pd.DataFrame, studies: Sequence[str] = (*STUDIES, CELEBA)
) -> pd.DataFrame:
    """The rows of datasets that vary one of these datasets of the paper, as column ``study``."""
    return where(results.with_facets(rows, ["study"], {"study": "dataset"}), study=studies)


def table_1(results: Results) -> pd.DataFrame:
    """Unbiased accuracy of every method on every dataset, published beside ours.

    For questions it is the mean of head and tail accuracy, over the given variables. The paper
    averages the seven runs of an explicit method, with a variable each (6.1).
    """
    rows = where(by_variables(results, UNBIASED), dataset=[*STUDIES, CELEBA])
    images = over_trials(rows[rows["variables"] <= 1])
    rows = pd.concat([images, questions.over_variables(results)])
    keys = ["dataset", "method"]
    trials = rows.groupby(keys, as_index=False, sort=False).agg(trials=("trials", "max"))
    theirs = where(published(PAPER), view="table_1")[[*keys, "value"]]
    joined = over_seeds(rows, keys).merge(trials, on=keys)
    joined = joined.merge(theirs.rename(columns={"value": "published"}), how="left")
    return joined[[*keys, "published", "ours", "std", "seeds", "trials"]]


def table_a3(results: Results) -> pd.DataFrame:
    """Accuracy of the four subgroups of CelebA with their numbers of rows."""
    ours = subgroups(CELEBA, "Male", results)
    theirs = where(published(PAPER), view="table_a3", attribute="Male")
    theirs = theirs[["method", "group", "value"]].rename(columns={"value": "published"})
    ours = where(ours, shift=UNSHIFTED).drop(columns=["shift", "severity"])
    return ours.merge(theirs, "left")


def table_a6(results: Results) -> pd.DataFrame:
    """The published hyperparameters beside the trials that each criterion selected here.

    The paper tunes on one run, or a tenth of the rows, and uses the values for the whole study.
    """
    theirs = published(PAPER, "hyperparameters").rename(columns={"dataset": "study"})
    rows = of_studies(results, results.metrics, [*STUDIES, *theirs["study"]])
    return selected_beside(theirs, rows, ["study", "method"]).drop(columns="study")


def figure_3(results: Results) -> pd.DataFrame:
    """Majority minus minority by variable, given to the method (explicit) or not (implicit)."""
    rows = by_variables(results, DIFFERENCE)
    rows = rows[rows["dataset"].isin(STUDIES) & (rows["variables"] <= 1)]
    rows = rows.assign(variable=rows["given"].map({True: "explicit", False: "implicit"}))
    return over_seeds(rows, ["dataset", "method", "attribute", "variable"])


def figure_4(results: Results) -> pd.DataFrame:
    """Improvement over the standard model of the same seed, by subgroup of CelebA (IOSM)."""
    rows = by_variables(results, "accuracy_by_subgroup")
    rows = where(rows, dataset=CELEBA, attribute="Male")
    standard = where(rows, method=STANDARD)[["seed", "group", "value"]]
    paired = rows[rows["method"] != STANDARD].merge(standard, on=["seed", "group"])
    paired = paired.assign(value=paired["value_x"] - paired["value_y"])
    return over_seeds(paired, ["method", "group"])


def figure_5(results: Results) -> pd.DataFrame:
    """Unbiased accuracy by the number of explicit variables, and their names."""
    rows = where(by_variables(results, UNBIASED), dataset=STUDIES)
    rows = rows.assign(explicit=[text.replace("+", " + ") for text in rows["explicit"]])
    result = over_seeds(rows, ["dataset", "method", "variables", "explicit"])
    several = result.groupby("dataset")["variables"].transform("max") > 1
    return result[several].sort_values(["dataset", "method", "variables"])


def order_of_variables(results: Results) -> pd.DataFrame:
    """The order in which variables are added, published and by our standard model.

    The paper says that it sorts them by the standard model's majority/minority difference (6.3),
    but its own Table A4 gives digit color, background color, texture, distractor shape and so on.
    """
    ours = where(figure_3(results), method=STANDARD)
    if ours.empty:
        return pd.DataFrame()
    theirs = where(published(PAPER), view="table_a4", method=STANDARD)
    theirs = theirs[theirs["attribute"] != ""]
    wide = theirs.pivot_table(index="attribute", columns="metric", values="value")
    difference = wide["majority_accuracy"] - wide["minority_accuracy"]
    columns = {
        "published order": list(PUBLISHED_ORDER),
        "by the published Table A4": list(difference.sort_values(ascending=False).index),
    }
    for dataset, rows in ours.groupby("dataset", sort=False):
        measured = rows.sort_values("ours", ascending=False)["attribute"]
        columns[f"by our standard model on {dataset}"] = list(measured)
    return pd.DataFrame(columns)


def figure_6(results: Results) -> pd.DataFrame:
    """Test accuracy of majority and minority when trials are selected by other alphas."""
    rows = criteria_of_alpha(of_studies(results, where(results.metrics, shift=UNSHIFTED)))
    celeba = rows["dataset"] == CELEBA
    subgroup = celeba & rows["metric"].eq("accuracy_by_subgroup") & rows["attribute"].eq("Male")
    side = rows["metric"].map(SIDES).mask(celeba & rows["metric"].ne(UNBIASED))
    minority = rows["group"] == MINORITY
    side = side.mask(subgroup & minority, "minority").mask(subgroup & ~minority, "majority")
    rows = rows.assign(side=side)[side.notna()]
    keys = ["dataset", "method", "alpha", "trial"]
    wide = over_seeds(rows, [*keys, "side"]).pivot_table(
        index=keys, columns="side", values="ours", sort=False
    )
    return wide.reset_index().rename_axis(columns=None)


def criteria_of_alpha(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows that a criterion of Figure 6 selected, with its ``alpha``."""
    criteria = pd.DataFrame({"metric": objectives(rows["selection"]).to_list()}, rows.index)
    criteria = with_metrics(criteria.dropna().reset_index(), ["quantity", "alpha"])
    criteria = criteria[criteria["quantity"].isin(ALPHAS)].set_index("index")
    return rows.assign(alpha=criteria["alpha"]).dropna(subset="alpha")


def figure_a7(results: Results) -> pd.DataFrame:
    """Unbiased accuracy by p_bias; explicit methods mitigate the shape of the distractors."""
    rows = where(results.unshifted, metric=UNBIASED, trial="default")
    rows = results.with_facets(of_studies(results, rows, STUDIES), ["p_bias"])
    rows = rows[rows["p_bias"] != ""]
    rows = rows.assign(dataset=rows["study"], p_bias=rows["p_bias"].astype(float))
    result = over_seeds(rows, ["dataset", "method", "p_bias"])
    several = result.groupby("dataset")["p_bias"].transform("nunique") > 1
    return result[several].sort_values(["dataset", "method", "p_bias"])


def figure_a8(results: Results) -> pd.DataFrame:
    """Unbiased accuracy by learning rate and weight decay, of cells that search both."""
    rows = of_studies(results, where(results.unshifted, metric=UNBIASED))
    searched = ["learning_rate", "weight_decay"]
    rows = results.with_hparams(rows, searched)
    rows = rows[rows[searched].notna().all(axis=1) | (rows["trial"] == "default")]
    rows = rows[rows.groupby(["dataset", "method"])["trial"].transform("nunique") > 1]
    shown = {
        name: ["as configured" if pd.isna(value) else exact(value) for value in rows[name]]
        for name in searched
    }
    keys = ["dataset", "method", *searched]
    rows = rows.assign(**shown, default=rows["trial"] == "default")
    rows = rows.sort_values("default", ascending=False, kind="stable")
    return over_seeds(rows, keys).sort_values(keys[:2], kind="stable")


def measured(results: Results) -> pd.DataFrame:
    """What claims are about: unshifted scores of images and questions.

    With the columns ``explicit``, the variables given to the method, and ``variables``, their
    number; ``study`` and ``p_bias`` of the dataset; ``alpha`` of the trials that a criterion of
    Figure 6 selected, of any hyperparameters, and ``model``, which one it is; ``setting`` of the
    grid of ``GRID``, "selected" or "other".
    """
    tuned = criteria_of_alpha(where(results.metrics, shift=UNSHIFTED))
    models = [*zip(*(tuned[name] for name in (*CELL, "trial")), strict=True)]
    tuned = tuned.assign(model=pd.Series(models, tuned.index, dtype=object), trial=DEFAULT_TRIAL)
    rows = with_variables(results, results.unshifted, DEFAULT_VARIABLE)
    questioned = rows["dataset"].isin(questions.DATASETS) & (rows["trial"] == DEFAULT_TRIAL)
    aware = rows["explicit"] != ""
    rows["explicit"] = rows["explicit"].mask(questioned & aware, questions.DEFAULT_VARIABLE)
    rows["variables"] = [len(set(text.split("+")) - {""}) for text in rows["explicit"]]
    grid = where(results.unshifted, dataset=GRID)
    selected = grid["trial"] == DEFAULT_TRIAL
    grid = grid.assign(
        setting=selected.map({True: "selected", False: "other"}), trial=DEFAULT_TRIAL
    )
    rows = pd.concat([rows[rows["dataset"] != GRID], tuned, grid], ignore_index=True)
    rows = rows.reindex(columns=[*dict.fromkeys([*rows, "alpha", "model", "setting"])])
    rows = results.with_facets(rows, ["study", "p_bias"], {"study": "dataset"})
    rows = rows.assign(p_bias=pd.to_numeric(rows["p_bias"]))
    return _with_sums(with_row_variances(rows, results))


def _with_sums(rows: pd.DataFrame) -> pd.DataFrame:
    """With the variances of differences of majority and minority, and of means over subgroups."""
    keys = ["dataset", "method", "trial", "explicit", "seed", "alpha"]
    sides = where(rows, metric=["majority_accuracy", "minority_accuracy"])
    differences = sides.groupby([*keys, "attribute"], dropna=False)["variance"].sum(min_count=2)
    subgroups = where(rows, metric="accuracy_by_subgroup").groupby(keys, dropna=False)["variance"]
    means = subgroups.sum(min_count=2) / subgroups.size() ** 2
    for metric, made, names in (
        (DIFFERENCE, differences, [*keys, "attribute"]), (UNBIASED, means, keys),
    ):  # fmt: skip
        summed = rows[names].merge(made.rename("made").reset_index(), how="left", on=names)["made"]
        summed.index = rows.index
        chosen = rows["metric"] == metric
        rows = rows.assign(variance=rows["variance"].mask(chosen & summed.notna(), summed))
    everyone = (rows["metric"] == UNBIASED) & rows["variance"].isna()
    simple = of_small(rows["value"].to_numpy(float), rows["n"].to_numpy(float))
    return rows.assign(variance=rows["variance"].mask(everyone, pd.Series(simple, rows.index)))
