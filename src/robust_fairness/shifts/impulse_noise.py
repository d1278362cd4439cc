"""Impulse noise, "salt and pepper", on pixels (Hendrycks and Dietterich 2019)."""

import numpy as np

from robust_fairness.core.draws import uniform_rows
from robust_fairness.shifts._noise import NoiseParameters
from robust_fairness.shifts.base import BRIGHTEST, ImageShift, Severities

HALF = np.float32(0.5)


class ImpulseNoise(ImageShift):
    """Set pixel values to 0 or 255, each with half the probability that is the severity.

    Each channel of each pixel is drawn on its own, as in the code of the source. A value that
    changes at one severity changes in the same way at every greater one.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1: p = 0.03.
    """

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
