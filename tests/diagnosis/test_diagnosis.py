"""Diagnosis of domain shift on constructed data, of which it is known what changed."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from robust_fairness.diagnosis import (
    Scored,
    decompose,
    decompose_by_group,
    effective_robustness,
    overlap,
    regions,
    two_sample_test,
)
from robust_fairness.diagnosis.decomposition import rate_difference, weighted_mean

GOLDEN = Path(__file__).parents[3] / "shared" / "reference" / "natural_shift_golden.json"


def domain(rng, rows, mean=0.0, effect=0.0, second=0.5):
    """Features, group, label and prediction: the label is positive where a noisy x exceeds 0.

    ``mean`` moves the first feature, ``effect`` the labels given the features, ``second`` is the
    share of the second group, whose labels are noisier.
    """
    group = rng.random(rows) < second
    x = rng.normal(size=(rows, 2)) + [mean, 0]
    noise = rng.normal(size=rows) * np.where(group, 1.5, 0.3)
    y = x[:, 0] + noise > effect
    features = np.column_stack([x, group])
    return features, group, y, x[:, 0] > 0


CHANGES = {
    "X": {"mean": -1.5},
    "Y given X": {"effect": 1.0},
    "group mix": {"second": 0.95},
}


def largest_part(change: dict, seed: int, rows: int = 1500) -> str:
    """The part to which most of a fall of accuracy is attributed."""
    rng = np.random.default_rng(seed)
    x, group, y, predicted = domain(rng, rows, second=0.2)
    x2, group2, y2, predicted2 = domain(rng, rows, **({"second": 0.2} | change))

    def overlap_of(at_home, elsewhere):
        return overlap(x[at_home], x2[elsewhere], seed=seed)

    found = decompose_by_group([predicted == y, predicted2 == y2], [group, group2], overlap_of)
    assert found.due_to_x + found.due_to_y_given_x + found.mix == pytest.approx(found.change)
    return found.largest


@pytest.mark.parametrize("part", CHANGES)
def test_the_part_that_changed_is_named(part):
    named = [largest_part(CHANGES[part], seed) for seed in range(3)]
    assert named.count(part) == len(named)


@pytest.mark.slow
@pytest.mark.parametrize("part", CHANGES)
def test_the_part_that_changed_is_named_in_95_of_100_draws(part):
    named = [largest_part(CHANGES[part], seed) for seed in range(200)]
    assert named.count(part) >= 0.95 * len(named)


def test_parts_add_up_and_a_gap_of_predictions_has_no_part_of_labels():
    """Demographic parity depends on X alone: its part due to Y given X is an error of weights."""
    rng = np.random.default_rng(0)
    x, group, y, predicted = domain(rng, 4000)
    x2, group2, y2, predicted2 = domain(rng, 4000, mean=-0.7, effect=0.8)
    shared = overlap(x, x2)
    parity = decompose(
        rate_difference(predicted, group), rate_difference(predicted2, group2), shared
    )
    assert parity.due_to_x + parity.due_to_y_given_x == pytest.approx(parity.change, abs=1e-12)
    assert abs(parity.due_to_y_given_x) < 0.05
    right = decompose(weighted_mean(predicted == y), weighted_mean(predicted2 == y2), shared)
    assert right.due_to_x + right.due_to_y_given_x == pytest.approx(right.change, abs=1e-12)
    assert right.due_to_y_given_x < -0.03


def test_the_shared_distribution_is_that_of_the_densities():
    """Two normal distributions: the weighted means are those of p t / (p + t), by quadrature."""
    rng = np.random.default_rng(1)
    home, away = rng.normal(0, 1, (6000, 1)), rng.normal(1, 1, (3000, 1))
    shared = overlap(home, away)
    grid = np.linspace(-6, 7, 20_001)
    p, t = stats.norm.pdf(grid), stats.norm.pdf(grid, 1)
    density = p * t / (p + t)
    expected = np.sum(grid * density) / np.sum(density)
    assert np.sum(shared.home * home[:, 0]) == pytest.approx(expected, abs=0.06)
    assert np.sum(shared.away * away[:, 0]) == pytest.approx(expected, abs=0.06)
    assert not shared.little
    assert shared.auc == pytest.approx(stats.norm.cdf(1 / np.sqrt(2)), abs=0.03)


def test_a_column_that_names_the_domain_leaves_no_overlap():
    rng = np.random.default_rng(2)
    home = np.column_stack([rng.normal(size=500), np.zeros(500)])
    away = np.column_stack([rng.normal(size=500), np.ones(500)])
    assert overlap(home, away).little
    assert not overlap(home[:, :1], away[:, :1]).little


def test_alike_domains_are_not_told_apart_and_units_matter():
    """The test keeps its level when units have several rows; different domains are found."""
    rng = np.random.default_rng(3)
    small = 0
    for seed in range(40):
        unit = np.repeat(np.arange(100), 4)
        x = np.repeat(rng.normal(size=(100, 3)), 4, axis=0)
        where = (np.arange(100) < 50)[unit]
        small += two_sample_test(x, where, unit, permutations=99, seed=seed)[1] <= 0.05
    assert small <= 6
    moved = x + where[:, None]
    auc, p = two_sample_test(moved, where, unit, permutations=99)
    assert auc > 0.6
    assert p <= 0.05


def test_effective_robustness_is_the_distance_from_the_line():
    x = np.linspace(0.6, 0.9, 12)
    line = stats.norm.cdf(1.238 * stats.norm.ppf(x) - 0.206)
    lifted = line.copy()
    lifted[3] += 0.04
    baseline = np.arange(12) != 3
    found, slope, intercept = effective_robustness(x, lifted, (4000, 50_000), baseline)
    assert (slope, intercept) == pytest.approx((1.238, -0.206))
    np.testing.assert_allclose(found, np.where(baseline, 0, 0.04), atol=1e-9)


def test_the_region_of_the_change_is_found():
    """Labels change where the first feature is above 1; the tree names it, with its numbers."""
    rng = np.random.default_rng(4)
    x, x2 = rng.normal(size=(4000, 3)), rng.normal(size=(4000, 3))
    shared = overlap(x, x2)
    right, right2 = rng.random(4000) < 0.9, rng.random(4000) < np.where(x2[:, 0] > 1, 0.3, 0.9)
    found = regions(
        Scored(x, right.astype(float), shared.home),
        Scored(x2, right2.astype(float), shared.away),
        ["income", "age", "hours"],
    )
    first = found.iloc[0]
    assert first["conditions"].startswith("income > ")
    assert first["change"] == pytest.approx(-0.6, abs=0.1)
    assert found["rows_home"].sum() == found["rows_away"].sum() == 2000
