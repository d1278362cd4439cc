r"""95 % intervals of an audit's values: what is compared, for ``inference``, and ratios.

A difference between groups is reported as an absolute value and a worst group is a minimum, so
resampled values are biased, and percentile and basic bootstrap intervals cover the true value far
too rarely if groups are small or similar. Each interval is therefore derived from signed parts:

- A gap is the largest of linear functions of the rates of groups; its interval and that of its
  change are those of ``robust_fairness.inference``.
- Ratio of two proportions: the MOVER interval from Wilson's two (Donner and Zou 2012); if it
  contains 1, the interval of the smaller over the larger proportion ends at 1.
- Difference of two independent values with intervals: the square-and-add rule of Zou and Donner
  (2008), which is Newcombe's method 10 (1998) for Wilson's intervals of two proportions.

With weights a proportion has Wilson's interval of its effective number of rows, that of independent
rows of equal weight with the same variance.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness import inference
from robust_fairness.core.intervals import wilson_interval
from robust_fairness.inference import LinearGap, Rates
from robust_fairness.inference.counts import TWO, Counts, rates_of
from robust_fairness.inference.gaps import MOST_FUNCTIONS
from robust_fairness.inference.variance import student_factor
from robust_fairness.inference.verdicts import tested
from robust_fairness.metrics import Gap, Score
from robust_fairness.metrics.find import Metric
from robust_fairness.metrics.gaps import row_values

MOST_GROUPS = 100  # that are compared in pairs
ONE_VS_REST = ("delta_dp_one_vs_rest", "delta_eo_one_vs_rest")


@dataclass(frozen=True)
class Bound:
    """An interval and the name of its construction."""

    interval: str
    low: float
    high: float


@dataclass(frozen=True)
class Compared:
    """Rates of groups and the gap that a metric is of them.

    Attributes:
        groups: the groups that have rows.
        rates: of a single test, in the order rate, group.
        gap: the linear functions.
        most: the largest possible value.
        turned: whether the metric is 1 minus the gap, as the accuracy of the worst group is.
    """

    groups: tuple[str, ...]
    rates: Rates
    gap: LinearGap
    most: float = 1.0
    turned: bool = False

    def bound(self) -> Bound:
        """Its interval; that of all gaps where a rate rests on too few rows to be known."""
        low, high = self.ends()
        return Bound("linear functions", float(low[0]), float(high[0]))

    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds of every test ``[tests]``."""
        low, high = inference.interval(self.rates, self.gap)
        value = self.gap.of(self.rates.mean)
        low = np.fmin(np.maximum(low, 0.0), value)
        high = np.fmax(np.minimum(high, self.most), value)
        if self.rates.bounded:
            few = self.rates.n.min(-1) < inference.FEWEST_ROWS
            low, high = np.where(few, 0.0, low), np.where(few, self.most, high)
        return (1 - high, 1 - low) if self.turned else (low, high)

    @property
    def few(self) -> tuple[int, int] | None:
        """The rate that rests on too few rows for an interval, and how many; None if none does."""
        n = self.rates.n[0]
        place = int(n.argmin())
        few = self.rates.bounded and n[place] < inference.FEWEST_ROWS
        return (place, int(n[place])) if few else None

    def tests_from(self, then: "Compared") -> pd.DataFrame | None:
        """Tests of the change since an earlier period (``inference.verdicts``), as of a run.

        None where both have other groups.
        """
        if self.groups != then.groups or self.gap.functions.shape != then.gap.functions.shape:
            return None
        return tested(then.rates, self.rates, self.gap)

    def changes(self, tests: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the change of every test ``[tests]``, from ``tests_from``."""
        low, high = tests["low"].to_numpy(), tests["high"].to_numpy()
        unknown = np.isnan(low)
        low, high = np.where(unknown, -self.most, low), np.where(unknown, self.most, high)
        return (-high, -low) if self.turned else (low, high)


def compared_in_counts(metric: Metric, cells: Counts) -> Compared | None:
    """What a metric compares; None where it is no gap of rates, or there are too many groups."""
    present = cells.known() > 0
    groups = tuple(np.array(cells.groups, dtype=object)[present])
    if not TWO <= len(groups) <= MOST_GROUPS:
        return None
    if metric.name in ONE_VS_REST:
        return _one_vs_rest(metric.name, cells, present, groups)
    gap = metric.gap
    if gap is None or gap.how == "ratio":
        return None
    parts = [cells.means(*row_values(item, cells)) for item in gap.of]
    higher = metric.definition.better == "higher"
    return _compared(groups, rates_of(parts, present), gap.how, higher, len(parts))


def compared_in_scores(metric: Metric, by_group: Mapping[str, Score]) -> Compared | None:
    """What a metric compares of means that are no shares, such as errors, from their variances.

    Variances are widened from the normal distribution to Student's of each group.
    """
    present = {name: score for name, score in by_group.items() if score.n}
    known = all(score.variance is not None for score in present.values())
    kind = metric.how.how
    if kind in (None, "ratio") or not known or not TWO <= len(present) <= MOST_GROUPS:
        return None
    n = np.array([score.n for score in present.values()], np.float64)[None]
    variance = np.array([score.variance for score in present.values()], np.float64)[None]
    value = np.array([score.value for score in present.values()], np.float64)[None, :, None]
    rates = Rates(value, widened(variance, n), n, bounded=False)
    higher = metric.definition.better == "higher"
    compared = _compared(tuple(present), rates, kind, higher, 1)
    return compared and replace(compared, most=np.inf)


def widened(variance: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Variances of means of n rows, widened from the normal distribution to Student's."""
    return np.asarray(variance * student_factor(n - 1))


def _compared(
    groups: tuple[str, ...], rates: Rates, kind: str, higher: bool, number: int
) -> Compared | None:
    """The gap of this kind; None where a group has no rate."""
    if not np.isfinite(rates.mean).all() or (kind == "sum" and len(groups) != TWO):
        return None
    if kind == "worst":
        size = np.eye(len(groups))
        worst = LinearGap(-size, 1.0) if higher else LinearGap(size)
        return Compared(groups, rates, worst, turned=higher)
    of = inference.linear_gap(kind, len(groups), number)  # type: ignore[arg-type]
    if kind == "worst_gap" and not higher:
        of = LinearGap(-of.functions)
    return Compared(groups, rates, of, float(number) if kind == "sum" else 1.0)


def _one_vs_rest(
    name: str, cells: Counts, present: np.ndarray, groups: tuple[str, ...]
) -> Compared | None:
    """Differences of a group's rates and those of all others, for given shares of the groups.

    ``delta_dp_one_vs_rest`` is the largest over classes and groups, ``delta_eo_one_vs_rest`` the
    largest sum over classes.
    """
    y, prediction = cells.grid()
    of_dp = name == ONE_VS_REST[0]
    parts, functions = [], []
    for label in range(len(cells.classes)):
        among = None if of_dp else y == label
        parts.append(cells.means(prediction == label, among))
        weight = (cells.weight[:-1] * (1 if among is None else among)).sum((1, 2))[present]
        rest = weight / np.maximum(weight.sum() - weight, 1e-300)[:, None]
        np.fill_diagonal(rest, -1)
        functions.append(-rest)  # [group, group]
    rates = rates_of(parts, present)
    if not np.isfinite(rates.mean).all():
        return None
    if of_dp:
        blocks = np.zeros((len(parts), len(groups), len(parts), len(groups)))
        blocks[range(len(parts)), :, range(len(parts))] = functions
        of = blocks.reshape(-1, len(parts) * len(groups))
        of = np.concatenate([of, -of])
    else:
        if len(groups) * 2 ** len(parts) > MOST_FUNCTIONS:
            return None
        signs = product((1.0, -1.0), repeat=len(parts))
        of = np.concatenate(
            [
                np.concatenate([s * f for s, f in zip(some, functions, strict=True)], 1)
                for some in signs
            ]
        )
    return Compared(groups, rates, LinearGap(of), 1.0 if of_dp else float(len(parts)))


def bounds_of_gap(gap: Gap, counts: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the largest difference of rates, of every entry of the first axis ``[tables]``.

    Every group has rows of every rate.
    """
    tables, groups = len(counts.n), len(counts.groups)
    if not tables or groups > MOST_GROUPS:
        return np.full(tables, np.nan), np.full(tables, np.nan)
    parts = [counts.means(*row_values(quantity, counts)) for quantity in gap.of]
    rates = rates_of(parts, np.ones(groups, bool))
    return Compared((), rates, inference.linear_gap("largest", groups, len(parts))).ends()


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


def ratio(hits: np.ndarray, rows: np.ndarray) -> Bound:
    """Interval of the smaller over the larger of the proportions ``hits / rows`` ``[2]``.

    Equation 8 of Donner and Zou (2012).
    """
    kind = "Donner and Zou"
    share, low, high = wilson(hits / np.where(rows > 0, rows, np.nan), rows)
    small, large = np.argsort(share, kind="stable")
    if not share[large] > 0:
        return Bound(kind, np.nan, np.nan)
    product_ = share[small] * share[large]
    above, below = (bound * (2 * share - bound) for bound in (low, high))
    least = 0.0
    if product_ > 0:
        least = above[small] / (product_ + np.sqrt(product_**2 - above[small] * below[large]))
    most = (product_ + np.sqrt(product_**2 - below[small] * above[large])) / above[large]
    if most > 1:
        least, most = min(least, 1 / most), 1.0
    return Bound(kind, float(least), float(most))


def ratio_in_counts(metric: Metric, cells: Counts) -> Bound | None:
    """Interval of a ratio of a rate of two groups; None for more."""
    gap = metric.gap
    if gap is None or gap.how != "ratio" or len(gap.of) > 1:
        return None
    if (cells.known() > 0).sum() != TWO or len(cells.groups) != TWO:
        return None
    means = cells.means(*row_values(gap.of[0], cells))
    return ratio(means.value * means.effective, means.effective) if means.n.all() else None


def wilson(share: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Proportions with lower and upper bounds, ``[m]`` each; NaN without rows."""
    low, high = wilson_interval(share, n)
    # exact bounds at 0 and 1, where rounding errors would remain
    return share, np.where(share == 0, 0.0, low), np.where(share == 1, 1.0, high)
