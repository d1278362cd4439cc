"""Less contrast of pictures (Hendrycks and Dietterich 2019)."""

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.samples import Samples
from robust_fairness.shifts._pictures import CorruptionParameters as Parameters
from robust_fairness.shifts._pictures import corrupted

__all__ = ["Parameters", "apply", "check"]

# Levels 1 to 5 of ImageNet-C, of its 64 x 64 version and of CIFAR-10-C, by side of the pictures.
# What is published is the share that is left.
LEVELS = {
    224: (0.6, 0.7, 0.8, 0.9, 0.95),
    64: (0.6, 0.7, 0.8, 0.9, 0.95),
    32: (0.25, 0.5, 0.6, 0.7, 0.85),
}


def check(severity: float) -> None:
    """Check that a severity is a share.

    Raises:
        InputError: it is not between 0 and 1.
    """
    if not 0 <= severity <= 1:
        raise InputError(f"contrast severity {severity}: a share of contrast, allowed: 0 to 1")


def apply(samples: Samples, severity: float, parameters: Parameters) -> Samples:
    """Move pixel values towards the mean of their own picture and channel.

    Args:
        samples: samples of uint8 pictures ``[n, c, h, w]``.
        severity: share of the contrast that is lost; at 1 each channel is its mean.
        parameters: there are none.

    Raises:
        InputError: the severity is no share, or ``x`` holds no pictures.

    Source: Hendrycks and Dietterich 2019, with the levels of the authors' published code, which
    cuts decimals off that are rounded here.
    """
    check(severity)
    lost = np.float32(severity)

    def faded(pictures: np.ndarray) -> np.ndarray:
        # a sum of whole numbers, so that the mean is the same however it is summed up
        mean = pictures.mean(axis=(2, 3), dtype=np.float64, keepdims=True).astype(np.float32)
        return np.rint(pictures + lost * (mean - pictures)).astype(np.uint8)

    return corrupted(samples, "contrast", faded)
