"""Digits in colours: all the ink, colours as often as asked for, splits within each class."""

from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits

from robust_fairness.bench.datasets.images import coloured_digits
from robust_fairness.core.errors import InputError
from tests.datasets import loading

NAMES = ["red", "orange", "yellow", "green", "blue", "purple"]


load = partial(loading.load, "coloured_digits")


def test_a_image_is_its_ink_in_one_colour(tmp_path):
    """Every pixel is the colour times the ink; the largest channel is the ink of ``digits``."""
    samples = load(tmp_path)
    counts = load_digits().images
    ink = np.floor(counts * 255 / 16 + 0.5)
    assert samples.x.shape == (1797, 3, 8, 8) and samples.x.dtype == np.uint8
    assert np.array_equal(samples.x.max(axis=1), ink)
    for name in NAMES:
        rows = (samples.attributes["color"] == name).to_numpy()
        assert rows.sum() > 30
        colour = np.array(coloured_digits.COLORS[name])[None, :, None, None]
        expected = ink[rows][:, None] * colour / 255
        assert abs(samples.x[rows] - expected).max() <= 0.5
    assert np.array_equal(samples.y, load_digits().target)
    assert samples.classes == tuple("0123456789")
    assert list(samples.sources) == ["scikit-learn/digits"]
    assert list(samples.attributes) == ["color"] and samples.sensitive == ("color",)


@pytest.mark.parametrize("correlation", [0.0, 0.3, 1.0])
def test_colours_are_as_frequent_as_asked_for(tmp_path, correlation):
    """Within each class: its own colour more often, the others in proportion."""
    weights = np.array([6, 5, 4, 3, 2, 1])
    samples = load(tmp_path, correlation=correlation, frequencies=tuple(weights))
    codes = samples.attributes["color"].cat.codes.to_numpy()
    for digit, favoured in enumerate([0, 0, 0, 1, 1, 2, 2, 3, 4, 5]):
        counts = np.bincount(codes[samples.y == digit], minlength=6)
        expected = (1 - correlation) * weights / 21 + correlation * np.eye(6)[favoured]
        if correlation == 1:
            assert counts[favoured] == counts.sum()
        else:
            assert stats.chisquare(counts, expected * counts.sum()).pvalue > 1e-3
    if correlation == 0:
        table = np.array([np.bincount(codes[samples.y == d], minlength=6) for d in range(10)])
        assert stats.chi2_contingency(table).pvalue > 1e-3


def test_a_row_keeps_its_colour_whatever_the_split(tmp_path):
    """Its seed alone changes it."""
    first = load(tmp_path)
    other_splits = load(tmp_path, splits=3, seed=5, test_fraction=0.3)
    other_seed = load(tmp_path, color_seed=1)
    assert np.array_equal(first.x, other_splits.x)
    attributes = load(tmp_path, sensitive=("class", "color")).attributes
    assert attributes["class"].astype(int).tolist() == first.y.tolist()
    assert attributes["color"].equals(first.attributes["color"])
    differ = first.attributes["color"].astype(str) != other_seed.attributes["color"].astype(str)
    assert 0.3 < differ.mean() < 0.9


def test_colours_are_read_off_the_images(tmp_path):
    """Of every digit, also of a faint one; and of ink that is a little off its colour."""
    samples = load(tmp_path)
    nearest = coloured_digits.nearest_colors(samples.x)
    assert list(nearest.categories) == NAMES
    assert (nearest == samples.attributes["color"].array).all()
    faint = (samples.x // 8).astype(np.uint8)
    assert (coloured_digits.nearest_colors(faint) == nearest).mean() > 0.99
    noisy = samples.x + np.random.default_rng(0).integers(0, 30, samples.x.shape)
    noisy = noisy.clip(0, 255).astype(np.uint8)
    assert (coloured_digits.nearest_colors(noisy) == nearest).mean() > 0.95


def test_grey_images_have_no_colour():
    with pytest.raises(InputError, match="color: images of 1 channels, allowed: 3"):
        coloured_digits.nearest_colors(np.zeros((2, 1, 8, 8), np.uint8))
