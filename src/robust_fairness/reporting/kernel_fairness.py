"""Views and claims of "FairCOCCO", fairness by kernel dependence (appendix C of the paper).

Cells are told apart by their labels: ``faircocco_dp`` penalises for demographic parity,
``faircocco_cal`` for calibration, and ``faircocco`` for equalised odds; likewise the others.
Trials that change nothing but ``weight`` are the paper's lambda, of which 0 is plain training.
Where one trial stands for a method, validation rows chose it by the criterion of the notion, such
as ``faircocco_dp subject to 0.97 of the best accuracy``.
"""

import re
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go

from robust_fairness.metrics.permutation import holm
from robust_fairness.rendering.figures import by_column
from robust_fairness.reporting import claims as claimed
from robust_fairness.reporting.figures import QUALITY
from robust_fairness.reporting.statistics import distinct
from robust_fairness.reporting.views import View, published

PAPER = "kernel_fairness"
TITLE = "FairCOCCO"
NOTIONS = {"dp": "demographic parity", "eo": "equalised odds", "cal": "calibration"}
PLAIN, OWN = "erm", "faircocco"
PENALTIES = ("facl", "farmi", OWN)
OTHERS = (PLAIN, "donini", "facl", "farmi")
# Donini's constraint needs a linear model, so that its cells are on datasets of another name.
LINEAR = "_linear"
DEFAULT_WEIGHT = 1.0
WEIGHT = re.compile(r"weight=(?P<weight>[\d.]+)")
SENSITIVE = {
    "compas": "race",
    "german": "foreign_worker",
    "drugs": "ethnicity",
    "adult_complete": "sex",
    "communities_continuous": "racepctblack & racePctWhite & racePctAsian & racePctHisp",
    "students": "age & sex",
}
REGRESSION = ("communities_continuous", "students")
TRADE_OFF = ("compas", "german", "drugs")  # Table 13 does not name its dataset
GAPS = {"eo": "delta_eo", "dp": "disparate_impact"}  # beside the score in Table 13
ESTIMATION = {"adult_estimation": "sex", "german_estimation": "foreign_worker"}
SIZE = re.compile(r"faircocco_(?P<notion>dp|eo|cal)\(rows=(?P<rows>\d+)\)")
LARGEST = 2.0  # weight of Table 13
STABLE = 256  # rows from which the estimate is said to be stable (C.2)
SHOWN_WEIGHTS = (0.0, 0.5, 1.0)  # of Figure 3
SHARES = {"eo": "probability_shares_by_subgroup", "dp": "probability_shares_by_group"}
LEVEL = 0.05
# Figure 4: dataset and attributes by their number; the order is that of Tables 10 and 9.
FRONTIERS = {
    "communities": {
        1: ("communities_one", "racepctblack"),
        2: ("communities_two", "racepctblack & racePctWhite"),
        3: ("communities_three", "racepctblack & racePctWhite & racePctAsian"),
        4: ("communities_continuous", SENSITIVE["communities_continuous"]),
    },
    "students": {1: ("students_one", "age"), 2: ("students", SENSITIVE["students"])},
    "drugs": {
        1: ("drugs", "ethnicity"),
        2: ("drugs_two", "gender & ethnicity"),
        3: ("drugs_three", "age & gender & ethnicity"),
    },
}


def labels(notion: str) -> dict[str, str]:
    """Label of the cell of every method that is told a notion, by method.

    Donini's constraint knows no calibration: its own, equal opportunity, stands in for it.
    """
    suffix = "" if notion == "eo" else f"_{notion}"
    donini = "donini_dp" if notion == "dp" else "donini"
    return {PLAIN: PLAIN, "donini": donini} | {name: f"{name}{suffix}" for name in PENALTIES}


def cells_of(metrics: pd.DataFrame, notion: str) -> pd.DataFrame:
    """Unshifted rows of the cells of a notion, under the paper's names of method and dataset."""
    methods = {label: method for method, label in labels(notion).items()}
    rows = metrics[(metrics["shift"] == "none") & metrics["method"].isin(methods)]
    method = rows["method"].map(methods)
    dataset = rows["dataset"].where(method != "donini", rows["dataset"].str.removesuffix(LINEAR))
    return rows.assign(method=method, dataset=dataset)


def selected(metrics: pd.DataFrame, notion: str) -> pd.DataFrame:
    """Rows of the trials that validation chose: for fairness, but the plain one for quality."""
    rows = cells_of(metrics, notion)
    for_quality = rows["selection"].isin(QUALITY)
    for_fairness = rows["selection"].str.startswith(score_name(notion))
    return distinct(rows[for_quality.where(rows["method"] == PLAIN, for_fairness)])


def by_weight(metrics: pd.DataFrame, notion: str) -> pd.DataFrame:
    """Rows of FairCOCCO's trials that change the weight only, and of plain training at 0.

    With a column ``weight``.
    """
    rows = cells_of(metrics, notion)
    pairs = list(zip(rows["method"], rows["trial"], strict=True))
    known = {pair: weight_of(*pair) for pair in set(pairs)}
    rows = rows.assign(weight=np.array([known[pair] for pair in pairs], dtype=np.float64))
    return distinct(rows[rows["weight"].notna()])


def weight_of(method: str, trial: str) -> float:
    """Lambda of a trial; missing for one that changes anything else, and for other methods."""
    if method == PLAIN:
        return 0.0 if trial == "default" else np.nan
    found = WEIGHT.fullmatch(trial)
    if method != OWN or not (found or trial == "default"):
        return np.nan
    return float(found["weight"]) if found else DEFAULT_WEIGHT


def score_name(notion: str) -> str:
    """The metric that scores a notion."""
    return f"faircocco_{notion}"


def p_value_name(notion: str) -> str:
    """The metric that tests it."""
    return f"faircocco_{notion}_p_value"


def beside(view: str, notion: str, metrics: pd.DataFrame) -> pd.DataFrame:
    """The published numbers of Tables 9 to 12 with those of the selected trials.

    Their disparate impact is a ratio of two groups in the order of discrimination, which is not
    named; ours is the lower rate over the higher one. ``published folded`` is min(v, 1 / v); the
    mean of folded values lies below the folded mean. The unit of their squared error is not
    given: it stands beside ours in units of the outcome, and as a share of its variance.
    """
    keys = ["dataset", "method", "attribute", "metric"]
    theirs = published(PAPER).query("view == @view")
    errors = theirs[theirs["metric"] == "mean_squared_error"]
    theirs = pd.concat([theirs, errors.assign(metric="unexplained_variance")], ignore_index=True)
    rows = selected(metrics, notion)
    rows = rows[(rows["group"] == "") & rows["metric"].isin(theirs["metric"])]
    joined = theirs.merge(over_splits(rows, keys), how="left", on=keys)
    joined = joined.merge(chosen_trials(rows), how="left", on=["dataset", "method"])
    joined["splits"] = joined["splits"].fillna(0).astype(int)
    if joined["trial"].isna().all():
        return joined.iloc[:0]
    joined["note"] = [
        "; ".join(text for text in pair if isinstance(text, str) and text)
        for pair in zip(joined["note"], joined["reason"], strict=True)
    ]
    joined = joined.rename(columns={"value": "published", "std": "published deviation"})
    shown = ["published", "published deviation", "ours", "deviation", "splits", "trial", "note"]
    ratio = joined["metric"] == "disparate_impact"
    if ratio.any():
        joined["published folded"] = folded(joined["published"]).where(ratio)
        shown.insert(2, "published folded")
    return joined[[*keys, *shown]]


def folded(ratio: pd.Series) -> pd.Series:
    """A ratio or its inverse, whichever is at most 1."""
    return ratio.where(ratio <= 1, 1 / ratio)


def over_splits(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Mean, deviation and number of splits by ``keys``, and why values are missing.

    Columns ours, deviation, splits, reason.

    Args:
        rows: distinct rows of the table.
        keys: columns that rows of different splits share.
    """
    reasons = rows["note"].where(rows["value"].isna() & (rows["note"] != ""))
    return (
        rows.assign(reason=reasons)
        .groupby(list(keys), as_index=False, sort=False)
        .agg(
            ours=("value", "mean"),
            deviation=("value", "std"),
            splits=("value", "count"),
            reason=("reason", "first"),
        )
    )


def chosen_trials(rows: pd.DataFrame) -> pd.DataFrame:
    """The trial that stands for each method: columns dataset, method, trial."""
    return rows.groupby(["dataset", "method"], as_index=False, sort=False).agg(
        trial=("trial", "first")
    )


def table_13(metrics: pd.DataFrame) -> pd.DataFrame:
    """Accuracy, gap, score and p-value by weight, for equalised odds and demographic parity.

    The paper does not name its dataset, so that the same published numbers stand beside every
    one. P-values are adjusted over the datasets of a weight, notion and split (Holm); ``rejected``
    counts the splits where the adjusted one is below 5 %.
    """
    keys = ["dataset", "notion", "weight", "metric"]
    parts = []
    for notion, gap in GAPS.items():
        rows = by_weight(metrics, notion).assign(notion=notion)
        wanted = ["accuracy", gap, score_name(notion), p_value_name(notion)]
        own = rows["attribute"] == rows["dataset"].map(SENSITIVE)
        rows = rows[rows["dataset"].isin(TRADE_OFF) & (own | (rows["attribute"] == ""))]
        parts.append(rows[rows["metric"].isin(wanted) & (rows["group"] == "")])
    rows = pd.concat(parts)
    theirs = published(PAPER).query("view == 'table_13'")
    theirs = theirs[["notion", "weight", "metric", "value"]].rename(columns={"value": "published"})
    found = over_splits(rows, keys).merge(theirs, how="left", on=["notion", "weight", "metric"])
    tests = tested(rows, ["notion", "weight", "seed"], keys)
    found = found.merge(tests.drop(columns=["p value", "splits"]), how="left", on=keys)
    found["published folded"] = folded(found["published"]).where(
        found["metric"] == "disparate_impact"
    )
    found = found.sort_values(["dataset", "notion", "weight"], kind="stable")
    return found[
        [*keys, "published", "published folded", "ours", "deviation", "splits", "adjusted"]
        + ["rejected", "reason"]
    ]


def tested(rows: pd.DataFrame, family: Sequence[str], keys: Sequence[str]) -> pd.DataFrame:
    """Means of p-values over splits and of those adjusted within a family of tests (Holm).

    Args:
        rows: distinct rows of the table; only p-values count.
        family: columns that the tests of a family share.
        keys: columns to summarise by.

    Returns:
        The keys, ``p value``, ``adjusted``, ``rejected`` (splits where the adjusted one is below
        5 %) and ``splits``.
    """
    tests = rows[rows["metric"].str.endswith("_p_value") & rows["value"].notna()]
    tests = tests.reset_index(drop=True)
    adjusted = pd.Series(np.nan, tests.index)
    for together in tests.groupby(list(family)).groups.values():
        adjusted[together] = holm(list(tests.loc[together, "value"]))
    tests = tests.assign(adjusted=adjusted, rejected=adjusted < LEVEL)
    return (
        tests.groupby(list(keys), as_index=False, sort=False)
        .agg(
            p=("value", "mean"),
            adjusted=("adjusted", "mean"),
            rejected=("rejected", "sum"),
            splits=("value", "count"),
        )
        .rename(columns={"p": "p value"})
    )


def p_values(metrics: pd.DataFrame) -> pd.DataFrame:
    """Permutation tests of the selected trials by attribute.

    Adjusted over the datasets and attributes of a notion, method and split.
    """
    attributes = published(PAPER)[["dataset", "attribute"]].drop_duplicates()
    parts = [selected(metrics, notion).assign(notion=notion) for notion in NOTIONS]
    rows = pd.concat(parts).merge(attributes, on=["dataset", "attribute"])
    own = rows["metric"] == rows["notion"].map(p_value_name)
    keys = ["notion", "dataset", "method", "attribute"]
    return tested(rows[own], ["notion", "method", "seed"], keys)


def figure_2(metrics: pd.DataFrame) -> pd.DataFrame:
    """The score by the number of rows that it is estimated from.

    Only where the test part has so many.
    """
    rows = distinct(metrics[(metrics["shift"] == "none") & (metrics["trial"] == "default")])
    parsed = rows["metric"].str.extract(f"^{SIZE.pattern}$")
    rows = rows.assign(notion=parsed["notion"], rows=parsed["rows"].astype(float))
    rows = rows[rows["n"] == rows["rows"]]
    rows = rows[rows["attribute"] == rows["dataset"].map(ESTIMATION)]
    found = over_splits(rows, ["dataset", "method", "notion", "rows"])
    return found.drop(columns="reason").astype({"rows": int})


def draw_figure_2(rows: pd.DataFrame) -> go.Figure:
    """A line a notion; bars are the deviation over splits."""
    figure = px.line(
        rows, x="rows", y="ours", error_y="deviation", facet_col="dataset", markers=True,
        **by_column("notion"),
    )  # fmt: skip
    return _titled(figure, "Score by number of rows")


def figure_3(metrics: pd.DataFrame) -> pd.DataFrame:
    """Shares of predicted probabilities of logistic regression in ten bins, by weight.

    Under equalised odds by group and class, under demographic parity by group. The paper does
    not name its dataset.
    """
    attributes = {f"{name}{LINEAR}": SENSITIVE[name] for name in TRADE_OFF}
    parts = []
    for notion, metric in SHARES.items():
        rows = by_weight(metrics, notion).assign(notion=notion)
        of_attribute = rows["attribute"] == rows["dataset"].map(attributes)
        shown = of_attribute & (rows["metric"] == metric) & rows["weight"].isin(SHOWN_WEIGHTS)
        # a group of the metric is named "group, 0.1 to 0.2"; one without a name is a missing value
        parts.append(rows[shown & (rows["group"] != "")])
    rows = pd.concat(parts)
    named = rows["group"].str.extract(r"^(?P<group>.*), (?P<probability>[\d.]+ to [\d.]+)$")
    rows = rows.assign(group=named["group"], probability=named["probability"])
    keys = ["dataset", "notion", "weight", "group", "probability"]
    return over_splits(rows, keys).rename(columns={"ours": "share"}).drop(columns="reason")


def draw_figure_3(rows: pd.DataFrame) -> go.Figure:
    """A line a group, a column a weight, a row a dataset and notion."""
    rows = rows.assign(panel=rows["dataset"].str.removesuffix(LINEAR) + ", " + rows["notion"])
    panels = rows["panel"].nunique()
    figure = px.line(
        rows, x="probability", y="share", facet_row="panel", facet_col="weight", markers=True,
        height=200 * panels + 150, facet_row_spacing=0.2 / panels, **by_column("group"),
    )  # fmt: skip
    return _titled(figure, "Predicted probabilities by group")


def figure_4(metrics: pd.DataFrame) -> pd.DataFrame:
    """Quality against the joint score of one, two, three and four attributes, by weight.

    Scores of different numbers of attributes do not compare: the score grows with their columns.
    Which attribute comes first is not said; the order of the tables is taken.
    """
    parts = []
    for notion in NOTIONS:
        trials = by_weight(metrics, notion)
        for study, numbers in FRONTIERS.items():
            for number, (dataset, attribute) in numbers.items():
                if has_own(trials, dataset):
                    rows = frontier(trials, dataset, attribute, notion)
                    parts.append(rows.assign(study=study, notion=notion, attributes=number))
    if not parts:
        return pd.DataFrame()
    return pd.concat(parts, ignore_index=True)[
        ["study", "notion", "attributes", "weight", "metric", "quality", "quality deviation"]
        + ["score", "score deviation", "splits"]
    ]


def frontier(trials: pd.DataFrame, dataset: str, attribute: str, notion: str) -> pd.DataFrame:
    """Quality and score by weight on one dataset."""
    rows = trials[(trials["dataset"] == dataset) & (trials["group"] == "")]
    quality = rows[rows["metric"].isin(QUALITY) & rows["value"].notna()]
    score = rows[(rows["metric"] == score_name(notion)) & (rows["attribute"] == attribute)]
    of_quality, of_score = ("quality", "quality deviation"), ("score", "score deviation")
    joined = (
        over_splits(quality, ["weight", "metric"])
        .rename(columns=dict(zip(("ours", "deviation"), of_quality, strict=True)))
        .drop(columns=["splits", "reason"])
        .merge(
            over_splits(score, ["weight"]).rename(
                columns=dict(zip(("ours", "deviation"), of_score, strict=True))
            ),
            on="weight",
        )
    )
    return joined.sort_values("weight")


def draw_figure_4(rows: pd.DataFrame) -> go.Figure:
    """A line a number of attributes, from plain training to the largest weight."""
    rows = rows.assign(attributes=rows["attributes"].astype(str))
    figure = px.line(
        rows, x="score", y="quality", facet_col="study", facet_row="notion", markers=True,
        hover_data=["weight", "metric", "splits"], height=300 * rows["notion"].nunique() + 120,
        facet_col_spacing=0.07, **by_column("attributes"),
    )  # fmt: skip
    figure.update_xaxes(matches=None)
    figure.update_yaxes(matches=None, showticklabels=True)
    return _titled(figure, "Accuracy, or mean squared error, against the joint score")


def _titled(figure: go.Figure, title: str) -> go.Figure:
    return figure.update_layout(title=title, template="plotly_white")


VIEWS = [
    View(
        "kernel_table_9",
        "Table 9: accuracy and disparate impact under demographic parity",
        partial(beside, "table_9", "dp"),
    ),
    View(
        "kernel_table_10",
        "Table 10: several attributes protected together, demographic parity",
        partial(beside, "table_10", "dp"),
    ),
    View(
        "kernel_table_11",
        "Table 11: accuracy and score under calibration",
        partial(beside, "table_11", "cal"),
    ),
    View(
        "kernel_table_12",
        "Table 12: several attributes protected together, calibration",
        partial(beside, "table_12", "cal"),
    ),
    View(
        "kernel_table_13",
        "Table 13: trade-off over lambda; the paper does not name its dataset",
        table_13,
    ),
    View("kernel_p_values", "Permutation tests by attribute, adjusted by Holm", p_values),
    View("kernel_figure_2", "Figure 2: score by number of rows", figure_2, draw_figure_2),
    View(
        "kernel_figure_3",
        "Figure 3: predictions of logistic regression; the paper does not name its dataset",
        figure_3,
        draw_figure_3,
    ),
    View("kernel_figure_4", "Figure 4: number of attributes", figure_4, draw_figure_4),
]


def claims(metrics: pd.DataFrame) -> pd.DataFrame:
    """What the paper says of its method, each as an ordering first < second.

    ``holds`` where the whole 95 % interval of first minus second, paired over splits, is below 0.
    No correction for many comparisons is made; the intervals are each their own. Splits overlap
    in their rows, so that intervals are narrower than those of independent data would be.
    """
    rows: list[dict] = []
    for notion in NOTIONS:
        chosen = selected(metrics, notion)
        for dataset in (name for name in SENSITIVE if has_own(chosen, name)):
            rows += _first_claim(chosen, dataset, notion)
    rows += _second_claim(metrics)
    for notion in GAPS:
        trials = by_weight(metrics, notion)
        ends = trials[trials["weight"] == LARGEST]
        for dataset in (name for name in TRADE_OFF if has_own(ends, name)):
            rows += _third_claim(trials, dataset, notion)
    rows += _fourth_claim(metrics)
    for notion in NOTIONS:
        rows += _fifth_claim(by_weight(metrics, notion), notion)
    return claimed.table(rows)


def has_own(rows: pd.DataFrame, dataset: str) -> bool:
    """Whether FairCOCCO was run on a dataset."""
    return bool(((rows["dataset"] == dataset) & (rows["method"] == OWN)).any())


def by_seed(rows: pd.DataFrame, **place: object) -> pd.Series:
    """Values by seed of the rows whose columns are so; the attribute is ``""`` unless given."""
    for column, value in {"attribute": "", "group": "", **place}.items():
        rows = rows[rows[column] == value]
    return rows.set_index("seed")["value"].astype(float)


def _first_claim(chosen: pd.DataFrame, dataset: str, notion: str) -> list[dict]:
    """Superior fair and predictive outcomes (C.1), against every other method that was run."""
    attribute = SENSITIVE[dataset]
    quality = "mean_squared_error" if dataset in REGRESSION else "accuracy"
    # metric, its attribute, and whether lower is better
    compared = [(score_name(notion), attribute, True), (quality, "", dataset in REGRESSION)]
    if notion == "dp" and dataset not in REGRESSION:
        compared.append(("disparate_impact", attribute, False))
    rows = []
    present = set(chosen[chosen["dataset"] == dataset]["method"])
    for other in (name for name in OTHERS if name in present):
        for metric, of, lower in compared:
            if other == PLAIN and metric == quality:
                continue  # fairness is said to cost accuracy against plain training
            pair = (OWN, other) if lower else (other, OWN)
            first, second = (
                by_seed(chosen, dataset=dataset, method=name, metric=metric, attribute=of)
                for name in pair
            )
            what = "as good a prediction" if metric == quality else "the fairest"
            claim = f"1: FairCOCCO is {what} under {NOTIONS[notion]}"
            ordering = f"{metric}: {pair[0]} < {pair[1]}"
            rows.append(claimed.difference(claim, dataset, ordering, first, second))
    return rows


def _second_claim(metrics: pd.DataFrame) -> list[dict]:
    """That anything was learned: the printed accuracies, and ours, above the best constant.

    The paper does not say so, but its comparisons rest on it. A printed number has no interval
    here: that of the constant over splits is the only uncertainty.
    """
    plain = selected(metrics, "dp")
    plain = plain[plain["method"] == PLAIN]
    theirs = published(PAPER).query("view == 'table_9' and metric == 'accuracy'")
    rows = []
    for dataset in (name for name in SENSITIVE if name not in REGRESSION):
        constant = by_seed(plain, dataset=dataset, metric="constant_accuracy")
        if constant.empty:
            continue
        ours = by_seed(plain, dataset=dataset, metric="accuracy")
        claim = "2: accuracy is above that of a constant"
        ordering = f"accuracy: constant < our {PLAIN}"
        rows.append(claimed.difference(claim, dataset, ordering, constant, ours))
        for method, value in theirs.query("dataset == @dataset")[["method", "value"]].itertuples(
            index=False, name=None
        ):
            ordering = f"accuracy: constant < published {method}, {value:.2f}"
            printed = pd.Series(float(value), constant.index)
            rows.append(claimed.difference(claim, dataset, ordering, constant, printed))
    return rows


def _third_claim(trials: pd.DataFrame, dataset: str, notion: str) -> list[dict]:
    """Stronger regularisation leads to less unfairness and larger p-values (C.3, Table 13)."""

    def values(metric: str, weight: float) -> pd.Series:
        attribute = "" if metric == "accuracy" else SENSITIVE[dataset]
        return by_seed(trials, dataset=dataset, metric=metric, weight=weight, attribute=attribute)

    falling, rising = (LARGEST, 0.0), (0.0, LARGEST)
    score, gap, p_value = score_name(notion), GAPS[notion], p_value_name(notion)
    orderings = [
        ("is fairer", score, falling),
        ("is fairer", gap, rising if gap == "disparate_impact" else falling),
        ("costs accuracy", "accuracy", falling),
        ("gives a larger p-value", p_value, rising),
    ]
    return [
        claimed.difference(
            f"3: a larger weight {claim} ({NOTIONS[notion]})",
            dataset,
            f"{metric}: lambda {first:g} < lambda {second:g}",
            values(metric, first),
            values(metric, second),
        )
        for claim, metric, (first, second) in orderings
    ]


def _fourth_claim(metrics: pd.DataFrame) -> list[dict]:
    """The estimate is stable from 256 rows (C.2): it moves less above than below."""
    default = distinct(metrics[(metrics["shift"] == "none") & (metrics["trial"] == "default")])
    rows = []
    for names, part in figure_2(metrics).groupby(["dataset", "method", "notion"], sort=False):
        dataset, method, notion = map(str, names)
        sizes = sorted(part["rows"])
        if STABLE not in sizes[1:-1]:
            continue
        place = {"dataset": dataset, "method": method, "attribute": ESTIMATION[dataset]}
        few, some, many = (
            by_seed(default, metric=f"{score_name(notion)}(rows={size})", **place)
            for size in (sizes[0], STABLE, sizes[-1])
        )
        ordering = (
            f"change of {score_name(notion)}: {STABLE} to {sizes[-1]} rows < "
            f"{sizes[0]} to {STABLE} rows"
        )
        rows.append(
            claimed.difference(
                "4: the score is stable from 256 rows",
                dataset,
                ordering,
                (some - many).abs(),
                (few - some).abs(),
            )
        )
    return rows


def _fifth_claim(trials: pd.DataFrame, notion: str) -> list[dict]:
    """Similar trade-offs for any number of attributes (C.4): the score falls for each."""
    rows = []
    for numbers in FRONTIERS.values():
        for number, (dataset, attribute) in numbers.items():
            if not has_own(trials, dataset):
                continue
            own = trials[trials["dataset"] == dataset]
            largest = float(own["weight"].max())
            place = {"metric": score_name(notion), "attribute": attribute}
            rows.append(
                claimed.difference(
                    f"5: fairer whatever the number of attributes ({NOTIONS[notion]})",
                    dataset,
                    f"joint score of {number}: lambda {largest:g} < lambda 0",
                    by_seed(own, weight=largest, **place),
                    by_seed(own, weight=0.0, **place),
                )
            )
    return rows
