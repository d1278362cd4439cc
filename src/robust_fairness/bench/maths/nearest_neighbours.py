"""Distance of one set of rows to another by nearest neighbours (Control+Shift, Eq. 3).

Squared distances are matrix products, ``|x|^2 + |y|^2 - 2 x.y``, of blocks of rows, which bounds
memory. They are computed in float32 around the mean of the neighbours, less a bound of their
rounding error. A pair whose lower bound exceeds a distance already found cannot be the nearest;
all others are computed again from the difference of the two rows in float64, which is exact for
pixels. So the distance is that of the exact nearest neighbour. Where float32 leaves too many pairs
undecided, as in tight clusters far apart, the products are computed again in float64.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from robust_fairness.core.errors import InputError

LEVELS = 255  # of a pixel above 0
# Blocks of rows are larger than those of the others, which are converted for each of them.
BLOCK_BYTES, OTHER_BLOCK_BYTES = 2**27, 2**25  # as float64
MOST_ROWS = 4096  # of a block
OTHER_ROUNDINGS = 32  # of rows, lengths, sums and limits
MOST_UNDECIDED = 4  # pairs per row that are computed again before float64 products are


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
    pixels = rows.dtype == np.uint8
    if not (pixels or (np.isfinite(rows).all() and np.isfinite(others).all())):
        raise InputError("1-NN distance: a number is not finite, allowed: finite numbers")
    distances = _direct(rows, others, _nearest(rows, others, device))
    return distances / LEVELS if pixels else distances


def _blocks(flat: np.ndarray, most_bytes: int = BLOCK_BYTES) -> Iterator[slice]:
    """Slices of rows, at least one, with a limit of bytes as float64."""
    size = _rows_of(flat, most_bytes)
    return (slice(first, min(first + size, len(flat))) for first in range(0, len(flat), size))


def _rows_of(flat: np.ndarray | Tensor, most_bytes: int) -> int:
    """How many rows a block has."""
    return max(1, min(MOST_ROWS, most_bytes // (8 * flat.shape[1])))


def _nearest(rows: np.ndarray, others: np.ndarray, device: str) -> np.ndarray:
    """Number of the nearest other row of every row, int64 ``[n]``; one of several equal ones."""
    centre = torch.from_numpy(others.mean(0, dtype=np.float64)).to(device)
    winners = np.empty(len(rows), dtype=np.int64)
    for block in _blocks(rows):
        x = torch.from_numpy(np.array(rows[block])).to(device)
        x_single = _centred(x, centre, torch.float32)
        best = torch.full((len(x),), torch.inf, dtype=torch.float64, device=device)
        winner = torch.zeros(len(x), dtype=torch.int64, device=device)
        for other in _blocks(others, OTHER_BLOCK_BYTES):
            y = torch.from_numpy(np.array(others[other])).to(device)
            pairs = _candidates(x_single, _centred(y, centre, torch.float32), best)
            if len(pairs) > MOST_UNDECIDED * len(x):
                x_double, y_double = (_centred(item, centre, torch.float64) for item in (x, y))
                pairs = _candidates(x_double, y_double, best)
            for row, place in (some.T for some in pairs.split(_rows_of(y, OTHER_BLOCK_BYTES))):
                square = (x[row].double() - y[place].double()).square().sum(1)
                lowest = best.scatter_reduce(0, row, square, "amin")
                closer = (square < best[row]) & (square == lowest[row])
                winner[row[closer]] = place[closer] + other.start
                best = lowest
        winners[block] = winner.cpu().numpy()
    return winners


def _centred(rows: Tensor, centre: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Rows less the centre, and their squared lengths ``[n]``."""
    centred = (rows - centre.to(dtype)).to(dtype)
    return centred, torch.linalg.vecdot(centred, centred)


def _products(x: Tensor, y: Tensor) -> Tensor:
    """Products of every two rows ``[n, m]``.

    On the CPU by oneDNN where torch has it: its float32 products are twice as fast as torch's own
    on AMD processors.
    """
    if x.device.type == "cpu" and x.dtype == torch.float32 and torch.backends.mkldnn.is_available():
        return torch.nn.functional.linear(x.to_mkldnn(), y.to_mkldnn()).to_dense()
    return x @ y.T


def _candidates(rows: tuple[Tensor, Tensor], others: tuple[Tensor, Tensor], best: Tensor) -> Tensor:
    """Pairs of rows that may be closer than the best squared distances, int64 ``[pairs, 2]``.

    With the unit roundoff u, a product of d columns has an error of at most d u |x| |y| in any
    order of summation (Higham 2002, section 3.1), so |x|^2 and |y|^2 have one of d u (|x|^2 +
    |y|^2) and, as 2 |x| |y| is no larger than that sum, 2 x.y has the same. All other roundings
    are at most ``OTHER_ROUNDINGS`` u (|x|^2 + |y|^2).
    """
    (x, x_square), (y, y_square) = rows, others
    unit = torch.finfo(x.dtype).eps / 2
    slack = 1.1 * (2 * x.shape[1] + OTHER_ROUNDINGS) * unit  # 1.1 for the terms of higher order
    # lower bounds of |x - y|^2 less (1 - slack) |x|^2, which is constant in a row
    bounds = _products(x, y).mul_(-2).add_((1 - slack) * y_square)
    lowest, place = bounds.min(1)
    upper = lowest + (1 + slack) * x_square + 2 * slack * y_square[place]
    limit = torch.minimum(best, upper) - (1 - slack) * x_square
    return (~(bounds > limit.to(x.dtype).unsqueeze(1))).nonzero()  # overflow decides nothing


def _direct(rows: np.ndarray, others: np.ndarray, winner: np.ndarray) -> np.ndarray:
    """Distances of rows to their winners from the differences, ``[n]``."""
    distances = np.empty(len(rows))
    for block in _blocks(rows):
        difference = rows[block].astype(np.float64) - others[winner[block]].astype(np.float64)
        distances[block] = np.linalg.norm(difference, axis=1)
    return distances
