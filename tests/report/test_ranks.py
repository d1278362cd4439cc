"""Ranks over datasets against scipy, brute force and the example that Demsar (2006) works out."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from robust_fairness.report.ranks import (
    Comparison,
    cliques,
    compare,
    comparison_of,
    complete,
    critical_difference,
    friedman,
    in_words,
    ranked,
    scores,
)
from tests.report.test_report import made_up

# AUC of four trees on fourteen datasets: Demsar (2006), Table 6
TREES = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967], [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875], [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975], [0.957, 0.978, 0.946, 0.970],
    ]
)  # fmt: skip

tables = arrays(
    np.int64, st.tuples(st.integers(3, 7), st.integers(3, 6)), elements=st.integers(0, 4)
)


def test_the_published_example():
    """Average ranks, both statistics, the critical difference and what follows, as printed."""
    ranks = ranked(AUC, "higher")
    n, k = ranks.shape
    assert ranks.mean(axis=0) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    # the paper leaves ties as they are: take the correction out again
    test = friedman(ranks)
    ties = sum(count**3 - count for row in ranks for count in np.unique(row, return_counts=True)[1])
    without = test.chi_squared * (1 - ties / (n * k * (k**2 - 1)))
    assert without == pytest.approx(9.28, abs=0.005)
    assert (n - 1) * without / (n * (k - 1) - without) == pytest.approx(3.69, abs=0.005)
    assert critical_difference(k, n) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(k, n, 0.1) == pytest.approx(1.12, abs=0.005)
    compared = compare(pd.DataFrame(AUC, columns=TREES), "higher")
    assert list(compared.ranks.index) == ["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"]
    assert compared.differs
    # "not powerful enough to detect any significant differences" at 5 %
    assert compared.groups == [tuple(compared.ranks.index)]
    # at 10 %: C4.5 is worse than both with m
    assert cliques(compared.ranks, critical_difference(k, n, 0.1)) == [
        ("C4.5+m+cf", "C4.5+m", "C4.5+cf"),
        ("C4.5+cf", "C4.5"),
    ]


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (5, 2.728), (10, 3.164)])
def test_critical_values_are_those_of_the_published_table(k, q):
    """Demsar (2006), Table 5a."""
    assert critical_difference(k, 9) / np.sqrt(k * (k + 1) / 54) == pytest.approx(q, abs=1e-3)


@given(tables)
def test_friedman_equals_scipy_with_ties(values):
    """Also where rows are ties through and through, which scipy refuses."""
    ranks = ranked(values.astype(float), "lower")
    test = friedman(ranks)
    if all(np.ptp(row) == 0 for row in values):
        assert test.p == 1
        return
    expected = stats.friedmanchisquare(*values.T).statistic
    assert test.chi_squared == pytest.approx(expected)
    assert 0 <= test.p <= 1
    n, k = values.shape
    if expected < n * (k - 1) * (1 - 1e-6):
        f = (n - 1) * expected / (n * (k - 1) - expected)
        assert test.p == pytest.approx(stats.f.sf(f, k - 1, (k - 1) * (n - 1)))


@given(tables)
def test_ranks_equal_counting(values):
    """One more than the number of better ones, and half of the other equal ones."""
    for better, sign in (("lower", 1), ("higher", -1)):
        for row, ranks in zip(sign * values, ranked(values.astype(float), better), strict=True):
            for value, rank in zip(row, ranks, strict=True):
                assert rank == 1 + (row < value).sum() + ((row == value).sum() - 1) / 2


@given(st.lists(st.integers(0, 12), min_size=1, max_size=8), st.integers(1, 6))
def test_groups_equal_brute_force(values, difference):
    """Every pair of a group is nearer than the difference, and no group lies in another."""
    ranks = pd.Series(sorted(values), [f"m{k}" for k in range(len(values))], dtype=float)
    near = {
        frozenset(some)
        for size in range(2, len(ranks) + 1)
        for some in combinations(ranks.index, size)
        if ranks[list(some)].max() - ranks[list(some)].min() < difference
    }
    largest = {some for some in near if not any(some < other for other in near)}
    groups = cliques(ranks, float(difference))
    assert {frozenset(group) for group in groups} == largest
    assert len(groups) == len(largest)


def test_all_datasets_agree_or_none_tells_anything():
    """Equal rankings are the surest result, ties alone none; neither divides by zero."""
    agree = compare(pd.DataFrame(np.tile([1.0, 2.0, 3.0], (9, 1)), columns=list("abc")), "higher")
    assert (agree.test.f, agree.test.p) == (np.inf, 0)
    assert list(agree.ranks.index) == ["c", "b", "a"]
    assert agree.groups == [("c", "b"), ("b", "a")]
    tied = compare(pd.DataFrame(np.ones((9, 3)), columns=list("abc")), "higher")
    assert (tied.test.p, tied.groups) == (1, [("a", "b", "c")])
    assert "No difference" in in_words(tied)


def test_what_is_missing_is_left_out_and_named():
    """A method on one dataset goes before the datasets do; a complete table stays."""
    full = pd.DataFrame(AUC, columns=TREES)
    assert complete(full)[0].equals(full)
    gaps = full.assign(rare=[1.0] + [np.nan] * 13)
    gaps.iloc[3, 0] = np.nan
    kept, gone = complete(gaps)
    assert gone == ("rare", "3")
    assert kept.shape == (13, 4)
    assert compare(gaps, "higher").left_out == gone
    assert "Left out because scores are missing: rare, 3." in in_words(compare(gaps, "higher"))


@pytest.mark.parametrize("shape", [(0, 0), (1, 5), (2, 5), (5, 2)])
def test_too_few_are_not_tested(shape):
    """In words, not as a p-value."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=shape))
    comparison = compare(table, "higher")
    assert (comparison.test, comparison.groups, len(comparison.ranks)) == (None, [], 0)
    told = in_words(comparison)
    assert told.startswith("Not enough")
    assert f"{shape[1]} methods and {shape[0]} datasets have scores" in told


def test_scores_are_of_the_chosen_trial_the_strongest_severity_and_the_first_attribute():
    """What must not count is put at 99."""
    metrics = made_up(seeds=2)
    wrong = metrics.assign(value=99.0)
    noise = wrong["shift"] == "gaussian_noise"
    metrics = pd.concat(
        [
            metrics,
            wrong.assign(trial="alpha=1", selection="every"),
            wrong.assign(selection="delta_eo"),
            wrong[noise].assign(severity=0.01),
            wrong[wrong["attribute"] != ""].assign(attribute="another"),
            wrong.assign(group="g"),
        ],
        ignore_index=True,
    )
    clean, shifted = (scores(metrics, "delta_eo", under) for under in (False, True))
    assert list(clean.index) == ["communities_race"]
    assert list(clean.columns) == ["erm", "adv_debias", "laftr", "cuma"]
    assert clean.loc["communities_race"].to_numpy() == pytest.approx([0.7, 0.5, 0.3, 0.1], abs=0.05)
    assert shifted.loc["communities_race", "cuma"] == pytest.approx(0.2, abs=0.05)
    only = metrics[metrics["selection"] == "every"].assign(trial="default", value=1.0)
    assert (scores(only, "accuracy", False) == 1).to_numpy().all()


def test_methods_of_a_table_are_ranked_in_the_direction_of_the_metric():
    """CUMA is fairest by construction."""
    metrics = pd.concat([made_up(2, dataset=name) for name in "abcdefgh"], ignore_index=True)
    comparison = comparison_of(metrics, "delta_eo", True)
    assert isinstance(comparison, Comparison)
    assert list(comparison.ranks.index) == ["cuma", "laftr", "adv_debias", "erm"]
    assert list(comparison.ranks) == [1, 2, 3, 4]
    assert comparison.differs
