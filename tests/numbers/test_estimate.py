"""Values with components of variance: tails, tests and intervals."""

import numpy as np
import pytest
from scipy import stats

from robust_fairness.numbers.estimate import REFITS, ROWS, Component, Estimate

INF = np.inf
TAILS = np.array([0.2, 0.025, 1e-3, 1e-6])


def estimate(value, known, estimated=0.0, df=INF):
    value = np.atleast_1d(np.asarray(value, float))
    rows = Component(np.full(value.shape, float(known)))
    refits = Component(np.full(value.shape, float(estimated)), np.full(value.shape, float(df)))
    return Estimate(value, {ROWS: rows, REFITS: refits})


@pytest.mark.parametrize(
    ("known", "estimated", "df", "law"),
    [(4, 0, INF, stats.norm(scale=2)), *((0, 1, df, stats.t(df)) for df in (1, 2, 4, 9, 100, 1e4))],
)
def test_a_known_variance_is_normal_and_an_estimated_one_students_t(known, estimated, df, law):
    zeros, distance = estimate(np.zeros(4), known, estimated, df), law.isf(TAILS)
    np.testing.assert_allclose(zeros.tail(distance), TAILS, rtol=1e-6)
    np.testing.assert_allclose(zeros.critical(TAILS), distance, rtol=1e-6)
    np.testing.assert_allclose(zeros.df, df)


@pytest.mark.parametrize(("known", "estimated", "df"), [(1, 0.3, 4), (1, 2, 4), (0.5, 1, 1)])
def test_a_mixed_tail_is_that_of_its_simulation(known, estimated, df):
    """The integral over the chi-squared variable by a quantile rule of scipy's distribution."""
    levels = (np.arange(400_000) + 0.5) / 400_000
    variance = known + estimated * df / stats.chi2.ppf(levels, df)
    for distance in (0.5, 2.0, 5.0):
        exact = stats.norm.sf(distance / np.sqrt(variance)).mean()
        assert estimate(0, known, estimated, df).tail(distance)[0] == pytest.approx(exact, rel=2e-3)


def test_satterthwaite():
    """Welch's test of two samples has these degrees of freedom (scipy)."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(0, 1, 7), rng.normal(0, 3, 12)
    first, second = (Component(x.var(ddof=1) / len(x), len(x) - 1) for x in (a, b))
    difference = Estimate(np.array([a.mean() - b.mean()]), {REFITS: first + second})
    welch = stats.ttest_ind(a, b, equal_var=False)
    assert difference.df[0] == pytest.approx(welch.df)
    assert difference.p()[0] == pytest.approx(welch.pvalue, rel=1e-6)
    low, high = difference.interval()
    assert (low[0], high[0]) == pytest.approx(tuple(welch.confidence_interval()), rel=1e-6)


def test_bound_is_the_margin_that_it_is_held_within():
    values = estimate([0.1, -0.3, 0.0], 0.01, 0.02, 5)
    np.testing.assert_allclose(values.variance, 0.03)
    np.testing.assert_allclose(values.p_within(values.bound()), 0.05, rtol=1e-6)
    np.testing.assert_allclose(values.p_within(0.0), 1 - values.tail(np.abs(values.value)))


def test_detectable_changes_are_found_as_often_as_said():
    """The power of the normal test is known in closed form."""
    assert estimate([0.0], 1).detectable()[0] == pytest.approx(
        stats.norm.isf(0.025) + stats.norm.isf(0.2)
    )


def test_an_unknown_variance_has_no_test():
    for values in (estimate([0.0, 0.2], 0), estimate([0.0, 0.2], np.nan)):
        assert np.isnan(values.critical(0.025)).all()
    assert np.isnan(estimate([0.2], np.nan).p()).all()
