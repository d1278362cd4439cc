"""P-values adjusted for the number of tests of a family; missing ones are no tests."""

from collections.abc import Callable
from typing import Any

import numpy as np


def holm(p_values: Any) -> np.ndarray:
    """P-values adjusted for their number, float64 ``[tests]`` (Holm 1979).

    Rejecting those below a level keeps the probability of any false rejection below it, however
    the tests depend on one another.
    """
    return _adjusted(p_values, lambda p, rank: np.maximum.accumulate(p * (len(p) + 1 - rank)))


def hochberg(p_values: Any) -> np.ndarray:
    """P-values adjusted for their number, float64 ``[tests]`` (Hochberg 1988).

    All tests are rejected if the largest p is below the level, as in an intersection-union test,
    and fewer with stronger evidence. The probability of any false rejection is kept for independent
    and for positively dependent tests.

    >>> hochberg([0.04, 0.01, 0.03]).round(3)
    array([0.04, 0.03, 0.04])
    """
    return _adjusted(
        p_values, lambda p, rank: np.minimum.accumulate((p * (len(p) + 1 - rank))[::-1])[::-1]
    )


def false_discovery_rate(p_values: Any) -> np.ndarray:
    """P-values adjusted by Benjamini and Hochberg (1995), float64 ``[tests]``.

    Rejecting those below a level keeps the expected share of false rejections below it.
    """
    return _adjusted(
        p_values, lambda p, rank: np.minimum.accumulate((p * len(p) / rank)[::-1])[::-1]
    )


def _adjusted(p_values: Any, adjust: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> np.ndarray:
    """What a rule makes of the sorted p-values and their ranks, at most 1, in the given order."""
    values = np.array(p_values, dtype=np.float64)
    known = np.flatnonzero(np.isfinite(values))
    order = known[np.argsort(values[known], kind="stable")]
    values[order] = adjust(values[order], np.arange(1, len(order) + 1)).clip(max=1)
    return values
