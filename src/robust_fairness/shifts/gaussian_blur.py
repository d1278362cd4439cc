"""Gaussian blur of images (Hendrycks and Dietterich 2019)."""

import numpy as np

from robust_fairness.shifts.base import ImageShift, Severities

HEIGHT, WIDTH = 2, 3


class GaussianBlur(ImageShift):
    r"""Blur images with a Gaussian kernel of standard deviation :math:`\sigma`, the severity.

    The kernel is sampled at whole pixels, :math:`e^{-k^2 / 2 \sigma^2}` up to four standard
    deviations, and normalised. Images are extended by reflection, so that their mean brightness
    is kept and a wider kernel never removes less: their cosine transform is multiplied by numbers
    that fall as :math:`\sigma` grows. The code of the source extends images by their outermost
    pixels, and truncates decimals that are rounded here. :math:`\sigma` is in pixels of the image
    whatever its side: the published levels are not proportional to it (``LEVELS``).

    Source: Hendrycks and Dietterich 2019, "Benchmarking Neural Network Robustness to Common
    Corruptions and Perturbations", with the levels of the authors' published code.
    """

    severities = Severities("a standard deviation in pixels", high=100)  # the kernel is 8 as wide
    LEVELS = {
        224: (1, 2, 3, 4, 6),
        64: (0.5, 0.75, 1, 1.25, 1.5),
        32: (0.4, 0.6, 0.7, 0.8, 1),
    }

    def shifted_images(self, images: np.ndarray, severity: float, places: np.ndarray) -> np.ndarray:
        from scipy.ndimage import gaussian_filter

        smooth = gaussian_filter(
            images, severity, output=np.float32, mode="reflect", axes=(HEIGHT, WIDTH)
        )
        return np.rint(smooth).astype(np.uint8)
