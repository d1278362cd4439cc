r"""A value with named components of its variance, its tests and intervals; where they come from.

Components are independent, and their sum is the variance of the value. One that is known from the
test rows has infinitely many degrees of freedom; one that is estimated from few refits or domains
has few. With known variance v and an estimated variance s^2 of f degrees of freedom the
standardised error is taken as

.. math:: (\hat\theta - \theta) \sim N(0, v + s^2 f / \chi^2_f)

the distribution of Behrens and Fisher, mixed over the chi-squared variable. It is Student's t with
f degrees of freedom for v = 0 and the normal one for s = 0. Between them Satterthwaite's t is right
at 5 % but too light in the tail that Holm's correction reads. Several estimated components are one
with Satterthwaite's degrees of freedom (1946).

- *Rows*: the mean of n rows has the variance :math:`s^2 / n`, a rate
  :math:`p (1 - p) / (n - 1)`.
- *Refits*: the mean over k refits has the variance :math:`s^2 / k` with k - 1 degrees of freedom;
  on splits that share rows :math:`s^2 (1 / k + n_{test} / n_{train})` (Nadeau and Bengio 2003).
- *Domains*: a jackknife that leaves one domain out, as source and as target.
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


ADDED = 1.0  # rows on either side of a rate that is compared (Agresti and Caffo 2000)
ADDED_ALONE = 2.0  # of a rate alone (Agresti and Coull 1998)
FEWEST_ROWS = 8  # below, a rate is not estimable: simulated coverage of gaps falls to .93
FEWEST_OF_MEAN = 2  # rows; below, the variance of a mean is not known
FEWEST_REFITS = 5  # below, nothing is said about the method
SAME = 1e-12  # standard deviation of refits that are all equal, and what sums are rounded by
MOST_DEGREES = 1e6  # degrees of freedom of a prior without any variation


def of_rate(share: Any, n: Any) -> Array:
    """Variance of the share of n independent rows, float64 ``[...]``; NaN for fewer than two."""
    share, n = np.asarray(share, np.float64), np.asarray(n, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n > 1, share * (1 - share) / (n - 1), np.nan)


def rows_of_mean(counted: Any) -> Array:
    """Rows of equal weight that a mean of numbers rests on; NaN where its variance is not known.

    Their number less one are the degrees of freedom: in simulations of 5 to 30 rows with log-normal
    weights, intervals of the number of all rows cover .76 to .94, of these .93 to .96.
    """
    counted = np.asarray(counted, np.float64)
    return np.where(counted > FEWEST_OF_MEAN - SAME, counted, np.nan)


def student_factor(degrees: Any, level: float = LEVEL) -> Array:
    """Factor of a variance from the normal distribution to Student's, at the level of intervals."""
    tail = 1 - level / 2
    student = special.stdtrit(np.maximum(degrees, 1), tail)
    return np.asarray((student / special.ndtri(tail)) ** 2)


def small_counts(share: Any, variance: Any, n: Any, added: float = ADDED) -> tuple[Array, Array]:
    """Centre and variance of a rate for tests and intervals, with rows added on either side.

    A share of 0 or 1 has a variance, too, and skewed distributions are centred (Agresti and Caffo
    2000). Where the variance is not that of n independent rows (weights, households), the rows
    added are compared with the number of independent rows that would have it.

    Args:
        share: shares ``[...]``.
        variance: their variances ``[...]``, see ``of_rate``.
        n: numbers of rows.
        added: rows added.

    Returns:
        Both are NaN below ``FEWEST_ROWS`` rows, and where the variance is not known.
    """
    share, variance, n = (np.asarray(values, np.float64) for values in (share, variance, n))
    effective = independent_rows(share, variance, n)
    effective = np.where((n >= FEWEST_ROWS) & ~np.isnan(variance), effective, np.nan)
    total = effective + 2 * added
    centre = (share * effective + added) / total
    return np.asarray(centre), np.asarray(centre * (1 - centre) / total)


def independent_rows(share: Array, variance: Array, rows: Array) -> Array:
    """Numbers of independent rows in which shares have these variances; ``rows`` if that is 0."""
    binomial = share * (1 - share)
    none = (variance == 0) | (binomial == 0)
    return np.where(none, rows, binomial / np.where(none, 1, variance) + 1)


def of_rows(values: Any) -> float:
    """Variance of the mean of values of independent rows ``[n]``, with a row added on either side.

    The two are as far from the mean as the row that is furthest, so that a mean that depends on few
    rows is not too certain; of a share that is nearly what ``small_counts`` adds.

    >>> of_rows([1, 0] * 4), float(small_counts(0.5, of_rate(0.5, 8), 8)[1])
    (0.025, 0.025)
    """
    away = np.asarray(values, np.float64) - np.mean(values)
    squares = (away**2).sum() + 2 * ADDED * (away**2).max()
    return float(squares / (len(away) + 2 * ADDED) ** 2)


def small_covariance(first: Any, second: Any, covariance: Any, n: Any) -> Array:
    """Covariance of two rates of the same n rows that fits the variances of ``small_counts``.

    Half a row is added to each of the four pairs of outcomes (Agresti and Min 2005), which adds
    ``ADDED`` rows on either side of both rates.

    Args:
        first: shares ``[...]``.
        second: shares of the same rows after they were shifted.
        covariance: that of the two shares.
        n: numbers of rows.
    """
    first, second, covariance, n = (
        np.asarray(value, np.float64) for value in (first, second, covariance, n)
    )
    both = covariance * (n - 1) + first * second  # share of the rows with 1 in both
    total = n + 2 * ADDED
    centres = [(share * n + ADDED) / total for share in (first, second)]
    return np.asarray(((both * n + ADDED / 2) / total - centres[0] * centres[1]) / total)


def covariance_of_copies(n: Array, values: Array, among: Array | None = None) -> Array:
    """Covariance of a mean with that of the same rows before a shift, by group ``[..., groups]``.

    Args:
        n: rows by group, class, decision before the shift and decision ``[..., groups, classes,
            classes, classes]``.
        values: values of rows by class and decision ``[classes, classes]``.
        among: the rows that the mean is taken among, likewise; all if None.
    """
    of = np.ones(values.shape) if among is None else np.asarray(among, np.float64)
    influence = np.ones(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        for absent in (-2, -1):  # values after the shift do not depend on before, and vice versa
            counted, value = np.expand_dims(of, absent), np.expand_dims(values, absent)
            rows = (n * counted).sum((-3, -2, -1), keepdims=True)
            mean = (n * counted * value).sum((-3, -2, -1), keepdims=True) / rows
            influence = influence * np.where(counted > 0, (value - mean) / rows, 0.0)
        rows = rows[..., 0, 0, 0]
        return np.asarray(
            (n * influence).sum((-3, -2, -1)) * np.where(rows > 1, rows / (rows - 1), np.nan)
        )


def over_refits(values: Array, ratio: Any = 0.0) -> Estimate:
    """The mean over refits, the last axis of ``values``, with what varies between them alone.

    Args:
        values: one per refit ``[..., refits]``; NaN where a refit has none.
        ratio: see ``between_refits``.
    """
    name = SPLITS if np.any(ratio) else REFITS
    return Estimate(_mean(values), {name: between_refits(values, ratio)})


def resampled(value: Any, draws: Array, n: int) -> Estimate:
    """A value with the variance of its bootstrap draws over n refits, the last axis of ``draws``.

    A draw of n refits with replacement varies (n - 1) / n times as much as the value itself. Draws
    that are missing are left out.
    """
    known = np.isfinite(draws)
    away = np.where(known, draws - _mean(draws)[..., None], 0.0)
    variance = (away**2).sum(-1) / np.maximum(known.sum(-1), 1) * n / max(n - 1, 1)
    part = Component(np.where(n > 1, variance, np.nan), max(n - 1.0, 1))
    return Estimate(np.asarray(value), {REFITS: part})


def over_domains(values: Array, sources: Any, targets: Any) -> Estimate:
    """The mean over pairs of domains ``[..., pairs]``, see ``between_domains``."""
    return Estimate(_mean(values), {DOMAINS: between_domains(values, sources, targets)})


def _mean(values: Array) -> Array:
    """Mean of the known values of the last axis; NaN where there is none."""
    count = np.isfinite(values).sum(-1)
    return np.where(count > 0, np.nansum(values, -1) / np.maximum(count, 1), np.nan)


def between_refits(values: Array, ratio: Any = 0.0) -> Component:
    """Variance of the mean over refits, the last axis of ``values`` ``[..., refits]``.

    Args:
        values: one per refit; NaN where a refit has none.
        ratio: test by training rows of splits that share rows; 0 where the same rows are tested.

    Returns:
        With k - 1 degrees of freedom; 0 where all refits agree (deterministic training), NaN for a
        single one.
    """
    count = np.isfinite(values).sum(-1)
    mean = np.nansum(values, -1, keepdims=True) / np.maximum(count, 1)[..., None]
    squares = np.nansum((values - mean) ** 2, -1)
    single = np.where(count > 1, squares, np.nan) / np.maximum(count - 1, 1)
    single = np.where(single > SAME**2, single, 0 * single)
    return Component(single * (1 / np.maximum(count, 1) + ratio), np.maximum(count - 1.0, 1))


def moderated(part: Component) -> Component:
    r"""Variances of a family of tests, each drawn towards what they have in common.

    With the prior :math:`d_0 s_0^2 / \chi^2_{d_0}` of a variance, fitted to the mean and the
    variance of all logarithms, each becomes :math:`(d_0 s_0^2 + d s^2) / (d_0 + d)` with
    :math:`d_0 + d` degrees of freedom (Smyth 2004). It is never taken below what the test itself
    has: of unequal variances the prior is only an average.
    """
    variance, df = np.broadcast_arrays(np.asarray(part.variance, np.float64), part.df)
    used = (variance > 0) & np.isfinite(df)
    if used.sum() < 3:  # noqa: PLR2004 - the spread of two is arbitrary
        return Component(variance, df)
    s2, d = variance[used], df[used]
    logs = np.log(s2) - special.digamma(d / 2) + np.log(d / 2)
    excess = logs.var(ddof=1) - special.polygamma(1, d / 2).mean()
    prior = float(min(2 * _inverse_trigamma(excess), MOST_DEGREES)) if excess > 0 else MOST_DEGREES
    centre = np.exp(logs.mean() + special.digamma(prior / 2) - np.log(prior / 2))
    shrunken, degrees = variance.copy(), np.array(df, np.float64)
    shrunken[used] = np.maximum((prior * centre + d * s2) / (prior + d), s2)
    degrees[used] = np.minimum(prior + d, MOST_DEGREES)
    return Component(shrunken, degrees)


def _inverse_trigamma(value: float) -> float:
    """X with trigamma(x) = value > 0, by Newton's method on 1 / trigamma (Smyth 2004, appendix)."""
    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(special.polygamma(1, x))
        x += trigamma * (1 - trigamma / value) / float(special.polygamma(2, x))
    return x


def between_domains(values: Array, sources: Any, targets: Any) -> Component:
    """Variance of the mean of pairs of domains, by a crossed jackknife.

    A domain is left out as source and as target at once, since all its pairs share a model or test
    rows. The variance contains that of rows and refits of these pairs.

    Args:
        values: one per pair, float64 ``[..., pairs]``; NaN where a pair has none.
        sources: name of the domain trained on of every pair; a training on several domains has a
            name of its own, which is not left out.
        targets: name of the domain tested on.

    Returns:
        With as many degrees of freedom as target domains less one; NaN for a single one.
    """
    sources, targets = np.asarray(sources), np.asarray(targets)
    known = np.isfinite(values)
    names = np.unique(targets)
    kept = (sources != names[:, None]) & (targets != names[:, None])  # [domains, pairs]
    sums, counts = np.where(known, values, 0.0) @ kept.T, known.astype(float) @ kept.T
    with np.errstate(invalid="ignore"):
        means = np.where(counts > 0, sums / np.where(counts > 0, counts, 1), np.nan)
    occurs = np.stack([known[..., targets == name].any(-1) for name in names], -1)
    means = np.where(occurs, means, np.nan)
    number = np.isfinite(means).sum(-1)
    centre = np.nansum(means, -1, keepdims=True) / np.maximum(number, 1)[..., None]
    spread = np.nansum((means - centre) ** 2, -1)
    share = np.where(number > 1, (number - 1) / np.maximum(number, 1), np.nan)
    return Component(share * spread, np.maximum(number - 1.0, 1))


def by_replicates(replicates: Array, estimates: Array) -> Array:
    """Deviations ``[replicates, groups]`` by successive differences, as the Census Bureau's."""
    return np.asarray(2 / np.sqrt(len(replicates)) * (replicates - estimates))
