"""Corruptions of images (Hendrycks and Dietterich 2019), with the levels of their code."""

import io
import math

import numpy as np

from robust_fairness.bench.shifts.base import BRIGHTEST, ImageShift, Severities
from robust_fairness.core.errors import InputError

HEIGHT, WIDTH = 2, 3
DECIMALS = 9  # of a quotient, so that 33 pixels have 30 blocks of 1.1
BEST = 100  # of the qualities of JPEG; the worst is 1
CHANNELS = (1, 3)


class Brightness(ImageShift):
    """More brightness of images (Hendrycks and Dietterich 2019).

    Raise the value (HSV) of every pixel by the severity, up to the full brightness of 1.

    The value is the largest of the channels, so that hue and saturation are kept where all
    channels are multiplied by the same number. Black has neither and becomes grey.

    Source: Hendrycks and Dietterich 2019, with the levels of the authors' published code, which
    truncates decimals that are rounded here.
    """

    name = "brightness"
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


class Contrast(ImageShift):
    """Less contrast of images (Hendrycks and Dietterich 2019).

    Move pixel values towards the mean of their own image and channel.

    The severity is the fraction of the contrast that is lost; at 1 each channel is its mean.

    Source: Hendrycks and Dietterich 2019, with the levels of the authors' published code, which
    truncates decimals that are rounded here.
    """

    name = "contrast"
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


class GaussianBlur(ImageShift):
    r"""Gaussian blur of images (Hendrycks and Dietterich 2019).

    Blur images with a Gaussian kernel of standard deviation :math:`\sigma`, the severity.

    The kernel is sampled at whole pixels, :math:`e^{-k^2 / 2 \sigma^2}` up to four standard
    deviations, and normalised. Images are extended by reflection, so that their mean brightness
    is kept and a wider kernel never removes less: their cosine transform is multiplied by numbers
    that fall as :math:`\sigma` grows. The code of the source extends images by their outermost
    pixels, and truncates decimals that are rounded here. :math:`\sigma` is in pixels of the image
    whatever its side: the published levels are not proportional to it (``LEVELS``).

    Source: Hendrycks and Dietterich 2019, "Benchmarking Neural Network Robustness to Common
    Corruptions and Perturbations", with the levels of the authors' published code.
    """

    name = "gaussian_blur"
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


class Pixelate(ImageShift):
    """Images of fewer, larger pixels (Hendrycks and Dietterich 2019).

    Set all pixels of a block to their mean.

    The severity is the side of a block in pixels, 1 for the image itself; it need not be whole. A
    side of ``h`` pixels is divided into ``floor(h / severity)`` blocks, at least one, as equal as
    whole pixels allow: a pixel belongs to the block that contains its centre. This is shrinking
    and enlarging with a box filter, which the code of the source does with Pillow; rounded once,
    where Pillow rounds after each direction, and with one block for the pixels on a border, which
    Pillow averages with one block and paints as the next.

    Larger blocks that consist of smaller ones (2, 4, 8) never bring an image nearer to the
    original. Others may where an image has a grid of its own: the enlarged digits of
    ``biased_digits`` do, photographs seldom.

    Source: Hendrycks and Dietterich 2019, with the levels of the authors' published code.
    """

    name = "pixelate"
    severities = Severities("the side of a block in pixels", low=1)
    # The published numbers are the number of blocks as a fraction of the side.
    LEVELS = {
        side: tuple(1 / fraction for fraction in fractions)
        for side, fractions in {
            224: (0.6, 0.5, 0.4, 0.3, 0.25),
            64: (0.9, 0.8, 0.7, 0.6, 0.5),
            32: (0.95, 0.9, 0.85, 0.75, 0.65),
        }.items()
    }

    def shifted_images(self, images: np.ndarray, severity: float, places: np.ndarray) -> np.ndarray:
        (top, heights), (left, widths) = (
            _blocks(images.shape[axis], severity) for axis in (HEIGHT, WIDTH)
        )
        sums = np.add.reduceat(images, top, axis=HEIGHT, dtype=np.uint32)
        sums = np.add.reduceat(sums, left, axis=WIDTH)
        means = np.rint(sums / (heights[:, None] * widths)).astype(np.uint8)
        return means.repeat(heights, axis=HEIGHT).repeat(widths, axis=WIDTH)


def _blocks(side: int, block: float) -> tuple[np.ndarray, np.ndarray]:
    """First pixel and number of pixels of every block along a side, int64 ``[blocks]`` each."""
    count = max(1, math.floor(round(side / block, DECIMALS)))
    # whole numbers: the centre of pixel i is (2 i + 1) / 2, a block is side / count wide
    owner = (2 * np.arange(side) + 1) * count // (2 * side)
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    return first, np.diff(first, append=side)


class JpegCompression(ImageShift):
    """JPEG compression of images (Hendrycks and Dietterich 2019).

    Write images as JPEG and read them again.

    The severity is 100 less the quality of libjpeg's scale; 0 leaves images as they are, since
    JPEG loses something at any quality. Nothing is random: the same library gives the same bits,
    another version of Pillow or of its libjpeg need not. Colours have half the resolution (4:2:0),
    Pillow's default.

    Source: Hendrycks and Dietterich 2019, with the levels of the authors' published code.
    """

    name = "jpeg_compression"

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
