r"""Where a variance comes from: rows, refits, splits and domains.

- *Rows*: the mean of n rows has the variance :math:`s^2 / n`, a rate
  :math:`p (1 - p) / (n - 1)`.
- *Refits*: the mean over k refits has the variance :math:`s^2 / k` with k - 1 degrees of freedom;
  on splits that share rows :math:`s^2 (1 / k + n_{test} / n_{train})` (Nadeau and Bengio 2003).
- *Domains*: a jackknife that leaves one domain out, as source and as target.
"""

from typing import Any

import numpy as np
from scipy import special

from robust_fairness.numbers.estimate import (
    DOMAINS,
    LEVEL,
    REFITS,
    SPLITS,
    Array,
    Component,
    Estimate,
)

ADDED = 1.0  # rows on either side of a rate that is compared (Agresti and Caffo 2000)
ADDED_ALONE = 2.0  # of a rate alone (Agresti and Coull 1998)
FEWEST_ROWS = 8  # below, a rate is not estimable: simulated coverage of gaps falls to .93
FEWEST_OF_MEAN = 2  # rows; below, the variance of a mean is not known
FEWEST_REFITS = 5  # below, nothing is said about the method
SAME = 1e-12  # standard deviation of refits that are all equal, and what sums are rounded by
LARGE = 1e6  # degrees of freedom of a prior without any variation


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
    prior = float(min(2 * _inverse_trigamma(excess), LARGE)) if excess > 0 else LARGE
    centre = np.exp(logs.mean() + special.digamma(prior / 2) - np.log(prior / 2))
    shrunken, degrees = variance.copy(), np.array(df, np.float64)
    shrunken[used] = np.maximum((prior * centre + d * s2) / (prior + d), s2)
    degrees[used] = np.minimum(prior + d, LARGE)
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
