"""Robustness slope: how fast accuracy falls with the strength of a shift (Control+Shift, 4.2).

A slope of 0 is complete robustness, a very negative one a fast decline. The paper does not say
whether its lines have an intercept, and gives no uncertainty: here the intercept is free, and the
slope has R squared and a bootstrap interval.

Test sets are not independent draws: their severities are chosen, and they contain the same latent
rows at every severity. The *unit* of the bootstrap is therefore the seed, with all its test sets;
for a line through the curves of many networks it is the network, with all its seeds. The interval
says what another seed (or network) would give on the same images.
"""

from dataclasses import dataclass

import numpy as np

from robust_fairness.core.intervals import percentile_interval

DRAWS = 2000
FEWEST_UNITS = 3  # two units have only three resamples
SAME = 1e-12  # relative spread below which numbers are equal


@dataclass(frozen=True)
class Slope:
    """A least-squares line with intercept, and the numbers of points and of resampled units.

    Missing are the slope where x takes one value only, ``r_squared`` for a constant, and the
    bootstrap interval ``low`` to ``high`` of the slope below ``FEWEST_UNITS``; the note says why.
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
    """Least-squares line through points ``[n]`` of units ``[n]``, with a percentile interval."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    names, number = np.unique(unit, return_inverse=True)
    if len(x) == 0 or _one_number(x):
        missing, note = np.nan, "no slope: fewer than two strengths"
        return Slope(missing, missing, missing, missing, missing, len(x), len(names), note)
    # around the middle, where sums of squares lose no digits
    middle_x, middle_y = x.mean(), y.mean()
    sums = _sums(x - middle_x, y - middle_y, number, len(names))
    slope = float(_slopes(sums.sum(0)))
    low, high, r_squared, notes = np.nan, np.nan, np.nan, []
    if len(names) < FEWEST_UNITS:
        notes.append(f"no interval: fewer than {FEWEST_UNITS} units")
    else:
        low, high = _interval(sums)
    if _one_number(y):
        notes.append("no R squared: all values are equal")
    else:
        error = y - middle_y - slope * (x - middle_x)
        r_squared = float(1 - np.sum(error**2) / np.sum((y - middle_y) ** 2))
    intercept = float(middle_y - slope * middle_x)
    return Slope(slope, low, high, intercept, r_squared, len(x), len(names), "; ".join(notes))


def _one_number(values: np.ndarray) -> bool:
    return bool(np.ptp(values) <= SAME * np.abs(values).max())


def _sums(x: np.ndarray, y: np.ndarray, number: np.ndarray, units: int) -> np.ndarray:
    """Sums of 1, x, y, x^2 and xy of every unit, ``[units, 5]``."""
    terms = (np.ones_like(x), x, y, x * x, x * y)
    return np.stack([np.bincount(number, term, units) for term in terms], axis=-1)


def _slopes(sums: np.ndarray) -> np.ndarray:
    """Least-squares slopes ``[...]`` from sums ``[..., 5]``; missing where x does not vary."""
    n, x, y, xx, xy = np.moveaxis(sums, -1, 0)
    spread = n * xx - x * x
    varies = spread > SAME * n * xx
    return np.where(varies, (n * xy - x * y) / np.where(varies, spread, 1), np.nan)


def _interval(sums: np.ndarray) -> tuple[float, float]:
    """Percentile interval of the slope over resampled units."""
    units = len(sums)
    counts = np.random.default_rng(0).multinomial(units, np.full(units, 1 / units), DRAWS)
    return percentile_interval(_slopes(counts @ sums))
