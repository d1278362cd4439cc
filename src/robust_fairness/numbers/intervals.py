r"""Intervals of values: of means, of gaps from what they compare, and of ratios; 95 % by default.

A difference between groups is reported as an absolute value and a worst group is a minimum, so
resampled values are biased, and percentile and basic bootstrap intervals cover the true value far
too rarely if groups are small or similar. Each interval is therefore derived from signed parts:

- A gap is the largest of linear functions of the rates of groups; its interval and that of its
  change are those of ``numbers.rates`` and ``numbers.verdicts``.
- Ratio of two proportions: the MOVER interval from Wilson's two (Donner and Zou 2012); if it
  contains 1, the interval of the smaller over the larger proportion ends at 1.
- Difference of two independent values with intervals: the square-and-add rule of Zou and Donner
  (2008), which is Newcombe's method 10 (1998) for Wilson's intervals of two proportions.

With weights a proportion has Wilson's interval of its effective number of rows, that of independent
rows of equal weight with the same variance.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from robust_fairness.numbers.counts import TWO, Counts, Source
from robust_fairness.numbers.estimate import (
    FEWEST_ROWS,
    LEVEL,
    half_width,
    rows_of_mean,
    wilson_interval,
)
from robust_fairness.numbers.gaps import Gap
from robust_fairness.numbers.metrics import Metric
from robust_fairness.numbers.quantities import Array, Means, Quantity, Score
from robust_fairness.numbers.rates import (
    MOST_FUNCTIONS,
    LinearGap,
    Rates,
    interval,
    linear_gap,
    rates_of,
)
from robust_fairness.numbers.verdicts import tested

ALL_VALUES = "all possible values"  # an interval of what is not known
MOST_GROUPS = 100  # that are compared in pairs
ONE_VS_REST = ("delta_dp_one_vs_rest", "delta_eo_one_vs_rest")


class Interval(NamedTuple):
    """Bounds and the name of their construction; NaN where there is no bound."""

    low: float
    high: float
    interval: str


@dataclass(frozen=True)
class Compared:
    """Rates of groups and the gap that a metric is of them.

    Attributes:
        groups: the groups that have rows.
        rates: of a single test, in the order rate, group; NaN where a group has none.
        gap: the linear functions.
        most: the largest possible value.
        turned: whether the metric is 1 minus the gap, as the accuracy of the worst group is.
        level: probability that an interval does not contain the gap.
    """

    groups: tuple[str, ...]
    rates: Rates
    gap: LinearGap
    most: float = 1.0
    turned: bool = False
    level: float = LEVEL

    def bound(self) -> Interval:
        """Its interval; where a group is not known, others may bound it from one side.

        A bound that is not known is an end of what is possible, NaN where that has none.
        """
        low, high = (float(end[0]) for end in self.ends())
        every = (1 - self.most, 1.0) if self.turned else (0.0, self.most)
        kind = ALL_VALUES if (low, high) == every else "linear functions"
        low, high = (end if np.isfinite(end) else np.nan for end in (low, high))
        return Interval(low, high, kind)

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of every test ``[tests]``."""
        low, high = interval(self.rates, self.gap, self.level)
        value = self.gap.among(self.functions_known, self.rates.mean)
        low = np.clip(np.where(value < low, value, low), 0.0, self.most)
        high = np.clip(np.where(value > high, value, high), 0.0, self.most)
        return (1 - high, 1 - low) if self.turned else (low, high)

    @cached_property
    def known(self) -> np.ndarray:
        """Whether every rate is known well enough for an interval, bool ``[tests, rates]``."""
        rates = self.rates
        known = np.isfinite(rates.mean) & np.isfinite(rates.variance)
        return known & (rates.effective >= FEWEST_ROWS) if rates.bounded else known

    @property
    def unknown(self) -> list[str]:
        """The groups of which a rate is not known."""
        places = np.flatnonzero(~self.known[0]) % len(self.groups)
        return [self.groups[place] for place in dict.fromkeys(places.tolist())]

    @property
    def functions_known(self) -> np.ndarray:
        """Whether every rate of a function is known, bool ``[tests, functions]``."""
        return np.asarray(~((self.gap.functions != 0) & ~self.known[:, None]).any(-1))

    def among_known(self) -> "Compared | None":
        """The same of the functions that are known; None if all or none are."""
        some = self.functions_known[0]
        if some.all() or not some.any():
            return None
        return replace(self, gap=replace(self.gap, functions=self.gap.functions[some]))

    def tests_from(self, then: "Compared") -> pd.DataFrame | None:
        """Tests of the change since an earlier period (``numbers.verdicts``), as of a run.

        Growth among the groups that are known in both (``without`` names the others) is growth.
        Change and bounds are those of the metric, within what is possible, a row per test. None
        where both have other groups.
        """
        if self.groups != then.groups or self.gap.functions.shape != then.gap.functions.shape:
            return None
        tests = tested(then.rates, self.rates, self.gap, level=self.level)
        change, low = tests["change"], np.fmax(tests["low"].to_numpy(), -self.most)
        high = np.fmin(tests["high"].to_numpy(), self.most)
        if self.turned:
            change, low, high = -change, -high, -low
        without = ", ".join(dict.fromkeys([*self.unknown, *then.unknown]))
        return tests.assign(change=change, low=low, high=high, without=without)


def estimated(
    metric: Metric, source: Source, level: float = LEVEL
) -> tuple[dict[str, Score], Compared | None]:
    """Scores of a metric by group with their intervals, and what a gap compares."""
    definition = metric.definition
    fits = not definition.binary or len(source.classes) in (0, TWO)
    if fits and isinstance(definition, Quantity) and metric.aggregation in ("", "by_group"):
        of = source if metric.aggregation else source.everyone
        means = of.values(definition, metric.options)
        return means.scores(of.names, *mean_intervals(definition, means, level)), None
    scores = metric.of(source)
    if set(scores) != {""} or not scores[""].applies:
        return scores, None
    compares = compared(metric, source, level)
    if compares is not None and not compares.rates.bounded and scores[""].value is None:
        compares = None
    bound, gap = compares.bound() if compares else None, metric.gap
    if gap is not None and gap.how == "ratio" and len(gap.of) == 1 and len(source.names) == TWO:
        means = source.values(gap.of[0])
        if means.bounded and means.n.all():
            bound = ratio(means.value * means.effective, means.effective, level)
    return ({"": replace(scores[""], **bound._asdict())} if bound else scores), compares


def mean_intervals(
    quantity: Quantity, means: Means, level: float = LEVEL
) -> tuple[Array, Array, str]:
    """Wilson's intervals of shares, Student's of other values whose variance is known."""
    if means.bounded:
        return (*wilson_interval(means.value, means.effective, level), "Wilson")
    half = half_width(np.sqrt(means.variance), rows_of_mean(means.counted), level)
    low = means.value - half
    least = -np.inf if quantity.signed else 0.0
    return np.where(np.isnan(low), low, np.maximum(low, least)), means.value + half, "Student's t"


def compared(metric: Metric, source: Source, level: float = LEVEL) -> Compared | None:
    """What a metric compares; None where it is no gap of values with variances.

    Variances of means that are no shares, such as errors, are widened from the normal distribution
    to Student's of each group. Neither many groups nor ratios are compared.
    """
    if metric.name in ONE_VS_REST and isinstance(source, Counts):
        return _one_vs_rest(metric.name, source, level)
    definition, how = metric.definition, metric.form.how
    of: tuple[Any, ...] = (definition,)
    if isinstance(definition, Gap):
        of, how = definition.of, definition.how
    if how in (None, "ratio"):
        return None
    parts = [source.values(quantity) for quantity in of]
    present = parts[0].shown > 0
    if not TWO <= present.sum() <= MOST_GROUPS or (how == "sum" and present.sum() != TWO):
        return None
    if not parts[0].bounded and np.isnan(parts[0].variance).all():
        return None
    rates = rates_of(parts, present, level)
    groups = tuple(np.array(source.names, dtype=object)[present])
    higher = definition.better == "higher"
    if how == "worst":
        size = np.eye(len(groups))
        form, most = LinearGap(-size, 1.0) if higher else LinearGap(size), 1.0
    else:
        form = linear_gap(how, len(groups), len(of))  # type: ignore[arg-type]
        most = float(len(of)) if how == "sum" else 1.0
    if how == "worst_gap" and not higher:
        form = LinearGap(-form.functions)
    most = most if rates.bounded else np.inf
    return Compared(groups, rates, form, most, how == "worst" and higher, level)


def _one_vs_rest(name: str, cells: Counts, level: float) -> Compared | None:
    """Differences of a group's rates and those of all others, for given shares of the groups.

    ``delta_dp_one_vs_rest`` is the largest over classes and groups, ``delta_eo_one_vs_rest`` the
    largest sum over classes.
    """
    cells, of_dp = cells.take(cells.known() > 0), name == ONE_VS_REST[0]
    if not TWO <= len(cells.groups) <= MOST_GROUPS:
        return None
    parts, functions = zip(*to_rest(cells, not of_dp), strict=True)
    if of_dp:
        of = sparse.block_diag(functions).toarray()
        of = np.concatenate([of, -of])
    elif len(cells.groups) * 2 ** len(parts) > MOST_FUNCTIONS:
        return None
    else:
        signs = product((1.0, -1.0), repeat=len(parts))
        of = np.concatenate([np.hstack([s * f for s, f in zip(some, functions, strict=True)])
                             for some in signs])  # fmt: skip
    rates = rates_of(parts, np.ones(len(cells.groups), bool))
    most = 1.0 if of_dp else float(len(parts))
    return Compared(cells.groups, rates, LinearGap(of), most, level=level)


def to_rest(cells: Counts, of_classes: bool) -> Iterator[tuple[Means, Array]]:
    """Rates of every class, and the differences of groups to all others ``[groups, groups]``.

    Rates are shares of decisions, or of right ones ``of_classes``, for given shares of the groups.
    """
    y, prediction = cells.grid()
    for label in range(len(cells.classes)):
        means = cells.means(prediction == label, y == label if of_classes else None)
        rest = means.weight / np.maximum(means.weight.sum() - means.weight, 1e-300)[:, None]
        np.fill_diagonal(rest, -1)
        yield means, -rest


def bounds_of_gap(gap: Gap, counts: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the largest difference of rates, of every entry of the first axis ``[tables]``.

    Every group has rows of every rate.
    """
    tables, groups = len(counts.n), len(counts.groups)
    if not tables or groups > MOST_GROUPS:
        return np.full(tables, np.nan), np.full(tables, np.nan)
    parts = [counts.values(quantity) for quantity in gap.of]
    rates = rates_of(parts, np.ones(groups, bool))
    return Compared((), rates, linear_gap("largest", groups, len(parts))).ends()


def difference_of(minuend: Iterable[Any], subtrahend: Iterable[Any]) -> tuple[Any, Any]:
    """Interval of the difference of two independent estimates, from their separate intervals.

    The square-and-add rule, MOVER: equation 4 of Zou and Donner (2008), which is Newcombe's method
    10 (1998) for Wilson's intervals of two proportions.

    Args:
        minuend: estimates with their lower and upper bounds, ``[...]`` each.
        subtrahend: those that are subtracted.
    """
    (value, low, high), (other, other_low, other_high) = minuend, subtrahend
    least = value - other - np.hypot(value - low, other_high - other)
    most = value - other + np.hypot(high - value, other - other_low)
    return least, most


def ratio(hits: np.ndarray, rows: np.ndarray, level: float = LEVEL) -> Interval:
    """Interval of the smaller over the larger of the proportions ``hits / rows`` ``[2]``.

    Equation 8 of Donner and Zou (2012).
    """
    kind = "Donner and Zou"
    share = hits / np.where(rows > 0, rows, np.nan)
    low, high = wilson_interval(share, rows, level)
    small, large = np.argsort(share, kind="stable")
    if not share[large] > 0:
        return Interval(np.nan, np.nan, kind)
    product_ = share[small] * share[large]
    above, below = (bound * (2 * share - bound) for bound in (low, high))
    least = 0.0
    if product_ > 0:
        least = above[small] / (product_ + np.sqrt(product_**2 - above[small] * below[large]))
    most = (product_ + np.sqrt(product_**2 - below[small] * above[large])) / above[large]
    if most > 1:
        least, most = min(least, 1 / most), 1.0
    return Interval(float(least), float(most), kind)
