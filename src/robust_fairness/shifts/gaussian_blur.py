"""Gaussian blur of pictures (Hendrycks and Dietterich 2019)."""

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.samples import Samples
from robust_fairness.shifts._pictures import CorruptionParameters as Parameters
from robust_fairness.shifts._pictures import corrupted

__all__ = ["Parameters", "apply", "check"]

WIDEST = 100  # the kernel is 8 times as wide: far beyond any picture that something is left of
HEIGHT, WIDTH = 2, 3

# Levels 1 to 5 of ImageNet-C, of its 64 x 64 version and of CIFAR-10-C, by side of the pictures.
LEVELS = {224: (1, 2, 3, 4, 6), 64: (0.5, 0.75, 1, 1.25, 1.5), 32: (0.4, 0.6, 0.7, 0.8, 1)}


def check(severity: float) -> None:
    """Check that a severity is the standard deviation of a kernel.

    Raises:
        InputError: it is not between 0 and 100.
    """
    if not 0 <= severity <= WIDEST:
        raise InputError(
            f"gaussian_blur severity {severity}: a standard deviation in pixels, "
            f"allowed: 0 to {WIDEST}"
        )


def apply(samples: Samples, severity: float, parameters: Parameters) -> Samples:
    r"""Blur pictures with a Gaussian kernel.

    The kernel is sampled at whole pixels, :math:`e^{-k^2 / 2 \sigma^2}` up to four standard
    deviations, and normalised. Pictures go on beyond their borders as their own mirror images,
    so that their mean brightness stays and a wider kernel never takes less away: their cosine
    transform is multiplied by numbers that fall as :math:`\sigma` grows. The source's code
    repeats the outermost pixels in their place, and cuts decimals off that are rounded here.

    Args:
        samples: samples of uint8 pictures ``[n, c, h, w]``.
        severity: standard deviation :math:`\sigma` in pixels of the picture, whatever its side:
            the published levels are not proportional to it (``LEVELS``).
        parameters: there are none.

    Raises:
        InputError: the severity is no such deviation, or ``x`` holds no pictures.

    Source: Hendrycks and Dietterich 2019, "Benchmarking Neural Network Robustness to Common
    Corruptions and Perturbations", with the levels of the authors' published code.
    """
    from scipy.ndimage import gaussian_filter

    check(severity)

    def blurred(pictures: np.ndarray) -> np.ndarray:
        smooth = gaussian_filter(
            pictures, severity, output=np.float32, mode="reflect", axes=(HEIGHT, WIDTH)
        )
        return np.rint(smooth).astype(np.uint8)

    return corrupted(samples, "gaussian_blur", blurred)
