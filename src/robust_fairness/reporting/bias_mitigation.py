"""Views and claims of "An Investigation of Critical Issues in Bias Mitigation Techniques".

Shrestha, Kafle and Kanan, WACV 2022. The published numbers are for Biased MNIST at 96 pixels;
ours are shown beside them for any size of a dataset of that name, which the manifest has. Facets
of a dataset: ``study``, the dataset of the paper that it varies, and ``p_bias``.
"""

from collections.abc import Iterator, Sequence

import pandas as pd

from robust_fairness.core.numbers import exact
from robust_fairness.reporting import claims as claimed
from robust_fairness.reporting import visual_question_answering as questions
from robust_fairness.reporting.bias_variables import (
    EXPLICIT,
    IMPLICIT,
    PAPER,
    STANDARD,
    with_variables,
)
from robust_fairness.reporting.results import (
    UNSHIFTED,
    Results,
    objectives,
    where,
    with_metrics,
)
from robust_fairness.reporting.statistics import over_seeds, over_trials
from robust_fairness.reporting.views import (
    published,
    selected_beside,
    subgroups,
)

DEFAULT_VARIABLE = "distractor_shape"
VARIABLES = (
    "background_color", "digit_color", "digit_position", "distractor_shape",
    "distractor_color", "texture", "texture_color",
)  # fmt: skip
PUBLISHED_ORDER = (
    "distractor_shape", "texture", "digit_color", "background_color",
    "texture_color", "distractor_color", "digit_position",
)  # fmt: skip
STUDIES = ("biased_mnist", "biased_digits")
CELEBA = "celeba_hair"
MINORITY = "Male & Blond_Hair"
ALPHAS = ("accuracy_at", "mean_accuracy_at")  # criteria of Figure 6
UNBIASED, DIFFERENCE = "unbiased_accuracy", "majority_minority_difference"
SIDES = {"majority_accuracy": "majority", "minority_accuracy": "minority", UNBIASED: "unbiased"}


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


def with_single_variables(results: Results, metric: str) -> pd.DataFrame:
    """A metric of every method by seed, averaged over trials of at most one variable.

    Columns dataset, method, seed, value, trials; the paper averages the seven runs of an explicit
    method (6.1).
    """
    rows = by_variables(results, metric)
    return over_trials(rows[rows["variables"] <= 1])


def table_1(results: Results) -> pd.DataFrame:
    """Unbiased accuracy of every method on every dataset, published beside ours.

    For questions it is the mean of head and tail accuracy, over the given variables.
    """
    images = where(with_single_variables(results, UNBIASED), dataset=[*STUDIES, CELEBA])
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
    theirs = published("bias_mitigation_hyperparameters").rename(columns={"dataset": "study"})
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
    rows = of_studies(results, where(results.metrics, shift=UNSHIFTED))
    criteria = pd.DataFrame({"metric": objectives(rows["selection"]).to_list()}, rows.index)
    criteria = with_metrics(criteria.dropna().reset_index(), ["quantity", "alpha"])
    criteria = criteria[criteria["quantity"].isin(ALPHAS)].set_index("index")
    rows = rows.assign(alpha=criteria["alpha"])
    celeba = rows["dataset"] == CELEBA
    subgroup = celeba & rows["metric"].eq("accuracy_by_subgroup") & rows["attribute"].eq("Male")
    side = rows["metric"].map(SIDES).mask(celeba & rows["metric"].ne(UNBIASED))
    minority = rows["group"] == MINORITY
    side = side.mask(subgroup & minority, "minority").mask(subgroup & ~minority, "majority")
    rows = rows.assign(side=side)[side.notna() & rows["alpha"].notna()]
    keys = ["dataset", "method", "alpha", "trial"]
    wide = over_seeds(rows, [*keys, "side"]).pivot_table(
        index=keys, columns="side", values="ours", sort=False
    )
    return wide.reset_index().rename_axis(columns=None)


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


def claims(results: Results) -> pd.DataFrame:
    """What the paper answers to its four questions."""
    rows: list[claimed.Claim] = []
    for dataset in (*STUDIES, CELEBA):
        if dataset in set(results.metrics["dataset"]):
            rows += _first_question(results, dataset)
            if dataset in STUDIES:
                rows += [*_second_question(results, dataset), *_third_question(results, dataset)]
    return claimed.table([*rows, *questions.claims(results)], results)


def against_the_standard_model(results: Results, dataset: str) -> pd.DataFrame:
    """Unbiased accuracy of every other method minus that of the standard model, with its test.

    ``claims.COLUMNS``, a row per method, which is its ``ordering``; the verdict is that on the
    claim that the method is below. P-values are adjusted for the methods of this dataset.
    """
    rows = where(results.unshifted, dataset=dataset, metric=UNBIASED)
    others = [item for item in (*EXPLICIT, *IMPLICIT) if item in set(rows["method"])]
    claim = "the method is below the standard model"
    pairs = [
        claimed.compared(rows, claim, dataset, other, method=(other, STANDARD)) for other in others
    ]
    return claimed.table(pairs, results)


def _first_question(results: Results, dataset: str) -> Iterator[claimed.Claim]:
    """Explicit methods fail with many biases, and work on CelebA."""
    rows = where(with_single_variables(results, UNBIASED), dataset=dataset)
    if dataset == CELEBA:
        claim = "1: explicit methods work with few groups"
        pairs = [(STANDARD, name) for name in ("group_upweighting", "group_dro", "rubi")]
    else:
        claim = "1: explicit methods are below the standard model"
        pairs = [(name, STANDARD) for name in EXPLICIT]
    orderings = [(claim, *pair) for pair in pairs if STANDARD in set(rows["method"])]
    if dataset in STUDIES:
        claim = "1: learning from failure is above the standard model"
        orderings.append((claim, STANDARD, "lff"))
    for claim, first, second in orderings:
        ordering = f"unbiased accuracy: {first} < {second}"
        yield claimed.compared(rows, claim, dataset, ordering, method=(first, second))


def _second_question(results: Results, dataset: str) -> Iterator[claimed.Claim]:
    """Explicit methods exploit the given variable less than the others."""
    rows = where(by_variables(results, DIFFERENCE), dataset=dataset, variables=1)
    claim = "2: the given variable is exploited less"
    for method in ("group_upweighting", "group_dro", "rubi"):
        ordering = f"majority minus minority of {method}: given < not given"
        subset = where(rows, method=method)
        yield claimed.compared(subset, claim, dataset, ordering, given=(True, False))
    rows = where(with_single_variables(results, f"mean_{DIFFERENCE}"), dataset=dataset)
    claim = "2: learning from failure exploits the biases less"
    ordering = "mean majority minus minority: lff < erm"
    yield claimed.compared(rows, claim, dataset, ordering, method=("lff", STANDARD))


def _third_question(results: Results, dataset: str) -> Iterator[claimed.Claim]:
    """Explicit methods do not scale to many variables; group upweighting is the exception."""
    rows = where(by_variables(results, UNBIASED), dataset=dataset)
    rows = rows[(rows["trial"] == "default") | (rows["variables"] > 1)]
    every = len(VARIABLES)
    claim = "3: explicit methods do not scale to many variables"
    for method in ("group_dro", "rubi", "lnl", "irmv1"):
        ordering = f"unbiased accuracy of {method}: {every} variables < 1"
        subset = where(rows, method=method)
        yield claimed.compared(subset, claim, dataset, ordering, variables=(every, 1))
    claim = "3: upweighting by all variables is above the standard model"
    ordering = f"unbiased accuracy: erm < group_upweighting with {every} variables"
    pair = (STANDARD, "group_upweighting")
    yield claimed.compared(rows, claim, dataset, ordering, method=pair, variables=(0, every))
