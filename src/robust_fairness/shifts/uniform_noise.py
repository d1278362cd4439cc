"""Uniform noise on preprocessed features or on pixels."""

import numpy as np

from robust_fairness.core.draws import uniform_rows
from robust_fairness.shifts._noise import Noise

HALF_WIDTH = np.float32(np.sqrt(3))  # of the uniform distribution of standard deviation 1


class UniformNoise(Noise):
    r"""Add :math:`\sigma e`, :math:`e \sim U(-\sqrt 3, \sqrt 3)`, to features or to pixels.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1.
    """

    def feature_draws(self, generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        return _standardised(generator.random(shape, dtype=np.float32))

    def pixel_draws(self, places: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return _standardised(uniform_rows(self.parameters.seed, places, shape))


def _standardised(draws: np.ndarray) -> np.ndarray:
    """Draws of U(0, 1) as draws of mean 0 and standard deviation 1, float32."""
    return HALF_WIDTH * (2 * draws - 1)
