"""Coverage of intervals by simulation; the true values are those of what is drawn from."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

import robust_fairness as rf
from robust_fairness.auditing.audit import Audit
from robust_fairness.auditing.functions import metrics_of_functions
from robust_fairness.metrics import find_metric
from robust_fairness.numbers import verdicts
from robust_fairness.numbers.counts import Counts, Rows
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.intervals import estimated
from robust_fairness.numbers.rates import Rates, contrast, linear_gap

Draw = Callable[[np.random.Generator], tuple[bool, ...]]  # whether intervals cover
CLASSES = ("0", "1")
GAPS = (
    "demographic_parity_difference", "equal_opportunity_difference", "equalized_odds_difference",
)  # fmt: skip
LEAST = 0.94  # coverage, of 95 % intervals
WEIGHTS = {
    "1 and 20": lambda rng, n: rng.choice([1.0, 20.0], n),
    "1 and 4": lambda rng, n: rng.choice([1.0, 4.0], n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1, n),
}


def weighted_rate(kind: str, rows: int, rate: float) -> Draw:
    """Whether the interval of a weighted rate contains it, and that of a gap of 0 does."""

    def drawn(rng: np.random.Generator) -> tuple[bool, ...]:
        n = 2 * rows
        y = (rng.random(n) < rate).astype(int)
        groups = Groups.named(np.repeat([0, 1], rows), ("a", "b"))
        counts = Counts.of(groups, y, y, CLASSES, WEIGHTS[kind](rng, n))
        score = estimated(find_metric("selection_rate_by_group"), counts)[0]["a"]
        gap = estimated(find_metric("demographic_parity_difference"), counts)[0][""]
        return score.low <= rate <= score.high, gap.low == 0

    return drawn


def informative_weights(rows: int) -> Draw:
    """Whether the interval of a gap contains it where weights say how often people are positive."""

    def drawn(rng: np.random.Generator) -> tuple[bool, ...]:
        heavy, group = rng.random(rows) < 0.3, rng.integers(0, 2, rows)
        share = np.where(group == 1, np.where(heavy, 0.7, 0.3), 0.5)
        y, weight = (rng.random(rows) < share).astype(int), np.where(heavy, 9.0, 1.0)
        counts = Counts.of(Groups.named(group, ("a", "b")), y, y, CLASSES, weight)
        gap = estimated(find_metric("demographic_parity_difference"), counts)[0][""]
        true = (0.3 * 9 * 0.7 + 0.7 * 0.3) / (0.3 * 9 + 0.7) - 0.5
        return (gap.low <= true <= gap.high,)

    return drawn


def area(positives: int, negatives: int, true: float, spread: float) -> Draw:
    """Whether the interval of an area near 1 contains it, and that of a gap of 0 does."""

    def drawn(rng: np.random.Generator) -> tuple[bool, ...]:
        y = np.repeat([1, 0], [positives, negatives])
        shift = special.ndtri(true) * np.sqrt(1 + spread**2)
        scores = [np.where(y, rng.normal(shift, spread, len(y)), rng.normal(size=len(y)))
                  for _ in range(2)]  # fmt: skip
        arrays = {"y_true": np.tile(y, 2), "y_score": np.concatenate(scores)}
        source = Rows(arrays, Groups.named(np.repeat([0, 1], len(y)), ("a", "b")))
        score = estimated(find_metric("roc_auc_by_group"), source)[0]["a"]
        gap = estimated(find_metric("roc_auc_difference"), source)[0][""]
        return score.low <= true <= score.high, gap.low == 0

    return drawn


def function(quantile: float, rows: int) -> Draw:
    """Whether the interval of a quantile, a function of a user's own, contains the true one."""

    def of_errors(y_true: np.ndarray, y_pred: np.ndarray) -> float:
        return float(np.quantile(np.abs(y_true - y_pred), quantile))

    def drawn(rng: np.random.Generator) -> tuple[bool, ...]:
        arrays = {"y_true": np.zeros(rows), "y_pred": rng.normal(size=rows)}
        metric = metrics_of_functions({"of_errors": of_errors})["of_errors"]
        score = estimated(metric, Rows(arrays))[0][""]
        return (score.low <= stats.halfnorm.ppf(quantile) <= score.high,)

    return drawn


CASES = {
    "weights of 1 and 20, 60 rows, .02": (weighted_rate("1 and 20", 60, 0.02), LEAST),
    "weights of 1 and 4, 60 rows, .05": (weighted_rate("1 and 4", 60, 0.05), LEAST),
    "lognormal weights, 60 rows, .1": (weighted_rate("lognormal", 60, 0.1), LEAST),
    "informative weights, 600 rows": (informative_weights(600), LEAST),
    "area of .97, 100 and 100 rows": (area(100, 100, 0.97, 1), LEAST),
    "area of .99, 15 and 60 rows": (area(15, 60, 0.99, 1), LEAST),
    "area of .97, 20 and 200 rows, unequal": (area(20, 200, 0.97, 3), LEAST),
    "median of 60 rows": (function(0.5, 60), LEAST),
    "90 % quantile of 60 rows": (function(0.9, 60), LEAST),
    "90 % quantile of 300 rows": (function(0.9, 300), LEAST),
}


@pytest.mark.parametrize("draws", [80, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES)
def test_intervals_cover(case: str, draws: int) -> None:
    covers, least = CASES[case]
    drawn = [covers(np.random.default_rng([7, seed])) for seed in range(draws)]
    share = np.mean(drawn, axis=0).min()
    assert share > least - 3 * np.sqrt(least * (1 - least) / draws)


@pytest.mark.parametrize(("growth", "alone", "of_five"), [(0.05, 0.33, 0.13), (0.1, 0.87, 0.7),
                                                          (0.2, 0.99, 0.99)])  # fmt: skip
def test_growth_is_found(growth: float, alone: float, of_five: float) -> None:
    """In at least these shares: of 1,000 rows a group, of one gap and of one gap of five."""
    rng, rows = np.random.default_rng(5), np.full((400, 2), 1000.0)
    home, away = (
        Rates.of_counts(rng.binomial(1000, share, rows.shape).astype(float), rows)
        for share in ([0.55, 0.5], [0.55 + growth / 2, 0.5 - growth / 2])
    )
    p = verdicts.tested(home, away, linear_gap("largest", 2))["p_grew"]
    assert (p < LEVEL).mean() > alone and (5 * p < LEVEL).mean() > of_five


@pytest.mark.parametrize("draws", [60, pytest.param(1500, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("at_home", "groups"), [((8, 30), 2), ((8, 30), 4), ((1000, 1000), 2)])
def test_families_of_changes_of_small_groups(
    at_home: tuple[int, int], groups: int, draws: int
) -> None:
    """A false one in at most 5 % of families of 100; before, in .07, .10 and .13."""
    rng, gap, false = np.random.default_rng(11), linear_gap("largest", groups), []
    for _ in range(draws):
        ends = []
        for sizes in (at_home, (8, 30)):
            rows = rng.integers(*sizes, (100, groups), endpoint=True)
            ends.append(Rates.of_counts(rng.binomial(rows, 0.5), rows.astype(float)))
        false.append(verdicts.judged(verdicts.tested(*ends, gap))["changed"].any())
    assert np.mean(false) < LEVEL + 3 * np.sqrt(LEVEL / draws)


def test_degrees_of_freedom_of_models_are_those_of_welch() -> None:
    """As of scipy for one sample against another; those of methods are of their refits alone."""
    hits, rows = np.array([[4.0, 200.0]]), np.array([[9.0, 300.0]])
    rates = Rates.of_counts(hits, rows)
    difference = contrast(rates.first(), None, np.array([[1.0, -1.0]]), None)
    samples = [np.repeat([1.0, 0.0], [k, n - k]) for k, n in ((4, 9), (200, 300))]
    welch = stats.ttest_ind(*samples, equal_var=False)
    assert difference.df == pytest.approx(welch.df)
    assert difference.p() == pytest.approx(welch.pvalue)
    assert np.isinf(contrast(rates, None, np.array([[1.0, -1.0]]), None).df).all()


@pytest.mark.parametrize("draws", [60, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ratio", [0.25, 4])
def test_families_of_changes_of_small_groups_over_refits(ratio: float, draws: int) -> None:
    """A false one in at most 5 % of families of 100; with Student's tails for rows, in 11 %."""
    rng, rows, false = np.random.default_rng(12), 50, []
    for _ in range(draws):
        scale = ratio * np.sqrt(0.24 / rows) * rng.choice([0.5, 1, 2], (100, 1, 1))
        shares = rng.binomial(rows, 0.6, (2, 100, 2)) / rows
        ends = [
            Rates((share[..., None] + scale * rng.normal(size=(100, 2, 5))).clip(0, 1),
                  share * (1 - share) / (rows - 1), np.full((100, 2), float(rows)))
            for share in shares
        ]  # fmt: skip
        tests = verdicts.tested(*ends, linear_gap("largest", 2))
        false.append(verdicts.judged(tests)["changed"].any())
    assert np.mean(false) < LEVEL + 3 * np.sqrt(LEVEL / draws)


def at_their_limits(rng: np.random.Generator, rows: int = 1000) -> Audit:
    """An audit of ten attributes whose gaps are .1."""
    signs = rng.choice([-1, 1], (rows, 10))
    p = (rng.random(rows) < 0.5 + 0.05 * signs.sum(1)).astype(int)
    table = pd.DataFrame(signs).astype(str).rename(columns="attribute_{}".format)
    return rf.audit(table.assign(y=p, p=p), y_true="y", y_pred="p",
                    metrics=[GAPS[0], "selection_rate_by_group"],
                    sensitive_features=list(table))  # fmt: skip


@pytest.mark.parametrize("draws", [12, pytest.param(400, marks=pytest.mark.slow)])
def test_no_verdict_on_ten_gaps_at_their_limits_is_evident(draws: int) -> None:
    """Neither that a gap exceeds its limit nor that it does not; before, in 40 %."""
    evident = []
    for seed in range(draws):
        audit = at_their_limits(np.random.default_rng([13, seed]))
        judged = audit.judged(f"{GAPS[0]}>0.1", "evidence").judgements
        assert len(judged) == 10
        evident.append(any(each.verdict != "INCONCLUSIVE" for each in judged))
    assert np.mean(evident) < LEVEL + 3 * np.sqrt(LEVEL / draws)


def test_gates_on_evidence_have_simultaneous_intervals() -> None:
    """Those of scipy for rates and of Agresti and Caffo for gaps; a gate alone has plain ones."""
    audit = at_their_limits(np.random.default_rng(13))
    rates = audit.rows[audit.rows["metric"] == "selection_rate_by_group"]
    rates = rates.assign(hits=(rates["value"] * rates["n"]).round().astype(int))
    hits = rates.set_index(["attribute", "group"])[["hits", "n"]]
    conditions = ["selection_rate_by_group<0.1", f"{GAPS[0]}[attribute_3]>0.1"]
    for number, gates in ((21, conditions), (1, conditions[1:])):
        judged = audit.judged(gates, "evidence").judgements
        assert len(judged) == number
        for row in (each.row for each in judged):
            if row.group:
                test = stats.binomtest(*hits.loc[row.attribute, row.group])
                ends = test.proportion_ci(1 - LEVEL / number, method="wilson")
                assert (row.low, row.high) == pytest.approx((ends.low, ends.high))
                continue
            (k, n), (other_k, other_n) = hits.loc[row.attribute].to_numpy()
            p, q = (k + 1) / (n + 2), (other_k + 1) / (other_n + 2)
            error = np.sqrt(p * (1 - p) / (n + 2) + q * (1 - q) / (other_n + 2))
            half = special.ndtri(1 - LEVEL / number / 2) * error
            assert (row.low, row.high) == pytest.approx(
                (max(abs(p - q) - half, 0), abs(p - q) + half)
            )
    plain = {each.row.low for each in audit.judged(conditions).judgements}
    assert plain < {*audit.rows["low"]}  # by the estimates


@pytest.mark.parametrize("draws", [10, pytest.param(160, marks=pytest.mark.slow)])
def test_three_gaps_of_five_attributes_show_no_change_where_there_is_none(draws: int) -> None:
    """Three gaps of five attributes that mean nothing, in two periods that are alike."""
    names = [f"attribute_{number}" for number in range(5)]

    def table(rng: np.random.Generator) -> pd.DataFrame:
        attributes = pd.DataFrame({name: rng.choice(["x", "y"], 800) for name in names})
        y = rng.integers(0, 2, 800)
        return attributes.assign(y=y, p=(rng.random(800) < 0.3 + 0.4 * y).astype(int))

    said = []
    for seed in range(draws):
        rng = np.random.default_rng([3, seed])
        audit = rf.audit(table(rng), y_true="y", y_pred="p", sensitive_features=names,
                         reference=table(rng), metrics=GAPS)  # fmt: skip
        shown = audit.changed[audit.changed["state"] != ""]
        assert len(shown) == 15
        said.append(shown["state"].isin(["grew", "shrank", "changed", "reversed"]).any())
    assert np.mean(said) < LEVEL + 3 * np.sqrt(LEVEL / draws)
