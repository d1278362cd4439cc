"""Confidence intervals of means and proportions."""

from typing import Any

import numpy as np
from scipy import special

LEVEL = 0.05  # of all tests and intervals
CONFIDENCE = 1 - LEVEL
TINY = 1e-12


def half_width(error: Any, n: Any, level: float = LEVEL) -> Any:
    """Half the width of Student's interval of a mean of n values with this standard error."""
    return special.stdtrit(n - 1, 1 - level / 2) * error


def wilson_interval(
    share: np.ndarray, n: np.ndarray, level: float = LEVEL
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval of proportions; NaN where ``n`` is 0.

    Args:
        share: proportions ``[m]``.
        n: numbers of rows ``[m]``.
        level: probability that the interval does not contain the true proportion.
    """
    z = special.ndtri(1 - level / 2)
    share, rows = np.asarray(share, np.float64), np.where(n > 0, n, np.nan)
    middle = (share + z**2 / (2 * rows)) / (1 + z**2 / rows)
    half = z / (1 + z**2 / rows) * np.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2))
    return middle - half, middle + half


def exact_bounds(hits: Any, n: Any, tail: Any) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds of proportions, each wrong with a probability of at most ``tail``.

    Those of Clopper and Pearson (1934), which hold for any number of rows; of weighted rows, with
    numbers that need not be whole (Korn and Graubard 1998).

    >>> [round(float(bound), 4) for bound in exact_bounds(0, 10, 0.025)]
    [0.0, 0.3085]

    Args:
        hits: rows with a hit ``[...]``.
        n: rows ``[...]``.
        tail: probability that the proportion is below the lower, and above the upper bound.
    """
    hits, n, tail = np.broadcast_arrays(np.asarray(hits, np.float64), n, tail)
    missed = n - hits
    low = special.betaincinv(np.maximum(hits, TINY), missed + 1, tail)
    high = special.betaincinv(hits + 1, np.maximum(missed, TINY), 1 - tail)
    return np.where(hits > 0, low, 0.0), np.where(missed > 0, high, 1.0)
