"""Robustness slope: how fast accuracy falls with the strength of a shift (Control+Shift, 4.2).

A slope of 0 is complete robustness, a very negative one a fast decline. The paper does not say
whether its lines have an intercept, and gives no uncertainty: here the intercept is free.

Test sets are not independent draws: their severities are chosen, and they contain the same latent
rows at every severity. The *unit* is therefore the seed, with all its test sets; for a line through
the curves of many networks it is the network, with all its seeds. The interval says what another
seed (or network) would give on the same images: it leaves out other generators and directions.
"""

from dataclasses import dataclass

import numpy as np

from robust_fairness.numbers.estimate import half_width

FEWEST_UNITS = 2
SAME = 1e-12  # relative spread below which numbers are equal


@dataclass(frozen=True)
class Slope:
    """A least-squares line with intercept, and the numbers of points and of units.

    Missing are the slope where x takes one value only, ``r_squared`` for a constant, and the 95 %
    interval ``low`` to ``high`` of the slope below ``FEWEST_UNITS`` and where all units have the
    same line; the note says why.
    """

    slope: float
    low: float
    high: float
    intercept: float
    r_squared: float
    points: int
    units: int
    note: str = ""


def fit(x: np.ndarray, y: np.ndarray, unit: np.ndarray) -> Slope:
    """Least-squares line through points ``[n]`` of units ``[n]``, with Student's interval.

    Its standard error is robust to any dependence within a unit (Liang and Zeger 1986), of k units
    with the factor k / (k - 1) and k - 1 degrees of freedom: for units with the same x it is that
    of the mean of their slopes. A bootstrap over so few units is too narrow.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    names, number = np.unique(unit, return_inverse=True)
    units = len(names)
    if len(x) == 0 or _one_number(x):
        missing, note = np.nan, "no slope: fewer than two strengths"
        return Slope(missing, missing, missing, missing, missing, len(x), units, note)
    # around the middle, where sums of squares lose no digits
    from_x, from_y = x - x.mean(), y - y.mean()
    spread = from_x @ from_x
    slope = float(from_x @ from_y / spread)
    rest = from_y - slope * from_x
    low, high, r_squared, notes = np.nan, np.nan, np.nan, []
    scores = np.bincount(number, from_x * rest, units) / spread
    if units < FEWEST_UNITS:
        notes.append(f"no interval: fewer than {FEWEST_UNITS} units")
    elif np.abs(scores).max() <= SAME * max(abs(slope), SAME):
        notes.append("no interval: all units have the same line")
    else:
        half = float(half_width(np.sqrt(units / (units - 1) * (scores @ scores)), units))
        low, high = slope - half, slope + half
    if _one_number(y):
        notes.append("no R squared: all values are equal")
    else:
        r_squared = float(1 - rest @ rest / (from_y @ from_y))
    intercept = float(y.mean() - slope * x.mean())
    return Slope(slope, low, high, intercept, r_squared, len(x), units, "; ".join(notes))


def _one_number(values: np.ndarray) -> bool:
    return bool(np.ptp(values) <= SAME * np.abs(values).max())
