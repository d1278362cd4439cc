"""Robustness slope: how fast accuracy falls with the strength of a shift (Control+Shift, 4.2).

A slope of 0 is complete robustness, a very negative one a fast decline. The paper says neither
whether its lines have an intercept nor how sure a slope is: here the intercept is free, and R
squared and a bootstrap interval stand beside the slope.

**What is resampled.** Test sets are no independent draws: their strengths are chosen, and they hold
the same latent rows at every strength. What varies is the training: a seed gives a *curve*, all of
whose points move together. So the *unit* of the bootstrap is the seed, drawn with all its test
sets; for a line through the curves of many networks the unit is the network, with all its seeds.
The interval tells what another seed (or network) would give, for the same pictures.
"""

from dataclasses import dataclass

import numpy as np

from robust_fairness.core.errors import InputError

CONFIDENCE = 0.95
DRAWS = 2000
FEWEST_UNITS = 3  # of two units there are but three resamples
SAME = 1e-12  # relative spread below which numbers are one number


@dataclass(frozen=True)
class Slope:
    """A least-squares line with intercept.

    Attributes:
        slope: change for a unit of x; missing where x takes one value only.
        intercept: value at x = 0.
        r_squared: share of the variance that the line explains; missing for a constant.
        low: lower end of the bootstrap interval of the slope; missing for fewer than three units.
        high: its upper end.
        points: points that the line was fitted to.
        units: units that were resampled.
        note: why something is missing.
    """

    slope: float
    intercept: float
    r_squared: float
    low: float
    high: float
    points: int
    units: int
    note: str = ""


def change_of_accuracy(shifted: np.ndarray, unshifted: np.ndarray | float) -> np.ndarray:
    """Delta-accuracy ``[n]``: accuracy on the shifted less that on the unshifted test set (4.2).

    Args:
        shifted: accuracies ``[n]``.
        unshifted: of the same model on the unshifted set, one or ``[n]``.
    """
    return np.asarray(shifted, np.float64) - np.asarray(unshifted, np.float64)


def fit(x: np.ndarray, y: np.ndarray, unit: np.ndarray, draws: int = DRAWS, seed: int = 0) -> Slope:
    """Line through points by least squares with intercept, and how sure its slope is.

    Args:
        x: strength of the shift, ``[n]``.
        y: Delta-accuracy, ``[n]``.
        unit: what a point belongs to ``[n]``; a unit is drawn with all its points.
        draws: bootstrap resamples of the percentile interval.
        seed: of the bootstrap.

    Raises:
        InputError: lengths differ, or a number is not finite.
    """
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if not len(x) == len(y) == len(unit):
        raise InputError(f"slope: {len(x)} strengths, {len(y)} values and {len(unit)} units")
    for name, values in (("strengths", x), ("values", y)):
        if not np.isfinite(values).all():
            raise InputError(f"slope: {name} hold a number that is not finite")
    names, number = np.unique(unit, return_inverse=True)
    missing = np.nan
    if len(x) == 0 or _one_number(x):
        note = "no slope: fewer than two strengths"
        return Slope(missing, missing, missing, missing, missing, len(x), len(names), note)
    # around the middle, where sums of squares lose no digits
    middle_x, middle_y = x.mean(), y.mean()
    sums = _sums(x - middle_x, y - middle_y, number, len(names))
    slope = float(_slopes(sums.sum(0)))
    low, high, notes = missing, missing, []
    if len(names) < FEWEST_UNITS:
        notes.append(f"no interval: fewer than {FEWEST_UNITS} units")
    else:
        low, high = _interval(sums, draws, seed)
    r_squared = missing
    if _one_number(y):
        notes.append("no R squared: all values are equal")
    else:
        error = y - middle_y - slope * (x - middle_x)
        r_squared = float(1 - np.sum(error**2) / np.sum((y - middle_y) ** 2))
    intercept = float(middle_y - slope * middle_x)
    return Slope(slope, intercept, r_squared, low, high, len(x), len(names), "; ".join(notes))


def _one_number(values: np.ndarray) -> bool:
    return bool(np.ptp(values) <= SAME * np.abs(values).max())


def _sums(x: np.ndarray, y: np.ndarray, number: np.ndarray, units: int) -> np.ndarray:
    """Of every unit the sums of 1, x, y, x^2 and xy, ``[units, 5]``: all that a line needs."""
    terms = (np.ones_like(x), x, y, x * x, x * y)
    return np.stack([np.bincount(number, term, units) for term in terms], axis=-1)


def _slopes(sums: np.ndarray) -> np.ndarray:
    """Least-squares slopes ``[...]`` from sums ``[..., 5]``; missing where x does not vary."""
    n, x, y, xx, xy = np.moveaxis(sums, -1, 0)
    spread = n * xx - x * x
    varies = spread > SAME * n * xx
    return np.where(varies, (n * xy - x * y) / np.where(varies, spread, 1), np.nan)


def _interval(sums: np.ndarray, draws: int, seed: int) -> tuple[float, float]:
    """Percentile interval of the slope over resampled units."""
    units = len(sums)
    counts = np.random.default_rng(seed).multinomial(units, np.full(units, 1 / units), draws)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(_slopes(counts @ sums), [tail, 1 - tail])
    return float(low), float(high)
