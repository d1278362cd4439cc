"""1-NN distances between sets, against other libraries and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

from robust_fairness.bench.maths import nearest_neighbours as module
from robust_fairness.bench.maths.nearest_neighbours import nearest_distances
from robust_fairness.core.errors import InputError


@pytest.fixture(params=["one block", "many blocks"])
def blocks(request, monkeypatch):
    """Everything at once, and blocks that cut through both sets unevenly."""
    if request.param == "many blocks":
        monkeypatch.setattr(module, "BLOCK_BYTES", 20_000)
    return request.param


def pictures(rng, rows, shape=(3, 8, 8)):
    return rng.integers(0, 256, (rows, *shape), dtype=np.uint8)


def test_pixels_equal_scikit_learn_on_real_digits(blocks):
    """Of 1,797 scans in sixteen grey levels, many of which are nearly equal."""
    digits = (load_digits().images * 15).astype(np.uint8)[:, None]
    rows, others = digits[:300], digits[300:900]
    as_numbers = [pixels.reshape(len(pixels), -1) / 255 for pixels in (rows, others)]
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(as_numbers[1])
    expected = search.kneighbors(as_numbers[0])[0][:, 0]
    np.testing.assert_allclose(nearest_distances(rows, others), expected, rtol=1e-12)
    mean = nearest_distances(rows, others).mean()
    assert mean == pytest.approx(expected.mean(), rel=1e-12)
    assert mean != pytest.approx(nearest_distances(others, rows).mean(), rel=1e-3)


def test_numbers_equal_a_tree_of_scipy(blocks):
    """float32 features far from zero, of some axes."""
    rng = np.random.default_rng(0)
    rows, others = (rng.normal(50, 1, (n, 2, 3)).astype(np.float32) for n in (53, 41))
    tree = cKDTree(others.reshape(41, -1).astype(np.float64))
    expected = tree.query(rows.reshape(53, -1).astype(np.float64))[0]
    np.testing.assert_allclose(nearest_distances(rows, others), expected, rtol=1e-6)


def test_wide_images_are_exact():
    """Black and white of more columns than float32 sums exactly at once, one pixel apart."""
    wide = np.zeros((3, 1, 64, 80), dtype=np.uint8)
    wide[1:] = 255
    near = wide.copy()
    near[0, 0, 0, 0], near[1, 0, 5, 5], near[2, 0, 63, 79] = 1, 253, 250
    np.testing.assert_array_equal(nearest_distances(near, wide), np.sqrt([1, 4, 25]) / 255)


@pytest.mark.parametrize("near", [3, 200])
@pytest.mark.parametrize("scale", ["pixels", 1e-3, 1e25])
def test_of_neighbours_that_float32_cannot_tell_apart_the_nearest_is_found(near, scale):
    """They differ in one column: squared distances by 1 of some 30 million."""
    rng = np.random.default_rng(5)
    rows, base = pictures(rng, 12, (3000,)), pictures(rng, 1, (3000,))
    others = np.concatenate([pictures(rng, 50, (3000,)), base.repeat(near, 0)])
    others[-near:, 7] = rng.permutation(near)
    rows[:6] = rows[:6] // 4 + 3 * (base // 4)  # nearer to the base than to others
    rows[:, 7] = np.arange(12) % near
    squares = ((rows[:, None].astype(np.int64) - others) ** 2).sum(2)
    exact = squares.min(1).astype(np.float64)
    assert (squares.argmin(1)[:6] >= 50).all()
    if scale == "pixels":
        np.testing.assert_array_equal(nearest_distances(rows, others), np.sqrt(exact) / 255)
    else:
        distances = nearest_distances(rows * scale, others * scale)
        np.testing.assert_allclose(distances, np.sqrt(exact) * scale, rtol=1e-14)


def test_near_copies_far_from_the_origin_are_told_apart():
    """The trap of |x|^2 + |y|^2 - 2 x.y: nothing but rounding is left of it."""
    rng = np.random.default_rng(1)
    others = 1000 + rng.normal(size=(40, 30))
    rows = others + 1e-3 * rng.normal(size=others.shape)
    expected = cdist(rows, others).min(1)
    np.testing.assert_allclose(nearest_distances(rows, others), expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["pixels", "numbers"])
def test_a_set_is_at_distance_zero_of_itself(blocks, kind):
    rng = np.random.default_rng(2)
    rows = pictures(rng, 30) if kind == "pixels" else rng.normal(size=(30, 5))
    assert (nearest_distances(rows, rows) == 0).all()


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 9), st.integers(1, 6))
def test_more_neighbours_are_never_further(seed, n, m, columns):
    """And distances are those of all pairs, whatever the order of the others."""
    rng = np.random.default_rng(seed)
    rows, others = rng.normal(size=(n, columns)), rng.normal(size=(m + 1, columns))
    all_of_them = nearest_distances(rows, others)
    assert (all_of_them <= nearest_distances(rows, others[:m])).all()
    np.testing.assert_allclose(all_of_them, cdist(rows, others).min(1), rtol=1e-9)
    np.testing.assert_array_equal(all_of_them, nearest_distances(rows, others[::-1].copy()))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_are_not_finite_are_refused(bad):
    rows = np.ones((30, 2))
    rows[23, 1] = bad
    for pair in ((rows, np.ones((3, 2))), (np.ones((3, 2)), rows)):
        with pytest.raises(InputError, match="a number is not finite"):
            nearest_distances(*pair)
