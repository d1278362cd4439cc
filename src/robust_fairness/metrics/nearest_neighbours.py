"""Distance of one set of rows to another by nearest neighbours (Control+Shift, Eq. 3).

Squared distances are matrix products, ``|x|^2 + |y|^2 - 2 x.y``, of blocks of rows, which bounds
memory.

- **Pixels** (uint8) are integers, and so are their products: exact in float32 up to sums of 2^24,
  which 1,024 columns of numbers up to 128 do not exceed. Distances are exact, in units of [0, 1].
- **Other numbers** are multiplied in float64 after subtracting the mean of the neighbours, and the
  distance to the nearest one is computed again from the difference of the two rows. With N the
  largest distance of a row from that mean, distances above N / 10,000 have a relative error below
  1e-6; of neighbours closer than that another one may be taken.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from robust_fairness.core import tables
from robust_fairness.core.errors import InputError

UNSHIFTED = ("none", 0.0)
LEVELS = 255  # of a pixel above 0
MIDDLE = 128  # subtracted from pixels
EXACT_COLUMNS = 2**24 // MIDDLE**2  # whose products sum exactly in float32
# Blocks of rows are larger than those of the others, which are converted for each of them.
BLOCK_BYTES, OTHER_BLOCK_BYTES = 2**27, 2**25  # as float64
MOST_ROWS = 4096  # of a block


def set_distances(
    dataset: str,
    training: np.ndarray,
    test_sets: Mapping[tuple[str, float], np.ndarray],
    features: Callable[[np.ndarray], np.ndarray] | None = None,
    device: str = "cpu",
) -> pd.DataFrame:
    """Mean 1-NN distance of every test set to the training set, ``tables.DISTANCES``.

    The distance of the unshifted test set is that of new rows of the training distribution.

    Args:
        dataset: name of the dataset.
        training: training images, uint8 ``[n, channels, height, width]``.
        test_sets: images by shift and severity; the unshifted ones are at ``UNSHIFTED``.
        features: from images to features ``[n, ...]``, for distances in their space too.
        device: torch device that computes.
    """
    spaces: dict[str, Callable[[np.ndarray], np.ndarray]] = {"pixels": lambda images: images}
    if features is not None:
        spaces["features"] = features
    rows = []
    for space, seen in spaces.items():
        origin = seen(training)
        for (shift, severity), images in test_sets.items():
            found = nearest_distances(seen(images), origin, device)
            rows.append((dataset, shift, severity, space, float(found.mean()), len(found)))
    return pd.DataFrame(rows, columns=list(tables.DISTANCES)).astype(dict(tables.DISTANCES))


def nearest_distances(rows: np.ndarray, others: np.ndarray, device: str = "cpu") -> np.ndarray:
    """Euclidean distance of every row to the nearest row of another set, float64 ``[n]``.

    Eq. 3 is the mean; in the paper's ``1NN(D_train, D_shift)`` the rows are the shifted set.

    Args:
        rows: uint8 pixels ``[n, ...]``, which are scaled to [0, 1], or other numbers.
        others: rows of the same kind and width ``[m, ...]``.
        device: torch device with float64, to which a few hundred MB at most are copied at once.

    Raises:
        InputError: a number is not finite.
    """
    rows, others = (array.reshape(len(array), -1) for array in (rows, others))
    if rows.dtype == np.uint8:
        square, _ = _nearest(rows, others, None, device)
        return np.sqrt(square) / LEVELS
    if not (np.isfinite(rows).all() and np.isfinite(others).all()):
        raise InputError("1-NN distance: a number is not finite, allowed: finite numbers")
    _, winner = _nearest(rows, others, others.mean(0, dtype=np.float64), device)
    return _direct(rows, others, winner)


def _blocks(flat: np.ndarray, most_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Slices of rows, at least one, with a limit of bytes as float64."""
    size = max(1, min(MOST_ROWS, most_bytes // (8 * flat.shape[1])))
    return (slice(first, min(first + size, len(flat))) for first in range(0, len(flat), size))


def _nearest(
    rows: np.ndarray, others: np.ndarray, centre: np.ndarray | None, device: str
) -> tuple[np.ndarray, np.ndarray]:
    """Squared distance to the nearest other row ``[n]`` and its number.

    The centre is subtracted; None for pixels.
    """
    squares = np.empty(len(rows))
    winners = np.empty(len(rows), dtype=np.int64)
    middle = None if centre is None else torch.from_numpy(centre).to(device)
    for block in _blocks(rows):
        x = _numbers(rows[block], middle, device)
        best = torch.full((len(x),), torch.inf, dtype=torch.float64, device=device)
        winner = torch.zeros(len(x), dtype=torch.int64, device=device)
        for other in _blocks(others, OTHER_BLOCK_BYTES):
            y = _numbers(others[other], middle, device)
            # |x|^2 is constant in a row: added at the end
            square = _less_twice_products(_square_lengths(y), x, y)
            found, place = square.min(1)
            # the first of several equal ones, whatever the blocks are
            better = found < best
            best = torch.where(better, found, best)
            winner = torch.where(better, place + other.start, winner)
        squares[block] = (best + _square_lengths(x)).clamp(min=0).cpu().numpy()
        winners[block] = winner.cpu().numpy()
    return squares, winners


def _numbers(block: np.ndarray, middle: Tensor | None, device: str) -> Tensor:
    """A block of rows as float32 whole numbers, or as float64 around the middle."""
    if middle is None:
        pixels = torch.from_numpy(np.array(block)).to(device)
        return pixels.to(torch.float32).sub_(MIDDLE)
    return torch.from_numpy(block.astype(np.float64)).to(device).sub_(middle)


def _less_twice_products(lengths: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """``|y|^2 - 2 x.y`` of every two rows, float64; exact of whole numbers."""
    if x.dtype == torch.float64:
        return torch.addmm(lengths, x, y.T, alpha=-2)
    total = lengths.expand(len(x), -1).clone()
    for a, b in zip(x.split(EXACT_COLUMNS, 1), y.split(EXACT_COLUMNS, 1), strict=True):
        total.sub_(a @ b.T, alpha=2)
    return total


def _square_lengths(x: Tensor) -> Tensor:
    """``|x|^2`` of every row, float64: exact of whole numbers, which have integer squares."""
    if x.dtype == torch.float64:
        return torch.linalg.vecdot(x, x)
    parts = x.split(EXACT_COLUMNS, 1)
    return torch.stack([torch.linalg.vecdot(part, part).double() for part in parts]).sum(0)


def _direct(rows: np.ndarray, others: np.ndarray, winner: np.ndarray) -> np.ndarray:
    """Distances of rows to their winners from the differences, ``[n]``."""
    distances = np.empty(len(rows))
    for block in _blocks(rows):
        difference = rows[block].astype(np.float64) - others[winner[block]].astype(np.float64)
        distances[block] = np.linalg.norm(difference, axis=1)
    return distances
