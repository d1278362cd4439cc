"""Gaussian noise on preprocessed features or on pixels."""

import numpy as np

from robust_fairness.core.draws import normal_rows
from robust_fairness.shifts._noise import Noise


class GaussianNoise(Noise):
    r"""Add :math:`\sigma e` with :math:`e \sim N(0, 1)` to preprocessed features or to pixels.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1; on images Hendrycks and
    Dietterich 2019.
    """

    def feature_draws(self, generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        """Draws of N(0, 1), rounded from float64: independent of the machine's logarithm."""
        return generator.standard_normal(shape).astype(np.float32)

    def pixel_draws(self, places: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return normal_rows(self.parameters.seed, places, shape)
