"""Random numbers of some rows of a dataset, equal to those of a draw for all rows.

The seed and the row number in the dataset (``places``, int64 ``[n]``) determine the draws of a
row, float32 ``[n, *shape]``.
"""

from collections.abc import Sequence
from math import prod

import numpy as np


def normal_rows(seed: int, places: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Draws of N(0, 1) for some rows of a dataset.

    Each row has its own stream, the seed's jumped by its row number, since the number of words
    that a normal draw consumes is random.
    """
    first = np.random.PCG64(seed)
    draws = np.empty((len(places), *shape), dtype=np.float32)
    for place, draw in zip(places.tolist(), draws, strict=True):
        stream = np.random.Generator(first.jumped(place))
        stream.standard_normal(dtype=np.float32, out=draw)
    return draws


def uniform_rows(seed: int | Sequence[int], places: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Draws of U(0, 1) for some rows of a dataset.

    All rows share one stream, in which each draw consumes half a word.
    """
    words = np.random.PCG64(seed)
    start, stream = words.state, np.random.Generator(words)
    draws = np.empty((len(places), *shape), dtype=np.float32)
    for place, draw in zip(places.tolist(), draws, strict=True):
        words.state = start
        whole, half = divmod(place * prod(shape), 2)
        words.advance(whole)
        stream.random(half, dtype=np.float32)  # the row begins within a word
        stream.random(dtype=np.float32, out=draw)
    return draws


def subset(count: int, most: int) -> np.ndarray:
    """Row numbers of at most ``most`` of ``count`` rows, always the same ones, in order."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(count).choice(count, most, replace=False))
