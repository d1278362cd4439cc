"""P-values adjusted for the number of tests."""

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> np.ndarray:
    """P-values adjusted for their number, float64 (Holm 1979).

    Rejecting those below a level keeps the probability of any false rejection below it.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = values.argsort(kind="stable")
    factors = len(values) - np.arange(len(values))
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(values[order] * factors).clip(max=1)
    return adjusted
