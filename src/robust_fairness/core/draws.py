"""Random numbers of single rows, so that the rows between them need not be drawn."""

from collections.abc import Sequence
from math import prod

import numpy as np


def normal_rows(seed: int, places: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Draws of N(0, 1) for the rows at some places of a dataset.

    A row has a stream of its own, since a normal draw takes a number of words that nobody knows
    before it is drawn: the stream of the seed, jumped as often as the row's place tells.

    Args:
        seed: seed of the noise.
        places: place of every row in the whole dataset, int64 ``[n]``.
        shape: shape of a row.

    Returns:
        float32 ``[n, *shape]``.
    """
    first = np.random.PCG64(seed)
    draws = np.empty((len(places), *shape), dtype=np.float32)
    for place, draw in zip(places.tolist(), draws, strict=True):
        stream = np.random.Generator(first.jumped(place))
        stream.standard_normal(dtype=np.float32, out=draw)
    return draws


def uniform_rows(seed: int | Sequence[int], places: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Draws of U(0, 1) for the rows at some places of a dataset.

    They are those of one stream that goes through all rows in order: each takes half a word.

    Args:
        seed: seed of the noise.
        places: place of every row in the whole dataset, int64 ``[n]``.
        shape: shape of a row.

    Returns:
        float32 ``[n, *shape]``.
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
