"""Noise shifts: what they add, and that they add nothing else."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robust_fairness.bench.shifts.base import SampleShift
from robust_fairness.bench.shifts.noise import GaussianNoise, UniformNoise
from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from tests.shifts.rows import changed_fields, samples_of

NOISES = pytest.mark.parametrize("noise", [GaussianNoise, UniformNoise])


def samples(rows: int = 7, columns: int = 3, seed: int = 0) -> Samples:
    draws = np.random.default_rng(seed).normal(size=(rows, columns))
    return samples_of(draws.astype(np.float32))


def noise_of(noise: type[SampleShift], severity: float, seed: int = 0, **shape: int) -> np.ndarray:
    shifted = noise(noise.Parameters(seed=seed)).apply(samples(**shape), severity)
    return shifted.perturbation


@NOISES
def test_only_the_perturbation_changes(noise: type[SampleShift]) -> None:
    original = samples()
    before = original.x.copy()
    shifted = noise().apply(original, 0.5)
    assert changed_fields(original, shifted) == {"perturbation"}
    np.testing.assert_array_equal(original.x, before)
    assert original.perturbation is None
    assert shifted.perturbation.shape == original.x.shape
    assert shifted.perturbation.dtype == np.float32


@given(st.floats(0, 1000), st.integers(0, 2**40))
@NOISES
def test_every_severity_scales_the_same_draw(
    noise: type[SampleShift], severity: float, seed: int
) -> None:
    np.testing.assert_array_equal(
        noise_of(noise, severity, seed), np.float32(severity) * noise_of(noise, 1.0, seed)
    )


@NOISES
@given(seed=st.integers(0, 2**40), rows=st.lists(st.integers(0, 19), max_size=9))
def test_a_row_keeps_its_noise_whatever_stands_beside_it(
    noise: type[SampleShift], seed: int, rows: list[int]
) -> None:
    whole, parameters = samples(rows=20), noise.Parameters(seed=seed)
    places = np.array(rows, dtype=np.int64)
    np.testing.assert_array_equal(
        noise(parameters).apply(whole.take(places), 0.5, places).perturbation,
        noise(parameters).apply(whole, 0.5).perturbation[places],
    )


@given(st.integers(0, 2**40))
def test_gaussian_noise_is_one_stream_of_all_rows(seed: int) -> None:
    """The noise of the published tables of features: it must stay as it is."""
    expected = np.random.Generator(np.random.PCG64(seed)).standard_normal((7, 3))
    np.testing.assert_array_equal(noise_of(GaussianNoise, 1.0, seed), expected.astype(np.float32))


@given(st.integers(0, 2**40))
def test_uniform_noise_is_made_of_the_bits_of_pcg64(seed: int) -> None:
    raw = np.random.PCG64(seed).random_raw(10)
    words = np.stack([raw & 0xFFFFFFFF, raw >> 32], axis=1).reshape(10, 2)
    unit = ((words >> 8) * 2.0**-24 * 2 - 1).astype(np.float32)
    np.testing.assert_array_equal(
        noise_of(UniformNoise, 1.0, seed, rows=10, columns=2), np.float32(np.sqrt(3)) * unit
    )


@NOISES
def test_noise_adds_to_an_earlier_perturbation(noise: type[SampleShift]) -> None:
    earlier = GaussianNoise(GaussianNoise.Parameters(seed=9)).apply(samples(), 0.2)
    both = noise().apply(earlier, 0.1)
    np.testing.assert_array_equal(both.perturbation, earlier.perturbation + noise_of(noise, 0.1))


@NOISES
def test_noise_on_named_arrays_is_not_applicable(noise: type[SampleShift]) -> None:
    tabular = samples()
    images = np.zeros((7, 3, 8, 8), dtype=np.uint8)
    for x in (images.astype(np.float32), {"image": images}, {"question": tabular.x}):
        with pytest.raises(InputError, match=r"not applicable to x of .*allowed: float32"):
            noise().apply(replace(tabular, x=x), 0.1)
