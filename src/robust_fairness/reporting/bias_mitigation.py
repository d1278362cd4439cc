"""Views and claims of "An Investigation of Critical Issues in Bias Mitigation Techniques".

Shrestha, Kafle and Kanan, WACV 2022. The published numbers are for Biased MNIST at 96 pixels;
ours stand beside them wherever the dataset has that name, whatever its size, which the manifest
tells.
"""

import re
from collections.abc import Mapping
from functools import cache, partial
from importlib.resources import files

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from robust_fairness.rendering.figures import style
from robust_fairness.reporting import claims as claimed
from robust_fairness.reporting import visual_question_answering as questions
from robust_fairness.reporting._mitigators import EXPLICIT, PAPER, STANDARD, TOLD_GROUPS
from robust_fairness.reporting.statistics import distinct
from robust_fairness.reporting.views import View, beside_published, cells, over_seeds, published

TITLE = "Critical Issues in Bias Mitigation"
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
TUNED = (*STUDIES, "biased_mnist_tuning", CELEBA)
MINORITY = "Male & Blond_Hair"
MEAN_OF_SINGLE = "mean of single variables"
ALPHA = re.compile(r"\w*accuracy_at\(alpha=(?P<alpha>[-+.\d]+)\)(@\w+)?")
SWEEP = re.compile(r"(?P<dataset>biased_[a-z]+)(_p_(?P<p>0_\d+))?")
USUAL_BIAS = 0.7
ALL_VARIABLES = len(VARIABLES)


def explicit_variables(method: str, trial: str) -> tuple[str, ...]:
    """The bias variables that a trial on Biased MNIST is told; none for an implicit method.

    The default trial mitigates the dataset's own choice, the shape of the distractors, with
    which the paper tunes (A.2).
    """
    if method not in TOLD_GROUPS:
        return ()
    if trial == "default":
        return (DEFAULT_VARIABLE,)
    found = re.fullmatch(r"explicit=([\w+]+)", trial)
    return tuple(found[1].split("+")) if found else ()


def plain_trials(metrics: pd.DataFrame) -> pd.DataFrame:
    """Rows of unshifted test sets once each, of trials that change nothing but ``explicit``.

    With a column ``variables``, the number of explicit variables.
    """
    rows = distinct(metrics[metrics["shift"] == "none"])
    rows = rows[rows["trial"].str.fullmatch(r"default|explicit=[\w+]+")]
    told = [
        len(explicit_variables(method, trial))
        for method, trial in zip(rows["method"], rows["trial"], strict=True)
    ]
    return rows.assign(variables=told)


def with_single_variables(metrics: pd.DataFrame, metric: str) -> pd.DataFrame:
    """A metric of every method by seed: of several single-variable trials their mean.

    Columns dataset, method, trial, seed, value; the paper averages the seven runs of an explicit
    method (6.1).
    """
    rows = plain_trials(metrics)
    rows = rows[(rows["metric"] == metric) & (rows["variables"] <= 1)]
    means = rows.groupby(["dataset", "method", "seed"], as_index=False, sort=False).agg(
        value=("value", "mean"), trials=("trial", "nunique")
    )
    return means.assign(
        trial=means["trials"].map(lambda n: "default" if n == 1 else MEAN_OF_SINGLE)
    )


def table_1(metrics: pd.DataFrame) -> pd.DataFrame:
    """Unbiased accuracy of every method on every dataset, published beside ours.

    Of questions it is the mean of head and tail accuracy, over the variables that were told.
    """
    pictures = with_single_variables(metrics, "unbiased_accuracy")
    pictures = pictures[pictures["dataset"].isin([*STUDIES, CELEBA])]
    ours = (
        pd.concat([pictures, questions.over_variables(metrics)])
        .groupby(["dataset", "method"], as_index=False, sort=False)
        .agg(
            trials=("trials", "max"),
            ours=("value", "mean"),
            deviation=("value", "std"),
            seeds=("value", "count"),
        )
    )
    theirs = published(PAPER).query("view == 'table_1'")[["dataset", "method", "value"]]
    joined = ours.merge(theirs.rename(columns={"value": "published"}), how="left")
    return joined[["dataset", "method", "published", "ours", "deviation", "seeds", "trials"]]


def table_a3(metrics: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of the four groups of CelebA with the rows that each rests on."""
    ours = cells(metrics, CELEBA, "Male")
    theirs = published(PAPER).query("view == 'table_a3' and attribute == 'Male'")
    theirs = theirs[["method", "group", "value"]].rename(columns={"value": "published"})
    return ours[ours["shift"] == "none"].drop(columns=["shift", "severity"]).merge(theirs, "left")


@cache
def published_hyperparameters() -> pd.DataFrame:
    """Table A6: dataset, method, field, published, note."""
    path = files("robust_fairness.reporting") / "published" / "bias_mitigation_hyperparameters.csv"
    with path.open() as file:
        return pd.read_csv(file, dtype=str, keep_default_na=False)


def table_a6(metrics: pd.DataFrame) -> pd.DataFrame:
    """The published hyperparameters beside the trials that each criterion selected here."""
    rows = metrics[metrics["selection"] != "every"]
    chosen = rows[["dataset", "method", "selection", "trial"]].drop_duplicates()
    chosen = chosen[chosen["dataset"].isin([*TUNED, questions.TUNING])]
    # the study tunes with one run, or a tenth of the rows, and takes the values for all others
    chosen = chosen.assign(study=chosen["dataset"].str.replace("_tuning$|_tenth$", "", regex=True))
    theirs = published_hyperparameters().rename(columns={"dataset": "study"})
    shown = (
        theirs.assign(published=theirs["field"] + " = " + theirs["published"])
        .groupby(["study", "method"], as_index=False, sort=False)
        .agg(
            published=("published", ", ".join),
            note=("note", lambda notes: "; ".join(filter(None, dict.fromkeys(notes)))),
        )
    )
    return chosen.merge(shown, "left").drop(columns="study")


def figure_3(metrics: pd.DataFrame) -> pd.DataFrame:
    """Majority minus minority by variable, told or not told to the method."""
    rows = plain_trials(metrics)
    rows = rows[
        (rows["metric"] == "majority_minority_difference")
        & rows["dataset"].isin(STUDIES)
        & (rows["variables"] <= 1)
    ]
    told = [
        attribute in explicit_variables(method, trial)
        for method, trial, attribute in zip(
            rows["method"], rows["trial"], rows["attribute"], strict=True
        )
    ]
    rows = rows.assign(variable=["explicit" if one else "implicit" for one in told])
    return over_seeds_of(rows, ["dataset", "method", "attribute", "variable"])


def over_seeds_of(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Mean within each seed first, then mean, deviation and number over seeds."""
    by_seed = rows.groupby([*keys, "seed"], as_index=False, sort=False)["value"].mean()
    return (
        by_seed.groupby(keys, sort=False)["value"]
        .agg(ours="mean", deviation="std", seeds="count")
        .reset_index()
    )


def draw_figure_3(rows: pd.DataFrame) -> go.Figure:
    """Boxes over methods for every variable."""
    figure = px.box(
        rows, x="attribute", y="ours", color="variable", facet_row="dataset", points="all"
    )
    return _titled(figure, "Majority minus minority accuracy by variable")


def figure_4(metrics: pd.DataFrame) -> pd.DataFrame:
    """Improvement over the standard model of the same seed, by group of CelebA (IOSM)."""
    rows = plain_trials(metrics)
    rows = rows[
        (rows["dataset"] == CELEBA)
        & (rows["metric"] == "accuracy_by_subgroup")
        & (rows["attribute"] == "Male")
    ]
    standard = rows[rows["method"] == STANDARD][["seed", "group", "value"]]
    paired = rows[rows["method"] != STANDARD].merge(standard, on=["seed", "group"])
    paired = paired.assign(value=paired["value_x"] - paired["value_y"])
    return over_seeds_of(paired, ["method", "group"])


def figure_5(metrics: pd.DataFrame) -> pd.DataFrame:
    """Unbiased accuracy by the number of explicit variables, and which they are."""
    rows = plain_trials(metrics)
    rows = rows[(rows["metric"] == "unbiased_accuracy") & rows["dataset"].isin(STUDIES)]
    rows = rows.assign(
        explicit=[
            " + ".join(explicit_variables(method, trial))
            for method, trial in zip(rows["method"], rows["trial"], strict=True)
        ]
    )
    keys = ["dataset", "method", "variables", "explicit"]
    found = over_seeds(rows, [*keys, "metric"]).drop(columns="metric")
    several = found.groupby("dataset")["variables"].transform("max") > 1
    return found[several].sort_values(["dataset", "method", "variables"])


def order_of_variables(metrics: pd.DataFrame) -> pd.DataFrame:
    """The order in which variables are added, published and by our standard model.

    The paper says that it sorts them by the standard model's majority/minority difference (6.3),
    but its own Table A4 gives digit color, background color, texture, distractor shape and so on.
    """
    ours = figure_3(metrics).query("method == @STANDARD")
    theirs = published(PAPER).query(
        "view == 'table_a4' and method == @STANDARD and attribute != ''"
    )
    wide = theirs.pivot_table(index="attribute", columns="metric", values="value")
    difference = wide["majority_accuracy"] - wide["minority_accuracy"]
    columns = {
        "published order": list(PUBLISHED_ORDER),
        "by the published Table A4": list(difference.sort_values(ascending=False).index),
    }
    for dataset, rows in ours.groupby("dataset", sort=False):
        measured = rows.sort_values("ours", ascending=False)["attribute"]
        columns[f"by our standard model on {dataset}"] = list(measured)
    if ours.empty:
        return pd.DataFrame()
    return pd.DataFrame(columns)


def draw_figure_5(rows: pd.DataFrame) -> go.Figure:
    """A line a method; implicit methods do not depend on the number."""
    figure = px.line(
        rows, x="variables", y="ours", color="method", facet_row="dataset", markers=True
    )
    return _titled(figure, "Unbiased accuracy by number of explicit variables")


def figure_6(metrics: pd.DataFrame) -> pd.DataFrame:
    """Test accuracy of majority and minority when trials are selected at other alphas."""
    rows = metrics[(metrics["shift"] == "none") & metrics["dataset"].isin(TUNED)]
    alpha = rows["selection"].str.extract(f"^{ALPHA.pattern}$")["alpha"].astype(float)
    rows = rows.assign(alpha=alpha)[alpha.notna()]
    sides = {"majority_accuracy": "majority", "minority_accuracy": "minority"}
    sides["unbiased_accuracy"] = "unbiased"
    rows = rows.assign(side=rows["metric"].map(sides))
    celeba = rows["metric"].eq("accuracy_by_subgroup") & rows["attribute"].eq("Male")
    rows.loc[celeba, "side"] = rows.loc[celeba, "group"].map(
        lambda group: "minority" if group == MINORITY else "majority"
    )
    of_celeba = rows["dataset"].eq(CELEBA) & ~celeba & rows["side"].ne("unbiased")
    rows = rows[rows["side"].notna() & ~of_celeba]
    keys = ["dataset", "method", "alpha", "trial", "side"]
    wide = over_seeds_of(rows, keys).pivot_table(
        index=keys[:-1], columns="side", values="ours", sort=False
    )
    return wide.reset_index().rename_axis(columns=None)


def figure_a7(metrics: pd.DataFrame) -> pd.DataFrame:
    """Unbiased accuracy by p_bias; explicit methods mitigate the shape of the distractors."""
    rows = plain_trials(metrics)
    rows = rows[(rows["metric"] == "unbiased_accuracy") & (rows["trial"] == "default")]
    parsed = rows["dataset"].str.extract(f"^{SWEEP.pattern}$")
    bias = parsed["p"].str.replace("_", ".").astype(float).fillna(USUAL_BIAS)
    rows = rows.assign(dataset=parsed["dataset"], p_bias=bias)[parsed["dataset"].isin(STUDIES)]
    found = over_seeds_of(rows, ["dataset", "method", "p_bias"])
    several = found.groupby("dataset")["p_bias"].transform("nunique") > 1
    return found[several].sort_values(["dataset", "method", "p_bias"])


def draw_figure_a7(rows: pd.DataFrame) -> go.Figure:
    """A line a method."""
    figure = px.line(rows, x="p_bias", y="ours", color="method", facet_row="dataset", markers=True)
    return _titled(figure, "Unbiased accuracy by p_bias")


def figure_a8(metrics: pd.DataFrame) -> pd.DataFrame:
    """Unbiased accuracy by learning rate and weight decay."""
    rows = distinct(metrics[(metrics["shift"] == "none")])
    rows = rows[(rows["metric"] == "unbiased_accuracy") & rows["dataset"].isin(TUNED)]
    parsed = rows["trial"].str.extract(
        r"^learning_rate=(?P<rate>[^,]+),weight_decay=(?P<decay>[^,]+)$"
    )
    rows = rows.assign(learning_rate=parsed["rate"], weight_decay=parsed["decay"])
    searched = rows[parsed["rate"].notna()]
    # the combination that is the cell's own stands under the name of the default trial
    own = rows[(rows["trial"] == "default") & rows["method"].isin(searched["method"])]
    own = own[own["dataset"].isin(searched["dataset"])].assign(
        learning_rate="as configured", weight_decay="as configured"
    )
    keys = ["dataset", "method", "learning_rate", "weight_decay"]
    return over_seeds_of(pd.concat([own, searched]), keys).sort_values(keys[:2], kind="stable")


def _titled(figure: go.Figure, title: str) -> go.Figure:
    figure.update_layout(title=title, template="plotly_white", legend_title="")
    for number, trace in enumerate(figure.data):
        trace.update(marker=style(number), line_color=style(number)["color"])
    return figure


VIEWS = [
    View("bias_table_1", "Table 1: unbiased accuracy", table_1),
    questions.TABLE_2,
    View(
        "bias_table_a3", "Table A3: accuracy by group of CelebA, with Wilson's intervals", table_a3
    ),
    View(
        "bias_table_a4",
        "Table A4: majority and minority accuracy, one explicit variable at a time",
        partial(beside_published, PAPER, "table_a4"),
    ),
    View(
        "bias_table_a5",
        "Table A5: majority and minority accuracy, more and more explicit variables",
        partial(beside_published, PAPER, "table_a5"),
    ),
    View("bias_table_a6", "Table A6: hyperparameters", table_a6),
    View("bias_figure_3", "Figure 3: majority minus minority", figure_3, draw_figure_3),
    View("bias_figure_4", "Figure 4: improvement over the standard model, CelebA", figure_4),
    View("bias_figure_5", "Figure 5: explicit variables", figure_5, draw_figure_5),
    View("bias_order", "Order of the explicit variables", order_of_variables),
    View("bias_figure_6", "Figure 6: trials selected under other shares of the groups", figure_6),
    View("bias_figure_a7", "Figure A7: strength of the bias", figure_a7, draw_figure_a7),
    View("bias_figure_a8", "Figure A8: learning rate and weight decay", figure_a8),
    questions.FIGURE_A9,
    questions.HEAD_AND_TAIL,
]


def claims(metrics: pd.DataFrame) -> pd.DataFrame:
    """What the paper says in answer to its four questions, each as an ordering first < second.

    ``holds`` where the whole 95 % interval of first minus second, paired over seeds, is below 0.
    """
    rows: list[dict] = []
    for dataset in [name for name in (*STUDIES, CELEBA) if (metrics["dataset"] == name).any()]:
        rows += _first_question(metrics, dataset)
        if dataset in STUDIES:
            rows += _second_question(metrics, dataset) + _third_question(metrics, dataset)
    return claimed.table(rows + questions.claims(metrics))


def _first_question(metrics: pd.DataFrame, dataset: str) -> list[dict]:
    """Explicit methods fail where there are many biases, and work on CelebA."""
    found = with_single_variables(metrics, "unbiased_accuracy")
    values = _by_method(found[found["dataset"] == dataset])
    standard = values.get(STANDARD, pd.Series(dtype=float))
    if dataset == CELEBA:
        claim = "1: explicit methods work where groups are few"
        pairs = [(STANDARD, name) for name in ("group_upweighting", "group_dro", "rubi")]
    else:
        claim = "1: explicit methods are below the standard model"
        pairs = [(name, STANDARD) for name in EXPLICIT]
    rows = [
        _compared(claim, dataset, values, first, second) for first, second in pairs if len(standard)
    ]
    if dataset in STUDIES:
        claim = "1: learning from failure is above the standard model"
        rows.append(_compared(claim, dataset, values, STANDARD, "lff"))
    return rows


def _by_method(rows: pd.DataFrame) -> dict[str, pd.Series]:
    """Values by seed of every method."""
    return {
        str(method): part.set_index("seed")["value"]
        for method, part in rows.groupby("method", sort=False)
    }


def _compared(
    claim: str, dataset: str, values: Mapping[str, pd.Series], first: str, second: str
) -> dict:
    nothing = pd.Series(dtype=float)
    ordering = f"unbiased accuracy: {first} < {second}"
    pair = (values.get(first, nothing), values.get(second, nothing))
    return claimed.difference(claim, dataset, ordering, *pair)


def _second_question(metrics: pd.DataFrame, dataset: str) -> list[dict]:
    """Explicit methods exploit the variable that they are told less than the others."""
    rows = plain_trials(metrics)
    rows = rows[
        (rows["dataset"] == dataset)
        & (rows["metric"] == "majority_minority_difference")
        & (rows["variables"] == 1)
    ]
    claims_of_methods = []
    for method in ("group_upweighting", "group_dro", "rubi"):
        own = rows[rows["method"] == method]
        told = own["attribute"] == [explicit_variables(method, trial)[0] for trial in own["trial"]]
        first, second = (own[side].groupby("seed")["value"].mean() for side in (told, ~told))
        claims_of_methods.append(
            claimed.difference(
                "2: the variable that is told is exploited less",
                dataset,
                f"majority minus minority of {method}: told < not told",
                first,
                second,
            )
        )
    found = with_single_variables(metrics, "mean_majority_minority_difference")
    values = _by_method(found[found["dataset"] == dataset])
    nothing = pd.Series(dtype=float)
    claims_of_methods.append(
        claimed.difference(
            "2: learning from failure exploits the biases less",
            dataset,
            "mean majority minus minority: lff < erm",
            values.get("lff", nothing),
            values.get(STANDARD, nothing),
        )
    )
    return claims_of_methods


def _third_question(metrics: pd.DataFrame, dataset: str) -> list[dict]:
    """Explicit methods do not scale to many variables; Up Wt with all is the exception."""
    rows = plain_trials(metrics)
    rows = rows[(rows["dataset"] == dataset) & (rows["metric"] == "unbiased_accuracy")]

    def told(method: str, variables: int) -> pd.Series:
        chosen = (rows["method"] == method) & (rows["variables"] == variables)
        first = rows[chosen & (rows["trial"].eq("default") | (variables > 1))]
        return first.groupby("seed")["value"].mean()

    falling = [
        claimed.difference(
            "3: explicit methods do not scale to many variables",
            dataset,
            f"unbiased accuracy of {method}: {ALL_VARIABLES} variables < 1",
            told(method, ALL_VARIABLES),
            told(method, 1),
        )
        for method in ("group_dro", "rubi", "lnl", "irmv1")
    ]
    upweighting = claimed.difference(
        "3: upweighting by all variables is above the standard model",
        dataset,
        f"unbiased accuracy: erm < group_upweighting with {ALL_VARIABLES} variables",
        told(STANDARD, 0),
        told("group_upweighting", ALL_VARIABLES),
    )
    return [*falling, upweighting]
