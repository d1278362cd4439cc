r"""Gaps between groups: the largest or the sum of signed differences of rates.

Every gap is the largest of some linear functions u of the rates r of groups,

.. math:: G(r) = \max_{u \in U} (c + u \cdot r)

a difference of two groups of both its signs, an equalised odds difference of those of both rates,
a sum of absolute differences of all its combinations of signs. Each u alone is unbiased, so that
statements about G follow from statements about linear functions, also near 0 where an absolute
value is biased:

- G is at least the lower bound of any u (one of |U| that was chosen from the data), and at most
  the largest of all upper bounds; a u of a rate that is not known has no lower and no upper one;
- G grew from h to a if one u has :math:`u \cdot a - w \cdot h > 0` for *all* w, times |U| for the
  choice of u;
- G changed by at most m if every :math:`u \cdot (a - h)` did.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Literal

import numpy as np

from robust_fairness.numbers.estimate import (
    ADDED,
    ADDED_ALONE,
    LEVEL,
    REFITS,
    ROWS,
    SPLITS,
    Array,
    Component,
    Estimate,
    moderated,
    over_refits,
    rows_of_mean,
    small_counts,
    student_factor,
)
from robust_fairness.numbers.quantities import Means

MOST_FUNCTIONS = 20_000  # of a gap
PAIR = 2  # groups


@dataclass(frozen=True)
class LinearGap:
    """Linear functions of rates, float64 ``[functions, rates]``; the gap is the largest.

    ``constant`` is added: an error of the worst group is 1 minus a rate.
    """

    functions: Array
    constant: float = 0.0

    def of(self, rates: Array) -> Array:
        """The gap of rates ``[..., rates]``; NaN where one is missing."""
        return np.asarray(self.constant + (rates @ self.functions.T).max(-1))

    def values(self, known: Array, rates: Array) -> Array:
        """The known functions ``[tests, functions]`` of rates ``[tests, rates]``, else -inf."""
        used = self.functions != 0
        each = np.where(used, self.functions * rates[:, None], 0.0).sum(-1)
        return np.where(known, each, -np.inf)

    def among(self, known: Array, rates: Array) -> Array:
        """The gap of rates among the known functions, likewise; of all where none is."""
        some = known | ~known.any(-1, keepdims=True)
        return np.asarray(self.constant + self.values(some, rates).max(-1))


Kind = Literal["largest", "sum", "worst", "worst_gap"]


def linear_gap(kind: Kind, groups: int, rates: int = 1) -> LinearGap:
    """A gap between groups; rates are in the order rate, group.

    Args:
        kind: ``largest``: the largest difference of two groups in any of the rates;
            ``sum``: the sum over rates of the absolute difference of two groups;
            ``worst``: 1 minus the lowest rate (an error of the worst group);
            ``worst_gap``: the mean of the other groups less the worst one.
        groups: their number.
        rates: number of rates.

    Raises:
        ValueError: a sum of more than two groups, or too many groups.
    """
    if kind == "worst":
        return LinearGap(-np.eye(rates * groups), 1.0)
    if kind == "worst_gap":
        others = np.full((groups, groups), 1 / (groups - 1))
        np.fill_diagonal(others, -1)
        return LinearGap(others)
    if kind == "sum":
        if groups != PAIR:
            raise ValueError(f"a sum of differences of {groups} groups, defined for two")
        signs = np.array(list(product((1.0, -1.0), repeat=rates)))
        return LinearGap(np.stack([signs, -signs], -1).reshape(len(signs), -1))
    pairs = list(permutations(range(groups), PAIR))
    if rates * len(pairs) > MOST_FUNCTIONS:
        raise ValueError(f"{groups} groups, at most {MOST_FUNCTIONS} pairs of them are compared")
    functions = np.zeros((rates, len(pairs), rates, groups))
    for place, (high, low) in enumerate(pairs):
        functions[range(rates), place, range(rates), high] = 1
        functions[range(rates), place, range(rates), low] = -1
    return LinearGap(functions.reshape(rates * len(pairs), rates * groups))


@dataclass(frozen=True)
class Rates:
    """Rates of groups in a family of tests.

    Attributes:
        value: float64 ``[tests, rates, refits]``; one refit: the model that is used.
        variance: of the rows, mean over refits, ``[tests, rates]``, see ``of_rate``.
        n: rows that a rate rests on, ``[tests, rates]``.
        counted_rows: those that have to be enough, likewise; ``n`` if None, see ``Means.counted``.
        bounded: whether values are shares between 0 and 1, to which ``small_counts`` applies.
        counted: where the variance of the rows counts; not where it is in the variance between
            refits, since each has test rows of its own, or where both ends have the same rows.
        covariance: of the rows where rates depend on one another (survey weights, households),
            ``[tests, rates, rates]``, with ``variance`` as its diagonal.
        df: degrees of freedom of the variances, likewise; see ``first``.
    """

    value: Array
    variance: Array
    n: Array
    bounded: bool = True
    counted: Array | bool = True
    covariance: Array | None = None
    counted_rows: Array | None = None
    df: Array | float = np.inf

    @classmethod
    def of_counts(cls, hits: Array, n: Array) -> "Rates":
        """From numbers of rows ``[tests, rates]`` of a single model."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share = hits / n
            return cls(share[..., None], share * (1 - share) / (n - 1), n)

    @property
    def mean(self) -> Array:
        """Mean over refits ``[tests, rates]``."""
        return self.value.mean(-1)

    @property
    def effective(self) -> Array:
        """Rows of equal weight that have to be enough ``[tests, rates]``."""
        return self.n if self.counted_rows is None else self.counted_rows

    def corrected(self, added: float = ADDED) -> "Rates":
        """With centres and variances that hold for small counts, see ``small_counts``."""
        if not self.bounded:
            return self
        mean = self.mean
        centre, variance = small_counts(mean, self.variance, self.effective, added)
        value = self.value + (centre - mean)[..., None]
        variance, covariance = np.where(self.counted, variance, 0.0), self.covariance
        if covariance is not None:  # with these variances and the same correlations
            error, known = np.sqrt(variance), np.sqrt(self.variance)
            factor = np.divide(error, known, out=np.zeros_like(error), where=known > 0)
            covariance = covariance * factor[:, :, None] * factor[:, None]
            size = np.arange(covariance.shape[-1])
            covariance[:, size, size] = variance
        return Rates(value, variance, self.n, False, covariance=covariance, df=self.df)

    def first(self) -> "Rates":
        """Those of the first refit: the model that is used.

        Variances of shares have the degrees of freedom of their rows, since the normal distribution
        is too light in the tails that a family of many tests reads. Those of methods have not:
        beside a variance between refits, error rates are right as they are.
        """
        df = np.maximum(self.effective - 1, 1) if self.bounded else self.df
        return replace(self, value=self.value[..., :1], counted=True, df=df)


def rates_of(parts: Sequence[Means], present: Array, level: float = LEVEL) -> Rates:
    """Rates of the groups that are present, bool ``[groups]``, in the order rate, group.

    Means of several test sets ``[tests, groups]`` are the tests of a family, means of a single
    one a single test. ``level`` is that of their intervals.
    """
    value, variance, n, counted = (
        np.atleast_2d(np.concatenate([getattr(part, of)[..., present] for part in parts], -1))
        for of in ("value", "variance", "n", "counted")
    )
    covariance = None
    if all(part.deviations is not None for part in parts):
        drawn = np.concatenate([part.deviations[:, present] for part in parts], axis=1)  # type: ignore[index]
        covariance = (drawn.T @ drawn)[None]
    bounded = all(part.bounded for part in parts)
    if not bounded:  # of Student's distribution of each group
        variance = variance * student_factor(rows_of_mean(counted) - 1, level)
    return Rates(value[..., None], variance, n, bounded, True, covariance, counted)


def contrast(
    away: Rates,
    home: Rates | None,
    ups: Array,
    downs: Array | None,
    ratio: float | Array = 0.0,
    covariance: Array | None = None,
) -> Estimate:
    """Estimates of ``u . away - w . home``, ``[tests, functions]``.

    Args:
        away: rates of one set of rows.
        home: rates of the other one; None for ``u . away`` alone.
        ups: u, ``[functions, rates]`` or one for each test ``[tests, functions, rates]``.
        downs: w, likewise.
        ratio: test by training rows of splits that share rows, see ``between_refits``.
        covariance: of each rate away with the same one at home, ``[tests, rates]``, where both
            have the same rows; none for independent ones.
    """
    value, rows = _applied(away, ups)
    if home is not None and downs is not None:
        less, more = _applied(home, downs)
        value, rows = value - less, rows + more
        if covariance is not None:
            both = ups * downs
            shared = np.where(both != 0, both * covariance[:, None], 0.0).sum(-1)
            rows = replace(rows, variance=np.maximum(rows.variance - 2 * shared, 0.0))
    estimate = over_refits(value, ratio) if value.shape[-1] > 1 else Estimate(value[..., 0], {})
    return Estimate(estimate.value, {ROWS: rows, **estimate.components})


def _applied(rates: Rates, functions: Array) -> tuple[Array, Component]:
    """Values ``[tests, functions, refits]`` of functions of rates and their variance by rows.

    Rates that a function does not use may be missing; NaN where one that it uses is.
    """
    many = np.broadcast_to(functions, (len(rates.value), *functions.shape[-2:]))
    used = many != 0
    values = np.where(used[..., None], many[..., None] * rates.value[:, None], 0.0).sum(-2)
    parts = np.where(used, many**2 * rates.variance[:, None], 0.0)
    rows = parts.sum(-1)
    spread = (parts**2 / np.broadcast_to(rates.df, rates.variance.shape)[:, None]).sum(-1)
    df = np.divide(rows**2, spread, out=np.full(rows.shape, np.inf), where=spread > 0)
    if rates.covariance is not None:
        known = np.einsum("tfr,trs,tfs->tf", many, np.nan_to_num(rates.covariance), many)
        rows = np.where(np.isnan(rows), np.nan, known)
    return values, Component(rows, df)


def with_moderated(estimate: Estimate) -> Estimate:
    """The same with ``moderated`` variances between refits, over the whole family."""
    parts = {
        name: moderated(part) if name in (REFITS, SPLITS) else part
        for name, part in estimate.components.items()
    }
    return Estimate(estimate.value, parts)


def interval(
    rates: Rates, of: LinearGap, level: float | Array = LEVEL, ratio: float | Array = 0.0
) -> tuple[Array, Array]:
    """Bounds of a gap ``[tests]`` that cover it with probability 1 - ``level``, never NaN.

    The lower one is of the function with the largest lower bound, at half of ``level`` over the
    number of functions (pairs u and -u count once), and not below 0 where functions come with both
    signs; the upper one is the largest of all upper bounds, each at half of ``level``: G is one of
    them. A function that is not known may have any value: it leaves the lower bound to the others,
    among as many functions, and the upper one infinite. ``ratio`` is that of ``contrast``.
    """
    ratio = np.reshape(ratio, (-1, 1)) if np.ndim(ratio) else ratio
    alone = (np.count_nonzero(of.functions, axis=-1) == 1).all()
    corrected = rates.corrected(ADDED_ALONE if alone else ADDED)
    estimate = with_moderated(contrast(corrected, None, of.functions, None, ratio))
    rows = set(map(tuple, of.functions.tolist()))
    symmetric = rows == set(map(tuple, (0.0 - of.functions).tolist()))
    level = np.reshape(level, (-1, 1))
    tails = level / (len(of.functions) * (1 if symmetric else 2)), level / 2
    below, above = estimate.critical(np.stack(tails))
    low = np.fmax(estimate.value - below, -np.inf).max(-1)  # of one that is not known, no bound
    high = np.fmin(estimate.value + above, np.inf).max(-1)
    if symmetric:
        low = np.maximum(low, 0.0)
    return of.constant + low, of.constant + high
