"""Verdicts on claims: against scipy, by cases, and by simulation."""

import numpy as np
import pytest
from scipy import stats

from robust_fairness.numbers.claims import decided
from robust_fairness.numbers.estimate import REFITS, ROWS, Component, Estimate
from robust_fairness.numbers.verdicts import hochberg, holm
from tests.modules import module
from tests.project import ROOT

DF = 9.0


def effects(values, error=1.0) -> Estimate:
    values = np.asarray(values, float)
    variance = np.broadcast_to(np.square(error), values.shape).astype(float)
    return Estimate(values, {REFITS: Component(variance, DF)})


@pytest.mark.parametrize("value", [-4.0, -1.0, 0.3, 2.0, 6.0])
@pytest.mark.parametrize("says", ["above", "below", "within", "not below", "not above"])
def test_a_single_claim_is_a_t_test(says, value):
    """Two-sided for a sign, two one-sided tests for a margin of 3; scipy's t distribution."""
    t, margin = stats.t(DF), 3.0
    expected = {
        "above": 2 * t.sf(value), "below": 2 * t.cdf(value),
        "within": max(t.sf(value + margin), t.cdf(value - margin)),
        "not below": 2 * t.sf(value + margin), "not above": 2 * t.cdf(value - margin),
    }[says]  # fmt: skip
    found = decided(effects([value]), np.array([0]), [says], np.array([margin]))
    assert found.p[0] == pytest.approx(min(expected, 1), rel=1e-4)
    reverse = {
        "above": 2 * t.cdf(value), "below": 2 * t.sf(value),
        "within": 2 * min(t.cdf(value + margin), t.sf(value - margin)),
        "not below": 2 * t.cdf(value + margin), "not above": 2 * t.sf(value - margin),
    }[says]  # fmt: skip
    small = {"above": t.cdf(value - margin), "below": t.sf(value + margin)}.get(says, 1.0)
    state = "undecided"
    for name, p in (("excluded", small), ("reversed", reverse), ("holds", expected)):
        state = name if p < 0.05 else state
    assert found.states == (state,)


# A part by its state: value in standard errors, of a margin of 4, and what else is known of it.
PARTS = {
    "not run": (np.nan, {}),
    "void": (9.0, {"void": True}),
    "holds": (9.0, {"reach": 3.0}),
    "reversed": (-9.0, {"reach": 3.0}),
    "out of reach": (0.1, {"reach": 3.0}),
    "excluded": (-0.2, {}),
    "undecided": (2.2, {}),
}
TABLE = [
    # only one of four
    (["holds"], "supported"),
    (["holds", "holds", "holds"], "supported"),
    (["reversed", "reversed"], "contradicted"),
    (["excluded", "excluded"], "excluded"),
    (["not run", "not run"], "not run"),
    # holds, and open ones
    (["holds", "not run"], "partly"),
    (["holds", "void"], "partly"),
    (["holds", "out of reach"], "partly"),
    (["holds", "holds", "undecided"], "partly"),
    (["holds", "undecided", "void", "out of reach", "not run"], "partly"),
    # holds, with reversed or excluded
    (["holds", "holds", "reversed"], "mixed"),
    (["holds", "excluded"], "mixed"),
    (["holds", "reversed", "undecided", "not run"], "mixed"),
    # reversed, with excluded or open
    (["reversed", "excluded"], "partly contradicted"),
    (["reversed", "reversed", "undecided"], "partly contradicted"),
    (["reversed", "not run"], "partly contradicted"),
    (["reversed", "void", "out of reach"], "partly contradicted"),
    # excluded and open
    (["excluded", "undecided"], "undecided"),
    (["excluded", "excluded", "not run"], "undecided"),
    (["excluded", "out of reach"], "undecided"),
    (["excluded", "void"], "undecided"),
    # out of reach, with or without not run
    (["out of reach", "out of reach"], "out of reach"),
    (["out of reach", "not run"], "out of reach"),
    # other open ones
    (["undecided"], "undecided"),
    (["void"], "undecided"),
    (["void", "not run"], "undecided"),
    (["void", "out of reach"], "undecided"),
    (["undecided", "out of reach", "not run"], "undecided"),
]


@pytest.mark.parametrize(("states", "verdict"), TABLE)
@pytest.mark.parametrize("says", ["above", "below"])
def test_verdicts_follow_from_the_states_of_the_parts(states, verdict, says):
    """Every row of the table of decisions, in both directions."""
    values = np.array([PARTS[state][0] for state in states]) * (1 if says == "above" else -1)
    known = {
        name: np.array([PARTS[state][1].get(name, usual) for state in states])
        for name, usual in (("void", False), ("reach", np.inf))
    }
    number = len(states)
    found = decided(
        effects(values), np.zeros(number, int), [says] * number, np.full(number, 4.0), **known
    )
    assert found.states == tuple(states) and found.verdicts == (verdict,)


@pytest.mark.parametrize("says", ["within", "not below", "not above"])
@pytest.mark.parametrize("value", [0.1, 3.0])
def test_what_has_no_sign_is_never_excluded_nor_out_of_reach(says, value):
    found = decided(effects([value]), np.array([0]), [says], np.array([4.0]), reach=0.5)
    assert found.states[0] in ("holds", "undecided")


@pytest.mark.parametrize("value", [9.0, -9.0, 0.0])
def test_seeds_that_disagree_leave_a_part_undecided(value):
    asked = (effects([value]), np.array([0]), ["above"], np.array([4.0]))
    assert decided(*asked).states[0] in ("holds", "reversed", "excluded")
    assert decided(*asked, disagree=[True]).verdicts == ("undecided",)
    assert decided(*asked, disagree=[True], reach=3.0).states == ("out of reach",)


def test_claims_are_decided_side_by_side():
    found = decided(effects([9, -9, 0.1, 2.2]), np.arange(4), ["above"] * 4, np.full(4, 4.0))
    assert found.verdicts == ("supported", "contradicted", "excluded", "undecided")
    nothing = decided(effects([]), np.array([], dtype=int), [], np.array([]))
    assert nothing.verdicts == nothing.states == ()


def test_the_level_of_a_whole_claim_is_holms_and_that_of_a_part_is_hochbergs():
    """Worked by hand: p of .012, .001 and .3; of the second claim only the part of .001 holds."""
    p = np.array([0.004, 0.001, 0.3, 0.2])
    values = stats.t(DF).isf(p / 2)
    found = decided(effects(values), np.array([0, 1, 1, 2]), ["above"] * 4, np.full(4, 1.0))
    assert found.verdicts == ("supported", "partly", "undecided")
    # Holm over the largest p of claims: .004, .3, .2 -> 3 x .004; then two claims are left
    assert found.p == pytest.approx([0.012, 2 * 2 * 0.001, 2 * 0.3, 2 * 0.2], rel=1e-3)


def test_an_effect_without_a_variance_decides_nothing():
    unknown = Estimate(np.array([9.0]), {ROWS: Component(np.array([np.nan]))})
    for estimate in (unknown, effects([9.0], 0.0)):
        found = decided(estimate, np.array([0]), ["above"], np.array([1.0]))
        assert found.verdicts == found.states == ("undecided",)


def test_hochberg_is_its_definition():
    """The least over larger ones of p times its rank from above (brute force)."""
    p = np.random.default_rng(0).random((30, 6)) ** 2
    for row in p:
        order = np.sort(row)
        brute = [
            min(order[k] * (len(row) - k) for k in range(len(row)) if order[k] >= value)
            for value in row
        ]
        np.testing.assert_allclose(hochberg(row), np.minimum(brute, 1))
    assert (hochberg(p[0]) <= holm(p[0])).all()


BENCHMARK = module(ROOT / "benchmarks" / "claims.py")


@pytest.mark.parametrize("claims", [4, 12])
@pytest.mark.parametrize("case", BENCHMARK.CASES)
def test_no_wrong_answer_about_a_paper_in_more_than_one_of_twenty(case, claims):
    """Splits that share rows, parts that share rows; within three binomial errors."""
    number = 150
    assert BENCHMARK.error_rate(case, claims, number) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / number)


@pytest.mark.parametrize("verdict", BENCHMARK.PAIRS)
@pytest.mark.parametrize("seeds", [5, 10])
@pytest.mark.parametrize("number", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_wrong_verdict_on_twelve_claims_of_two_parts(verdict, seeds, number):
    """At most 5 % of papers have one, within three binomial errors (.065 and .021)."""
    allowed = 0.05 + 3 * np.sqrt(0.05 * 0.95 / number)
    assert BENCHMARK.wrong_verdicts(verdict, seeds, number) <= allowed


def test_large_effects_are_seen_and_small_ones_excluded():
    """As far as ten seeds reach: nearly always at eight standard errors."""
    for case in BENCHMARK.POWERS:
        if "8" in case:
            assert BENCHMARK.power(case, 12, 30) >= 0.95, case
