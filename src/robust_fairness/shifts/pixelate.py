"""Images of fewer, larger pixels (Hendrycks and Dietterich 2019)."""

import math

import numpy as np

from robust_fairness.shifts.base import ImageShift, Severities

HEIGHT, WIDTH = 2, 3
DECIMALS = 9  # of a quotient, so that 33 pixels have 30 blocks of 1.1


class Pixelate(ImageShift):
    """Set all pixels of a block to their mean.

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
