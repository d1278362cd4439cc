"""Shifts of latents: where they put every draw, and what a shift of latents offers."""

from operator import attrgetter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.bench.experiment.experiment import TestSet
from robust_fairness.bench.generation import latents
from robust_fairness.bench.shifts.latent import Extend, FullSupport, LatentOverlap, Truncation
from robust_fairness.core.errors import InputError

LATENT = (Extend, FullSupport, LatentOverlap, Truncation)
ALL = pytest.mark.parametrize("subset", LATENT, ids=attrgetter("name"))
SEVERITY = {Extend: 20.0, FullSupport: 0.0, LatentOverlap: 20.0, Truncation: 0.9}
DEGREES = st.floats(0, 90)
DIMENSIONS = st.sampled_from([3, 8, 64, 300])
SEEDS = st.integers(0, 1000)
FLOAT32 = 1e-4  # degrees, of angles between rounded vectors


def moved(subset, severity, dimension, seed=0, rows=20, **parameters):
    z = latents.draws(seed, np.arange(rows), dimension)
    targets = latents.targets(seed, dimension)
    return z, targets, subset(subset.Parameters(**parameters)).subset(z, severity, targets)


@ALL
def test_a_latent_depends_on_its_own_draw_alone(subset):
    """Bit by bit, also of a draw whose array lies otherwise in memory."""
    z, targets, whole = moved(subset, SEVERITY[subset], 27)
    before = z.copy()
    for rows in (np.array([3]), np.array([19, 0, 0]), np.arange(7, 16)):
        points = subset().subset(z[rows], SEVERITY[subset], targets)
        np.testing.assert_array_equal(points, whole[rows])
    columns = np.asfortranarray(z)
    np.testing.assert_array_equal(subset().subset(columns, SEVERITY[subset], targets), whole)
    np.testing.assert_array_equal(z, before)
    assert (whole.dtype, whole.shape) == (np.float32, z.shape)


@given(DEGREES, DIMENSIONS, SEEDS)
def test_extend_takes_every_angle_to_t1_by_the_same_share(theta, dimension, seed):
    """Consistent: (theta + 90) / 180 of the draw's own; as printed: what is left of it."""
    z, targets, grown = moved(Extend, theta, dimension, seed)
    angles = np.degrees(np.arccos(z @ targets.first / np.linalg.norm(z, axis=1)))
    share = (theta + 90) / 180
    np.testing.assert_allclose(latents.angles(grown, targets.first), share * angles, atol=FLOAT32)
    _, _, shrunk = moved(Extend, theta, dimension, seed, form="as_printed")
    np.testing.assert_allclose(
        latents.angles(shrunk, targets.first), (1 - share) * angles, atol=FLOAT32
    )
    for points in (grown, shrunk):
        np.testing.assert_allclose(np.linalg.norm(points, axis=1), np.sqrt(dimension), rtol=1e-5)


@pytest.mark.parametrize("dimension", [3, 64, 3072])
def test_extend_of_90_degrees_is_the_draw_and_as_printed_the_target(dimension):
    z, targets, grown = moved(Extend, 90.0, dimension)
    on_sphere = np.sqrt(dimension) * z / np.linalg.norm(z, axis=1, keepdims=True)
    np.testing.assert_allclose(grown, on_sphere, rtol=1e-6)
    _, _, shrunk = moved(Extend, 90.0, dimension, form="as_printed")
    np.testing.assert_allclose(shrunk, np.sqrt(dimension) * np.tile(targets.first, (20, 1)))


@given(DIMENSIONS, SEEDS)
def test_all_caps_start_as_the_same_hemisphere(dimension, seed):
    """Extend in both forms and overlap with both targets, at 0 degrees."""
    _, targets, first = moved(Extend, 0.0, dimension, seed)
    assert latents.angles(first, targets.first).max() <= 90
    for subset, options in (
        (Extend, {"form": "as_printed"}),
        (LatentOverlap, {}),
        (LatentOverlap, {"second_target": "as_drawn"}),
    ):
        _, _, points = moved(subset, 0.0, dimension, seed, **options)
        np.testing.assert_allclose(points, first, atol=1e-5)


@given(DEGREES, DIMENSIONS, SEEDS)
def test_the_middle_of_overlap_is_turned_by_the_angle_asked_for(theta, dimension, seed):
    """In the plane of the targets; towards t2 as drawn, by its share of their angle."""
    targets = latents.targets(seed, dimension)
    middle = LatentOverlap().axis(theta, targets)
    assert latents.angles(middle, targets.first) == pytest.approx(theta, abs=1e-6)
    radians = np.radians(theta)
    expected = np.cos(radians) * targets.first + np.sin(radians) * targets.orthogonal_second
    np.testing.assert_allclose(middle, expected, atol=1e-9)
    drawn = LatentOverlap(LatentOverlap.Parameters(second_target="as_drawn")).axis(theta, targets)
    between = latents.angles(targets.first, targets.second)
    assert latents.angles(drawn, targets.first) == pytest.approx(theta / 90 * between, abs=1e-5)


@given(DEGREES, DIMENSIONS, SEEDS)
def test_overlap_is_half_way_to_its_middle(theta, dimension, seed):
    """The bisector of two unit vectors is the direction of their sum."""
    z, targets, points = moved(LatentOverlap, theta, dimension, seed)
    middle = LatentOverlap().axis(theta, targets)
    total = z / np.linalg.norm(z, axis=1, keepdims=True) + middle
    expected = np.sqrt(dimension) * total / np.linalg.norm(total, axis=1, keepdims=True)
    np.testing.assert_allclose(points, expected, atol=1e-4)


@given(st.floats(0.01, 3), DIMENSIONS, SEEDS)
def test_truncation_multiplies_the_draws(radius, dimension, seed):
    z, _, points = moved(Truncation, radius, dimension, seed)
    np.testing.assert_allclose(points, radius * z.astype(float), rtol=1e-6)


def test_full_support_is_the_prior_or_its_sphere():
    z, _, prior = moved(FullSupport, 0.0, 300)
    np.testing.assert_array_equal(prior, z)
    _, _, sphere = moved(FullSupport, 0.0, 300, form="sphere")
    _, _, whole = moved(Extend, 90.0, 300)
    np.testing.assert_allclose(sphere, whole, atol=1e-6)


@ALL
def test_latents_of_one_dimension_are_refused(subset):
    targets = latents.targets(0, 2)
    with pytest.raises(InputError, match="dimension 1: .*allowed: 2 and more"):
        subset().subset(np.ones((2, 1), np.float32), SEVERITY[subset], targets)


def test_given_samples_cannot_be_shifted_in_latent_space():
    """A test set may be described by the shift all the same."""
    test_set = TestSet.model_validate(
        {"shift": {"name": "extend", "form": "as_printed"}, "severity": 15}
    )
    assert test_set.shift.parameters == Extend.Parameters(form="as_printed")
    with pytest.raises(InputError, match="allowed: 0 to 90"):
        TestSet.model_validate({"shift": {"name": "extend"}, "severity": 91})
