"""Less contrast of images (Hendrycks and Dietterich 2019)."""

import numpy as np

from robust_fairness.shifts.base import ImageShift, Severities


class Contrast(ImageShift):
    """Move pixel values towards the mean of their own image and channel.

    The severity is the fraction of the contrast that is lost; at 1 each channel is its mean.

    Source: Hendrycks and Dietterich 2019, with the levels of the authors' published code, which
    truncates decimals that are rounded here.
    """

    severities = Severities("a fraction of the contrast", high=1)
    # The published numbers are the fraction that is left.
    LEVELS = {
        224: (0.6, 0.7, 0.8, 0.9, 0.95),
        64: (0.6, 0.7, 0.8, 0.9, 0.95),
        32: (0.25, 0.5, 0.6, 0.7, 0.85),
    }

    def shifted_images(self, images: np.ndarray, severity: float, places: np.ndarray) -> np.ndarray:
        # a sum of whole numbers, so that the mean does not depend on the order of summation
        mean = images.mean(axis=(2, 3), dtype=np.float64, keepdims=True).astype(np.float32)
        return np.rint(images + np.float32(severity) * (mean - images)).astype(np.uint8)
