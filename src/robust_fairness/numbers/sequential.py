r"""Evidence that a gap grew, which may be looked at after every batch of rows: e-processes.

Rows of group k in a batch are independent with the rate :math:`\theta_k`. Let :math:`\theta^*` be
an alternative that was chosen before the batch and :math:`\theta^\circ` the rates of a convex null
hypothesis that are closest to it, :math:`\min \sum_k n_k KL(\theta^*_k \| \theta_k)`. Then

.. math:: E = \prod_k \left(\frac{\theta^*_k}{\theta^\circ_k}\right)^{h_k}
    \left(\frac{1 - \theta^*_k}{1 - \theta^\circ_k}\right)^{n_k - h_k}

of :math:`h_k` hits has a mean of at most 1 under *all* rates of the hypothesis, whatever the level
of the rates is in this batch and however unequal the groups are: the logarithm of its mean,
:math:`\sum_k n_k \log(\text{linear in } \theta_k)`, is concave, is 0 at :math:`\theta^\circ`, and
its gradient there is that of the divergence with the sign turned. (The e-variables of Turner, Ly
and Grünwald 2024 for any convex hypothesis about rates.) Products over batches and means over
alternatives, starts and functions are e-processes: they ever reach :math:`1 / \alpha` with
probability at most :math:`\alpha` (Ville), as in Chugg et al., "Auditing Fairness by Betting"
(NeurIPS 2023, arXiv 2305.17570), where a batch is a single pair of rows.

The hypothesis is "in every batch the gap is at most a bound". A gap is the largest of linear
functions u of the rates (``gaps``), so that each u has a half-space of its own.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from robust_fairness.numbers.estimate import ADDED, LEVEL, Array, exact_bounds
from robust_fairness.numbers.rates import LinearGap

GROWTH = np.array([0.01, 0.02, 0.04, 0.08, 0.16, 0.32])  # of the alternatives, over the bound
FEWEST_PERIODS = 6  # from which the variation of a gap between periods is estimated
MANY = 100  # rows with and without a hit, from which normal bounds are right in the tail
LEVEL_ROWS = 100.0  # that the level of the rates before the last batch counts as
STEPS = 16  # of Newton's method
TINY, END, SLACK = 1e-300, 1 - 2**-30, 1e-12  # a root may be outside of its bracket by rounding
EXACT = 1e-10  # of a projection; without it there is no evidence
BOUNDS = 12  # halvings of a confidence bound: 2 / 2^12 = .0005


def projected(rates: Array, n: Array, functions: Array, value: Array) -> Array:
    r"""The closest rates with ``functions @ rates == value``, float64 ``[..., k]``.

    Closest by :math:`\sum_k n_k KL(p_k \| \theta_k)`: with a multiplier :math:`\mu`,
    :math:`n_k (\theta_k - p_k) + \mu u_k \theta_k (1 - \theta_k) = 0`. The value falls in
    :math:`\mu`, which Newton's method finds, by halving where a step would leave its bracket.

    Args:
        rates: p, above 0 and below 1, ``[..., k]``.
        n: rows of each rate, positive ``[..., k]``.
        functions: u, not 0, ``[..., k]``.
        value: one that rates above 0 and below 1 can have, ``[...]``.
    """
    scale = n.max(-1, keepdims=True)
    share, shape = n / scale, np.broadcast_shapes(rates.shape, n.shape, (*value.shape, 1))
    multiplier = np.zeros((*shape[:-1], 1))
    low, high = multiplier - END, multiplier + END  # of multiplier / (1 + |multiplier|)
    for step in range(STEPS + 1):
        slope = functions * multiplier
        # the root in [0, 1] of slope x^2 - (share + slope) x + share p, without cancellation
        total = share + slope
        root = np.sqrt((share - slope) ** 2 + 4 * share * slope * (1 - rates))
        above = np.where(total > 0, 2 * share * rates, total - root)
        closest = above / np.where(total > 0, total + root, 2 * slope)
        if step == STEPS:
            break
        excess = (functions * closest).sum(-1, keepdims=True) - value[..., None]
        bounded = multiplier / (1 + np.abs(multiplier))
        low, high = np.where(excess > 0, bounded, low), np.where(excess > 0, high, bounded)
        fall = (functions**2 * closest * (1 - closest) / root).sum(-1, keepdims=True)
        newton = multiplier + excess / np.maximum(fall, TINY)
        bounded = newton / (1 + np.abs(newton))
        middle = (low + high) / 2
        inside = (low <= bounded + SLACK) & (bounded <= high + SLACK)
        multiplier = np.where(inside, newton, middle / (1 - np.abs(middle)))
    return np.asarray(closest)


@dataclass(frozen=True)
class Reference:
    """Hits and rows of every rate in the periods that later ones are compared with.

    Attributes:
        hits: rows with a hit, float64 ``[periods, rates]``.
        n: rows.
    """

    hits: Array
    n: Array

    def most(self, functions: Array, level: float) -> Array:
        """Upper bounds of functions u of the rates, ``[functions]``.

        Each is below its value with a probability of at most ``level``: of exact bounds of the
        rates that it uses, each with its share of ``level``, or, where all of them have ``MANY``
        rows with and without a hit, by Agresti and Caffo (at most 1.13 times ``level``, by all
        outcomes of up to 1,000 rows).
        """
        hits, n, used = self.hits.sum(0), self.n.sum(0), functions != 0
        low, high = exact_bounds(hits, n, level / used[0].sum())
        exact = np.where(functions > 0, functions * high, functions * low).sum(-1)
        share, rows = (hits + ADDED) / (n + 2 * ADDED), n + 2 * ADDED
        error = np.sqrt(functions**2 @ (share * (1 - share) / rows))
        many = (np.minimum(hits, n - hits) >= MANY) | ~used
        normal = functions @ share - special.ndtri(level) * error
        return np.where(many.all(-1), normal, exact)

    def variation(self, functions: Array) -> Array:
        r"""Standard deviations of functions between the periods, ``[functions]``.

        The variance of the periods' values less that of their rows, where the sum of squares is
        significantly larger than by their rows alone (chi-squared, at 5 %), else 0; 0 of fewer
        than ``FEWEST_PERIODS`` periods in which the groups have rows.
        """
        rows = (self.n > 0).all(1)
        degrees = int(rows.sum()) - 1
        if degrees + 1 < FEWEST_PERIODS:
            return np.zeros(len(functions))
        hits, n = self.hits[rows], self.n[rows]
        pooled = (hits.sum(0) + 1) / (n.sum(0) + 2)
        values = hits / n @ functions.T
        by_rows = pooled * (1 - pooled) / n @ (functions**2).T
        excess = values.var(0, ddof=1) - by_rows.mean(0)
        weight = 1 / by_rows
        centre = (weight * values).sum(0) / weight.sum(0)
        squares = (weight * (values - centre) ** 2).sum(0)
        varies = special.chdtrc(degrees, squares) < LEVEL
        return np.where(varies, np.sqrt(np.maximum(excess, 0.0)), 0.0)


@dataclass(frozen=True)
class Batches:
    """Hits and rows of every rate in consecutive batches, float64 ``[batches, rates]``.

    Attributes:
        hits: rows with a hit.
        n: rows.
        level: expected rates before each batch, from what was known then.
    """

    hits: Array
    n: Array
    level: Array

    @classmethod
    def of(cls, hits: Array, n: Array, reference_hits: Array, reference_n: Array) -> "Batches":
        """Batches after a reference, whose counts are ``[rates]``."""
        level = [(reference_hits + 1) / (reference_n + 2)]
        for batch in range(len(hits) - 1):
            level.append((hits[batch] + LEVEL_ROWS * level[-1]) / (n[batch] + LEVEL_ROWS))
        return cls(
            np.asarray(hits, np.float64), np.asarray(n, np.float64),
            np.array(level[: len(hits)]).reshape(hits.shape),
        )  # fmt: skip

    def since(self, start: int) -> "Batches":
        """Those from a batch on."""
        return Batches(self.hits[start:], self.n[start:], self.level[start:])

    def log_e(self, functions: Array, bound: Array) -> Array:
        """Logarithms of the e-values of "u . rates <= bound", ``[functions, batches, growths]``.

        Args:
            functions: u, ``[functions, rates]``, each with as many rates other than 0.
            bound: one for each function, or for all of them.
        """
        used = np.argsort(functions == 0, axis=1, kind="stable")[:, : (functions[0] != 0).sum()]
        u = np.take_along_axis(functions, used, 1)[:, None, None]  # [functions, 1, 1, k]
        hits, n, level = (
            np.moveaxis(counts[:, used], 0, 1)[:, :, None]
            for counts in (self.hits, self.n, self.level)
        )  # [functions, batches, 1, k]
        known = np.asarray((n > 0).all(-1))
        n = np.where(known[..., None], n, 1.0)
        most, least = np.maximum(u, 0).sum(-1), np.minimum(u, 0).sum(-1)  # [functions, 1, 1]
        limit = np.broadcast_to(bound, len(functions))[:, None, None]
        inside = 1e-3 * (most - least)
        value = np.minimum(np.maximum(limit + GROWTH, least + inside), most - inside)
        value = np.broadcast_to(value, (*n.shape[:2], len(GROWTH)))
        other = projected(level, n, u, value)
        possible = (limit < value) & (limit > least)
        null = projected(other, n, u, np.where(possible, limit, value))
        possible &= np.abs((u * null).sum(-1) - limit) < EXACT
        gained = hits * np.log(other / null) + (n - hits) * np.log((1 - other) / (1 - null))
        return np.where(known & possible, gained.sum(-1), 0.0)


def start_weights(batches: int) -> Array:
    """Weights 1 / (t (t + 1)) of the batches in which a growth may start, ``[batches]``."""
    number = np.arange(1, batches + 1)
    return np.asarray(1 / (number * (number + 1.0)))


@dataclass(frozen=True)
class Growth:
    """Evidence that a gap is above a bound.

    Attributes:
        log_e: logarithm of the e-process after each batch, ``[batches]``.
        start: weight of each batch as the first one above the bound, after the last batch,
            ``[batches]``; they add up to 1.
    """

    log_e: Array
    start: Array

    def alarm(self, level: float) -> int | None:
        """The first batch after which the e-process is at least 1 / ``level``; None without one."""
        over = np.flatnonzero(self.log_e >= -np.log(level))
        return int(over[0]) if len(over) else None


def growth(batches: Batches, gap: LinearGap, bound: float) -> Growth:
    """Evidence against "in every batch the gap is at most ``bound``".

    The e-process is a mean over functions of the gap, growths and the batch in which the growth
    starts; what is reserved for later starts is not bet.
    """
    log_e = batches.log_e(gap.functions, np.asarray(bound - gap.constant))
    since = _since(log_e)  # [starts, batches]: a product from each start on
    weights = np.log(start_weights(len(since)))[:, None]
    reserved = -np.log(np.arange(2, len(since) + 2))
    weighted = since + weights
    total = np.logaddexp.reduce(weighted, axis=0, initial=-np.inf)
    last = weighted[:, -1]
    return Growth(np.logaddexp(total, reserved), np.exp(last - np.logaddexp.reduce(last)))


def _since(log_e: Array) -> Array:
    """Logarithms of the mean e-values from each start to each batch; -inf before the start."""
    sums = np.concatenate([np.zeros((*log_e.shape[:1], 1, log_e.shape[2])), log_e.cumsum(1)], 1)
    logs = np.full((log_e.shape[1],) * 2, -np.inf)
    for start in range(len(logs)):
        products = sums[:, start + 1 :] - sums[:, start : start + 1]
        mean = np.logaddexp.reduce(products, axis=(0, 2))
        logs[start, start:] = mean - np.log(log_e.shape[0] * log_e.shape[2])
    return logs


def lower_bound(batches: Batches, gap: LinearGap, start: int, level: float) -> float:
    """What the largest gap in the batches from ``start`` on is at least.

    The bound holds with probability 1 - ``level`` after every batch at once and whichever start is
    chosen from the data, at the cost of its weight.
    """
    since = batches.since(start)
    share = level * start_weights(start + 1)[-1] / len(gap.functions)
    functions = gap.functions
    low, high = np.minimum(functions, 0).sum(1), np.maximum(functions, 0).sum(1)
    for _ in range(BOUNDS):
        candidates = high > low.max()
        functions, low, high = (part[candidates] for part in (functions, low, high))
        middle = (low + high) / 2
        log_e = since.log_e(functions, middle).sum(1)
        mean = np.logaddexp.reduce(log_e, axis=1) - np.log(log_e.shape[1])
        refuted = mean >= -np.log(share)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return max(float(low.max()) + gap.constant, 0.0)
