"""Gaps, their intervals, and verdicts about families of changes."""

from itertools import permutations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from robust_fairness.numbers.estimate import (
    LEVEL,
    covariance_of_copies,
    over_refits,
    small_covariance,
)
from robust_fairness.numbers.rates import Rates, contrast, interval, linear_gap
from robust_fairness.numbers.verdicts import concluded, false_discovery_rate, holm, judged
from robust_fairness.numbers.verdicts import tested as unadjusted

# of 8 states, made by scikit-learn and scipy alone
ACS = pd.read_csv(Path(__file__).with_name("acs_changes.csv"))
DIFFERENCE = np.array([[1.0, -1.0]])


def verdicts(*arguments, **options) -> pd.DataFrame:
    """A family of changes of one gap."""
    return judged(unadjusted(*arguments, **options))


def rates_of(place: str) -> Rates:
    hits, rows = (ACS[[f"{place}_{count}_{sex}" for sex in "fm"]].to_numpy(float) for count in "kn")
    return Rates.of_counts(hits, rows)


def test_acs_changes_are_the_reference():
    change = contrast(rates_of("elsewhere"), rates_of("home"), DIFFERENCE, DIFFERENCE)
    p = change.p()[:, 0]
    for name, ours in {"change": change.value[:, 0], "error": change.error[:, 0], "p": p}.items():
        np.testing.assert_allclose(ours, ACS[name], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(holm(p), ACS["holm"], rtol=1e-9)
    np.testing.assert_allclose(false_discovery_rate(p), ACS["bh"], rtol=1e-9)
    assert (np.sum(holm(p) < LEVEL), np.sum(false_discovery_rate(p) < LEVEL)) == (16, 40)


def test_acs_verdicts():
    table = verdicts(rates_of("home"), rates_of("elsewhere"), linear_gap("largest", 2))
    assert table["changed"].sum() == 16
    assert table["state"].value_counts().to_dict() == {"inconclusive": 96, "grew": 11, "shrank": 5}
    assert set(table["question"]) == {"this model"}
    signed = ACS["change"].abs().to_numpy()
    assert (table["bound"] > signed - 0.01).all()  # small counts move centres


def brute(kind: str, rates: np.ndarray) -> float:
    """The gap of rates ``[rates, groups]`` by its definition."""
    if kind == "largest":
        return max(np.ptp(rates, axis=1))
    if kind == "sum":
        return float(np.abs(rates[:, 0] - rates[:, 1]).sum())
    if kind == "worst":
        return 1 - rates.min()
    worst = rates[0].argmin()
    return np.delete(rates[0], worst).mean() - rates[0, worst]


@pytest.mark.parametrize(
    ("kind", "groups", "rates"),
    [("largest", 2, 1), ("largest", 4, 2), ("sum", 2, 2), ("sum", 2, 3), ("worst", 5, 1),
     ("worst_gap", 5, 1)],
)  # fmt: skip
def test_gaps_are_the_largest_of_their_functions(kind, groups, rates):
    drawn = np.random.default_rng(0).random((50, rates, groups))
    gaps = linear_gap(kind, groups, rates).of(drawn.reshape(50, -1))
    np.testing.assert_allclose(gaps, [brute(kind, sample) for sample in drawn])


def test_gaps_that_are_not_defined():
    with pytest.raises(ValueError, match="3 groups, defined for two"):
        linear_gap("sum", 3)
    with pytest.raises(ValueError, match="at most 20000"):
        linear_gap("largest", 200)


N = 100_000
CASES = {
    # rates of the groups at home and elsewhere, rows: state
    "grew": ((0.5, 0.5), (0.6, 0.5), N),
    "grew, already there": ((0.6, 0.5), (0.7, 0.5), N),
    "shrank": ((0.6, 0.5), (0.5, 0.5), N),
    "reversed": ((0.6, 0.5), (0.5, 0.6), N),
    "reversed, and larger": ((0.52, 0.5), (0.5, 0.6), N),
    "held": ((0.6, 0.5), (0.6, 0.5), N),
    "inconclusive": ((0.6, 0.5), (0.6, 0.5), 100),
    "not estimable": ((0.5, 0.5), (0.6, 0.5), 4),
}


def test_states():
    home, away = (
        Rates.of_counts(
            np.array([np.multiply(case[place], case[2]) for case in CASES.values()]),
            np.array([[case[2]] * 2 for case in CASES.values()], dtype=float),
        )
        for place in (0, 1)
    )
    table = verdicts(home, away, linear_gap("largest", 2))
    assert table["state"].tolist() == [name.partition(",")[0] for name in CASES]
    by_case = table.set_index(pd.Index(CASES))
    assert by_case.loc["held", "bound"] < 0.05 < by_case.loc["inconclusive", "bound"]
    assert by_case.loc["inconclusive", "limit"].startswith("rows")
    assert by_case.loc["not estimable", "have"] == 4


def test_the_number_that_would_suffice_does():
    """With as many rows as said, the change is found with a power of .8."""
    rng = np.random.default_rng(1)
    shares, n = np.array([0.5, 0.5]), np.array([[400.0, 1e6]])
    home = Rates.of_counts(np.array([[5e5, 5e5]]), np.full((1, 2), 1e6))
    away = Rates.of_counts(n * shares, n)
    row = verdicts(home, away, linear_gap("largest", 2)).iloc[0]
    assert (row["limit"], row["limit_rate"], row["have"]) == ("rows away", 0, 400)
    enough = int(row["needed"])
    tests = 2000
    hits = rng.binomial(enough, 0.55, tests) / enough
    p = np.array(
        [
            verdicts(
                home, Rates.of_counts(np.array([[hit * enough, 5e5]]), np.array([[enough, 1e6]])),
                linear_gap("largest", 2),
            )["p"].iloc[0]
            for hit in hits[:200]
        ]
    )  # fmt: skip
    assert 0.7 < np.mean(p < LEVEL) < 0.9


def draw(rng, tests, refits, *, rows=1000, ratio=1.0, change=0.0):
    """Families of rates at home and elsewhere of two groups, with noise of refits."""
    sampling = np.sqrt(0.24 / rows)
    scale = ratio * sampling * rng.choice([0.5, 1.0, 2.0], (tests, 1, 1))
    places = []
    for shift in (0.0, change):
        truth = np.broadcast_to(np.array([0.6 + shift, 0.6]), (tests, 2))
        drawn = rng.binomial(rows, truth) / rows  # the same rows in all refits
        value = drawn[..., None] + scale * rng.normal(size=(tests, 2, refits))
        places.append(
            Rates(value, drawn * (1 - drawn) / (rows - 1), np.full((tests, 2), float(rows)))
        )
    return places


@pytest.mark.parametrize(("refits", "ratio"), [(5, 0.5), (5, 2), (10, 2)])
def test_families_have_few_false_changes(refits, ratio):
    """At most 5 % of families, in the tail of Holm's correction; 3 standard errors allowed."""
    families = 150
    rng = np.random.default_rng(refits)
    wrong = 0
    for _ in range(families):
        table = verdicts(*draw(rng, 60, refits, ratio=ratio), linear_gap("largest", 2))
        assert set(table["question"]) == {"this method"}
        wrong += table["changed"].any() or table["state"].isin(["grew", "shrank", "reversed"]).any()
    assert wrong / families <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / families)


def test_few_refits_answer_for_the_model():
    rng = np.random.default_rng(0)
    home, away = draw(rng, 20, 3)
    table = verdicts(home, away, linear_gap("largest", 2))
    assert set(table["question"]) == {"this model"}
    alone = verdicts(home.first(), away.first(), linear_gap("largest", 2))
    np.testing.assert_allclose(table["p"], alone["p"])
    assert table["between_refits"].notna().all()
    assert alone["between_refits"].isna().all()


@pytest.mark.parametrize("kind", ["largest", "sum"])
@pytest.mark.parametrize("gaps", [(0.0, 0.0), (0.05, 0.0), (0.2, 0.1)])
@pytest.mark.parametrize(("rows", "base"), [(30, 0.5), (300, 0.1)])
def test_intervals_of_gaps_cover(kind, gaps, rows, base):
    """At least 94 % with two rates of two groups, where all rates rest on 8 rows or more."""
    rng = np.random.default_rng(rows)
    tests, of = 4000, linear_gap(kind, 2, 2)
    truth = np.array([0.3 + gaps[0], 0.3, 0.1 + gaps[1], 0.1])
    n = rng.binomial(rows, base, (tests, 2))
    n = np.concatenate([n, rows - n], 1).astype(float)
    drawn = Rates.of_counts(rng.binomial(n.astype(int), truth), n)
    low, high = interval(drawn, of)
    true = of.of(truth)
    known = np.isfinite(low)
    assert np.mean((low <= true) & (true <= high), where=known) >= 0.94


def test_all_pairs_of_groups_take_part():
    assert len(linear_gap("largest", 3, 2).functions) == 2 * len(list(permutations(range(3), 2)))


def copies(rng: np.random.Generator, tests: int, n: int, change: float = 0.0):
    """Hits of n rows of two groups before and after a shift that turns a twentieth of them."""
    before = rng.random((tests, 2, n)) < 0.6
    turned = rng.random(before.shape) < 0.05
    after = before ^ turned
    after[:, 0] |= rng.random((tests, n)) < change
    return before, after


def shared(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Covariances of hits ``[tests, groups, n]``, rows of class 1, before and after a shift."""
    joint = np.zeros((*before.shape[:2], 2, 2, 2))
    for first, second in product((0, 1), repeat=2):
        joint[..., 1, first, second] = ((before == first) & (after == second)).sum(-1)
    return covariance_of_copies(joint, np.array([[0.0, 1.0], [0.0, 1.0]]))


def test_shifted_copies_of_rows_are_compared_as_pairs():
    """The error of the mean of differences row by row; McNemar's counts decide, not the rates."""
    before, after = copies(np.random.default_rng(0), 5, 400)
    n = np.full((5, 2), 400.0)
    home, away = (Rates.of_counts(hits.sum(-1), n) for hits in (before, after))
    covariance = shared(before, after)
    each = after.astype(float) - before
    direct = each.var(-1, ddof=1) / 400
    only = np.eye(2)
    change = contrast(away, home, only, only, covariance=covariance)
    np.testing.assert_allclose(change.variance, direct, rtol=1e-12)
    discordant = (each != 0).sum(-1)
    mcnemar = (discordant - each.sum(-1) ** 2 / 400) / (400 * 399)
    np.testing.assert_allclose(change.variance, mcnemar, rtol=1e-12)
    # half a row in each of the four cells (Agresti and Min 2005)
    pairs = [before[:, 0] * 2 + after[:, 0] == cell for cell in range(4)]
    cells = np.stack(pairs, 1).sum(-1) + 0.5
    share = cells / cells.sum(-1, keepdims=True)
    both = (share[:, 3] - share[:, 2:].sum(-1) * share[:, [1, 3]].sum(-1)) / cells.sum(-1)
    small = small_covariance(home.mean, away.mean, covariance, n)[:, 0]
    np.testing.assert_allclose(small, both, rtol=1e-9)


def test_families_of_shifted_copies_have_their_level_and_more_power():
    rng, wrong, detected, apart, families = np.random.default_rng(1), 0, 0, 0, 60
    n = np.full((30, 2), 500.0)
    for _ in range(families):
        for change in (0.0, 0.15):
            before, after = copies(rng, 30, 500)
            if change:
                before[:1], after[:1] = copies(rng, 1, 500, change)
            home, away = (Rates.of_counts(hits.sum(-1), n) for hits in (before, after))
            covariance = shared(before, after)
            paired = verdicts(home, away, linear_gap("largest", 2), covariance=covariance)[
                "changed"
            ]
            if change:
                detected += paired[0]
                apart += verdicts(home, away, linear_gap("largest", 2))["changed"][0]
            else:
                wrong += paired.any()
    assert wrong <= 3 + 2 * np.sqrt(60 * 0.05 * 0.95)
    assert detected >= 40 and apart <= 10


def test_values_of_refits_are_concluded_as_scipy_and_nadeau_and_bengio_do():
    """Two tests are no family to moderate; missing refits are left out; p is Student's."""
    values = np.random.default_rng(4).normal(0.5, 1, (2, 10))
    values[1, 9] = np.nan
    ratio = np.array([0.0, 1 / 3])
    table = concluded(over_refits(values, ratio), np.isfinite(values).sum(-1))
    for row, refits, share in zip(table.itertuples(), values, ratio, strict=True):
        known = refits[np.isfinite(refits)]
        scale = known.std(ddof=1) * np.sqrt(1 / len(known) + share)
        law = stats.t(len(known) - 1, known.mean(), scale)
        assert (row.low, row.high) == pytest.approx(law.interval(0.95), rel=1e-6)
        assert row.p == pytest.approx(2 * min(law.cdf(0), law.sf(0)), rel=1e-5)
    np.testing.assert_allclose(table["p_holm"], holm(table["p"]))
    np.testing.assert_allclose(table["p_fdr"], false_discovery_rate(table["p"]))
    np.testing.assert_array_equal(table["sign"] != 0, table["p_holm"] < LEVEL)


def test_fewer_than_five_refits_and_values_without_variance_are_not_tested():
    values = np.array([[0.5, 0.51, 0.52, 0.5, np.nan], [0.5, 0.51, 0.52, 0.5, 0.5], [0.5] * 5])
    table = concluded(over_refits(values), np.isfinite(values).sum(-1))
    assert table["p"].isna().tolist() == [True, False, True]
    assert table["sign"].tolist() == [0, 1, 0]
    assert np.isfinite(table.loc[0, "low"]) and np.isnan(table.loc[2, "low"])


def test_families_of_stored_scores_have_their_level():
    """Means over ten splits 80 to 20 of 100 rows each: ratio 1 / 4, on scales from .01 to 1."""
    rng, wrong, plain = np.random.default_rng(6), 0, 0
    for _ in range(150):
        rows = rng.normal(size=(40, 1, 100)).repeat(10, axis=1)
        means = rng.permuted(rows, axis=2)[..., :20].mean(axis=2) * 10 ** rng.uniform(
            -2, 0, (40, 1)
        )
        wrong += concluded(over_refits(means, 0.25), np.full(40, 10))["sign"].any()
        plain += concluded(over_refits(means), np.full(40, 10))["sign"].any()
    assert wrong / 150 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 150)
    assert plain / 150 > 0.5
