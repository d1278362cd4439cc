"""Adjusted p-values."""

import numpy as np
from scipy import stats

from robust_fairness.numbers.verdicts import false_discovery_rate, holm


def test_holm_is_its_definition():
    """The k-th smallest of m times m - k + 1, never falling, at most 1 (worked by hand)."""
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.6, 0.9]), [1, 1])
    assert holm([]).shape == (0,)


def test_false_discovery_rate_is_that_of_scipy():
    p = np.random.default_rng(0).random(50) ** 3
    np.testing.assert_allclose(false_discovery_rate(p), stats.false_discovery_control(p))
    assert false_discovery_rate([]).shape == (0,)


def test_missing_p_values_are_no_tests():
    p = [0.01, np.nan, 0.03]
    np.testing.assert_allclose(holm(p), [0.02, np.nan, 0.03])
    np.testing.assert_allclose(false_discovery_rate(p), [0.02, np.nan, 0.03])
