"""Verdicts on claims: against scipy, by cases, and by simulation."""

import numpy as np
import pytest
from scipy import stats

from robust_fairness.inference import REFITS, ROWS, Component, Estimate
from robust_fairness.inference.adjust import hochberg, holm
from robust_fairness.inference.claims import decided
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
    assert found.holds[0] == (expected < 0.05)
    reverse = {
        "above": 2 * t.cdf(value), "below": 2 * t.sf(value),
        "within": 2 * min(t.cdf(value + margin), t.sf(value - margin)),
        "not below": 2 * t.cdf(value + margin), "not above": 2 * t.sf(value - margin),
    }[says]  # fmt: skip
    assert found.reversed[0] == (reverse < 0.05)
    small = {"above": t.cdf(value - margin), "below": t.sf(value + margin)}.get(says, 1.0)
    assert found.excluded[0] == (small < 0.05)


@pytest.mark.parametrize(
    ("values", "claim", "expected"),
    [
        ([9, 8, 7], [0, 0, 0], ["supported"]),
        ([9, 8, 1], [0, 0, 0], ["partly"]),
        ([9, 8, -9], [0, 0, 0], ["partly"]),
        ([1, 1, -9], [0, 0, 0], ["contradicted"]),
        ([0.1, -0.2, 0], [0, 0, 0], ["excluded"]),
        ([0.1, -0.2, 2.2], [0, 0, 0], ["undecided"]),
        ([9, np.nan], [0, 0], ["partly"]),
        ([np.nan, np.nan], [0, 0], ["undecided"]),
        ([9, -9, 0.1, 2.2], [0, 1, 2, 3], ["supported", "contradicted", "excluded", "undecided"]),
        ([], [], []),
    ],
)
def test_verdicts_follow_from_the_parts(values, claim, expected):
    """Margins are 4 standard errors."""
    number = len(values)
    found = decided(
        effects(values), np.array(claim, dtype=int), ["above"] * number, np.full(number, 4.0)
    )
    assert list(found.verdicts) == expected


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
        assert found.verdicts == ("undecided",)
        assert not (found.holds | found.reversed | found.excluded).any()


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


def test_large_effects_are_seen_and_small_ones_excluded():
    """As far as ten seeds reach: nearly always at eight standard errors."""
    for case in BENCHMARK.POWERS:
        if "8" in case:
            assert BENCHMARK.power(case, 12, 30) >= 0.95, case
