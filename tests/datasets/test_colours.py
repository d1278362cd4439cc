"""CIELAB and the rule of skin-like colours, against published values and other libraries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from skimage import color

from robust_fairness.bench.datasets.images._skin_tone import lab, skin_like

EVERY_17 = np.stack(np.meshgrid(*[np.arange(0, 256, 17, dtype=np.uint8)] * 3), axis=-1)


@pytest.mark.parametrize(
    ("colour", "expected"),
    [
        # published for sRGB, D65 and 2 degrees, by tables and colour calculators
        ((255, 255, 255), (100, 0, 0)),
        ((0, 0, 0), (0, 0, 0)),
        ((119, 119, 119), (50.03, 0, 0)),
        ((255, 0, 0), (53.24, 80.09, 67.20)),
        ((0, 255, 0), (87.73, -86.18, 83.18)),
        ((0, 0, 255), (32.30, 79.19, -107.86)),
        ((255, 255, 0), (97.14, -21.55, 94.48)),
        ((0, 255, 255), (91.11, -48.09, -14.13)),
        ((255, 0, 255), (60.32, 98.23, -60.82)),
        ((56, 79, 132), (34.188, 8.072, -32.478)),
    ],
)
def test_published_values(colour, expected):
    """To a few hundredths: tables round matrix and white."""
    assert lab(np.array([colour], dtype=np.uint8))[0] == pytest.approx(expected, abs=0.03)


LIBRARY = np.array(
    [
        [0.412453, 0.357580, 0.180423],
        [0.212671, 0.715160, 0.072169],
        [0.019334, 0.119193, 0.950227],
    ]
)
STANDARD = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]],
)


@pytest.mark.parametrize(
    ("matrix", "white", "limit", "slope", "greys", "tolerance"),
    [
        (LIBRARY, np.array([0.95047, 1, 1.08883]), 0.008856, 7.787, False, 1e-9),
        (STANDARD, STANDARD.sum(axis=1), 216 / 24389, 24389 / 27 / 116, True, 0.025),
    ],
)
def test_a_plain_restatement_agrees(matrix, white, limit, slope, greys, tolerance):
    """Of 4,096 colours: with the constants of the library, and with those of the standard.

    The library's white has five decimals; that of the standard is its matrix's, hence greys without
    any colour.
    """
    level = EVERY_17 / 255
    light = np.where(level > 0.04045, ((level + 0.055) / 1.055) ** 2.4, level / 12.92)
    ratio = light @ matrix.T / white
    root = np.where(ratio > limit, np.cbrt(ratio), slope * ratio + 16 / 116)
    x, y, z = np.moveaxis(root, -1, 0)
    expected = np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)
    compared = greys | (np.ptp(EVERY_17.astype(int), axis=-1) > 0)
    assert abs(lab(EVERY_17) - expected)[compared].max() < tolerance


def test_colours_are_those_of_scikit_image():
    """All but the greys, which differ by less than a two hundredth."""
    computed, expected = lab(EVERY_17), color.rgb2lab(EVERY_17)
    grey = np.ptp(EVERY_17.astype(int), axis=-1) == 0
    assert grey.sum() == 16
    assert np.array_equal(computed[~grey], expected[~grey])
    assert np.array_equal(computed[grey, 0], expected[grey, 0])
    assert 0 < abs(expected[grey, 1:]).max() < 0.005


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (2, 1, 3), (0, 3, 400, 3)])
def test_any_number_of_colours(shape):
    """None and one among them."""
    assert lab(np.zeros(shape, dtype=np.uint8)).shape == shape


@given(st.integers(0, 255))
def test_greys_have_no_colour_at_all(level):
    """Exactly, so that an angle of a grey is 90, 0 or -90 and not noise."""
    lightness, *ab = lab(np.full((1, 3), level, dtype=np.uint8))[0]
    assert ab == [0, 0]
    assert 0 <= lightness <= 100


def test_lightness_grows_with_every_channel():
    """A property of L* that no other of the three has."""
    lightness = lab(EVERY_17)[..., 0]
    assert all((np.diff(lightness, axis=axis) > 0).all() for axis in range(3))


def test_skin_like_colours_are_those_of_the_published_ranges():
    """Against Pillow's YCbCr, of full range: rounding may differ at the edges."""
    full = np.asarray(Image.fromarray(EVERY_17.reshape(64, 64, 3)).convert("YCbCr"), dtype=float)
    cb, cr = np.moveaxis((full[..., 1:] - 128) * 224 / 255 + 128, -1, 0)
    computed = skin_like(EVERY_17.reshape(64, 64, 3))
    well_inside = (abs(cb - 102) < 24) & (abs(cr - 153) < 19)
    well_outside = (abs(cb - 102) > 26.5) | (abs(cr - 153) > 21.5)
    assert well_inside.sum() > 100 and computed[well_inside].all()
    assert well_outside.sum() > 1000 and not computed[well_outside].any()


@pytest.mark.parametrize(
    ("colour", "expected"),
    [
        ((194, 150, 130), True),  # light and dark skin of the usual colour chart
        ((115, 82, 68), True),
        ((128, 128, 128), False),
        ((40, 80, 200), False),
        ((30, 25, 24), False),  # dark skin in poor light: the known fault of the rule
    ],
)
def test_skin_like(colour, expected):
    """Of colours that everybody can name."""
    assert skin_like(np.array([colour], dtype=np.uint8)).tolist() == [expected]
