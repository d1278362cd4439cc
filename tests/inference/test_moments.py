"""Means of row values and their variances."""

import numpy as np
import pytest

from robust_fairness.inference.moments import Moments


def rows(seed=0, n=500):
    rng = np.random.default_rng(seed)
    return rng.normal(1e6, 1, n), rng.integers(0, 3, n), rng.random(n) + 0.1


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_are_computed_in_one_pass(weighted):
    values, group, weight = rows()
    weight = weight if weighted else np.ones_like(weight)
    moments = Moments.of(values, group, 3, weight if weighted else None)
    for number in range(3):
        x, w = values[group == number], weight[group == number]
        mean = np.average(x, weights=w)
        assert moments.mean[number] == pytest.approx(mean, rel=1e-14)
        linear = len(x) / (len(x) - 1) * np.sum((w * (x - mean)) ** 2) / w.sum() ** 2
        assert moments.variance[number] == pytest.approx(linear, rel=1e-6)
        if not weighted:
            assert moments.variance[number] == pytest.approx(x.var(ddof=1) / len(x), rel=1e-6)


def test_rows_without_a_group_and_groups_without_rows():
    moments = Moments.of(np.array([1.0, 5.0, 9.0]), np.array([0, -1, 1]), 3)
    np.testing.assert_array_equal(moments.n, [1, 0 + 1, 0])
    np.testing.assert_array_equal(moments.mean, [1, 9, np.nan])
    assert np.isnan(moments.variance).all()
