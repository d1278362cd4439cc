"""Supports and Eq. 2: against closed forms, and tables of what latents measure."""

import numpy as np
import pytest
from scipy import integrate, special, stats

from benchmarks.latent_shifts import (
    Ball,
    Cap,
    Intensity,
    angle_table,
    intensity,
    intensity_table,
    support_of,
)
from robust_fairness.bench.generation import latents
from robust_fairness.bench.generation.families import Family
from robust_fairness.bench.shifts.latent import Extend, LatentOverlap, Truncation
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find

ERRORS = 5  # standard errors that a Monte Carlo estimate may be off


def area(angle: float, dimension: int) -> float:
    """Share of the sphere within an angle (degrees) of a point: the incomplete beta function."""
    radians = np.radians(angle)
    half = special.betainc((dimension - 1) / 2, 0.5, np.sin(radians) ** 2) / 2
    return half if angle <= 90 else 1 - half


def draws(dimension: int, rows: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    z = latents.draws(11, np.arange(rows), dimension)
    return z, np.random.default_rng(0).random(rows)


@pytest.mark.parametrize("dimension", [2, 3, 4, 16, 300])
@pytest.mark.parametrize("half_angle", [10.0, 46.0, 90.0, 130.0, 180.0])
def test_points_of_a_cap_are_uniform(dimension, half_angle):
    """Their angles by the share of the area, their azimuths by symmetry."""
    z, chance = draws(dimension)
    axis = latents.targets(2, dimension).first
    cap = Cap(axis, half_angle)
    points = cap.uniform(z, chance)
    assert points.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), np.sqrt(dimension), rtol=1e-5)
    angles = latents.angles(points, axis)
    assert angles.max() <= half_angle + 1e-3
    whole = area(half_angle, dimension)
    if whole < 1e-250:
        pytest.skip("the area is too small for the closed form")
    shares = np.array([area(angle, dimension) for angle in angles]) / whole
    assert stats.kstest(shares, "uniform").pvalue > 1e-4
    around = points @ latents.targets(2, dimension).orthogonal_second
    assert abs(np.mean(around > 0) - 0.5) < ERRORS * 0.5 / np.sqrt(len(around))


@pytest.mark.parametrize("dimension", [2, 8, 100])
def test_points_of_a_ball_are_uniform(dimension):
    z, chance = draws(dimension)
    points = Ball(3.0).uniform(z, chance)
    shares = (np.linalg.norm(points, axis=1) / 3) ** dimension
    assert stats.kstest(shares, "uniform").pvalue > 1e-4


def test_a_support_holds_99_percent_of_its_own():
    for shift, severity in (("extend", 10.0), ("overlap", 30.0), ("truncation", 0.8)):
        plugin = find("shift", shift)()
        family = Family(shift, severity, plugin.parameters)
        points = family.latents(np.arange(1000), 20)
        support = support_of(plugin, points, severity, latents.targets(0, 20))
        assert 988 <= support.holds(points).sum() <= 992
        again = family.latents(np.arange(1000, 6000), 20)
        assert abs(support.holds(again).mean() - 0.99) < 0.02


def extend_closed(theta: float, dimension: int) -> tuple[float, float]:
    """Eq. 2 of extend by volume and by mass: angles of draws to t1 have a known distribution."""
    # sin^(d - 2): the cosine of the angle is a beta variable
    cosine = stats.beta((dimension - 1) / 2, (dimension - 1) / 2, loc=-1, scale=2)
    edge = np.degrees(np.arccos(cosine.ppf(0.01)))  # 99 % of the draws are nearer
    share = (theta + 90) / 180
    volume = 1 - area(edge / 2, dimension) / area(share * edge, dimension)
    mass = 1 - cosine.sf(np.cos(np.radians(edge / 2 / share))) / 0.99
    return volume, mass


def overlap_closed(theta: float, dimension: int) -> float:
    """Eq. 2 of overlap by volume: an integral over the angle to the middle, and azimuth."""
    cosine = stats.beta((dimension - 1) / 2, (dimension - 1) / 2, loc=-1, scale=2)
    half = np.arccos(cosine.ppf(0.01)) / 2
    turned = np.radians(theta)
    azimuth = stats.beta((dimension - 2) / 2, (dimension - 2) / 2, loc=-1, scale=2)

    def inside(angle: float) -> float:
        needed = (np.cos(half) - np.cos(angle) * np.cos(turned)) / (np.sin(angle) * np.sin(turned))
        return float(azimuth.sf(needed)) * np.sin(angle) ** (dimension - 2)

    both = integrate.quad(inside, 0, half, limit=200)[0]
    return 1 - both / integrate.quad(lambda a: np.sin(a) ** (dimension - 2), 0, half)[0]


def table_of(shift, training, severities, dimension, rows=4000):
    return intensity_table(shift(), training, severities, dimension, rows).stack()


@pytest.mark.parametrize("dimension", [3, 8, 64])
def test_the_intensity_of_extend_is_its_closed_form(dimension):
    """The supports' edges are estimated as well: a tolerance of a few points."""
    measured = table_of(Extend, 0.0, (0.0, 2.0, 10.0, 45.0, 90.0), dimension)
    for theta in (2.0, 10.0, 45.0, 90.0):
        volume, mass = extend_closed(theta, dimension)
        assert measured[theta, "volume"] == pytest.approx(volume, abs=0.06)
        assert measured[theta, "mass"] == pytest.approx(mass, abs=0.06)
    assert measured[0.0, "volume"] == measured[0.0, "mass"] == 0


@pytest.mark.parametrize("dimension", [4, 8, 64])
def test_the_intensity_of_overlap_is_its_integral(dimension):
    measured = table_of(LatentOverlap, 0.0, (2.0, 10.0, 45.0), dimension)
    for theta in (2.0, 10.0, 45.0):
        expected = overlap_closed(theta, dimension)
        assert measured[theta, "volume"] == pytest.approx(expected, abs=0.06)


def test_the_intensity_of_two_arcs_is_how_far_they_are_apart():
    """d = 2, brute force: caps are arcs, of which a known part is covered."""
    targets = latents.targets(0, 2)
    middle = LatentOverlap().axis(20.0, targets)
    z, chance = draws(2)
    measured = intensity(Cap(targets.first, 50.0), Cap(middle, 50.0), z, chance)
    assert abs(measured.value - 20 / 100) < ERRORS * measured.error
    assert measured.error == pytest.approx(np.sqrt(0.2 * 0.8 / 4000), rel=0.1)
    assert measured.n == 4000


@pytest.mark.parametrize("dimension", [2, 8, 64])
def test_the_intensity_of_truncation_is_a_ratio_of_balls(dimension):
    """And by mass a quantile of the chi-squared distribution."""
    measured = table_of(Truncation, 0.8, (0.8, 0.9, 1.1), dimension)
    chi = stats.chi2(dimension)
    for radius in (0.9, 1.1):
        ratio = 0.8 / radius
        assert measured[radius, "volume"] == pytest.approx(1 - ratio**dimension, abs=0.06)
        mass = 1 - chi.cdf(ratio**2 * chi.ppf(0.99)) / 0.99
        assert measured[radius, "mass"] == pytest.approx(mass, abs=0.06)
    assert measured[0.8, "volume"] == 0


def test_the_intensity_is_nearly_1_from_a_few_degrees_on_in_high_dimension():
    """Of both caps by volume, at the size of a small image in colour."""
    grown = table_of(Extend, 0.0, (5.0, 10.0), 3072, rows=300)
    assert grown.min() > 0.98
    turned = table_of(LatentOverlap, 0.0, (5.0, 10.0), 3072, rows=300)
    assert turned[5.0, "volume"] > 0.9
    assert turned[10.0, "volume"] > 0.98


def test_as_printed_extend_never_leaves_its_training_support():
    """Another reason why it cannot be meant: nothing is new there."""
    shift = Extend(Extend.Parameters(form="as_printed"))
    table = intensity_table(shift, 0.0, (5.0, 30.0, 60.0), 64, 500)
    assert (table == 0).all(axis=None)


def test_the_error_of_an_estimate_is_that_of_a_share():
    training, shifted = Ball(1.0), Ball(2.0)
    z, chance = draws(2)
    measured = intensity(training, shifted, z, chance)
    assert isinstance(measured, Intensity)
    assert abs(measured.value - 0.75) < ERRORS * np.sqrt(0.75 * 0.25 / 4000)


def test_no_latent_in_a_support_is_an_error():
    z, chance = draws(2)
    with pytest.raises(InputError, match="no latent is in the shifted support"):
        intensity(Ball(1.0), Ball(0.0), z, chance, "mass")


@pytest.mark.parametrize("dimension", [64, 3072])
def test_measured_angles_are_those_of_the_geometry(dimension):
    """Angles of draws to t1 spread by 1 / sqrt(d) about a right angle; both forms of extend."""
    spread = np.degrees(1 / np.sqrt(dimension))
    for form, sign in (("consistent", 1), ("as_printed", -1)):
        shift = Extend(Extend.Parameters(form=form))
        table = angle_table(shift, (0.0, 10.0, 60.0), dimension, 500)
        for theta in (0.0, 10.0, 60.0):
            share = (90 + sign * theta) / 180
            row = table.loc[(theta, "angle to t1")]
            assert row["mean"] == pytest.approx(180 * share / 2, abs=5 * spread / np.sqrt(500))
            assert row["deviation"] == pytest.approx(share * spread, rel=0.2)
            assert table.loc[(theta, "norm"), "mean"] == pytest.approx(1, abs=1e-6)
            # two points at this angle to t1, at a right angle to each other around it
            angle = np.radians(180 * share / 2)
            expected = np.degrees(np.arccos(np.cos(angle) ** 2))
            between = table.loc[(theta, "angle between two"), "mean"]
            assert between == pytest.approx(expected, abs=spread)


def test_tables_need_rows():
    for build in (
        lambda: angle_table(Extend(), (0.0,), 8, 1),
        lambda: intensity_table(Extend(), 0, (1.0,), 8, 0),
    ):
        with pytest.raises(InputError, match="rows, allowed"):
            build()
