"""The permutation test: its p-values, strata and corrections."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.bench.maths.cross_covariance import variable
from robust_fairness.bench.maths.permutation import (
    hsic_test,
    permutation_test,
    permutations_within,
    strata_of,
)
from tests.maths.test_cross_covariance import exact_score


def rows(values) -> torch.Tensor:
    return torch.tensor(np.asarray(values, dtype=np.float64))[:, None]


def brute_force(p, a, y, strata, permutations, seed):
    """Every score anew from whole matrices; to move A forth is to move the predictions back."""
    observed = exact_score([variable(p), variable(a, y), variable(y)])
    drawn = permutations_within(strata, permutations, np.random.default_rng(seed))
    scores = [
        exact_score([variable(p), variable(a[order.argsort()], y), variable(y)])
        for order in torch.from_numpy(drawn)
    ]
    return (1 + sum(score >= observed for score in scores)) / (1 + permutations)


def test_p_value_within_classes_is_that_of_scores_computed_anew():
    """Norms are reused, but the score has not changed for it."""
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 40)
    a, p = rng.normal(size=40) + y, rng.normal(size=40) + y
    p = rows(p + 0.3 * a)
    a, y = rows(a), rows(y)
    strata = strata_of(y.numpy(), 10)
    p_value = permutation_test([variable(p), variable(a, y), variable(y)], strata, 59, seed=5)
    expected = brute_force(p, a, y, strata, 59, seed=5)
    assert 0.02 < expected < 0.9
    assert float(p_value) == pytest.approx(float(expected), abs=1.01 / 60)


def gaussian(x, width):
    """The kernel matrix of one standardised column."""
    x = (x - x.mean()) / x.std()
    return np.exp(-0.5 * ((x[:, None] - x) / width) ** 2)


@pytest.mark.parametrize("classes", [1, 3])
def test_p_value_of_hsic_is_that_of_whole_kernel_matrices(classes):
    """Centred within every class, for every permutation."""
    rng = np.random.default_rng(7)
    y = rng.integers(0, classes, 60)
    a = rng.normal(size=60) + y
    p = y + 0.1 * a**2 + rng.normal(size=60)
    variables = [variable(rows(column)) for column in (p, a)]
    kernels = [
        gaussian(column, float(v.width)) for column, v in zip((p, a), variables, strict=True)
    ]

    def statistic(order):
        total = 0.0
        for number in range(classes):
            some = np.flatnonzero(y == number)
            centring = np.eye(len(some)) - 1 / len(some)
            moved = order[some]
            first = kernels[0][np.ix_(some, some)]
            second = kernels[1][np.ix_(moved, moved)]
            total += np.trace(first @ centring @ second @ centring) / len(some)
        return total

    drawn = permutations_within(y, 99, np.random.default_rng(5))
    observed = statistic(np.arange(60))
    expected = (1 + sum(statistic(order) >= observed for order in drawn)) / 100
    assert 0.01 < expected < 0.9
    p_value = hsic_test(variables, y, 99, seed=5)
    # the library may move the other variable: the same draws backwards
    backwards = (1 + sum(statistic(order.argsort()) >= observed for order in drawn)) / 100
    assert p_value in (pytest.approx(expected), pytest.approx(backwards))


def test_a_row_alone_in_its_class_adds_nothing_to_hsic():
    """Whatever its values."""
    rng = np.random.default_rng(2)
    y, a, p = np.arange(30) // 10, rng.normal(size=30), rng.normal(size=30)
    with_alone = np.append(y, 3)

    def p_value(far):
        columns = [rows(np.append(values, far)) for values in (p, a)]
        fixed = {"standardise": False, "width": lambda *_: torch.tensor(1.0)}
        return hsic_test([variable(column, **fixed) for column in columns], with_alone, 99)

    assert p_value(0.0) == p_value(9.0)


@given(st.integers(0, 1000), st.integers(1, 30), st.integers(1, 5))
def test_permutations_stay_in_their_strata(seed, n, count):
    """And are permutations."""
    generator = np.random.default_rng(seed)
    strata = generator.integers(0, 4, n)
    for drawn in permutations_within(strata, count, generator):
        assert sorted(drawn) == list(range(n))
        assert (strata[drawn] == strata).all()


def test_permutations_are_uniform():
    """Three rows of one stratum: six orders equally often, by chi-square (99.9 %: 20.5)."""
    drawn = permutations_within(np.array([0, 1, 0, 0]), 6000, np.random.default_rng(0))
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == 6
    assert ((counts - 1000) ** 2 / 1000).sum() < 20.5


def test_strata_of_classes_are_the_classes_and_of_numbers_near_ones():
    """Equal values stay together where they repeat; else strata are small and convex."""
    classes = np.eye(3)[np.random.default_rng(0).integers(0, 3, 100)]
    strata = strata_of(classes, 10)
    assert (strata == classes.argmax(1).max() - classes.argmax(1)).all() or len(
        np.unique(np.column_stack([strata, classes.argmax(1)]), axis=0)
    ) == 3
    numbers = np.random.default_rng(0).normal(size=(100, 1))
    strata = strata_of(numbers, 10)
    spans = sorted(
        (numbers[strata == k].min(), numbers[strata == k].max()) for k in np.unique(strata)
    )
    assert np.bincount(strata).max() <= 10
    assert all(span[1] <= other[0] for span, other in zip(spans, spans[1:], strict=False))


def test_a_stratum_of_one_row_stays_in_place():
    """Nothing can be exchanged: every permutation is the identity, and the p-value 1."""
    rng = np.random.default_rng(0)
    p, a = rows(rng.normal(size=12)), rows(rng.normal(size=12))
    assert permutation_test([variable(p), variable(a)], np.arange(12), 19) == 1


def test_dependence_is_found_and_independence_is_not():
    """The smallest p-value for a strong dependence; given its cause, none."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 300)
    a, p = y + 0.5 * rng.normal(size=300), y + 0.5 * rng.normal(size=300)
    p, a, y = rows(p), rows(a), rows(y)
    everyone = np.zeros(300, dtype=np.int64)
    assert permutation_test([variable(p), variable(a)], everyone, 199) == 1 / 200
    given_y = [variable(p), variable(a, y), variable(y)]
    assert permutation_test(given_y, strata_of(y.numpy()), 199) > 0.05
