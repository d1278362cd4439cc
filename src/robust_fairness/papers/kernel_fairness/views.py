"""Views and claims of "FairCOCCO", fairness by kernel dependence (appendix C of the paper).

A cell whose method is penalised has the facet ``notion``: ``dp`` (demographic parity), ``eo``
(equalised odds) or ``cal`` (calibration). Trials that change nothing but ``weight`` are the paper's
lambda, of which 0 is plain training. Where one trial represents a method, validation rows selected
it by the criterion of the notion, subject to a share of the best accuracy. Donini's constraint
needs a linear model: its datasets have the facets ``linear`` and ``study``, the dataset whose rows
and splits they share.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from robust_fairness.bench.experiment.experiment import DEFAULT_TRIAL
from robust_fairness.metrics.criteria import EVERY, Criterion
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.verdicts import holm
from robust_fairness.report.claims.row_variances import with_row_variances
from robust_fairness.report.figures import QUALITY
from robust_fairness.report.results import (
    UNSHIFTED,
    Results,
    computed_once,
    distinct,
    where,
    with_metrics,
)
from robust_fairness.report.statistics import over_seeds
from robust_fairness.report.views import About, joined_published, published

PAPER = "kernel_fairness"
NOTIONS = {"dp": "demographic parity", "eo": "equalised odds", "cal": "calibration"}
PLAIN, OWN, DONINI = "erm", "faircocco", "donini"
OTHERS = (PLAIN, DONINI, "facl", "farmi")
DEFAULT_WEIGHT = 1.0
SENSITIVE = {
    "compas": "race",
    "german": "foreign_worker",
    "drugs": "ethnicity",
    "adult_complete": "sex",
    "adult_official": "sex",
    "law_school": "male & race",
    "credit_card": "SEX & MARRIAGE & EDUCATION",
    "communities_continuous": "racepctblack & racePctWhite & racePctAsian & racePctHisp",
    "students": "age & sex",
}
REGRESSION = ("communities_continuous", "students")
# The same rows, where plain training and the penalty have the same search.
SEARCHED = {f"{name}_searched": SENSITIVE[name] for name in REGRESSION}
# Table 13 does not name its dataset.
TRADE_OFF = {name: SENSITIVE[name] for name in ("compas", "german", "drugs")}
# Splits whose scores no claim was written with, of one weight or of all methods.
FURTHER = {f"{name}_new_splits": attribute for name, attribute in TRADE_OFF.items()} | {
    "adult_compared": SENSITIVE["adult_complete"],
    "law_school_compared": SENSITIVE["law_school"],
}
GAPS = {"eo": "delta_eo", "dp": "disparate_impact"}  # beside the score in Table 13
ESTIMATION = {
    "adult_estimation": "sex",
    "adult_estimation_new_splits": "sex",
    "german_estimation": "foreign_worker",
}
SCORES = {notion: f"faircocco_{notion}" for notion in NOTIONS}  # metrics by notion
P_VALUES = {notion: f"{score}_p_value" for notion, score in SCORES.items()}
SHOWN_WEIGHTS = (0.0, 0.5, 1.0)  # of Figure 3
SHARES = {"eo": "probability_shares_by_subgroup", "dp": "probability_shares_by_group"}
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


# Attributes whose scores claims are about, by dataset.
ATTRIBUTES = {
    **{name: some for numbers in FRONTIERS.values() for name, some in numbers.values()},
    **SENSITIVE, **SEARCHED, **FURTHER, **ESTIMATION,
}  # fmt: skip
ABOUT = About(PAPER, ATTRIBUTES)


def of_notion(results: Results, rows: pd.DataFrame, notion: str) -> pd.DataFrame:
    """Rows of the cells of a notion under the paper's names of method and dataset.

    Donini's constraint has no form for calibration: equal opportunity replaces it.
    """
    rows = results.with_facets(
        rows, ["algorithm", "notion", "study"], {"algorithm": "method", "study": "dataset"}
    )
    plain, donini = rows["method"] == PLAIN, rows["algorithm"] == DONINI
    notions = np.where(donini & (notion == "cal"), "eo", notion)
    penalised = rows["algorithm"].isin([*OTHERS, OWN]) & (rows["notion"] == notions)
    rows = rows.assign(
        method=rows["algorithm"].mask(plain, PLAIN),
        dataset=rows["dataset"].mask(donini, rows["study"]),
    )
    return rows[plain | penalised]


@computed_once
def selected(results: Results, notion: str) -> pd.DataFrame:
    """Rows of the trials that validation selected: for fairness, of plain training for quality."""
    rows = of_notion(results, where(results.metrics, shift=UNSHIFTED), notion)
    criteria = {text: Criterion.parse(text) for text in set(rows["selection"]) - {EVERY}}
    quality = [
        text
        for text, item in criteria.items()
        if item.objective.metric in QUALITY and item.constraint is None
    ]
    fair = [text for text, item in criteria.items() if item.objective.metric == SCORES[notion]]
    for_quality, for_fairness = rows["selection"].isin(quality), rows["selection"].isin(fair)
    kept = for_quality.where(rows["method"] == PLAIN, for_fairness)
    return distinct(rows[kept])


@computed_once
def by_weight(results: Results, notion: str) -> pd.DataFrame:
    """Rows of FairCOCCO's trials that change the weight only, and of plain training at weight 0.

    Of all trials that were trained: those that validation selected differ from split to split.
    """
    rows = where(results.metrics, shift=UNSHIFTED, selection=EVERY)
    rows = where(of_notion(results, rows, notion), method=[PLAIN, OWN])
    rows = results.with_hparams(rows, ["weight"])
    plain = rows["method"] == PLAIN
    weight = rows["weight"].astype(float).fillna(DEFAULT_WEIGHT).mask(plain, 0.0)
    return rows.assign(weight=weight)[~plain | (rows["trial"] == "default")]


def beside_selected(view: str, notion: str, results: Results) -> pd.DataFrame:
    """The published numbers of Tables 9 to 12 beside those of the selected trials.

    Their disparate impact is a ratio of two groups in the order of discrimination, which is not
    named; ours is the lower rate over the higher one. ``published folded`` is min(v, 1 / v); the
    mean of folded values is below the folded mean. The unit of their squared error is not given:
    it is shown beside ours in units of the outcome, and as a share of its variance.
    """
    keys = ["dataset", "method", "attribute", "metric"]
    theirs = where(published(PAPER), view=view)
    errors = where(theirs, metric="mean_squared_error")
    theirs = pd.concat([theirs, errors.assign(metric="unexplained_variance")], ignore_index=True)
    rows = where(selected(results, notion), group="", metric=theirs["metric"])
    trials = rows.groupby(["dataset", "method"], as_index=False, sort=False)["trial"].agg(
        lambda names: " | ".join(names.value_counts().index)
    )
    joined = joined_published(theirs, with_reasons(rows, keys), keys)
    joined = joined.merge(trials, how="left", on=["dataset", "method"], suffixes=("_", ""))
    if joined["trial"].isna().all():
        return joined.iloc[:0]
    joined["note"] = [
        "; ".join(text for text in pair if isinstance(text, str) and text)
        for pair in zip(joined["note"], joined["reason"], strict=True)
    ]
    shown = ["published", "published std", "ours", "std", "seeds", "trial", "note"]
    if "disparate_impact" in set(joined["metric"]):
        joined["published folded"] = folded(joined)
        shown.insert(2, "published folded")
    return joined[[*keys, *shown]]


def folded(rows: pd.DataFrame) -> pd.Series:
    """The published disparate impact or its inverse, whichever is at most 1."""
    ratio = rows["published"].where(rows["metric"] == "disparate_impact")
    return ratio.where(ratio <= 1, 1 / ratio)


def with_reasons(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Values over seeds by keys, with a column reason: why values are missing."""
    reason = rows["note"].where(rows["value"].isna() & (rows["note"] != ""))
    reasons = rows.assign(reason=reason).groupby(list(keys), as_index=False)["reason"].first()
    return over_seeds(rows, keys).merge(reasons, on=list(keys))


def table_13(results: Results, attributes: Mapping[str, str] = TRADE_OFF) -> pd.DataFrame:
    """Accuracy, gap, score and p-value by weight, for equalised odds and demographic parity.

    ``attributes`` has the datasets, with the attribute of each.

    The paper does not name its dataset, so that the same published numbers are shown beside every
    one. P-values are adjusted over the datasets of a weight, notion and seed (Holm); ``rejected``
    counts the seeds where the adjusted one is below 5 %.
    """
    keys = ["dataset", "notion", "weight", "metric"]
    parts = []
    for notion, gap in GAPS.items():
        wanted = ["accuracy", gap, SCORES[notion], P_VALUES[notion]]
        rows = by_weight(results, notion).assign(notion=notion)
        parts.append(where(rows, dataset=attributes, metric=wanted, group=""))
    rows = pd.concat(parts)
    mask = rows["attribute"] == rows["dataset"].map(attributes)
    rows = rows[mask | (rows["attribute"] == "")]
    theirs = where(published(PAPER), view="table_13")
    theirs = theirs[["notion", "weight", "metric", "value"]].rename(columns={"value": "published"})
    result = with_reasons(rows, keys).merge(theirs, how="left", on=keys[1:])
    tests = tested(rows, ["notion", "weight", "seed"], keys)
    result = result.merge(tests.drop(columns=["p value", "seeds"]), how="left", on=keys)
    result["published folded"] = folded(result)
    result = result.sort_values(["dataset", "notion", "weight"], kind="stable")
    shown = ["published", "published folded", "ours", "std", "seeds", "adjusted", "rejected"]
    return result[[*keys, *shown, "reason"]]


def tested(rows: pd.DataFrame, family: Sequence[str], keys: Sequence[str]) -> pd.DataFrame:
    """Means over seeds of p-values and of those adjusted within a family of tests (Holm).

    Args:
        rows: distinct rows of the table; only p-values count.
        family: columns that the tests of a family share.
        keys: columns to summarise by.

    Returns:
        The keys, ``p value``, ``adjusted``, ``rejected`` (seeds where the adjusted one is below
        5 %) and ``seeds``.
    """
    tests = where(rows, metric=P_VALUES.values()).dropna(subset="value").reset_index(drop=True)
    together = tests.groupby(list(family))["value"]
    tests = tests.assign(adjusted=together.transform(holm))
    tests = tests.assign(rejected=tests["adjusted"] < LEVEL)
    return tests.groupby(list(keys), as_index=False, sort=False).agg(
        **{
            "p value": ("value", "mean"),
            "adjusted": ("adjusted", "mean"),
            "rejected": ("rejected", "sum"),
            "seeds": ("value", "count"),
        }
    )


def p_values(results: Results) -> pd.DataFrame:
    """Permutation tests of the selected trials by attribute.

    Adjusted over the datasets and attributes of a notion, method and seed.
    """
    attributes = published(PAPER)[["dataset", "attribute"]].drop_duplicates()
    parts = [
        where(selected(results, notion), metric=metric).assign(notion=notion)
        for notion, metric in P_VALUES.items()
    ]
    rows = pd.concat(parts).merge(attributes, on=["dataset", "attribute"])
    return tested(rows, ["notion", "method", "seed"], ["notion", "dataset", "method", "attribute"])


def estimates(results: Results) -> pd.DataFrame:
    """The score by the number of rows that it is estimated from, where there are enough rows.

    With the columns notion and rows.
    """
    rows = where(results.unshifted, trial="default", dataset=ESTIMATION)
    rows = with_metrics(rows, ["quantity", "rows"])
    rows["notion"] = rows["quantity"].map({score: notion for notion, score in SCORES.items()})
    mask = rows["attribute"] == rows["dataset"].map(ESTIMATION)
    return rows[rows["notion"].notna() & (rows["n"] == rows["rows"]) & mask]


def figure_2(results: Results) -> pd.DataFrame:
    """The score by the number of rows that it is estimated from."""
    result = over_seeds(estimates(results), ["dataset", "method", "notion", "rows"])
    return result.astype({"rows": int})


def figure_3(results: Results) -> pd.DataFrame:
    """Shares of predicted probabilities of logistic regression in ten bins, by weight.

    Under equalised odds by group and class, under demographic parity by group. The paper does
    not name its dataset.
    """
    parts = []
    for notion, metric in SHARES.items():
        rows = by_weight(results, notion).assign(notion=notion).drop(columns="study")
        rows = where(rows, metric=metric, weight=SHOWN_WEIGHTS)
        rows = where(results.with_facets(rows, ["study", "linear"]), study=TRADE_OFF)
        mask = rows["attribute"] == rows["study"].map(SENSITIVE)
        # a row without a group has a missing value
        parts.append(rows[mask & rows["linear"].ne("") & rows["group"].ne("")])
    rows = pd.concat(parts)
    # a group of these metrics is named "group, 0.1 to 0.2"
    named = rows["group"].str.rsplit(", ", n=1)
    groups = {"group": named.str[0], "probability": named.str[1]}
    keys = ["dataset", "notion", "weight", "group", "probability"]
    return over_seeds(rows.assign(**groups), keys).rename(columns={"ours": "share"})


def figure_4(results: Results) -> pd.DataFrame:
    """Quality against the joint score of one, two, three and four attributes, by weight.

    Scores of different numbers of attributes do not compare: the score grows with their columns.
    Which attribute comes first is not said; the order of the tables is taken.
    """
    parts = []
    for notion in NOTIONS:
        trials = by_weight(results, notion)
        for study, numbers in FRONTIERS.items():
            for number, (dataset, attribute) in numbers.items():
                if len(where(trials, dataset=dataset, method=OWN)):
                    rows = frontier(trials, dataset, attribute, notion)
                    parts.append(rows.assign(study=study, notion=notion, attributes=number))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def frontier(trials: pd.DataFrame, dataset: str, attribute: str, notion: str) -> pd.DataFrame:
    """Quality and score by weight on one dataset."""
    rows = where(trials, dataset=dataset, group="")
    quality = where(rows, metric=QUALITY).dropna(subset="value")
    score = where(rows, metric=SCORES[notion], attribute=attribute)
    of_quality = over_seeds(quality, ["weight", "metric"]).drop(columns="seeds")
    of_quality = of_quality.rename(columns={"ours": "quality", "std": "quality std"})
    of_score = over_seeds(score, ["weight"])
    of_score = of_score.rename(columns={"ours": "score", "std": "score std"})
    return of_quality.merge(of_score, on="weight").sort_values("weight")


def measured(results: Results) -> pd.DataFrame:
    """What claims are about: scores of the attributes of ``SENSITIVE``, ``FURTHER`` and so on.

    With the columns ``notion``; ``selected``, whether they are those of the trials that validation
    selected; ``weight`` of the others; ``estimated_from``, rows that a score is estimated from.
    """
    parts = []
    for notion in NOTIONS:
        parts.append(selected(results, notion).assign(selected=True, notion=notion))
        parts.append(by_weight(results, notion).assign(selected=False, notion=notion))
    names = {text: notion for notion, text in NOTIONS.items()}
    of_rows = estimates(results).rename(columns={"rows": "estimated_from"})
    parts.append(of_rows.assign(selected=False, notion=of_rows["notion"].replace(names)))
    rows = pd.concat(parts, ignore_index=True)
    rows = rows.reindex(columns=[*dict.fromkeys([*rows, "weight", "estimated_from"])])
    kept = (rows["attribute"] == "") | (rows["attribute"] == rows["dataset"].map(ATTRIBUTES))
    return with_row_variances(rows[kept], results).assign(trial=DEFAULT_TRIAL)
