"""JPEG compression of images (Hendrycks and Dietterich 2019)."""

import io

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.shifts.base import ImageShift

BEST = 100  # of the qualities of JPEG; the worst is 1
CHANNELS = (1, 3)


class JpegCompression(ImageShift):
    """Write images as JPEG and read them again.

    The severity is 100 less the quality of libjpeg's scale; 0 leaves images as they are, since
    JPEG loses something at any quality. Nothing is random: the same library gives the same bits,
    another version of Pillow or of its libjpeg need not. Colours have half the resolution (4:2:0),
    Pillow's default.

    Source: Hendrycks and Dietterich 2019, with the levels of the authors' published code.
    """

    # The published numbers are the quality.
    LEVELS = {
        224: (75, 82, 85, 90, 93),
        64: (35, 42, 50, 60, 75),
        32: (20, 35, 42, 50, 60),
    }

    def check(self, severity: float) -> None:
        if not (0 <= severity < BEST and severity == int(severity)):
            raise InputError(
                f"jpeg_compression severity {severity}: 100 less the quality, "
                f"allowed: whole numbers from 0 to {BEST - 1}"
            )

    def shifted_images(self, images: np.ndarray, severity: float, places: np.ndarray) -> np.ndarray:
        channels, quality = images.shape[1], BEST - int(severity)
        if channels not in CHANNELS:
            raise InputError(
                f"jpeg_compression of images with {channels} channels, allowed: 1 or 3"
            )
        if quality == BEST:
            return images
        return np.stack([_compressed(image, quality) for image in images])


def _compressed(image: np.ndarray, quality: int) -> np.ndarray:
    """An image, uint8 ``[c, h, w]``, written at a quality and read again."""
    from PIL import Image

    channels_last = np.ascontiguousarray(np.moveaxis(image, 0, -1))
    squeezed = channels_last[..., 0] if len(image) == 1 else channels_last
    file = io.BytesIO()
    Image.fromarray(squeezed).save(file, "JPEG", quality=quality)
    with Image.open(file) as read:
        return np.moveaxis(np.asarray(read).reshape(channels_last.shape), -1, 0)
