"""The matrix: how every gap changes between home and the other test sets, with its verdicts.

Home is the test rows of the distribution that was trained on. The other test sets are the domains
that were not trained on, and every synthetic shift at its largest severity. A row is a pair: a
model, trained on some domains, and a test set. A family of tests is all rows of a gap, over
datasets and attributes (``numbers.verdicts``).

Differences between domains are no differences between groups: where home has several domains,
another domain is compared with the rates of groups within each of them, combined with the same
weights for both groups of a pair, those of Mantel and Haenszel (1959), as ``audit --control`` does.
Of the worst group all groups have the same weights. Copies of the rows of home are compared with
all of these together. Where domains of home have opposite gaps, which cancel, nothing is said.

Two questions are answered apart. *This model*: the selected trial of the first seed, whose
uncertainty is that of the test rows. *This method*: trained again, with the variance between seeds
as well, from ``FEWEST_REFITS`` seeds; its gaps are those of the mean rates, which are tested, where
the table for methods has the mean of the gaps. Gaps that do not follow from counts by group, class
and decision, such as those of recall at k, have the latter only. Rows under a synthetic shift are
copies of those of home, which are counted by both decisions; where they are not (rows that a shift
leaves out), the method's seeds are paired on them and the model's two gaps are taken as
independent, which overstates the error.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.metrics import Gap, find_metric
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.quantities import Quantity
from robust_fairness.numbers.rates import LinearGap, contrast
from robust_fairness.numbers.verdicts import VERDICTS, Question, holm, judged
from robust_fairness.report.agreement import PLAIN
from robust_fairness.report.pairs import (
    BOUNDS,
    CELL,
    METHOD_QUESTION,
    MOST_GROUPS,
    PLACE,
    Measured,
    Pairs,
    counts_of_tests,
    scores_of_tests,
    test_sets,
    tests_of,
)
from robust_fairness.report.results import UNSHIFTED, Results, computed_once, where

# Measures of unfairness as fractions, the preferred one first, with their names in sentences.
GAPS = {
    "equalized_odds_difference": "equalized odds difference",
    "delta_eo": "equalized odds gap (Delta-EO)",
    "equal_opportunity_difference": "equal opportunity difference",
    "demographic_parity_difference": "demographic parity difference",
    "delta_dp": "demographic parity gap (Delta-DP)",
    "mean_majority_minority_difference": "accuracy gap between majority and minority",
    "accuracy_worst_gap": "accuracy gap of the worst group",
    "recall_at_worst_gap": "recall gap of the worst group",
    "accuracy_difference": "accuracy difference between groups",
    "worst_group_accuracy": "error of the worst group",
    "worst_group_recall_at": "missing recall of the worst group",
    "faircocco_eo": "FairCOCCO score (equalized odds)",
}
LEFT_OUT = ("delta_eopp",)  # a gap that says no more than those above
SELECTED = "selection_rate_by_group"
CONSTANT = 0.01  # share of the rarer predicted class up to which predictions are constant
SMALL = 30  # rows of a group and class below which merging it is suggested
MODEL = ["method", "algorithm", "network", "postprocessing"]
PAIR = [*CELL, *PLACE, "attribute"]
REPLICA = [*CELL, "trial", "seed", *PLACE]
STATES = (
    "grew", "shrank", "reversed", "changed", "held", "inconclusive", "not estimable", "trivial",
    "missing",
)  # fmt: skip
CHANGED = ("grew", "shrank", "reversed", "changed")
DECIDED = (*CHANGED, "held")
ACCURACY = (
    "accuracy", "accuracy_change", "accuracy_error", "accuracy_low", "accuracy_high",
    "accuracy_changed",
)  # fmt: skip
MATRIX = [
    "data", "attribute", "trained_on", "dataset", *MODEL, *PLACE, *VERDICTS, "rate", "group",
    "margin", "refit_spread", "seeds", "n", *ACCURACY, *BOUNDS, "pooled", "reason",
]  # fmt: skip
NO_PAIRS = pd.DataFrame(columns=MATRIX)


def matrices(
    results: Results,
    failed: Mapping[tuple[str, str], str] | None = None,
    question: Question | None = None,
) -> dict[str, pd.DataFrame]:
    """The matrix of every gap known at home and in another test set, the preferred one first.

    Args:
        results: the tables of the run.
        failed: reasons of failed cells by dataset and method.
        question: ``this model`` or ``this method``; by default that about the model, where it has
            an answer, so that more seeds never make it a vaguer one.

    Returns:
        By gap, without rows if no gap can be estimated, the columns ``MATRIX``: those of
        ``numbers.verdicts``; rate and group that limit it; accuracy at home, its change with
        standard error, and its interval in the test set; intervals of the gap at home, in the test
        set, and (``lower``, ``upper``) of one that holds for all test sets of a model together;
            the gap at home with its domains taken together (``pooled``).
        ``state`` may also be ``trivial``, where the model's predictions are, or those of more than
        half of the method's seeds, or ``missing``.
    """
    names = gaps_among(results.selected["metric"].unique())
    reasons = tuple((failed or {}).items())
    made = {name: _matrix_of(results, name, reasons, question) for name in names}
    known = {name: rows for name, rows in made.items() if rows is not None}
    # without any a page still says why
    return known or {name: NO_PAIRS for name in names if undefined(results, name)}


def matrix(results: Results, gap: str, question: Question) -> pd.DataFrame:
    """One of ``matrices``, which are not all made for it."""
    rows = _matrix_of(results, gap, (), question)
    return NO_PAIRS if rows is None else rows


def gaps_among(names: Collection[str]) -> list[str]:
    """The gaps among metrics, the preferred one first; those of plug-ins are the last."""
    declared = [find_metric(name).definition for name in names if name not in (*GAPS, *LEFT_OUT)]
    further = [item.name for item in declared if isinstance(item, Gap) and item.how != "ratio"]
    return [*(name for name in GAPS if name in names), *further]


def noun_of(gap_name: str) -> str:
    """What the values of a gap are called in short: what is no difference has its own words."""
    return "gap" if find_metric(gap_name).better == "lower" else words_of(gap_name)


def words_of(gap_name: str) -> str:
    """A gap in a sentence."""
    return GAPS.get(gap_name) or find_metric(gap_name).definition.words


@computed_once
def _matrix_of(
    results: Results,
    name: str,
    failed: tuple[tuple[tuple[str, str], str], ...],
    question: Question | None,
) -> pd.DataFrame | None:
    """The matrix of a gap, with accuracy, trivial predictors and missing cells.

    None where no gap is known at home and in another test set.
    """
    tests = tests_of(results, name, question)
    if tests is None:
        return None
    rows = judged(tests[tests["shift"] != UNSHIFTED])
    rows = rows.join(_accuracies(results, question), on="test").join(_trivial(results), on="test")
    of_method = rows.pop("trivial") > 0.5  # noqa: PLR2004 - half of the seeds
    of_model = rows.pop("first_trivial").eq(True)
    trivial = of_method.where(rows["question"] == METHOD_QUESTION, of_model)
    rows["state"] = rows["state"].mask(trivial, "trivial")
    rows["state"] = rows["state"].mask(rows["reason"] != "", "not estimable")
    missing = [
        {"dataset": dataset, "method": method, "algorithm": method, "network": "",
         "postprocessing": "", "reason": reason, "state": "missing", "seeds": 0}
        for (dataset, method), reason in failed
    ]  # fmt: skip
    absent = pd.DataFrame(missing, columns=["dataset", *MODEL, "reason", "state", "seeds"])
    sets = rows[["dataset", "data", "trained_on", "attribute", "margin", *PLACE]].drop_duplicates()
    rows = pd.concat([rows, absent.merge(sets, on="dataset")], ignore_index=True)
    rows["accuracy_changed"] = rows["accuracy_changed"].eq(True)
    texts: dict[Any, Any] = dict.fromkeys(rows[MATRIX].select_dtypes("string"), object)
    return rows[MATRIX].astype(texts).copy()  # in one block for each type


def homes(results: Results, name: str) -> pd.DataFrame:
    """The gap of every model in each domain of home, of which there are several.

    Returns:
        Rows of ``matrices`` of which data, attribute, trained_on, method, domain, away, away_low
        and away_high are meant; those that were compared with a test set have no such row.
    """
    tests = tests_of(results, name, None)
    if tests is None:
        return NO_PAIRS
    return tests[tests["shift"] == UNSHIFTED].reindex(columns=MATRIX)


@computed_once
def _accuracies(results: Results, question: Question | None) -> pd.DataFrame:
    """Accuracy at home and in the test set, and whether its change is significant (Holm)."""
    everyone, tests = where(counts_of_tests(results), attribute=""), test_sets(results)
    everyone = everyone[everyone.groupby("dataset")["shift"].transform("nunique") > 1]
    if everyone.empty:
        return pd.DataFrame(columns=ACCURACY)
    accuracy = find_metric("accuracy").definition
    assert isinstance(accuracy, Quantity)
    parts = []
    for _, part in everyone.groupby("data", sort=False):
        pairs = Pairs.of(Measured.of_counts(part, [""], [accuracy]), tests, question)
        weight = np.ones((1, 1))
        change = contrast(pairs.away, pairs.home, weight, weight, pairs.ratio, pairs.covariance)
        low, high = pairs.interval(LinearGap(weight))
        parts.append(
            pd.DataFrame(
                {
                    "accuracy_low": low,
                    "accuracy_high": high,
                    "accuracy": pairs.home.mean[:, 0],
                    "accuracy_change": change.value[:, 0],
                    "accuracy_error": change.error[:, 0],
                    "p": np.where(change.variance > 0, change.p(), np.nan)[:, 0],
                },
                pairs.frame["test"],
            )
        )
    accuracies = pd.concat(parts)
    return accuracies.assign(accuracy_changed=holm(accuracies.pop("p")) < LEVEL)


@computed_once
def _trivial(results: Results) -> pd.DataFrame:
    """Share of the seeds whose predictions are trivial, and whether the first seed's are, by test.

    They are if they are of one class, or no more accurate than the most frequent class of the
    training rows, where the run scores ``selection_rate_by_group`` or ``constant_accuracy``.
    """
    scores, replica = scores_of_tests(results), ["test", "seed"]
    replicas = where(scores, metric="accuracy", group="").drop_duplicates(replica)
    same_rows = [*CELL, "trial", "seed", "domain"]  # shifts do not change labels
    constant = where(scores, metric="constant_accuracy")[[*same_rows, "value"]]
    constant = constant.drop_duplicates(same_rows).rename(columns={"value": "constant"})
    rates = where(scores, metric=SELECTED).groupby(replica)["value"].agg(["min", "max"])
    replicas = replicas.merge(constant, how="left", on=same_rows).join(rates, on=replica)
    of_one_class = (replicas["max"] <= CONSTANT) | (replicas["min"] >= 1 - CONSTANT)
    replicas["trivial"] = of_one_class | (replicas["value"] <= replicas["constant"])
    by_test = replicas.sort_values("seed").groupby("test")
    return by_test.agg(trivial=("trivial", "mean"), first_trivial=("trivial", "first"))


def is_plain(models: pd.DataFrame) -> pd.Series:
    """Whether each model, with algorithm and postprocessing, is plain and not post-processed."""
    return (models["algorithm"] == PLAIN) & (models["postprocessing"] == "")


def other_networks(cells: pd.DataFrame, by: str) -> pd.Series:
    """Which rows are of plain training with another network than most methods, by dataset.

    They compare networks: no method of fairness is among them.

    Args:
        cells: rows with the columns algorithm, network, postprocessing and ``by``.
        by: column of the dataset.
    """
    # failed cells have no network
    usual = cells.groupby(by)["network"].transform(
        lambda names: next((name for name, _ in Counter(filter(None, names)).most_common(1)), "")
    )
    return is_plain(cells) & (cells["network"] != usual)


@computed_once
def undefined(results: Results, gap_name: str) -> dict[tuple[str, str], tuple[str, list[str]]]:
    """Why a gap is in no row of its matrix, by data and attribute; others are not in it.

    Returns:
        The reason, and the groups with fewer than ``SMALL`` rows of a class in a test set.
    """
    rows = where(scores_of_tests(results), metric=gap_name, group="")
    rows = rows[rows["attribute"] != ""]
    reasons = {}
    for (data, attribute), whole in rows[rows["shift"] != UNSHIFTED].groupby(
        ["data", "attribute"], sort=False
    ):
        if not results.declares(whole["dataset"].iloc[0], str(attribute)):
            continue
        counts = where(
            results.selected_counts, dataset=whole["dataset"].unique(), attribute=attribute
        )
        by_class = counts.groupby([*REPLICA, "group", "label"], sort=False)["n"].sum()
        smallest = by_class.unstack(fill_value=0).min(axis=1)
        sizes = smallest.groupby("group", sort=False).min()  # of the test set with fewest rows
        if len(sizes) > MOST_GROUPS:
            reason = f"{len(sizes)} groups; gaps are compared between at most {MOST_GROUPS}"
        elif len(whole) and whole["value"].isna().all():
            reason = whole["note"].mode().iloc[0]
        else:
            continue
        reasons[str(data), str(attribute)] = reason, sorted(sizes.index[~(sizes >= SMALL)])
    return reasons


def table(results: Results) -> pd.DataFrame:
    """The matrices of all gaps, with the column metric: what should be low."""
    parts = [
        rows.assign(metric=name if find_metric(name).better == "lower" else f"1 - {name}")
        for name, rows in matrices(results).items()
    ]
    return pd.concat(parts)[["metric", *MATRIX]] if parts else pd.DataFrame()
