"""Components of variance against direct computation and simulation."""

import numpy as np
import pytest
from scipy import stats

from robust_fairness.numbers.estimate import (
    LEVEL,
    REFITS,
    ROWS,
    Component,
    Estimate,
    between_domains,
    between_refits,
    moderated,
    of_rate,
    of_rows,
    over_domains,
    resampled,
    small_counts,
)


def test_a_rate_has_the_variance_of_its_mean():
    hits = np.array([1] * 7 + [0] * 13)
    assert of_rate(hits.mean(), 20) == pytest.approx(hits.var(ddof=1) / 20)
    assert np.isnan(of_rate(1.0, 1))


def test_small_counts_add_a_row_to_either_side():
    """Agresti and Caffo (2000); 3 of 10 are 4 of 12."""
    centre, variance = small_counts(0.3, of_rate(0.3, 10), 10)
    assert (centre, variance) == (pytest.approx(4 / 12), pytest.approx(4 * 8 / 12**3))
    assert small_counts(1.0, 0.0, 10)[0] == pytest.approx(11 / 12)
    # households that double the variance leave half of the rows
    centre, _ = small_counts(0.5, 2 * of_rate(0.5, 101), 101)
    assert centre == 0.5
    assert np.isnan(small_counts(0.25, of_rate(0.25, 4), 4)).all()


def test_a_mean_over_rows_has_two_rows_added_as_far_as_the_furthest():
    for shape in (0.1, 1.0, 5.0):
        values = np.random.default_rng(2).gamma(shape, size=50)
        furthest = np.abs(values - values.mean()).max() * np.array([-1, 1])
        with_two = np.append(values, values.mean() + furthest)
        assert of_rows(values) == pytest.approx(with_two.var() / 52)
    assert of_rows(np.ones(50)) == 0


@pytest.mark.parametrize("differing", [0.02, 0.1, 0.5])
def test_seeds_and_rows_together_cover_the_difference_of_two_methods(differing):
    """Two methods score the same 200 rows, which differ between them in some, with ten seeds."""
    rng, drawn = np.random.default_rng(3), []
    for _ in range(400):
        hard = rng.beta(0.3, 3, (2, 200)) * (rng.random(200) < differing) + 0.01
        wrong = rng.random((10, 2, 200)) < hard + rng.normal(0, 0.01, (10, 2, 1))
        by_row = wrong[:, 0].astype(float) - wrong[:, 1]
        drawn.append(
            (by_row.mean(), between_refits(by_row.mean(1)).variance, of_rows(by_row.mean(0)))
        )
    value, refits, rows = np.array(drawn, float).T
    effects = Estimate(value, {REFITS: Component(refits, 9.0), ROWS: Component(rows)})
    low, high = effects.interval()
    assert ((low <= 0) & (high >= 0)).mean() >= 0.94


def test_refits():
    values = np.array([[0.1, 0.3, 0.2, np.nan], [0.5, 0.5, 0.5, 0.5], [0.5, *[np.nan] * 3]])
    component = between_refits(values)
    np.testing.assert_allclose(component.variance, [0.01 / 3, 0, np.nan])
    np.testing.assert_allclose(component.df, [2, 3, 1])
    # Nadeau and Bengio (2003): s^2 (1 / n + test / train)
    np.testing.assert_allclose(between_refits(values[:1], 0.25).variance, 0.01 * (1 / 3 + 0.25))


def test_equal_variances_are_pooled_and_unequal_ones_are_not():
    rng = np.random.default_rng(1)
    equal = Component(rng.chisquare(4, 2000) / 4, np.full(2000, 4.0))
    component = moderated(equal)
    assert (component.variance >= equal.variance).all()
    assert component.df.min() > 60
    assert np.median(component.variance) == pytest.approx(1, abs=0.1)
    spread = Component(equal.variance * np.exp(rng.normal(0, 3, 2000)), equal.df)
    assert moderated(spread).df.max() < 5
    few = Component(equal.variance[:2], equal.df[:2])
    np.testing.assert_array_equal(moderated(few).variance, few.variance)


def test_moderation_is_the_fit_of_scaled_f():
    """Of variances drawn from the prior, d0 and s0 squared are found again (Smyth 2004)."""
    rng = np.random.default_rng(2)
    true = 0.3 * 8 / rng.chisquare(8, 20_000)
    component = moderated(Component(true * rng.chisquare(4, 20_000) / 4, np.full(20_000, 4.0)))
    assert component.df[0] == pytest.approx(12, rel=0.1)


def test_deterministic_refits_keep_no_variance():
    part = Component(np.array([0.0, 1.0, 2.0, 3.0]), np.full(4, 4.0))
    assert moderated(part).variance[0] == 0


def test_the_jackknife_leaves_a_domain_out_on_both_sides():
    rng = np.random.default_rng(3)
    names = np.array(list("abcde"))
    sources, targets = (side.ravel() for side in np.meshgrid(names, names, indexing="ij"))
    values = np.where(sources == targets, np.nan, rng.normal(size=25))
    values[3] = np.nan
    left = [np.nanmean(values[(sources != name) & (targets != name)]) for name in names]
    component = between_domains(values, sources, targets)
    assert component.variance == pytest.approx(4 / 5 * np.square(left - np.mean(left)).sum())
    assert component.df == 4
    # a training on several domains is left out with none: the variance of a mean
    alone = between_domains(values[:5], np.full(5, "a, b"), names)
    known = values[:5][np.isfinite(values[:5])]
    assert alone.variance == pytest.approx(known.var(ddof=1) / len(known))


@pytest.mark.parametrize("domains", [4, 8, 14])
def test_a_mean_over_domains_is_rejected_as_often_as_said(domains):
    """Sources and targets both have effects of their own; the true mean is 0."""
    rng = np.random.default_rng(domains)
    names = np.arange(domains)
    sources, targets = (side.ravel() for side in np.meshgrid(names, names, indexing="ij"))
    tests = 4000
    effects = rng.normal(size=(2, tests, domains))
    values = effects[0][:, sources] + effects[1][:, targets] + rng.normal(size=(tests, domains**2))
    values[:, sources == targets] = np.nan
    component = between_domains(values, sources, targets)
    t = np.nanmean(values, 1) / np.sqrt(component.variance)
    assert np.mean(2 * stats.t.sf(np.abs(t), component.df) < 0.05) <= 0.06


@pytest.mark.parametrize("make", ["targets", "distances"])
def test_what_pairs_share_is_counted_once(make):
    """Effects of targets alone, and distances, which are in the rows of both of their ends."""
    rng, names, inside = np.random.default_rng(0), np.arange(8), []
    sources, targets = (side.ravel() for side in np.meshgrid(names, names, indexing="ij"))
    for _ in range(300):
        effect, noise = rng.normal(size=8), rng.normal(0, 0.5, (8, 8))
        cells = np.tile(effect, (8, 1)) if make == "targets" else effect[:, None] + effect
        cells = cells + (0 if make == "targets" else noise + noise.T)
        values = np.where(np.eye(8, dtype=bool), np.nan, cells).ravel()
        estimate = over_domains(values[None], sources, targets)
        low, high = estimate.interval()
        inside.append(low <= 0 <= high)
        assert (low <= 0 <= high) == (estimate.p() >= LEVEL)
    assert np.mean(inside) >= 0.93


def test_a_bootstrap_of_refits_has_the_variance_of_their_mean():
    values = np.random.default_rng(1).normal(size=6)
    draws = np.random.default_rng(2).choice(values, (20_000, 6)).mean(1)
    estimate = resampled(values.mean(), np.append(draws, np.nan), 6)
    (part,) = estimate.components.values()
    assert part.variance == pytest.approx(values.var(ddof=1) / 6, rel=0.03) and part.df == 5
    assert np.isnan(resampled(np.array([0.5]), np.array([[0.5, 0.5]]), 1).error)
