"""Distance of one set of rows to another by nearest neighbours (Control+Shift, Eq. 3)."""

import numpy as np
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import gen_batches

from robust_fairness.core.errors import InputError

LEVELS = 255  # of a pixel above 0
BLOCK_BYTES = 2**27  # of rows as float64


def nearest_distances(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Euclidean distance of every row to the nearest row of another set, float64 ``[n]``.

    Eq. 3 is the mean; in the paper's ``1NN(D_train, D_shift)`` the rows are the shifted set.
    scikit-learn finds the nearest row of each block around the mean of the others, so that sets far
    from zero keep their digits. Distances are those of the differences, exact for pixels.

    >>> nearest_distances(np.array([[0.0], [5.0]]), np.array([[1.0], [7.0]])).tolist()
    [1.0, 2.0]

    Args:
        rows: uint8 pixels ``[n, ...]``, which are scaled to [0, 1], or other numbers.
        others: rows of the same kind and width ``[m, ...]``.

    Raises:
        InputError: a number is not finite.
    """
    rows, others = (array.reshape(len(array), -1) for array in (rows, others))
    pixels = rows.dtype == np.uint8
    if not (pixels or (np.isfinite(rows).all() and np.isfinite(others).all())):
        raise InputError("1-NN distance: a number is not finite, allowed: finite numbers")
    centre, size = others.mean(0, dtype=np.float64), max(1, BLOCK_BYTES // (8 * rows.shape[1]))
    distances = np.full(len(rows), np.inf)
    for block in gen_batches(len(rows), size):
        x = rows[block].astype(np.float64)
        for other in gen_batches(len(others), size):
            y = others[other].astype(np.float64)
            nearest = y[pairwise_distances_argmin(x - centre, y - centre)]
            closest = np.linalg.norm(x - nearest, axis=1)
            distances[block] = np.minimum(distances[block], closest)
    return distances / LEVELS if pixels else distances
