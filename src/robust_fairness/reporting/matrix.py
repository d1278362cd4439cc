"""Whether fairness survives: how a gap changes between home and the other test sets.

Home is the test rows of the distribution that was trained on. The other test sets are the domains
that were not trained on, and every synthetic shift at its largest severity. A row of the matrix is
a model: a method with its network and its post-processing. Of every model and test set the change
is tested against 0 and, by an equivalence test, against a margin: that a change is not significant
does not mean that there is none. All seeds are tested on the same rows of another domain, so that
their sampling error does not show between seeds: it is added to the standard error.

Plain training with another network is a model whose gap may be held or not, but no method of
fairness: a method is compared with plain training of the same network.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.metrics import find_metric
from robust_fairness.rendering.html import counted
from robust_fairness.reporting.agreement import PLAIN
from robust_fairness.reporting.ranks import compared
from robust_fairness.reporting.results import UNSHIFTED, Results, where
from robust_fairness.reporting.statistics import (
    LEVEL,
    SAME,
    adjusted,
    detectable,
    equivalence_p,
    paired_tests,
    student_tests,
)
from robust_fairness.reporting.views import Section, View

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
# What the rates of single groups are shares of, and which of them a gap is made of. The rates of
# true and of false negatives of a group have the same variance.
SHARES = {
    "true_positive_rate_by_group": "positives",
    "true_negative_rate_by_group": "negatives",
    "false_positive_rate_by_group": "negatives",
    "selection_rate_by_group": "selected",
    "accuracy_by_group": "right",
}
MADE_OF = {
    "equalized_odds_difference": ("positives", "negatives"),
    "delta_eo": ("positives", "negatives"),
    "equal_opportunity_difference": ("positives",),
    "demographic_parity_difference": ("selected",),
    "delta_dp": ("selected",),
    "accuracy_worst_gap": ("right",),
    "accuracy_difference": ("right",),
    "worst_group_accuracy": ("right",),
}
SUMS = {"delta_eo"}  # others are the largest difference
MARGIN = 0.05  # within which a change is called immaterial, where the experiment has none
CONSTANT = 0.01  # share of the rarer predicted class up to which predictions are constant
TEST_SET = ["data", "shift", "severity", "domain"]
MODEL = ["method", "algorithm", "network", "postprocessing"]
REPLICA = ["dataset", "method", "trial", "seed", "selection"]
PLACE = ["shift", "severity", "domain"]
STATES = ("grew", "shrank", "held", "inconclusive", "trivial", "missing")
MATRIX = [
    "data", "attribute", *MODEL, *PLACE, "at_home", "change", "low", "high", "error", "seeds",
    "margin", "p_changed", "p_held", "changed", "state", "reason", "against_plain",
    "p_against_plain", "accuracy", "accuracy_change", "accuracy_changed", "n",
]  # fmt: skip
NAMED = 3  # models in a sentence
PAIR = 2  # groups that a difference is of


def by_seed(results: Results, metric: str) -> pd.DataFrame:
    """A gap at home and elsewhere: a row per training, test set and seed.

    Of a metric that is better when higher the gap is what it lacks to 1.

    Returns:
        Columns ``TEST_SET``, dataset, ``MODEL``, attribute, seed, at_home, change, accuracy,
        accuracy_change, trivial, margin, n, and the sampling variance of both changes that all
        seeds share, change_shared and accuracy_change_shared. ``data`` is the dataset, of trainings
        on several sets of domains the one that they share. Real domains come before synthetic
        shifts.
    """
    scores, accuracy = _scored(results)
    rows = compared(scores, metric)
    gap = 1 - rows["value"] if find_metric(metric).better == "higher" else rows["value"]
    rows = rows.assign(gap=gap, usual=MARGIN)[[*REPLICA, *PLACE, "attribute", "gap", "n", "usual"]]
    rows = rows.merge(accuracy, how="left", on=[*REPLICA, *PLACE])
    rows = rows.merge(_variances(scores, metric), how="left", on=[*REPLICA, *PLACE, "attribute"])
    home = rows[(rows["shift"] == UNSHIFTED) & (rows["domain"] == "")]
    away = rows[rows["shift"] != UNSHIFTED]
    away = away[away["severity"] == away.groupby(["dataset", "shift"])["severity"].transform("max")]
    ends = ["gap", "accuracy", "variance", "accuracy_variance"]
    both = away.merge(home[[*REPLICA, *ends]], on=REPLICA, suffixes=("_away", ""))
    for change, name in (("change", "variance"), ("accuracy_change", "accuracy_variance")):
        both[f"{change}_shared"] = _shared(results, both, name)
    both["at_home"], both["change"] = both["gap"], both["gap_away"] - both["gap"]
    both["accuracy_change"] = both["accuracy_away"] - both["accuracy"]
    facts = ["data", "algorithm", "network", "postprocessing", "margin"]
    otherwise = {"data": "dataset", "algorithm": "method", "margin": "usual"}
    found = results.with_facets(both, facts, otherwise)
    return found[
        [
            *TEST_SET, "dataset", *MODEL, "attribute", "seed", "at_home", "change", "accuracy",
            "accuracy_change", "trivial", "margin", "n", "change_shared",
            "accuracy_change_shared",
        ]
    ].astype({"margin": float})  # fmt: skip


def _variances(scores: pd.DataFrame, gap: str) -> pd.DataFrame:
    """Binomial variance of a gap by replica and test set: of the two groups that vary most.

    That of a maximum of differences is the largest of theirs. Missing where the run does not score
    the rates by group that the gap is made of.
    """
    key = [*REPLICA, *PLACE, "attribute"]
    rates = scores.assign(of=scores["metric"].map(SHARES))
    rates = rates[rates["of"].isin(MADE_OF.get(gap, ())) & (rates["group"] != "")]
    rates = rates.assign(variance=_variance(rates["value"], rates["n"]))
    rates = rates.drop_duplicates([*key, "of", "group"]).sort_values("variance", ascending=False)
    largest = rates[rates.groupby([*key, "of"]).cumcount() < PAIR]
    differences = largest.groupby([*key, "of"], as_index=False)["variance"].sum()
    by_gap = differences.groupby(key, as_index=False)["variance"]
    return by_gap.sum() if gap in SUMS else by_gap.max()


def _variance(share: pd.Series, n: pd.Series) -> pd.Series:
    """Variance of shares of n rows, with a row added to either side: also if all are alike."""
    added = (share * n + 1) / (n + 2)
    return added * (1 - added) / n


def _shared(results: Results, both: pd.DataFrame, name: str) -> pd.Series:
    """Variance of a change that seeds share: of another domain, and of home if there is one split.

    A shift has the rows of home, so that most of their sampling error is in both.
    """
    one_split = results.sizes_of_splits["splits"] == 1
    at_home = both[name].where(both["dataset"].map(one_split).eq(True), 0.0)
    return (both[f"{name}_away"] + at_home).where(both["domain"] != "", 0.0).fillna(0.0)


@lru_cache(maxsize=2)  # of two runs that are compared
def _scored(results: Results) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All scores of a run, and ``_accuracy`` of them."""
    scores = pd.concat([results.by_domain, results.metrics])
    return scores, _accuracy(scores)


def _accuracy(scores: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of replicas on test sets, its variance, and whether predictions are trivial.

    They are if they are of one class, or no more accurate than the most frequent class of the
    training rows, where the run scores ``selection_rate_by_group`` or ``constant_accuracy``.
    """
    key = [*REPLICA, *PLACE]
    found = where(scores, metric="accuracy", group="")[[*key, "value", "n"]].drop_duplicates(key)
    found = found.rename(columns={"value": "accuracy"})
    found["accuracy_variance"] = _variance(found["accuracy"], found["n"])
    same_rows = [*REPLICA, "domain"]  # shifts do not change labels
    constant = where(scores, metric="constant_accuracy")[[*same_rows, "value"]]
    constant = constant.drop_duplicates(same_rows).rename(columns={"value": "constant"})
    rates = where(scores, metric="selection_rate_by_group").groupby(key)["value"]
    found = found.merge(constant, how="left", on=same_rows)
    found = found.merge(rates.agg(["min", "max"]).reset_index(), how="left", on=key)
    of_one_class = (found["max"] <= CONSTANT) | (found["min"] >= 1 - CONSTANT)
    found["trivial"] = of_one_class | (found["accuracy"] <= found["constant"])
    return found[[*key, "accuracy", "accuracy_variance", "trivial"]]


def states(
    values: pd.DataFrame,
    ratio: pd.Series | None = None,
    missing: Mapping[tuple[str, str], str] | None = None,
) -> pd.DataFrame:
    """The matrix: what is known of the change of a gap, a row per model and test set.

    The change is the mean over seeds, and over trainings on several sets of domains. P-values of a
    kind are adjusted by Holm over all rows.

    Args:
        values: rows of ``by_seed`` of one gap.
        ratio: as of ``paired_tests``, by data.
        missing: why methods have no values, by data and method.

    Returns:
        The columns ``MATRIX``, among them low and high (Student's 95 % interval, without
        adjustment), error (standard error, with the sampling error that seeds share), changed and
        accuracy_changed (whether significantly), against_plain and its p-value
        (``against_plain``) and n (fewest test rows). ``state`` is one
        of ``STATES``: ``trivial`` if the predictions of more than half of the seeds are; else
        ``held`` if the change is significantly within the margin; else ``grew`` or ``shrank`` if it
        is significant; else ``inconclusive``. So is a change that is the same for every seed, whose
        variance is not known.
    """
    cell = [*TEST_SET, "method"]
    tests = _tests(values, "change", ratio).rename(
        columns={"difference": "change", "n": "seeds", "p": "p_changed"}
    )
    means = values.groupby(cell, sort=False).agg(
        at_home=("at_home", "mean"), accuracy=("accuracy", "mean"), n=("n", "min"),
        trivial=("trivial", "mean"),
    )  # fmt: skip
    accuracy = _tests(values, "accuracy_change", ratio)
    accuracy["accuracy_changed"] = adjusted(accuracy["p"]) < LEVEL
    accuracy = accuracy.rename(columns={"difference": "accuracy_change"})
    found = _grid(values, missing or {}).merge(tests, how="left", on=cell)
    found = found.merge(means.reset_index(), how="left", on=cell)
    kept = [*cell, "accuracy_change", "accuracy_changed"]
    found = found.merge(accuracy[kept], how="left", on=cell)
    found = found.merge(against_plain(values, ratio), how="left", on=["data", "method"])
    found["accuracy_changed"] = found["accuracy_changed"].eq(True)
    found["seeds"] = found["seeds"].fillna(0).astype(int)
    found["p_held"] = equivalence_p(
        found["change"], found["error"], found["seeds"], found["margin"]
    )
    for name in ("p_changed", "p_held"):
        found[name] = adjusted(found[name])
    found["changed"] = found["p_changed"] < LEVEL
    found["state"] = np.select(
        [
            found["seeds"] == 0,
            found["trivial"] > 0.5,  # noqa: PLR2004 - half of the seeds
            found["p_held"] < LEVEL,
            found["changed"] & (found["change"] > 0),
            found["changed"],
        ],
        ["missing", "trivial", "held", "grew", "shrank"],
        "inconclusive",
    )
    found["reason"] = found["reason"].where(found["state"] == "missing", "")
    return found[MATRIX]


def _tests(values: pd.DataFrame, column: str, ratio: pd.Series | None) -> pd.DataFrame:
    """``paired_tests`` over seeds by test set and method, with the column error.

    Without variance there is neither a standard error nor a p-value. The variance that seeds share
    is added to that of their mean.
    """
    differences = values.pivot_table(
        index=[*TEST_SET, "seed"], columns="method", values=column, sort=False
    )
    found = _with_error(paired_tests(differences, TEST_SET, ratio))
    shared = values.groupby([*TEST_SET, "method"])[f"{column}_shared"].mean().rename("shared")
    found = found.merge(shared.reset_index(), on=[*TEST_SET, "method"])
    error = np.hypot(found["error"], np.sqrt(found["shared"]))
    return found.assign(**student_tests(found["difference"], error, found["n"]))


def _with_error(tests: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``paired_tests`` without standard errors and p-values where there is no variance."""
    known = tests["error"] > SAME
    return tests.assign(error=tests["error"].where(known), p=tests["p"].where(known))


def against_plain(values: pd.DataFrame, ratio: pd.Series | None = None) -> pd.DataFrame:
    """How much more the gap of a method changes than that of plain training, mean over test sets.

    Plain training is that of the same network and data without post-processing; both are paired by
    seed, test set and training domains. P-values are adjusted by Holm over methods and data.

    Args:
        values: rows of ``by_seed`` of one gap.
        ratio: as of ``paired_tests``, by data.

    Returns:
        Columns data, method, against_plain, p_against_plain; no rows of plain training, and of
        methods whose network was not trained plainly.
    """
    pair = [*TEST_SET, "dataset", "network", "seed"]
    plain = is_plain(values)
    usual = values[plain].groupby(pair)["change"].mean().rename("plain").reset_index()
    both = values[~plain].merge(usual, on=pair)
    both["against"] = both["change"] - both["plain"]
    differences = both.pivot_table(index=["data", "seed"], columns="method", values="against")
    if differences.empty:
        return pd.DataFrame(columns=["data", "method", "against_plain", "p_against_plain"]).astype(
            {"against_plain": float, "p_against_plain": float}
        )
    tests = _with_error(paired_tests(differences, ["data"], ratio))
    tests["p"] = adjusted(tests["p"])
    names = {"difference": "against_plain", "p": "p_against_plain"}
    return tests.rename(columns=names)[["data", "method", *names.values()]]


def is_plain(models: Any) -> Any:
    """Whether a model, or every row of a table, is plain training without post-processing.

    Args:
        models: a mapping or a data frame with algorithm and postprocessing.
    """
    return (models["algorithm"] == PLAIN) & (models["postprocessing"] == "")


def _grid(values: pd.DataFrame, missing: Mapping[tuple[str, str], str]) -> pd.DataFrame:
    """All methods of all data by all test sets, with a reason for those without values."""
    of_known_data = set(values["data"])
    absent = [
        {"data": data, "method": method, "algorithm": method, "network": "", "postprocessing": ""}
        for data, method in missing
        if data in of_known_data
    ]
    methods = pd.concat([values[["data", *MODEL]], pd.DataFrame(absent)])
    methods = methods.drop_duplicates(["data", "method"])
    keys = zip(methods["data"], methods["method"], strict=True)
    methods["reason"] = [missing.get(key, "no value") for key in keys]
    facts = values[["data", "attribute", "margin"]].drop_duplicates("data")
    return methods.merge(facts, on="data").merge(values[TEST_SET].drop_duplicates(), on="data")


def verdict(rows: pd.DataFrame, gap: str) -> str:
    """At most two sentences: whether the gap survives, with all counts, and how certain that is.

    Args:
        rows: rows of ``states`` of one gap.
        gap: its name, as in ``GAPS``.
    """
    tested = rows[rows["state"] != "missing"]
    counts = tested["state"].value_counts().reindex(STATES, fill_value=0)
    pairs = counted({"pairs": len(tested)})
    told = {
        "grew": f"grew on {counts['grew']} of {pairs} of model and test set",
        "shrank": f"shrank on {counts['shrank']}",
        "held": f"held within ±{margins(rows)} points on {counts['held']}",
        "inconclusive": f"is inconclusive on {counts['inconclusive']}",
        "trivial": f"belongs to trivial predictors on {counts['trivial']}",
    }
    *first, last = [words for state, words in told.items() if counts[state] or state == "grew"]
    sentence = f"{', '.join(first)} and {last}" if first else last
    parts = [f"{_answer(tested, counts)}: the {in_words(rows, gap)} {sentence}", _less(tested)]
    return f"{'; '.join(filter(None, parts))}. {_certainty(tested)}"


def in_words(rows: pd.DataFrame, gap: str) -> str:
    """Name of a gap, with its attribute where all data have the same."""
    attributes = set(rows["attribute"])
    by = f" by {attributes.pop()}" if len(attributes) == 1 and "" not in attributes else ""
    return f"{GAPS[gap]}{by}"


def margins(rows: pd.DataFrame) -> str:
    """The margins in percentage points, the smallest first."""
    return " or ".join(f"{100 * one:g}" for one in sorted(set(rows["margin"])))


def _answer(tested: pd.DataFrame, counts: pd.Series) -> str:
    """The first words; every model counts, also plain training with another network."""
    own = tested[tested["state"] != "trivial"]
    by_model = {str(name): set(found) for name, found in own.groupby("method", sort=False)["state"]}
    kept = [name for name, found in by_model.items() if found <= {"held", "shrank"}]
    grew = [name for name, found in by_model.items() if "grew" in found]
    models = counted({"models": len(by_model)})
    if not by_model:
        return "Only trivial predictors"
    if 2 * counts["inconclusive"] > len(tested) or not kept + grew:
        return "Too few data to tell"
    if len(kept) == len(by_model):
        return "Yes"
    if kept:
        return f"Only with {len(kept)} of {models}{_named(kept)}"
    return "No" if len(grew) == len(by_model) else f"Not with {len(grew)} of {models}"


def _less(tested: pd.DataFrame) -> str:
    """How many methods lose significantly less than plain training; "" where none is compared.

    A method with a test set on which its predictions are trivial does not count.
    """
    skilled = (tested["state"] != "trivial").groupby([tested["data"], tested["method"]])
    rows = tested[skilled.transform("all") & tested["against_plain"].notna()]
    rows = rows.drop_duplicates(["data", "method"])
    if rows.empty:
        return ""
    less = rows[(rows["against_plain"] < 0) & (rows["p_against_plain"] < LEVEL)]
    of = counted({"methods": len(rows)})
    if tested["data"].nunique() > 1:
        of = f"{counted({'pairs': len(rows)})} of method and dataset"
    lose = "loses" if 1 in (len(less), len(rows)) else "lose"
    names = _named(less["method"].unique().tolist())
    return f"{len(less)} of {of} {lose} significantly less than plain training{names}"


def _named(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if 0 < len(names) <= NAMED else ""


def _certainty(tested: pd.DataFrame) -> str:
    """Number of seeds and tests, and the changes that they cannot show."""
    seeds, family = tested["seeds"], int(tested["p_changed"].count())
    if not family:
        return "Without several seeds that differ, no change can be tested."
    most = f" to {seeds.max()}" if seeds.max() > seeds.min() else ""
    known = f"With {seeds.min()}{most} seeds and Holm's correction for {counted({'tests': family})}"
    unknown = tested[(tested["state"] == "inconclusive") & tested["error"].notna()]
    if unknown.empty:
        return f"{known}, none is inconclusive."
    least = np.median(detectable(unknown["error"], unknown["seeds"], level=LEVEL / family))
    size = f"a change below {100 * least:.0f} points" if least < 1 else "a change of any size"
    return f"{known}, {size} is likely to be missed."


def matrices(
    results: Results, failed: Mapping[tuple[str, str], str] | None = None
) -> dict[str, pd.DataFrame]:
    """``states`` of every gap that is known at home and elsewhere, the preferred one first.

    Args:
        results: the tables of the run; seeds whose splits overlap depend on each other.
        failed: reasons of failed cells by dataset and method.
    """
    return dict(_found(results, tuple((failed or {}).items())))


@lru_cache(maxsize=2)
def _found(
    results: Results, failed: tuple[tuple[tuple[str, str], str], ...]
) -> tuple[tuple[str, pd.DataFrame], ...]:
    """``matrices`` with their gaps: the report needs them twice."""
    return tuple(_each_gap(results, dict(failed)))


def preferred(results: Results) -> tuple[str, pd.DataFrame] | None:
    """The first of ``matrices`` with its gap, if there is one."""
    return next(_each_gap(results, {}), None)


def _each_gap(
    results: Results, failed: Mapping[tuple[str, str], str]
) -> Iterator[tuple[str, pd.DataFrame]]:
    scored = set(results.metrics["metric"])
    for gap in (one for one in GAPS if one in scored):
        values = by_seed(results, gap)
        if len(values):
            yield gap, _of_gap(values, results, failed)


def differences(first: Results, second: Results) -> dict[str, pd.DataFrame]:
    """``states`` of how much more every gap changes in the second run, paired by seed.

    Only what both runs have; gap at home and accuracy are those of the second run.
    """
    key = [*TEST_SET, "dataset", "method", "seed"]
    found = {}
    for gap in matrices(first).keys() & matrices(second).keys():
        earlier = by_seed(first, gap)[[*key, "change"]]
        both = by_seed(second, gap).merge(earlier, on=key, suffixes=("", "_first"))
        # both runs are tested on the same rows
        found[gap] = both.assign(change=both["change"] - both["change_first"], change_shared=0.0)
    return {gap: _of_gap(found[gap], second, {}) for gap in GAPS if len(found.get(gap, ()))}


def _of_gap(
    values: pd.DataFrame, results: Results, failed: Mapping[tuple[str, str], str]
) -> pd.DataFrame:
    """``states`` with what is known of datasets, by their data."""
    data = values.drop_duplicates("dataset").set_index("dataset")["data"]
    ratio = results.sizes_of_splits["ratio"].groupby(data).max()
    missing = {
        (data[dataset], method): reason
        for (dataset, method), reason in failed.items()
        if dataset in data
    }
    return states(values, ratio.reindex(data.unique(), fill_value=0.0), missing)


def other_networks(cells: pd.DataFrame, by: str) -> pd.Series:
    """Which rows are of plain training with another network than most methods, by dataset.

    They compare networks: no method of fairness is among them.

    Args:
        cells: rows with the columns algorithm, network, postprocessing and ``by``.
        by: column of the dataset.
    """
    # submitted predictions have no network
    usual = cells.groupby(by)["network"].transform(
        lambda names: next(iter(names[names != ""].mode()), "")
    )
    return is_plain(cells) & (cells["network"] != usual)


def undefined(results: Results, gap: str) -> dict[str, list[str]]:
    """Test sets on which a gap has no value of any training, with the reason, by data."""
    rows = where(pd.concat([results.by_domain, results.metrics]), metric=gap, group="")
    rows = rows[rows["attribute"] == rows.groupby("dataset")["attribute"].transform("first")]
    rows = results.with_facets(rows, ["data"], {"data": "dataset"})
    found: dict[str, dict[str, str]] = {}
    for _, own in rows.groupby(TEST_SET, sort=False):
        if own["value"].isna().all():
            one = own.iloc[0]
            name = test_set_name(one["shift"], one["severity"], one["domain"])
            found.setdefault(one["data"], {})[name] = f"{name} ({one['note']})"
    return {data: list(lines.values()) for data, lines in found.items()}


def test_set_name(shift: str, severity: float, domain: str) -> str:
    """Name of a test set: the domain, or the shift with its severity."""
    return domain or f"{shift} {severity:g}"


def table(results: Results) -> pd.DataFrame:
    """The matrices of all gaps, with the column metric."""
    found = [rows.assign(metric=gap) for gap, rows in matrices(results).items()]
    return pd.concat(found)[["metric", *MATRIX]] if found else pd.DataFrame()


SECTION = Section("The matrix in numbers", (View("matrix", table),))
