"""Confidence intervals of means and proportions."""

from typing import Any

import numpy as np
from scipy import special

CONFIDENCE = 0.95


def half_width(error: Any, n: Any) -> Any:
    """Half the width of Student's 95 % interval of a mean of n values with this standard error."""
    return special.stdtrit(n - 1, (1 + CONFIDENCE) / 2) * error


def wilson_interval(share: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's 95 % score interval of proportions; NaN where ``n`` is 0.

    Args:
        share: proportions ``[m]``.
        n: numbers of rows ``[m]``.
    """
    z = special.ndtri((1 + CONFIDENCE) / 2)
    share, rows = np.asarray(share, np.float64), np.where(n > 0, n, np.nan)
    middle = (share + z**2 / (2 * rows)) / (1 + z**2 / rows)
    half = z / (1 + z**2 / rows) * np.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2))
    return middle - half, middle + half
