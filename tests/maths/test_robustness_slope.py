"""Robustness slope: the line, how well it fits, and its interval."""

import numpy as np
import pytest
from scipy import stats

from robust_fairness.bench.maths.robustness_slope import fit


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_line_equals_scipy(offset):
    """Slope, intercept and R squared, also where strengths are far from 0."""
    rng = np.random.default_rng(0)
    x = offset + rng.uniform(0, 45, 30)
    y = -0.004 * (x - offset) + rng.normal(0, 0.02, 30)
    line, expected = fit(x, y, np.arange(30)), stats.linregress(x, y)
    assert line.slope == pytest.approx(expected.slope, rel=1e-6)
    assert line.intercept == pytest.approx(expected.intercept, rel=1e-6)
    assert line.r_squared == pytest.approx(expected.rvalue**2, rel=1e-6)
    assert (line.points, line.units, line.note) == (30, 30, "")


def test_units_with_the_same_strengths_have_the_interval_of_their_mean_slope():
    """Scipy's interval of the mean of the slopes of three seeds, also where curves have offsets."""
    rng = np.random.default_rng(1)
    x = np.array([0.0, 10.0, 20.0])
    curves = rng.normal(0, 1, (3, 1)) - np.array([[0.002], [0.004], [0.009]]) * x
    curves += rng.normal(0, 0.001, (3, 3))
    slopes = [stats.linregress(x, curve).slope for curve in curves]
    line = fit(np.tile(x, 3), curves.ravel(), np.repeat(["a", "b", "c"], 3))
    expected = stats.ttest_1samp(slopes, 0).confidence_interval(0.95)
    assert line.slope == pytest.approx(np.mean(slopes))
    assert (line.low, line.high) == pytest.approx((expected.low, expected.high), rel=1e-9)


@pytest.mark.parametrize("units", [3, 4, 5])
def test_the_interval_has_its_coverage(units):
    """Units that differ in slope and offset, with noise: 95 % within Monte Carlo error."""
    rng = np.random.default_rng(units)
    x, unit = np.tile(np.linspace(0, 60, 7), units), np.repeat(np.arange(units), 7)
    covered = 0
    for slopes, offsets in rng.normal(0, [[1e-3], [0.02]], (1500, 2, units)):
        y = (slopes - 0.005)[unit] * x + offsets[unit] + rng.normal(0, 0.01, len(x))
        line = fit(x, y, unit)
        covered += line.low < -0.005 < line.high
    assert covered / 1500 == pytest.approx(0.95, abs=0.018)


def test_what_is_missing_is_said():
    """One strength, two seeds, a constant, nothing."""
    vertical = fit(np.array([15.0, 15.0]), np.array([0.1, 0.2]), np.array([0, 1]))
    assert np.isnan(vertical.slope)
    assert vertical.note == "no slope: fewer than two strengths"
    two = fit(np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, -1.0, 0, -2]), np.array([0, 0, 1, 1]))
    assert two.slope == pytest.approx(-1.5)
    assert two.note == "" and two.low < two.slope < two.high
    single = fit(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0, 0]))
    assert np.isnan(single.low) and single.note == "no interval: fewer than 2 units"
    flat = fit(np.tile([0.0, 1.0], 3), np.full(6, 0.3), np.repeat([0, 1, 2], 2))
    assert flat.slope == pytest.approx(0.0)
    assert np.isnan([flat.low, flat.r_squared]).all()
    assert flat.note.split("; ") == [
        "no interval: all units have the same line",
        "no R squared: all values are equal",
    ]
    none = fit(np.empty(0), np.empty(0), np.empty(0))
    assert (none.points, none.units) == (0, 0)
    assert none.note
