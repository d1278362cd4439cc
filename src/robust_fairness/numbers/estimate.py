r"""A value with named components of its variance, its tests and intervals.

Components are independent, and their sum is the variance of the value. One that is known from the
test rows has infinitely many degrees of freedom; one that is estimated from few refits or domains
has few. With known variance v and an estimated variance s^2 of f degrees of freedom the
standardised error is taken as

.. math:: (\hat\theta - \theta) \sim N(0, v + s^2 f / \chi^2_f)

the distribution of Behrens and Fisher, mixed over the chi-squared variable. It is Student's t with
f degrees of freedom for v = 0 and the normal one for s = 0. Between them Satterthwaite's t is right
at 5 % but too light in the tail that Holm's correction reads. Several estimated components are one
with Satterthwaite's degrees of freedom (1946).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

LEVEL = 0.05  # of all tests and intervals
POWER = 0.8  # of detectable changes and of numbers that would suffice
ROWS, REFITS, SPLITS, DOMAINS = "rows", "refits", "splits", "domains"
LARGE = 1e10  # degrees of freedom of the normal distribution
TINY = 1e-12  # hits or misses that count as none
NODES = 129  # of the integral over the chi-squared variable

Array = np.ndarray


@dataclass(frozen=True)
class Component:
    """A part of a variance, float64 ``[...]``, with its degrees of freedom (inf: known)."""

    variance: Array | float
    df: Array | float = np.inf

    def __add__(self, other: "Component") -> "Component":
        """The sum of two independent parts, with Satterthwaite's degrees of freedom."""
        total = self.variance + other.variance
        spread = np.square(self.variance) / self.df + np.square(other.variance) / other.df
        df = np.divide(total**2, spread, out=np.full(np.shape(total), np.inf), where=spread > 0)
        return Component(total, df)


@dataclass(frozen=True)
class Estimate:
    """Values ``[...]`` with their components of variance by name (``ROWS``, ``REFITS``, ...).

    A variance of 0 is not known: it has no test and no interval.
    """

    value: Array
    components: Mapping[str, Component]

    @property
    def variance(self) -> Array:
        """The sum of all components, float64 ``[...]``."""
        known, estimated = self._parts()
        return known + estimated.variance

    @property
    def error(self) -> Array:
        """The standard error."""
        return np.sqrt(self.variance)

    @property
    def df(self) -> Array:
        """Satterthwaite's degrees of freedom of the variance."""
        known, estimated = self._parts()
        return np.asarray((Component(known) + estimated).df)

    def _parts(self) -> tuple[Array, Component]:
        """The known variance, and all estimated components as one."""
        known = np.zeros(np.shape(self.value))
        estimated = Component(known, np.full(known.shape, np.inf))
        for part in self.components.values():
            of_rows = np.isinf(np.broadcast_to(part.df, known.shape))
            known = known + np.where(of_rows, part.variance, 0.0)
            estimated = estimated + Component(np.where(of_rows, 0.0, part.variance), part.df)
        return known, estimated

    def tail(self, distance: Any) -> Array:
        """Probability that the error exceeds a distance of 0 or more."""
        known, estimated = self._parts()
        parts = np.broadcast_arrays(distance, known, estimated.variance, estimated.df)
        distance, known, variance, df = (np.asarray(part, np.float64) for part in parts)
        with np.errstate(divide="ignore", invalid="ignore"):
            normal = special.ndtr(-distance / np.sqrt(known + variance))
        few = np.isfinite(df)
        if few.any():
            normal[few] = _mixed_tail(distance[few], known[few], variance[few], df[few])
        return normal

    def p(self) -> Array:
        """Two-sided p-value of a value of 0."""
        return 2 * self.tail(np.abs(self.value))

    def p_above(self, bound: Any = 0.0) -> Array:
        """P-value of a true value of at most ``bound``: small where it is certainly above."""
        distance = self.value - bound
        tail = self.tail(np.abs(distance))
        return np.where(distance > 0, tail, 1 - tail)

    def p_within(self, margin: Any) -> Array:
        """P-value of a true value beyond ±``margin``, of two one-sided tests (Schuirmann 1987)."""
        inside = margin - np.abs(self.value)
        tail = self.tail(np.abs(inside))
        return np.where(inside > 0, tail, 1 - tail)

    def critical(self, tail: Any) -> Array:
        """The distance that the error exceeds with probability ``tail``, at most a half."""
        known, estimated = self._parts()
        parts = np.broadcast_arrays(tail, known, estimated.variance, estimated.df)
        tail, known, variance, df = (np.asarray(part, np.float64) for part in parts)
        error = np.sqrt(np.where(known + variance > 0, known + variance, np.nan))
        # without a known part it is Student's t, and without an estimated one normal
        student = special.stdtrit(np.minimum(df, LARGE), 1 - tail)
        distance = error * np.where(known > 0, -special.ndtri(tail), student)
        few = np.isfinite(df) & np.isfinite(error) & (known > 0)
        if few.any():
            from scipy.optimize.elementwise import find_root

            # the mixture lies between the normal distribution and t of the estimated part
            most = 1.01 * error[few] * student[few]
            args = known[few], variance[few], df[few], tail[few]
            distance[few] = find_root(_excess, (np.zeros_like(most), most), args=args).x
        return distance

    def interval(self, level: float = LEVEL) -> tuple[Array, Array]:
        """Bounds that cover the true value with probability 1 - ``level``."""
        half = self.critical(level / 2)
        return self.value - half, self.value + half

    def bound(self, level: float = LEVEL) -> Array:
        """What the absolute true value is at most, at ``level``: the margin it is held within."""
        return np.abs(self.value) + self.critical(level)

    def detectable(self, power: float = POWER, level: float = LEVEL) -> Array:
        """The true value that a two-sided test at ``level`` finds with this power."""
        return self.critical(level / 2) + self.critical(1 - power)


def _mixed_tail(distance: Array, known: Array, variance: Array, df: Array) -> Array:
    """The tail of the mixture at distances ``[n]``, as a sum over equal steps of log(chi2_df / df).

    The steps are where the chi-squared variable has any mass.
    """
    left = -60 / df - 8 * np.sqrt(2 / df)
    right = np.log1p(60 / df + 8 * np.sqrt(2 / df))
    log = left + (right - left) * np.linspace(0, 1, NODES)[:, None]
    weight = np.exp(df / 2 * (log - np.expm1(log)))
    with np.errstate(divide="ignore", invalid="ignore"):
        each = special.ndtr(-distance / np.sqrt(known + variance * np.exp(-log)))
    return np.asarray((weight * each).sum(0) / weight.sum(0))


def _excess(distance: Array, known: Array, variance: Array, df: Array, tail: Array) -> Array:
    """How much the logarithm of the tail at a distance is above that of ``tail``."""
    return np.asarray(np.log(_mixed_tail(distance, known, variance, df) / tail))


def half_width(error: Any, n: Any, level: float = LEVEL) -> Any:
    """Half the width of Student's interval of a mean of n values with this standard error."""
    return special.stdtrit(n - 1, 1 - level / 2) * error


def wilson_interval(share: Any, n: Any, level: float = LEVEL) -> tuple[Array, Array]:
    """Wilson's score interval of proportions; NaN where ``n`` is 0.

    Where ``n`` is NaN, since the variance is not known, every proportion is possible.

    Args:
        share: proportions ``[m]``.
        n: numbers of rows of equal weight ``[m]``.
        level: probability that the interval does not contain the true proportion.
    """
    z = special.ndtri(1 - level / 2)
    share, rows = np.asarray(share, np.float64), np.where(n > 0, n, np.nan)
    middle = (share + z**2 / (2 * rows)) / (1 + z**2 / rows)
    half = z / (1 + z**2 / rows) * np.sqrt(share * (1 - share) / rows + z**2 / (4 * rows**2))
    unknown = np.isfinite(share) & np.isnan(n)
    low, high = np.where(unknown, 0.0, middle - half), np.where(unknown, 1.0, middle + half)
    # exact bounds at 0 and 1, where rounding errors would remain
    return np.where(share == 0, 0.0, low), np.where(share == 1, 1.0, high)


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
