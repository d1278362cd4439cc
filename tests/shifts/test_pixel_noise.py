"""Noise on pixels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.bench.shifts import base
from robust_fairness.bench.shifts.noise import GaussianNoise, ImpulseNoise, UniformNoise
from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from tests.shifts.rows import changed_fields, samples_of

NOISES = (GaussianNoise, UniformNoise, ImpulseNoise)


def samples(
    rows: int = 40, value: int | None = None, dtype=np.uint8, width: int = 12, height: int = 16
) -> Samples:
    """Images of one grey value, or of random ones."""
    rng = np.random.default_rng(0)
    shape = (rows, 3, height, width)
    x = rng.integers(0, 256, shape) if value is None else np.full(shape, value)
    return samples_of(x.astype(dtype))


def shifted(noise, severity: float, seed: int = 0, **options) -> np.ndarray:
    """The noisy images."""
    return noise(noise.Parameters(seed=seed)).apply(samples(**options), severity).x


@pytest.mark.parametrize("noise", NOISES)
def test_only_the_images_change(noise):
    """And they stay whole pixel values; severity 0 changes nothing."""
    before = samples()
    after = noise().apply(before, 0.1)
    assert changed_fields(before, after) == {"x"}
    assert after.x.dtype == np.uint8
    assert not np.array_equal(after.x, before.x)
    assert np.array_equal(shifted(noise, 0.0), before.x)


@pytest.mark.parametrize("noise", NOISES)
def test_a_row_keeps_its_noise_whatever_follows_and_however_blocks_are_cut(noise, monkeypatch):
    """More rows behind it change nothing; the seed does."""
    long = shifted(noise, 0.2)
    first = samples().take(np.arange(10))
    assert np.array_equal(long[:10], noise().apply(first, 0.2).x)
    monkeypatch.setattr(base, "VALUES_PER_BLOCK", 7 * 3 * 16 * 12)
    assert np.array_equal(long, shifted(noise, 0.2))
    assert not np.array_equal(long, shifted(noise, 0.2, seed=1))


ROWS = st.lists(st.integers(0, 11), max_size=14)  # in any order, some twice, or none


@pytest.mark.parametrize("noise", NOISES)
@given(seed=st.integers(0, 2**40), rows=ROWS, width=st.integers(1, 3))
def test_a_row_keeps_its_noise_whatever_stands_beside_it(noise, seed, rows, width):
    """Some rows shifted at their places are those rows of all rows shifted."""
    whole, parameters = samples(12, width=width, height=3), noise.Parameters(seed=seed)
    places = np.array(rows, dtype=np.int64)
    expected = noise(parameters).apply(whole, 0.3).x[places]
    noisy = noise(parameters).apply(whole.take(places), 0.3, places)
    assert np.array_equal(noisy.x, expected)


def unit_draws(words: np.random.PCG64, count: int) -> np.ndarray:
    """Numbers in [0, 1) of 24 bits, two from each 64-bit word, low half first."""
    raw = words.random_raw((count + 1) // 2)
    halves = np.stack([raw & 0xFFFFFFFF, raw >> 32], axis=1).ravel()[:count]
    return (halves >> 8) * 2.0**-24


@given(st.integers(0, 2**40), st.floats(0, 1), st.integers(1, 4))
def test_impulses_are_two_draws_a_pixel_value(seed, share, width):
    """Restated for all rows at once from the bits of PCG64: whether it is hit, and how."""
    before = samples(5, width=width, height=3).x
    chance, side = (
        unit_draws(np.random.PCG64([seed, stream]), before.size).reshape(before.shape)
        for stream in range(2)
    )
    expected = np.where(chance < np.float32(share), np.where(side < 0.5, 255, 0), before)
    assert np.array_equal(
        shifted(ImpulseNoise, share, seed, rows=5, width=width, height=3), expected
    )


def exact(before: np.ndarray, sigma: float, draws: np.ndarray) -> np.ndarray:
    """Noisy pixel values in double precision, before they are rounded."""
    return np.clip(before + 255 * sigma * draws, 0, 255)


@given(st.integers(0, 2**40), st.floats(0, 1), st.integers(1, 4))
def test_uniform_noise_is_one_draw_a_pixel_value(seed, sigma, width):
    """Restated for all rows at once from the bits of PCG64."""
    before = samples(5, width=width, height=3).x
    unit = unit_draws(np.random.PCG64(seed), before.size).reshape(before.shape)
    images = shifted(UniformNoise, sigma, seed, rows=5, width=width, height=3)
    difference = images - exact(before, sigma, np.sqrt(3) * (2 * unit - 1))
    assert abs(difference).max() <= 0.5 + 1e-3


@given(st.integers(0, 2**40), st.floats(0, 1), st.integers(0, 10**9))
def test_gaussian_noise_of_a_row_is_its_own_stream(seed, sigma, place):
    """Jumps of the documented length, restated as steps; a place far behind costs nothing."""
    before = samples(1)
    words = np.random.PCG64(seed)
    words.advance(210306068529402873165736369884012333109 * place)
    draws = np.random.Generator(words).standard_normal(before.x.shape, dtype=np.float32)
    parameters = GaussianNoise.Parameters(seed=seed)
    images = GaussianNoise(parameters).apply(before, sigma, np.array([place])).x
    assert abs(images - exact(before.x, sigma, draws)).max() <= 0.5 + 1e-3


def test_impulses_need_images():
    """Features have no brightest value."""
    plain = samples(dtype=np.float32)
    with pytest.raises(InputError, match="not applicable to x of float32"):
        ImpulseNoise().apply(plain, 0.1)
    assert not base.are_images(plain)
