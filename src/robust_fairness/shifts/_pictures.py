"""Changes of the pixels of pictures, block by block so that memory is bounded."""

from collections.abc import Callable
from dataclasses import replace
from math import prod

import numpy as np
from pydantic import BaseModel

from robust_fairness.core.errors import InputError
from robust_fairness.samples import Samples

BRIGHTEST = 255
ROWS_AT_ONCE = 256
VALUES_AT_ONCE = 2**22
PICTURE_AXES = 4  # row, channel, height, width


class CorruptionParameters(BaseModel, extra="forbid", frozen=True):
    """Parameters of a corruption that draws no random numbers: there are none."""


def are_pictures(samples: Samples) -> bool:
    """Whether ``x`` holds uint8 pictures ``[n, c, h, w]``."""
    x = samples.x
    return isinstance(x, np.ndarray) and x.dtype == np.uint8 and x.ndim == PICTURE_AXES


def noisy(
    samples: Samples, places: np.ndarray, noise: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> Samples:
    """Samples with noise on their pictures; nothing else changes.

    Args:
        samples: samples of pictures.
        places: place of every row in the whole dataset, int64 ``[n]``.
        noise: from uint8 pictures of a block of rows and their places to noisy pictures of the
            same shape and dtype.

    Raises:
        InputError: ``x`` holds no pictures.
    """
    pictures = _pictures_of(samples, "noise on pixels")
    shifted = np.empty_like(pictures)
    for start in range(0, len(pictures), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        shifted[rows] = noise(pictures[rows], places[rows])
    return replace(samples, x=shifted)


def corrupted(
    samples: Samples, shift: str, corruption: Callable[[np.ndarray], np.ndarray]
) -> Samples:
    """Samples with each of their pictures changed on its own; nothing else changes.

    Args:
        samples: samples of pictures.
        shift: what the change is called in an error.
        corruption: from uint8 pictures of a block of rows to corrupted pictures of the same shape
            and dtype, where no picture depends on another.

    Raises:
        InputError: ``x`` holds no pictures.
    """
    pictures = _pictures_of(samples, shift)
    shifted = np.empty_like(pictures)
    rows_at_once = max(1, VALUES_AT_ONCE // max(1, prod(pictures.shape[1:])))
    for start in range(0, len(pictures), rows_at_once):
        rows = slice(start, start + rows_at_once)
        shifted[rows] = corruption(pictures[rows])
    return replace(samples, x=shifted)


def _pictures_of(samples: Samples, shift: str) -> np.ndarray:
    """The pictures, uint8 ``[n, c, h, w]``, of samples to which a shift is applicable."""
    if not are_pictures(samples):
        kinds = ", ".join(f"{array.dtype} {array.shape}" for array in samples.arrays.values())
        raise InputError(f"{shift} is not applicable to x of {kinds}, allowed: uint8 (n, c, h, w)")
    return np.asarray(samples.x)


def brightened(pictures: np.ndarray, change: np.ndarray) -> np.ndarray:
    """Pictures plus a change in units of the full brightness, rounded and clipped to 0 to 255.

    Args:
        pictures: uint8.
        change: float32 of the same shape.
    """
    return np.clip(np.rint(pictures + BRIGHTEST * change), 0, BRIGHTEST).astype(np.uint8)
