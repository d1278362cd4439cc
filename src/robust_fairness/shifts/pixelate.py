"""Pictures of fewer, larger pixels (Hendrycks and Dietterich 2019)."""

import math

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.samples import Samples
from robust_fairness.shifts._pictures import CorruptionParameters as Parameters
from robust_fairness.shifts._pictures import corrupted

__all__ = ["Parameters", "apply", "check"]

HEIGHT, WIDTH = 2, 3
DECIMALS = 9  # of a quotient, so that 33 pixels have 30 blocks of 1.1

# Levels 1 to 5 of ImageNet-C, of its 64 x 64 version and of CIFAR-10-C, by side of the pictures.
# What is published is the number of blocks as a share of the side.
LEVELS = {
    side: tuple(1 / share for share in shares)
    for side, shares in {
        224: (0.6, 0.5, 0.4, 0.3, 0.25),
        64: (0.9, 0.8, 0.7, 0.6, 0.5),
        32: (0.95, 0.9, 0.85, 0.75, 0.65),
    }.items()
}


def check(severity: float) -> None:
    """Check that a severity is the side of a block.

    Raises:
        InputError: it is less than 1 or not finite.
    """
    if not (math.isfinite(severity) and severity >= 1):
        raise InputError(
            f"pixelate severity {severity}: the side of a block in pixels, "
            "allowed: 1 and larger finite numbers"
        )


def apply(samples: Samples, severity: float, parameters: Parameters) -> Samples:
    """Give all pixels of a block their mean.

    A side of ``h`` pixels is cut into ``floor(h / severity)`` blocks, at least one, as equal as
    whole pixels allow: a pixel belongs to the block that its centre lies in. This is what
    shrinking and enlarging again with a box filter does, which the source's code does with
    Pillow; rounded once, where Pillow rounds after each direction, and with one block for the
    pixels on a border, which Pillow averages with one block and paints as the next.

    Larger blocks that are made of smaller ones (2, 4, 8) never bring a picture nearer to the
    original. Others may, where a picture has a grid of its own: the enlarged digits of
    ``biased_digits`` do, photographs seldom.

    Args:
        samples: samples of uint8 pictures ``[n, c, h, w]``.
        severity: side of a block in pixels, 1 for the picture itself; need not be whole.
        parameters: there are none.

    Raises:
        InputError: the severity is no such side, or ``x`` holds no pictures.

    Source: Hendrycks and Dietterich 2019, with the levels of the authors' published code.
    """
    check(severity)

    def coarse(pictures: np.ndarray) -> np.ndarray:
        (top, tall), (left, wide) = (
            _blocks(pictures.shape[axis], severity) for axis in (HEIGHT, WIDTH)
        )
        sums = np.add.reduceat(pictures, top, axis=HEIGHT, dtype=np.uint32)
        sums = np.add.reduceat(sums, left, axis=WIDTH)
        means = np.rint(sums / (tall[:, None] * wide)).astype(np.uint8)
        return means.repeat(tall, axis=HEIGHT).repeat(wide, axis=WIDTH)

    return corrupted(samples, "pixelate", coarse)


def _blocks(side: int, block: float) -> tuple[np.ndarray, np.ndarray]:
    """First pixel and number of pixels of every block along a side, int64 ``[blocks]`` each."""
    count = max(1, math.floor(round(side / block, DECIMALS)))
    # whole numbers: the centre of pixel i is (2 i + 1) / 2, a block is side / count wide
    owner = (2 * np.arange(side) + 1) * count // (2 * side)
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    return first, np.diff(first, append=side)
