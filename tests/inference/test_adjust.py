"""Adjusted p-values."""

import numpy as np

from robust_fairness.inference.adjust import holm


def test_holm_is_its_definition():
    """The k-th smallest of m times m - k + 1, never falling, at most 1 (worked by hand)."""
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.6, 0.9]), [1, 1])
    assert holm([]).shape == (0,)
