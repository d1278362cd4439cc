"""Noise on preprocessed features or on pixels."""

from abc import abstractmethod
from dataclasses import replace

import numpy as np
from pydantic import BaseModel, NonNegativeInt

from robust_fairness.bench.shifts.base import (
    BRIGHTEST,
    ImageShift,
    Severities,
    are_images,
    not_applicable,
)
from robust_fairness.core.draws import normal_rows, uniform_rows
from robust_fairness.core.samples import Samples

HALF_WIDTH = np.float32(np.sqrt(3))  # of the uniform distribution of standard deviation 1
HALF = np.float32(0.5)


class NoiseParameters(BaseModel, extra="forbid", frozen=True):
    """Parameters of a noise.

    Attributes:
        seed: seed of the noise; every severity scales the same draw.
    """

    seed: NonNegativeInt = 0


class Noise(ImageShift):
    r"""Add :math:`\sigma e` to preprocessed features or to pixels.

    The severity :math:`\sigma` is a standard deviation, in those of the preprocessed features (the
    noise is stored as ``Samples.perturbation``) or in units of the full brightness of a pixel
    (sums are rounded and clipped to whole pixel values).
    """

    applies_to = ("table", "image", "generated")
    severities = Severities("a standard deviation")
    Parameters = NoiseParameters

    def shifted(self, samples: Samples, severity: float, places: np.ndarray) -> Samples:
        if are_images(samples):
            return super().shifted(samples, severity, places)
        if isinstance(samples.x, dict) or samples.x.dtype != np.float32 or samples.x.ndim != 2:
            raise not_applicable(self.name, samples, "float32 (n, d) or uint8 (n, c, h, w)")
        # features are few: all rows of the dataset are drawn, up to the last one
        shape = (int(places.max(initial=-1)) + 1, samples.x.shape[1])
        generator = np.random.Generator(np.random.PCG64(self.parameters.seed))
        perturbation = np.float32(severity) * self.feature_draws(generator, shape)[places]
        if samples.perturbation is not None:
            perturbation = samples.perturbation + perturbation
        return replace(samples, perturbation=perturbation)

    def shifted_images(self, images: np.ndarray, severity: float, places: np.ndarray) -> np.ndarray:
        change = np.float32(severity) * self.pixel_draws(places, images.shape[1:])
        return np.clip(np.rint(images + BRIGHTEST * change), 0, BRIGHTEST).astype(np.uint8)

    @abstractmethod
    def feature_draws(self, generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        """Draws of standard deviation 1, float32 of the shape."""

    @abstractmethod
    def pixel_draws(self, places: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Draws of standard deviation 1 for the images at the places, float32 ``[n, *shape]``."""


class GaussianNoise(Noise):
    r"""Gaussian noise on preprocessed features or on pixels.

    Add :math:`\sigma e` with :math:`e \sim N(0, 1)` to preprocessed features or to pixels.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1; on images Hendrycks and
    Dietterich 2019.
    """

    name = "gaussian_noise"

    def feature_draws(self, generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        """Draws of N(0, 1), rounded from float64: independent of the machine's logarithm."""
        return generator.standard_normal(shape).astype(np.float32)

    def pixel_draws(self, places: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return normal_rows(self.parameters.seed, places, shape)


class UniformNoise(Noise):
    r"""Uniform noise on preprocessed features or on pixels.

    Add :math:`\sigma e`, :math:`e \sim U(-\sqrt 3, \sqrt 3)`, to features or to pixels.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1.
    """

    name = "uniform_noise"

    def feature_draws(self, generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        return _standardised(generator.random(shape, dtype=np.float32))

    def pixel_draws(self, places: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return _standardised(uniform_rows(self.parameters.seed, places, shape))


def _standardised(draws: np.ndarray) -> np.ndarray:
    """Draws of U(0, 1) as draws of mean 0 and standard deviation 1, float32."""
    return HALF_WIDTH * (2 * draws - 1)


class ImpulseNoise(ImageShift):
    """Impulse noise, "salt and pepper", on pixels (Hendrycks and Dietterich 2019).

    Set pixel values to 0 or 255, each with half the probability that is the severity.

    Each channel of each pixel is drawn on its own, as in the code of the source. A value that
    changes at one severity changes in the same way at every greater one.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1: p = 0.03.
    """

    name = "impulse_noise"
    severities = Severities("a fraction of the pixels", high=1)
    Parameters = NoiseParameters

    def shifted_images(self, images: np.ndarray, severity: float, places: np.ndarray) -> np.ndarray:
        # one stream each, so that no probability depends on how many values change
        chance, side = (
            uniform_rows([self.parameters.seed, stream], places, images.shape[1:])
            for stream in range(2)
        )
        impulse = np.where(side < HALF, np.uint8(BRIGHTEST), np.uint8(0))
        return np.where(chance < np.float32(severity), impulse, images)
