"""What a family of tests will be able to tell, from numbers of rows alone."""

import numpy as np
from scipy import special

from robust_fairness.inference.estimate import LEVEL, POWER, Array
from robust_fairness.inference.gaps import LinearGap
from robust_fairness.inference.variance import FEWEST_ROWS

LARGEST_VARIANCE = 0.25  # of a row value of 0 or 1, that of a rate of one half


def detectable(home: Array, away: Array, of: LinearGap, tests: int) -> tuple[Array, Array]:
    """Smallest change of a gap that a fitted model's rows show with a power of ``POWER``.

    The signed difference of two groups is tested at ``LEVEL`` divided by the number of tests and of
    functions of the gap, which is what Holm's correction asks of the first of them. Rates are taken
    as one half; those near 0 or 1 vary less, and smaller changes are found.

    Args:
        home: rows that each rate of the gap rests on at home, ``[pairs, rates]``.
        away: the same elsewhere.
        of: the gap.
        tests: size of the family.

    Returns:
        The changes ``[pairs]``, NaN where a rate rests on fewer than ``FEWEST_ROWS`` rows; and the
        position of the number of rows that limits each, among those at home and then elsewhere.
    """
    rows = np.concatenate([home, away], -1).astype(np.float64)
    variance = LARGEST_VARIANCE / np.maximum(rows, 1)
    squares = np.tile(of.functions**2, 2)  # [functions, rates at both ends]
    largest = (variance @ squares.T).argmax(-1)
    parts = variance * squares[largest]
    quantiles = special.ndtri(1 - LEVEL / (len(of.functions) * tests)) + special.ndtri(POWER)
    known = (rows >= FEWEST_ROWS).all(-1)
    change = np.where(known, quantiles * np.sqrt(parts.sum(-1)), np.nan)
    return change, np.where(known, parts.argmax(-1), rows.argmin(-1))
