"""Noise shifts of features and of pixels: what they add, and that they add nothing else."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.bench.shifts import base
from robust_fairness.bench.shifts.base import SampleShift
from robust_fairness.bench.shifts.noise import GaussianNoise, ImpulseNoise, UniformNoise
from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from tests.shifts.rows import changed_fields, samples_of

NOISES = (GaussianNoise, UniformNoise, ImpulseNoise)
OF_FEATURES = pytest.mark.parametrize("noise", NOISES[:2])
SEEDS = st.integers(0, 2**40)
ROWS = st.lists(st.integers(0, 11), max_size=14)  # in any order, some twice, or none


def features(rows: int = 7, width: int = 3) -> Samples:
    draws = np.random.default_rng(0).normal(size=(rows, width))
    return samples_of(draws.astype(np.float32))


def images(rows: int = 40, width: int = 12, height: int = 16, dtype=np.uint8) -> Samples:
    x = np.random.default_rng(0).integers(0, 256, (rows, 3, height, width))
    return samples_of(x.astype(dtype))


BOTH = pytest.mark.parametrize(
    ("noise", "make", "field"),
    [*((n, features, "perturbation") for n in NOISES[:2]), *((n, images, "x") for n in NOISES)],
)


def noise_of(noise: type[SampleShift], severity: float, seed: int = 0, **shape: int) -> np.ndarray:
    """What is added to features."""
    shifted = noise(noise.Parameters(seed=seed)).apply(features(**shape), severity)
    return shifted.perturbation


def noisy(noise: type[SampleShift], severity: float, seed: int = 0, **shape: int) -> np.ndarray:
    """The noisy images."""
    return noise(noise.Parameters(seed=seed)).apply(images(**shape), severity).x


@BOTH
def test_only_the_perturbation_or_the_images_change(noise, make, field):
    """And images stay whole pixel values; severity 0 changes nothing."""
    original = make()
    before = original.x.copy()
    shifted = noise().apply(original, 0.1)
    assert changed_fields(original, shifted) == {field}
    np.testing.assert_array_equal(original.x, before)
    assert original.perturbation is None
    changed = getattr(shifted, field)
    assert (changed.shape, changed.dtype) == (before.shape, before.dtype)
    assert not np.array_equal(changed, before)
    still = getattr(noise().apply(original, 0.0), field)
    np.testing.assert_array_equal(still, before if field == "x" else 0 * before)


@BOTH
@given(seed=SEEDS, rows=ROWS, width=st.integers(1, 3))
def test_a_row_keeps_its_noise_whatever_stands_beside_it(noise, make, field, seed, rows, width):
    """Some rows shifted at their places are those rows of all rows shifted."""
    whole, parameters = make(12, width), noise.Parameters(seed=seed)
    places = np.array(rows, dtype=np.int64)
    np.testing.assert_array_equal(
        getattr(noise(parameters).apply(whole.take(places), 0.3, places), field),
        getattr(noise(parameters).apply(whole, 0.3), field)[places],
    )


# Features


@OF_FEATURES
@given(st.floats(0, 1000), SEEDS)
def test_every_severity_scales_the_same_draw(noise, severity, seed):
    np.testing.assert_array_equal(
        noise_of(noise, severity, seed), np.float32(severity) * noise_of(noise, 1.0, seed)
    )


@given(SEEDS)
def test_gaussian_noise_is_one_stream_of_all_rows(seed):
    """The noise of the published tables of features: it must stay as it is."""
    expected = np.random.Generator(np.random.PCG64(seed)).standard_normal((7, 3))
    np.testing.assert_array_equal(noise_of(GaussianNoise, 1.0, seed), expected.astype(np.float32))


def unit_draws(words: np.random.PCG64, count: int) -> np.ndarray:
    """Numbers in [0, 1) of 24 bits, two from each 64-bit word, low half first."""
    raw = words.random_raw((count + 1) // 2)
    halves = np.stack([raw & 0xFFFFFFFF, raw >> 32], axis=1).ravel()[:count]
    return (halves >> 8) * 2.0**-24


@given(SEEDS)
def test_uniform_noise_is_made_of_the_bits_of_pcg64(seed):
    unit = (unit_draws(np.random.PCG64(seed), 20) * 2 - 1).astype(np.float32).reshape(10, 2)
    np.testing.assert_array_equal(
        noise_of(UniformNoise, 1.0, seed, rows=10, width=2), np.float32(np.sqrt(3)) * unit
    )


@OF_FEATURES
def test_noise_adds_to_an_earlier_perturbation(noise):
    earlier = GaussianNoise(GaussianNoise.Parameters(seed=9)).apply(features(), 0.2)
    both = noise().apply(earlier, 0.1)
    np.testing.assert_array_equal(both.perturbation, earlier.perturbation + noise_of(noise, 0.1))


@pytest.mark.parametrize("noise", NOISES)
def test_noise_on_named_arrays_is_not_applicable(noise):
    """Nor impulses on features, which have no brightest value."""
    tabular = features()
    real = images(7, dtype=np.float32)
    assert not base.are_images(real)
    others = [real.x, {"image": images(7).x}, {"question": tabular.x}]
    for x in others + [tabular.x] * (noise is ImpulseNoise):
        with pytest.raises(InputError, match=r"not applicable to x of .*allowed: "):
            noise().apply(replace(tabular, x=x), 0.1)


# Pixels


@pytest.mark.parametrize("noise", NOISES)
def test_images_keep_their_noise_however_blocks_are_cut(noise, monkeypatch):
    """The seed changes it."""
    whole = noisy(noise, 0.2)
    monkeypatch.setattr(base, "VALUES_PER_BLOCK", 7 * 3 * 16 * 12)
    np.testing.assert_array_equal(whole, noisy(noise, 0.2))
    assert not np.array_equal(whole, noisy(noise, 0.2, seed=1))


@given(SEEDS, st.floats(0, 1), st.integers(1, 4))
def test_impulses_are_two_draws_a_pixel_value(seed, share, width):
    """Restated for all rows at once from the bits of PCG64: whether it is hit, and how."""
    shape = {"rows": 5, "width": width, "height": 3}
    before = images(**shape).x
    chance, side = (
        unit_draws(np.random.PCG64([seed, stream]), before.size).reshape(before.shape)
        for stream in range(2)
    )
    expected = np.where(chance < np.float32(share), np.where(side < 0.5, 255, 0), before)
    np.testing.assert_array_equal(noisy(ImpulseNoise, share, seed, **shape), expected)


def exact(before: np.ndarray, sigma: float, draws: np.ndarray) -> np.ndarray:
    """Noisy pixel values in double precision, before they are rounded."""
    return np.clip(before + 255 * sigma * draws, 0, 255)


@given(SEEDS, st.floats(0, 1), st.integers(1, 4))
def test_uniform_noise_is_one_draw_a_pixel_value(seed, sigma, width):
    """Restated for all rows at once from the bits of PCG64."""
    shape = {"rows": 5, "width": width, "height": 3}
    before = images(**shape).x
    unit = unit_draws(np.random.PCG64(seed), before.size).reshape(before.shape)
    difference = noisy(UniformNoise, sigma, seed, **shape) - exact(
        before, sigma, np.sqrt(3) * (2 * unit - 1)
    )
    assert abs(difference).max() <= 0.5 + 1e-3


@given(SEEDS, st.floats(0, 1), st.integers(0, 10**9))
def test_gaussian_noise_of_a_row_is_its_own_stream(seed, sigma, place):
    """Jumps of the documented length, restated as steps; a place far behind costs nothing."""
    before = images(1)
    words = np.random.PCG64(seed)
    words.advance(210306068529402873165736369884012333109 * place)
    draws = np.random.Generator(words).standard_normal(before.x.shape, dtype=np.float32)
    parameters = GaussianNoise.Parameters(seed=seed)
    changed = GaussianNoise(parameters).apply(before, sigma, np.array([place])).x
    assert abs(changed - exact(before.x, sigma, draws)).max() <= 0.5 + 1e-3
