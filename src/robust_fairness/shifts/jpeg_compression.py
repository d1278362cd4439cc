"""JPEG compression of pictures (Hendrycks and Dietterich 2019)."""

import io

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.samples import Samples
from robust_fairness.shifts._pictures import CorruptionParameters as Parameters
from robust_fairness.shifts._pictures import corrupted

__all__ = ["Parameters", "apply", "check"]

BEST = 100  # of the qualities of JPEG; the worst is 1
CHANNELS = (1, 3)

# Levels 1 to 5 of ImageNet-C, of its 64 x 64 version and of CIFAR-10-C, by side of the pictures.
# What is published is the quality.
LEVELS = {224: (75, 82, 85, 90, 93), 64: (35, 42, 50, 60, 75), 32: (20, 35, 42, 50, 60)}


def check(severity: float) -> None:
    """Check that a severity leaves a quality.

    Raises:
        InputError: it is not a whole number between 0 and 99.
    """
    if not (0 <= severity < BEST and severity == int(severity)):
        raise InputError(
            f"jpeg_compression severity {severity}: 100 less the quality, "
            f"allowed: whole numbers from 0 to {BEST - 1}"
        )


def apply(samples: Samples, severity: float, parameters: Parameters) -> Samples:
    """Write pictures as JPEG and read them again.

    Nothing is drawn at random: the same library gives the same bits, another version of Pillow
    or of its libjpeg need not. Colours have half the resolution (4:2:0), as Pillow writes them
    unless asked otherwise.

    Args:
        samples: samples of uint8 pictures ``[n, c, h, w]`` with one channel or three.
        severity: 100 less the quality of libjpeg's scale; 0 leaves the pictures as they are, since
            JPEG loses something at any quality.
        parameters: there are none.

    Raises:
        InputError: the severity leaves no quality, or ``x`` holds no such pictures.

    Source: Hendrycks and Dietterich 2019, with the levels of the authors' published code.
    """
    check(severity)
    quality = BEST - int(severity)

    def compressed(pictures: np.ndarray) -> np.ndarray:
        channels = pictures.shape[1]
        if channels not in CHANNELS:
            raise InputError(
                f"jpeg_compression of pictures with {channels} channels, allowed: 1 or 3"
            )
        if quality == BEST:
            return pictures
        return np.stack([_compressed(picture, quality) for picture in pictures])

    return corrupted(samples, "jpeg_compression", compressed)


def _compressed(picture: np.ndarray, quality: int) -> np.ndarray:
    """A picture, uint8 ``[c, h, w]``, written at a quality and read again."""
    from PIL import Image

    channels_last = np.ascontiguousarray(np.moveaxis(picture, 0, -1))
    squeezed = channels_last[..., 0] if len(picture) == 1 else channels_last
    file = io.BytesIO()
    Image.fromarray(squeezed).save(file, "JPEG", quality=quality)
    with Image.open(file) as image:
        return np.moveaxis(np.asarray(image).reshape(channels_last.shape), -1, 0)
