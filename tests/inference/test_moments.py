"""Means of row values and their variances, from sums over blocks."""

import numpy as np
import pytest

from robust_fairness.inference.moments import (
    Moments,
    covariance_by_replicates,
    covariance_by_unit,
)


def rows(seed=0, n=500):
    rng = np.random.default_rng(seed)
    return rng.normal(1e6, 1, n), rng.integers(0, 3, n), rng.random(n) + 0.1


def assert_same(one: Moments, other: Moments) -> None:
    np.testing.assert_array_equal(one.n, other.n)
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-14)
    np.testing.assert_allclose(one.variance, other.variance, rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_are_computed_in_one_pass_and_blocks_add_up(weighted):
    values, group, weight = rows()
    weight = weight if weighted else np.ones_like(weight)
    found = Moments.of(values, group, 3, weight if weighted else None)
    for number in range(3):
        x, w = values[group == number], weight[group == number]
        mean = np.average(x, weights=w)
        assert found.mean[number] == pytest.approx(mean, rel=1e-14)
        linear = len(x) / (len(x) - 1) * np.sum((w * (x - mean)) ** 2) / w.sum() ** 2
        assert found.variance[number] == pytest.approx(linear, rel=1e-6)
        if not weighted:
            assert found.variance[number] == pytest.approx(x.var(ddof=1) / len(x), rel=1e-6)
    blocks = [slice(0, 7), slice(7, 200), slice(200, 500)]
    parts = [
        Moments.of(values[rows], group[rows], 3, weight[rows] if weighted else None)
        for rows in blocks
    ]
    assert_same(parts[0] + parts[1] + parts[2], found)


def test_rows_without_a_group_and_groups_without_rows():
    found = Moments.of(np.array([1.0, 5.0, 9.0]), np.array([0, -1, 1]), 3)
    np.testing.assert_array_equal(found.n, [1, 0 + 1, 0])
    np.testing.assert_array_equal(found.mean, [1, 9, np.nan])
    assert np.isnan(found.variance).all()


def test_units_of_one_row_are_rows():
    values, group, weight = rows(1)
    found = covariance_by_unit(values, group, 3, np.arange(500), weight)
    n = np.bincount(group)
    own = Moments.of(values, group, 3, weight).variance * (n - 1) / n * 500 / 499
    np.testing.assert_allclose(np.diag(found), own, rtol=1e-6)
    np.testing.assert_allclose(found - np.diag(np.diag(found)), 0, atol=1e-12)


def test_copies_of_rows_in_a_unit_are_one_row():
    rng = np.random.default_rng(2)
    values, group = rng.normal(size=200), rng.integers(0, 2, 200)
    thrice = [np.tile(one, 3) for one in (values, group, np.arange(200))]
    np.testing.assert_allclose(
        covariance_by_unit(thrice[0], thrice[1], 2, thrice[2]),
        covariance_by_unit(values, group, 2, np.arange(200)),
    )


def test_households_that_span_groups_are_simulated():
    """Variance of a difference of two groups whose members share households of 1 to 6."""
    rng = np.random.default_rng(3)
    differences, expected = [], []
    for _ in range(800):
        unit = np.repeat(np.arange(150), rng.integers(1, 7, 150))
        group = rng.integers(0, 2, len(unit))
        values = rng.normal(size=150)[unit] + rng.normal(size=len(unit))
        covariance = covariance_by_unit(values, group, 2, unit)
        differences.append(values[group == 0].mean() - values[group == 1].mean())
        expected.append(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert np.var(differences) == pytest.approx(np.mean(expected), rel=0.15)


def test_replicates_are_those_of_the_census_bureau():
    """4 / 80 of the sum of squares around the estimate."""
    replicates = np.arange(80.0)[:, None] * [1, -2]
    found = covariance_by_replicates(replicates, np.array([10.0, -20.0]))
    squares = np.square(np.arange(80.0) - 10).sum() / 20
    np.testing.assert_allclose(found, squares * np.array([[1, -2], [-2, 4]]))
