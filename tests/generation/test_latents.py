"""Latents of rows, targets, and the geometry of slerp."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from robust_fairness.bench.generation import latents
from robust_fairness.core.errors import InputError

SEEDS = st.integers(0, 2**32)
SHARES = st.floats(0, 1)


def unit_pair(seed: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.random.default_rng(seed).normal(size=(2, dimension))
    return first / np.linalg.norm(first), second / np.linalg.norm(second)


def rotated(start: np.ndarray, end: np.ndarray, angle: float) -> np.ndarray:
    """A vector turned by an angle in the plane of two, as a matrix of Rodrigues' formula."""
    normal = end - (end @ start) * start
    normal /= np.linalg.norm(normal)
    turn = np.outer(normal, start) - np.outer(start, normal)
    plane = np.outer(start, start) + np.outer(normal, normal)
    matrix = np.eye(len(start)) + np.sin(angle) * turn + (np.cos(angle) - 1) * plane
    return matrix @ start


@given(SEEDS, st.integers(2, 40), SHARES, st.floats(0.01, 100), st.floats(0.01, 100))
def test_slerp_is_a_rotation_by_a_share_of_the_angle(seed, dimension, share, scale, other):
    """Of the directions, whatever the norms."""
    start, end = unit_pair(seed, dimension)
    angle = np.arccos(np.clip(start @ end, -1, 1))
    points = latents.slerp(scale * start, other * end, share)
    np.testing.assert_allclose(points, rotated(start, end, share * angle), atol=1e-6)
    assert np.linalg.norm(points) == pytest.approx(1, abs=1e-9)


@given(st.floats(-12, 0), SHARES)
def test_slerp_and_angles_stay_exact_near_no_angle_and_near_a_straight_one(exponent, share):
    """Where the printed arc cosine has lost all digits: angles are known in a plane."""
    small = 10.0**exponent
    start = np.array([1.0, 0.0, 0.0])
    near = np.array([np.cos(small), np.sin(small), 0.0])
    assert latents.angles(start, near) == pytest.approx(np.degrees(small), rel=1e-9)
    assert latents.slerp(start, near, share)[1] == pytest.approx(np.sin(share * small), rel=1e-9)
    if small > latents.OPPOSITE * 1.01:
        far = np.array([-np.cos(small), np.sin(small), 0.0])
        expected = share * (np.pi - small)
        points = latents.slerp(start, far, share)
        np.testing.assert_allclose(
            points, [np.cos(expected), np.sin(expected), 0], atol=1e-15 / small + 1e-12
        )


def test_slerp_of_the_same_direction_is_it():
    """The limit; rows of a batch may be of either kind."""
    start = np.array([[0.0, 2.0], [1.0, 0.0]])
    points = latents.slerp(start, np.array([0.0, 3.0]), 0.25)
    np.testing.assert_allclose(points, [[0, 1], [np.cos(np.pi / 8), np.sin(np.pi / 8)]])


@pytest.mark.parametrize(
    ("start", "end", "share", "message"),
    [
        ([1.0, 0.0], [-2.0, 0.0], 0.5, "opposite"),
        ([1.0, 0.0], [-1.0, 1e-9], 0.5, "opposite"),
        ([0.0, 0.0], [1.0, 0.0], 0.5, "zero or not finite"),
        ([1.0, 0.0], [np.nan, 0.0], 0.5, "zero or not finite"),
        ([1.0, 0.0], [0.0, 1.0], 1.01, "allowed: 0 to 1"),
        ([1.0, 0.0], [0.0, 1.0], -0.01, "allowed: 0 to 1"),
        ([1.0, 0.0], [0.0, 1.0], float("nan"), "allowed: 0 to 1"),
    ],
)
def test_slerp_is_refused_where_it_is_not_defined(start, end, share, message):
    with pytest.raises(InputError, match=message) as caught:
        latents.slerp(np.array(start), np.array(end), share)
    assert "\n" not in str(caught.value)


@given(SEEDS, st.lists(st.integers(0, 10**6), max_size=6), st.integers(2, 20))
def test_a_row_is_its_seed_and_place_alone(seed, places, dimension):
    rows = np.array(places, dtype=np.int64)
    z, y = latents.draws(seed, rows, dimension), latents.labels(seed, rows, 10)
    assert (z.dtype, z.shape) == (np.float32, (len(rows), dimension))
    assert y.dtype == np.int64
    for place, draw, label in zip(places, z, y, strict=True):
        alone = np.array([place])
        np.testing.assert_array_equal(latents.draws(seed, alone, dimension)[0], draw)
        assert latents.labels(seed, alone, 10).tolist() == [label]


@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_labels_are_uniform_and_independent_of_seed_neighbours(classes):
    """By a test of counts, all classes occur; another seed gives others."""
    places = np.arange(30 * classes)
    labels = latents.labels(0, places, classes)
    counts = np.bincount(labels, minlength=classes)
    assert len(counts) == classes
    assert stats.chisquare(counts).pvalue > 1e-4
    assert not np.array_equal(labels, latents.labels(1, places, classes))
    # no order: pairs of neighbours agree as often as chance lets them
    share = np.mean(labels[1:] == labels[:-1])
    assert abs(share - 1 / classes) < 5 * np.sqrt(1 / classes / len(places))


@pytest.mark.parametrize("dimension", [2, 64, 3072])
def test_targets_are_unit_vectors_of_their_seed_and_of_no_row(dimension):
    """Nor of the stream of the labels."""
    targets, again = latents.targets(5, dimension), latents.targets(5, dimension)
    np.testing.assert_array_equal(targets.first, again.first)
    np.testing.assert_array_equal(targets.second, again.second)
    for target in (targets.first, targets.second, targets.orthogonal_second):
        assert np.linalg.norm(target) == pytest.approx(1)
    assert abs(targets.orthogonal_second @ targets.first) < 1e-12
    # in the plane of both, on t2's side
    plane = np.linalg.lstsq(np.stack([targets.first, targets.second], 1), targets.orthogonal_second)
    assert plane[1].max(initial=0) < 1e-20
    assert plane[0][1] > 0
    assert not np.array_equal(targets.first, latents.targets(6, dimension).first)
    rows = latents.draws(5, np.arange(20), dimension)
    if dimension > 2:
        assert latents.angles(rows, targets.first).min() > 40
        assert latents.angles(rows, targets.second).min() > 40


def test_points_of_the_sphere_have_the_norm_of_draws():
    points = latents.on_sphere(latents.directions(latents.draws(0, np.arange(9), 48)))
    assert points.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), np.sqrt(48), rtol=1e-6)


@pytest.mark.parametrize("dimension", [1, 0])
def test_a_sphere_needs_two_dimensions(dimension):
    for draw in (
        lambda: latents.draws(0, np.arange(3), dimension),
        lambda: latents.targets(0, dimension),
    ):
        with pytest.raises(InputError, match="allowed: 2 and more"):
            draw()
