"""Robustness slope: the line, how well it fits, and its interval."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from robust_fairness.metrics import robustness_slope
from robust_fairness.metrics.robustness_slope import fit


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_line_equals_scipy(offset):
    """Slope, intercept and R squared, also where strengths are far from 0."""
    rng = np.random.default_rng(0)
    x = offset + rng.uniform(0, 45, 30)
    y = -0.004 * (x - offset) + rng.normal(0, 0.02, 30)
    found, expected = fit(x, y, np.arange(30)), stats.linregress(x, y)
    assert found.slope == pytest.approx(expected.slope, rel=1e-6)
    assert found.intercept == pytest.approx(expected.intercept, rel=1e-6)
    assert found.r_squared == pytest.approx(expected.rvalue**2, rel=1e-6)
    assert (found.points, found.units, found.note) == (30, 30, "")


def test_points_on_a_line_have_no_uncertainty():
    """Closed form: y = 0.1 - 0.002 x."""
    x = np.tile([0.0, 15.0, 30.0, 45.0], 3)
    found = fit(x, 0.1 - 0.002 * x, np.repeat([7, 8, 9], 4))
    numbers = (found.slope, found.low, found.high, found.intercept, found.r_squared)
    assert numbers == pytest.approx((-0.002, -0.002, -0.002, 0.1, 1.0))


def test_interval_is_that_of_all_resamples_of_three_seeds(monkeypatch):
    """By hand: 27 ordered resamples, a line through the curves of each."""
    monkeypatch.setattr(robustness_slope, "DRAWS", 20_000)
    rng = np.random.default_rng(1)
    x = np.array([0.0, 10.0, 20.0])
    curves = -np.array([[0.002], [0.004], [0.009]]) * x + rng.normal(0, 0.001, (3, 3))
    slopes = [
        stats.linregress(np.tile(x, 3), curves[list(drawn)].ravel()).slope
        for drawn in product(range(3), repeat=3)
    ]
    unit = np.repeat(["a", "b", "c"], 3)
    found = fit(np.tile(x, 3), curves.ravel(), unit)
    expected = np.quantile(slopes, [0.025, 0.975], method="inverted_cdf")
    assert (found.low, found.high) == pytest.approx(tuple(expected), rel=1e-9)
    assert found.units == 3


def test_units_of_unequal_size_are_drawn_with_all_their_points():
    """A unit with many points weighs as many, in the line and in each resample."""
    rng = np.random.default_rng(2)
    unit = np.repeat(np.arange(6), [2, 3, 9, 2, 4, 5])
    x = rng.uniform(0, 1, len(unit))
    y = -(1 + unit) * x + rng.normal(0, 0.1, len(unit))
    slopes = []
    for drawn in np.random.default_rng(3).integers(0, 6, (1500, 6)):
        some = np.concatenate([np.flatnonzero(unit == one) for one in drawn])
        slopes.append(np.polyfit(x[some], y[some], 1)[0])
    found = fit(x, y, unit)
    width = np.ptp(np.quantile(slopes, [0.025, 0.975]))
    assert (found.low, found.high) == pytest.approx(
        tuple(np.quantile(slopes, [0.025, 0.975])), abs=0.1 * width
    )
    assert found.slope == pytest.approx(np.polyfit(x, y, 1)[0])


def test_whole_curves_that_move_together_leave_the_interval_wide():
    """Resampling points would take the points of a curve for independent ones."""
    rng = np.random.default_rng(4)
    x = np.tile(np.linspace(0, 45, 10), 8)
    y = np.repeat(rng.normal(-0.004, 0.002, 8), 10) * x
    by_seed = fit(x, y, np.repeat(np.arange(8), 10))
    by_point = fit(x, y, np.arange(80))
    assert by_seed.high - by_seed.low > 1.3 * (by_point.high - by_point.low)


def test_the_same_arguments_give_the_same_interval():
    rng = np.random.default_rng(5)
    x, y, unit = rng.normal(size=20), rng.normal(size=20), np.repeat(np.arange(5), 4)
    assert fit(x, y, unit) == fit(x, y, unit)


def test_what_is_missing_is_said():
    """One strength, two seeds, a constant, nothing."""
    one = fit(np.array([15.0, 15.0]), np.array([0.1, 0.2]), np.array([0, 1]))
    assert np.isnan(one.slope)
    assert one.note == "no slope: fewer than two strengths"
    two = fit(np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, -1.0, 0, -2]), np.array([0, 0, 1, 1]))
    assert two.slope == pytest.approx(-1.5)
    assert np.isnan(two.low)
    assert two.note == "no interval: fewer than 3 units"
    flat = fit(np.tile([0.0, 1.0], 3), np.full(6, 0.3), np.repeat([0, 1, 2], 2))
    assert (flat.slope, flat.low, flat.high) == pytest.approx((0.0, 0.0, 0.0))
    assert np.isnan(flat.r_squared)
    assert flat.note == "no R squared: all values are equal"
    none = fit(np.empty(0), np.empty(0), np.empty(0))
    assert (none.points, none.units) == (0, 0)
    assert none.note
