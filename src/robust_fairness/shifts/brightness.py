"""More brightness of images (Hendrycks and Dietterich 2019)."""

import numpy as np

from robust_fairness.shifts.base import BRIGHTEST, ImageShift, Severities


class Brightness(ImageShift):
    """Raise the value (HSV) of every pixel by the severity, up to the full brightness of 1.

    The value is the largest of the channels, so that hue and saturation are kept where all
    channels are multiplied by the same number. Black has neither and becomes grey.

    Source: Hendrycks and Dietterich 2019, with the levels of the authors' published code, which
    truncates decimals that are rounded here.
    """

    severities = Severities("a fraction of the full brightness", high=1)
    LEVELS = {
        224: (0.1, 0.2, 0.3, 0.4, 0.5),
        64: (0.1, 0.2, 0.3, 0.4, 0.5),
        32: (0.05, 0.1, 0.15, 0.2, 0.3),
    }

    def shifted_images(self, images: np.ndarray, severity: float, places: np.ndarray) -> np.ndarray:
        values = np.arange(BRIGHTEST + 1)
        raised = np.minimum(values + BRIGHTEST * severity, BRIGHTEST).astype(np.float32)
        factors = raised / np.maximum(values, 1).astype(np.float32)
        value = images.max(axis=1, keepdims=True)
        # black times any factor is black: ones instead, whose factor is the new value itself
        lit = np.where(value == 0, np.uint8(1), images)
        return np.rint(lit * factors[value]).astype(np.uint8)
