"""More brightness of pictures (Hendrycks and Dietterich 2019)."""

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.samples import Samples
from robust_fairness.shifts._pictures import BRIGHTEST, corrupted
from robust_fairness.shifts._pictures import CorruptionParameters as Parameters

__all__ = ["Parameters", "apply", "check"]

# Levels 1 to 5 of ImageNet-C, of its 64 x 64 version and of CIFAR-10-C, by side of the pictures.
LEVELS = {
    224: (0.1, 0.2, 0.3, 0.4, 0.5),
    64: (0.1, 0.2, 0.3, 0.4, 0.5),
    32: (0.05, 0.1, 0.15, 0.2, 0.3),
}


def check(severity: float) -> None:
    """Check that a severity is a share.

    Raises:
        InputError: it is not between 0 and 1.
    """
    if not 0 <= severity <= 1:
        raise InputError(
            f"brightness severity {severity}: a share of the full brightness, allowed: 0 to 1"
        )


def apply(samples: Samples, severity: float, parameters: Parameters) -> Samples:
    """Raise the value of every pixel and keep its hue and saturation.

    The value of HSV is the largest of the channels, so that hue and saturation stay where all of
    them are multiplied by the same number. Black has neither and becomes grey.

    Args:
        samples: samples of uint8 pictures ``[n, c, h, w]``.
        severity: what is added to the value, in units of the full brightness, at which it ends.
        parameters: there are none.

    Raises:
        InputError: the severity is no share, or ``x`` holds no pictures.

    Source: Hendrycks and Dietterich 2019, with the levels of the authors' published code, which
    cuts decimals off that are rounded here.
    """
    check(severity)
    values = np.arange(BRIGHTEST + 1)
    raised = np.minimum(values + BRIGHTEST * severity, BRIGHTEST).astype(np.float32)
    factors = raised / np.maximum(values, 1).astype(np.float32)

    def brightened(pictures: np.ndarray) -> np.ndarray:
        value = pictures.max(axis=1, keepdims=True)
        # black times anything is black: ones in its place, whose factor is the new value itself
        lit = np.where(value == 0, np.uint8(1), pictures)
        return np.rint(lit * factors[value]).astype(np.uint8)

    return corrupted(samples, "brightness", brightened)
