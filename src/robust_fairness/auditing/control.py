r"""Gaps within strata of control features, as those of applicants to the same department.

The difference of groups a and b within strata s is combined with the weights of Mantel and
Haenszel (1959), from the weights of rows n,

.. math:: d = \frac{\sum_s k_s (r_{a,s} - r_{b,s})}{\sum_s k_s}, \quad
    k_s = \frac{n_{a,s} n_{b,s}}{n_{a,s} + n_{b,s}}

the difference of two rates that are standardised to the same strata, each with the variance
:math:`\sum k_s^2 \mathrm{Var}(r_s) / (\sum k_s)^2` for the given numbers of rows (Greenland and
Robins 1985); that of shares of few rows is at least ``_least_variance``. Their ratio is the
Mantel-Haenszel risk ratio. A gap is the largest of all pairs, as without control features, so that
its interval, its tests and its changes are the same functions of rates. Strata without rows of one
of both groups have no weight.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse

from robust_fairness.auditing.predictions import Predictions, attribute_name
from robust_fairness.core.numbers import number
from robust_fairness.metrics import Gap
from robust_fairness.numbers.counts import TWO, Source
from robust_fairness.numbers.estimate import LEVEL, student_factor
from robust_fairness.numbers.groups import Groups, groups_of, shown
from robust_fairness.numbers.intervals import Compared, Interval, ratio
from robust_fairness.numbers.quantities import Means
from robust_fairness.numbers.rates import LinearGap, Rates, linear_gap

MOST_GROUPS = 30  # that are compared in pairs
COMBINED = ("largest", "sum", "ratio")  # kinds of gaps
ADDED = 2.0  # rows that draw the share of a stratum to that of all strata
MOSTLY = 0.5  # share of a gap between strata from which on it is said


@dataclass(frozen=True)
class ControlStrata:
    """Groups of an attribute within strata.

    Attributes:
        name: of the attribute and the control features, to show.
        control: names of the control features, to show.
        groups: the groups that have rows.
        codes: number of stratum and group of every row, stratum first; -1 without one.
        number: of strata.
        source: the rows by stratum and group.
    """

    name: str
    control: str
    groups: tuple[str, ...]
    codes: np.ndarray
    number: int
    source: Source


@dataclass(frozen=True)
class Within:
    """A gap within strata.

    Attributes:
        value: the gap; NaN where it has none.
        note: why.
        compared: what it compares; None of a ratio.
        bound: its interval; None without one.
        differences: of every rate and pair of groups ``[rates, pairs]``, the first less the second.
    """

    value: float
    note: str = ""
    compared: Compared | None = None
    bound: Interval | None = None
    differences: np.ndarray | None = None


def controlled_name(attribute: str, columns: tuple[str, ...], existing: object) -> str:
    """The name of an attribute within strata, which no column has."""
    name = f"{attribute} | {shown(columns)}"
    return f"({name})" if name in existing else name  # type: ignore[operator]


def strata_of(predictions: Predictions) -> Iterator[tuple[str, ControlStrata]]:
    """ControlStrata by name of an attribute or an intersection, of one control feature or more."""
    columns = tuple(map(str, predictions.control))
    strata = groups_of(predictions.control, columns)
    existing = predictions.samples.attributes
    for attribute, groups in predictions.groups.items():
        both = (strata.codes >= 0) & (groups.codes >= 0)
        present = np.bincount(groups.index[both], minlength=len(groups.values)) > 0
        place = np.cumsum(present) - 1
        names = tuple(np.array(groups.names, dtype=object)[present])
        codes = np.full(len(both), -1)
        codes[both] = strata.index[both] * len(names) + place[groups.index[both]]
        name, number = controlled_name(attribute, columns, existing), len(strata.values)
        cells = Groups.named(codes, map(str, range(number * len(names))))
        control, source = attribute_name(columns, ()), predictions.source_of(cells)
        yield attribute, ControlStrata(name, control, names, codes, number, source)


def within(gap: Gap, strata: ControlStrata, level: float = LEVEL) -> Within:
    """A gap within strata.

    Args:
        gap: of a kind ``COMBINED``.
        strata: groups within strata.
        level: of its interval.
    """
    groups = len(strata.groups)
    if not TWO <= groups <= MOST_GROUPS:
        few = "fewer than two groups with rows"
        return Within(np.nan, few if groups < TWO else f"more than {MOST_GROUPS} groups")
    pairs = np.array(list(combinations(range(groups), TWO)))
    parts = [strata.source.values(item) for item in gap.of]
    shares = [_shares(part.weight.reshape(strata.number, groups), pairs) for part in parts]
    for quantity, share in zip(gap.of, shares, strict=True):
        absent = np.flatnonzero(~np.isfinite(share.sum(0)))
        if len(absent):
            names = " and ".join(strata.groups[place] for place in pairs[absent[0]])
            return Within(
                np.nan, f"no stratum of {strata.control} has rows of {names} for the "
                f"{quantity.words}",
            )  # fmt: skip
    bounded = parts[0].bounded
    rates = _rates(parts, shares, pairs, bounded, level)
    mean = rates.mean[0].reshape(len(parts), len(pairs), TWO)
    differences = mean[..., 0] - mean[..., 1]
    if gap.how == "ratio":
        return _ratio(rates, mean, level)
    if gap.how == "sum":
        of = linear_gap("sum", TWO, len(parts))
    else:
        size = len(parts) * len(pairs)
        signs = np.kron(np.eye(size), np.array([[1.0, -1.0], [-1.0, 1.0]]))
        of = LinearGap(signs)
    most = np.inf if not bounded else float(len(parts)) if gap.how == "sum" else 1.0
    compared = Compared(strata.groups, rates, of, most, level=level)
    value = float(of.of(rates.mean)[0])
    place = np.unravel_index(np.abs(differences).argmax(), differences.shape)
    ends = [strata.groups[group] for group in pairs[place[1]]]
    note = " less ".join(ends if differences[place] >= 0 else ends[::-1]) if groups > TWO else ""
    return Within(value, note, compared, compared.bound(), differences)


def _ratio(rates: Rates, mean: np.ndarray, level: float) -> Within:
    """The smallest ratio of standardised rates ``[rates, pairs, 2]``; of a single pair bounded."""
    differences = mean[..., 0] - mean[..., 1]
    if not (mean.max(-1) > 0).all():
        return Within(np.nan, "0 in every group", differences=differences)
    value = float((mean.min(-1) / mean.max(-1)).min())
    if mean.size > TWO:
        return Within(value, differences=differences)
    share, variance = rates.mean[0] * (1 - rates.mean[0]), rates.variance[0]
    n = np.where(variance > 0, share / np.where(variance > 0, variance, 1) + 1, rates.n[0])
    return Within(value, bound=ratio(rates.mean[0] * n, n, level), differences=differences)


def _shares(weight: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Shares of the strata for every pair of groups ``[strata, pairs]``; NaN without any."""
    first, second = weight[:, pairs[:, 0]], weight[:, pairs[:, 1]]
    both = (first > 0) & (second > 0)
    k = np.where(both, first * second / np.where(both, first + second, 1), 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(k / k.sum(0))


def _rates(
    parts: Sequence[Means],
    shares: list[np.ndarray],
    pairs: np.ndarray,
    bounded: bool,
    level: float,
) -> Rates:
    """Standardised rates in the order rate, pair, end."""
    values, variances, rows, deviations = [], [], [], []
    for means, share in zip(parts, shares, strict=True):
        stratum, pair = np.nonzero(share)
        cell = stratum[:, None] * (len(means.value) // len(share)) + pairs[pair]
        column = pair[:, None] * TWO + np.arange(TWO)
        each = np.repeat(share[stratum, pair], TWO)
        shape = (len(means.value), TWO * len(pairs))
        combine = sparse.coo_array((each, (cell.ravel(), column.ravel())), shape=shape).tocsr()
        single = means.n == 1
        if bounded:
            least = _least_variance(means, len(share))
        else:  # a single row: what rows of all strata vary within them
            degrees = means.n * (means.n - 1)
            pooled = np.nansum(degrees * means.variance) / max(1, (means.n - 1).clip(0).sum())
            least = np.where(single, pooled, 0.0)
        variance = np.where(means.n > 1, np.maximum(means.variance, least), least)
        values.append(np.nan_to_num(means.value) @ combine)
        variances.append(variance @ combine**2)
        rows.append(means.n @ (combine > 0))
        if means.deviations is not None:
            known = np.where(means.n > 1, means.deviations, np.nan_to_num(means.deviations))
            deviations.append(known @ combine)
            variances[-1] = np.square(deviations[-1]).sum(0) + (least * single) @ combine**2
    value, variance, n = (np.concatenate(part)[None] for part in (values, variances, rows))
    covariance = None
    if deviations:
        drawn = np.concatenate(deviations, 1)
        covariance = (drawn.T @ drawn)[None]
        size = np.arange(len(drawn.T))
        covariance[:, size, size] = variance
    n = n.astype(np.float64)
    if not bounded:
        return Rates(value[..., None], variance * student_factor(n - 1, level), n, bounded=False)
    return Rates(value[..., None], variance, n, covariance=covariance)


def _least_variance(means: Means, strata: int) -> np.ndarray:
    r"""Least variances of shares of the rows of strata, of which many have few rows; 0 of one.

    A share of few rows is often 0 or 1. It is drawn to that of its group over all strata by
    ``ADDED`` rows, :math:`\tilde p`, and
    :math:`\tilde p (1 - \tilde p) / n / (1 - n / (n + a)^2)` is right where both are equal.
    """
    n = means.n.reshape(strata, -1).astype(np.float64)
    if strata == 1:
        return np.zeros(n.size)
    share = np.nan_to_num(means.value).reshape(n.shape)
    pooled = ((n * share).sum(0) + ADDED / 2) / (n.sum(0) + ADDED)
    drawn = (n * share + ADDED * pooled) / (n + ADDED)
    rows = np.maximum(n, 1)
    least = drawn * (1 - drawn) / rows / (1 - rows / (rows + ADDED) ** 2)
    return np.where(n > 0, least, 0.0).ravel()


@dataclass(frozen=True)
class Between:
    """A difference of two groups that is another one within strata.

    Attributes:
        attribute: the attribute.
        control: the control features.
        metric: the gap.
        rate: in words.
        groups: both groups; the first has the higher rate.
        overall: their difference.
        within: that within strata.
        known: whether the intervals of both exclude 0.
    """

    attribute: str
    control: str
    metric: str
    rate: str
    groups: tuple[str, str]
    overall: float
    within: float
    known: bool

    def __str__(self) -> str:
        of = f"{self.attribute}: {self.rate}, {self.groups[0]} less {self.groups[1]}"
        why = f"most of it is a difference between strata of {self.control}"
        if abs(self.within) > abs(self.overall):
            why = f"{self.control} hides it"
        if self.overall * self.within < 0 and self.known:
            why = "the sign turns"
        overall, inside = (number(part, sign="+") for part in (self.overall, self.within))
        return f"{of}: {overall} overall, {inside} within {self.control}: {why}"


def between(
    gap: Gap,
    attribute: str,
    strata: ControlStrata,
    inside: Within,
    known: bool,
) -> Between | None:
    """The pair of groups of the largest gap whose difference is another one within strata.

    That is where more than ``MOSTLY`` of the larger of both numbers lies between the strata.
    ``known`` is whether the intervals of both gaps exclude 0.
    """
    if inside.differences is None:
        return None
    groups = len(strata.groups)
    pairs = np.array(list(combinations(range(groups), TWO)))
    means = []
    for quantity in gap.of:
        of_cells = strata.source.values(quantity)
        weight = of_cells.weight
        hits = (np.nan_to_num(of_cells.value) * weight).reshape(-1, groups).sum(0)
        means.append(hits / weight.reshape(-1, groups).sum(0))
    overall = np.stack([mean[pairs[:, 0]] - mean[pairs[:, 1]] for mean in means])
    for place in (np.abs(overall).argmax(), np.abs(inside.differences).argmax()):
        rate, pair = np.unravel_index(place, overall.shape)
        whole, part = (float(each[rate, pair]) for each in (overall, inside.differences))
        if abs(whole - part) <= MOSTLY * max(abs(whole), abs(part)):
            continue
        first, second = (strata.groups[group] for group in pairs[pair])
        if whole < 0 or (whole == 0 and part < 0):
            first, second, whole, part = second, first, -whole, -part
        words = gap.of[int(rate)].words
        return Between(
            attribute, strata.control, gap.name, words, (first, second), whole, part, known
        )
    return None
