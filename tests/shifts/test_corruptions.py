"""Corruptions of images: each against a restatement of its own, and what all share."""

import colorsys
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image
from scipy import fft
from sklearn.datasets import load_sample_images
from torchvision.transforms.v2 import functional

from robust_fairness.bench.shifts import base
from robust_fairness.bench.shifts.corruptions import (
    Brightness,
    Contrast,
    GaussianBlur,
    JpegCompression,
    Pixelate,
)
from robust_fairness.core.errors import InputError
from tests.shifts.rows import changed_fields, samples_of

CORRUPTIONS = (GaussianBlur, Contrast, Brightness, Pixelate, JpegCompression)
NEUTRAL = {Pixelate: 1.0}
STRONG = {GaussianBlur: 1.3, Contrast: 0.6, Brightness: 0.4, Pixelate: 2.4, JpegCompression: 75}
ALL = pytest.mark.parametrize("corruption", CORRUPTIONS, ids=attrgetter("name"))
ROUNDED = 0.5 + 1e-3  # by half a pixel value, and by what float32 leaves out
IMAGES = arrays.arrays(
    np.uint8,
    st.tuples(st.integers(1, 3), st.sampled_from([1, 3]), st.integers(8, 17), st.integers(8, 17)),
)


def corrupted(corruption: type[base.ImageShift], images: np.ndarray, severity: float) -> np.ndarray:
    return corruption().apply(samples_of(images), severity).x


def distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Root mean squares of the differences of images, ``[n]``."""
    return np.sqrt(((first.astype(float) - second) ** 2).mean(axis=(1, 2, 3)))


def resized(image: np.ndarray, height: int, width: int) -> np.ndarray:
    """An image, channels last, of another size, channels first."""
    image = Image.fromarray(image).resize((width, height), Image.Resampling.BOX)
    return np.moveaxis(np.asarray(image), -1, 0)


@pytest.fixture(scope="module")
def photographs() -> np.ndarray:
    """The two of scikit-learn, each whole and in quarters, uint8 ``[10, 3, 64, 72]``."""
    whole = load_sample_images().images
    parts = [
        part for image in whole for half in np.split(image[1:], 2) for part in np.split(half, 2, 1)
    ]
    return np.stack([resized(image, 64, 72) for image in [*whole, *parts]])


# What all of them share


@ALL
def test_only_the_images_change(corruption, photographs):
    before, kept = samples_of(photographs), photographs.copy()
    after = corruption().apply(before, STRONG[corruption])
    assert changed_fields(before, after) == {"x"}
    np.testing.assert_array_equal(photographs, kept)
    assert after.x.dtype == np.uint8
    assert after.x.shape == kept.shape
    assert (distances(after.x, kept) > 3).all()


@ALL
@given(images=IMAGES)
def test_the_neutral_severity_changes_nothing(corruption, images):
    changed = corrupted(corruption, images, NEUTRAL.get(corruption, 0.0))
    np.testing.assert_array_equal(changed, images)


@ALL
@given(images=IMAGES, value=st.integers(0, 255))
def test_any_size_and_grey_or_colour(corruption, images, value):
    """And an image of one value keeps it, except for what brightness adds and JPEG rounds."""
    changed = corrupted(corruption, images, STRONG[corruption])
    assert (changed.dtype, changed.shape) == (images.dtype, images.shape)
    plain = corrupted(corruption, np.full_like(images, value), STRONG[corruption])
    expected = min(255, value + 102) if corruption is Brightness else value
    step = 32 / 8  # of the mean of a block, at quality 25
    tolerance = step / 2 + 1 if corruption is JpegCompression else 0
    assert abs(plain.astype(int) - expected).max() <= tolerance


@ALL
def test_grey_images_are_changed_as_colours_of_equal_channels_are(corruption, photographs):
    grey = photographs[:, :1]
    single = corrupted(corruption, grey, STRONG[corruption])
    colour = corrupted(corruption, grey.repeat(3, axis=1), STRONG[corruption])
    assert abs(colour.astype(int) - single).max() <= 1  # JPEG turns colours and back


@ALL
def test_no_image_depends_on_another_nor_on_how_blocks_are_cut(
    corruption, photographs, monkeypatch
):
    whole = corrupted(corruption, photographs, STRONG[corruption])
    chosen = [7, 2, 2]
    some = corrupted(corruption, photographs[chosen], STRONG[corruption])
    np.testing.assert_array_equal(some, whole[chosen])
    for values in (1, 3 * photographs[0].size):
        monkeypatch.setattr(base, "VALUES_PER_BLOCK", values)
        again = corrupted(corruption, photographs, STRONG[corruption])
        np.testing.assert_array_equal(again, whole)
    assert corrupted(corruption, photographs[:0], STRONG[corruption]).shape == (0, 3, 64, 72)


@ALL
def test_other_data_than_images_are_refused(corruption, photographs):
    plain = samples_of(photographs)
    for x in (
        photographs.astype(np.float32),
        photographs[:, 0],
        {"image": photographs},
        np.zeros((10, 4), dtype=np.float32),
    ):
        with pytest.raises(InputError, match=r"^\w+ is not applicable to x of .*uint8 \(n, c"):
            corruption().apply(replace(plain, x=x), STRONG[corruption])


# How strong they are


def of_published(corruption: type[base.ImageShift], value: float) -> float:
    """A published constant in the shift's own unit."""
    return {
        Contrast: lambda left: 1 - left,
        Pixelate: lambda share: 1 / share,
        JpegCompression: lambda quality: 100 - quality,
    }.get(corruption, lambda same: same)(value)


# By number of the level, at 224, 64 and 32 pixels: of make_imagenet_c.py, make_imagenet_64_c.py
# and make_cifar_c.py of the authors' published code.
PUBLISHED = {
    GaussianBlur: [(1, 0.5, 0.4), (2, 0.75, 0.6), (3, 1, 0.7), (4, 1.25, 0.8), (6, 1.5, 1)],
    Contrast: [(0.4, 0.4, 0.75), (0.3, 0.3, 0.5), (0.2, 0.2, 0.4), (0.1, 0.1, 0.3)]
    + [(0.05, 0.05, 0.15)],
    Brightness: [(0.1, 0.1, 0.05), (0.2, 0.2, 0.1), (0.3, 0.3, 0.15), (0.4, 0.4, 0.2)]
    + [(0.5, 0.5, 0.3)],
    Pixelate: [(0.6, 0.9, 0.95), (0.5, 0.8, 0.9), (0.4, 0.7, 0.85), (0.3, 0.6, 0.75)]
    + [(0.25, 0.5, 0.65)],
    JpegCompression: [(25, 65, 80), (18, 58, 65), (15, 50, 58), (10, 40, 50), (7, 25, 40)],
}


@ALL
def test_levels_are_the_published_ones_and_grow(corruption):
    for place, side in enumerate((224, 64, 32)):
        levels = corruption.LEVELS[side]
        expected = [of_published(corruption, level[place]) for level in PUBLISHED[corruption]]
        np.testing.assert_allclose(levels, expected)
        assert (np.diff(levels) > 0).all()
        for level in levels:
            corruption().check(level)


def strengths(corruption: type[base.ImageShift], images: np.ndarray, side: int) -> np.ndarray:
    """Distances of corrupted images by level, the neutral one first, ``[6, n]``."""
    levels = [NEUTRAL.get(corruption, 0.0), *corruption.LEVELS[side]]
    return np.stack([distances(corrupted(corruption, images, level), images) for level in levels])


def require_growth(corruption: type[base.ImageShift], strength: np.ndarray) -> None:
    """Every image is farther off at every level.

    Blocks of pixelate that are not made of smaller ones may fit an image better by chance: their
    distances grow on average, and none falls by more than a tenth.
    """
    if corruption is Pixelate:
        assert (strength[1:] >= 0.9 * strength[:-1]).all()
        strength = strength.mean(axis=1, keepdims=True)
    assert (np.diff(strength, axis=0) > 0).all()


@ALL
@pytest.mark.parametrize("side", [32, 64, 224])
def test_a_higher_level_is_farther_from_every_photograph(corruption, side, photographs):
    require_growth(corruption, strengths(corruption, photographs, side))


# Gaussian blur


def kernel_response(sigma: float, side: int) -> np.ndarray:
    """Factors of the cosine transform of a mirrored signal, float64 ``[side]``."""
    k = np.arange(-int(4 * sigma + 0.5), int(4 * sigma + 0.5) + 1)
    weights = np.exp(-(k**2) / (2 * sigma**2))
    frequencies = np.pi * np.arange(side) / side
    return np.cos(np.outer(frequencies, k)) @ weights / weights.sum()


@given(images=IMAGES, sigma=st.floats(0.05, 30))
def test_blur_multiplies_the_cosine_transform(images, sigma):
    """Mirrored borders and all, also where the kernel is wider than the image."""
    height, width = images.shape[2:]
    response = np.outer(kernel_response(sigma, height), kernel_response(sigma, width))
    spectrum = fft.dctn(images.astype(float), axes=(2, 3))
    expected = fft.idctn(response * spectrum, axes=(2, 3))
    assert abs(corrupted(GaussianBlur, images, sigma) - expected).max() <= ROUNDED


@pytest.mark.parametrize("sigma", [0.5, 1.0, 2.0])
def test_blur_is_torchvisions_away_from_the_border(sigma, photographs):
    half = int(4 * sigma + 0.5)
    expected = functional.gaussian_blur(
        torch.from_numpy(photographs).double(), [2 * half + 1] * 2, [sigma] * 2
    ).numpy()
    inside = (..., slice(half, -half), slice(half, -half))
    changed = corrupted(GaussianBlur, photographs, sigma)
    assert abs(changed[inside] - expected[inside]).max() <= ROUNDED


# Contrast and brightness


@given(images=IMAGES, severity=st.floats(0, 1))
def test_contrast_is_a_line_through_the_mean_of_the_channel(images, severity):
    for before, after in zip(
        images.reshape(-1, *images.shape[2:]),
        corrupted(Contrast, images, severity).reshape(-1, *images.shape[2:]),
        strict=True,
    ):
        expected = (1 - severity) * before.astype(float) + severity * before.mean()
        assert abs(after - expected).max() <= ROUNDED


@given(images=IMAGES, severity=st.floats(0, 1))
def test_brightness_raises_the_value_of_hsv(images, severity):
    """Pixel by pixel, by Python's own colours."""
    colours = np.moveaxis(np.broadcast_to(images, (len(images), 3, *images.shape[2:])), 1, -1)
    changed = np.moveaxis(corrupted(Brightness, images, severity), 1, -1)
    pairs = zip(colours[0].reshape(-1, 3), changed[0].reshape(-1, changed.shape[-1]), strict=True)
    for before, after in pairs:
        hue, saturation, value = colorsys.rgb_to_hsv(*(before / 255))
        expected = colorsys.hsv_to_rgb(hue, saturation, min(1, value + severity))
        assert abs(after - 255 * np.array(expected)[: len(after)]).max() <= ROUNDED


# Pixelate


def on_border(side: int, blocks: int) -> bool:
    """Whether the centre of a pixel lies between two blocks: Pillow averages it with one of them
    and shows the mean of the other."""
    return any((2 * pixel + 1) * blocks % (2 * side) == 0 for pixel in range(side))


@given(images=IMAGES, block=st.floats(1, 20))
def test_pixelate_is_a_box_filter_there_and_back(images, block):
    """Pillow's, which rounds after each direction."""
    height, width = images.shape[2:]
    small = [max(1, int(side / block)) for side in (width, height)]
    assume(not any(on_border(*sizes) for sizes in zip((width, height), small, strict=True)))
    changed = corrupted(Pixelate, images, block)
    for before, after in zip(images[:, 0], changed[:, 0], strict=True):
        reduced = Image.fromarray(before).resize(small, Image.Resampling.BOX)
        expected = np.asarray(reduced.resize((width, height), Image.Resampling.BOX))
        assert abs(after.astype(int) - expected).max() <= 1


@given(images=IMAGES, block=st.integers(2, 5))
def test_pixelate_is_the_mean_of_blocks_that_divide_the_sides(images, block):
    rows, columns = (side // block for side in images.shape[2:])
    whole = images[:, :, : rows * block, : columns * block]
    blocks = whole.reshape(*whole.shape[:2], rows, block, columns, block)
    expected = blocks.mean(axis=(3, 5)).repeat(block, axis=2).repeat(block, axis=3)
    assert abs(corrupted(Pixelate, whole, block) - expected).max() <= 0.5


@pytest.mark.parametrize(
    ("side", "block", "count"), [(33, 1.1, 30), (32, 1 / 0.95, 30), (224, 1 / 0.3, 67), (8, 9, 1)]
)
def test_as_many_blocks_as_fit(side, block, count):
    steps = np.arange(side, dtype=np.uint8)[None, None, None].repeat(side, axis=2)
    row = corrupted(Pixelate, steps, block)[0, 0, 0]
    widths = np.unique(row, return_counts=True)[1]
    assert len(widths) == count
    assert widths.max() - widths.min() <= 1


# JPEG


@pytest.mark.parametrize("severity", [1, 75, 99])
def test_jpeg_is_what_a_file_of_that_quality_holds(severity, photographs, tmp_path):
    changed = corrupted(JpegCompression, photographs, severity)
    for number, image in enumerate(photographs):
        path = tmp_path / f"{number}.jpg"
        Image.fromarray(np.moveaxis(image, 0, -1)).save(path, quality=100 - severity)
        with Image.open(path) as read:
            assert read.format == "JPEG"
            np.testing.assert_array_equal(np.moveaxis(np.asarray(read), -1, 0), changed[number])


@pytest.mark.parametrize("channels", [2, 4])
@pytest.mark.parametrize("severity", [0, 50])
def test_jpeg_is_of_grey_or_of_colour(channels, severity):
    images = np.zeros((2, channels, 8, 8), dtype=np.uint8)
    with pytest.raises(InputError, match=f"with {channels} channels, allowed: 1 or 3"):
        corrupted(JpegCompression, images, severity)


@pytest.mark.parametrize("corruption", [GaussianBlur, Contrast, Brightness, Pixelate])
def test_the_others_take_any_number_of_channels(corruption, photographs):
    five = np.concatenate([photographs, photographs[:, :2]], axis=1)
    changed = corrupted(corruption, five, STRONG[corruption])
    three = corrupted(corruption, photographs, STRONG[corruption])
    np.testing.assert_array_equal(changed[:, :3], three)
    np.testing.assert_array_equal(changed[:, 3:], three[:, :2])
