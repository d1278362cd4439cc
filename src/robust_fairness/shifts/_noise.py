"""Noise on preprocessed features or on pixels."""

from abc import abstractmethod
from dataclasses import replace

import numpy as np
from pydantic import BaseModel, NonNegativeInt

from robust_fairness.samples import Samples
from robust_fairness.shifts.base import (
    BRIGHTEST,
    ImageShift,
    Severities,
    are_images,
    not_applicable,
)


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
