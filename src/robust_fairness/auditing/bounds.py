r"""What gaps can be, whatever the groups of the rows without one: sharp bounds.

With h hits and m misses of a group and H and M of the rows without a group, a rate is
:math:`(h + x) / (h + m + x + z)` for the x hits and z misses that belong to the group. The largest
difference of two groups takes all unknown hits to one of them and all unknown misses to the other.
The smallest range of all rates is found by two water-fillings: groups are lifted to a common lowest
rate t by hits alone, as far as H lasts, and lowered to a common highest rate s by misses alone, as
far as M lasts; t is at most and s at least the rate of all rows. Both can be reached together: the
sets of hits and misses that bring each group between t and s are polyhedra with common normals, so
that their sum contains (H, M) whenever the totals suffice. Rows are divisible here, which for
integers moves the smallest range by less than a row.

Rows without one of several attributes are taken to belong to any intersection.

Of probabilities of groups only their calibration is assumed: of the rows of a stratum of equal
probabilities (to the nearest twentieth) a share p belongs to the group, whichever rows these are.
Of its hits, misses and other rows, h, m and o, the group has at most :math:`\min(p (h + m + o), h)`
hits with :math:`\max(0, p (h + m + o) - h - o)` misses, and likewise for misses, which bounds its
rate (Frechet; Kallus, Mao and Zhou 2022). Bounds of a difference of two groups are sharp, those of
more groups and of several rates together are valid.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robust_fairness.numbers.counts import TWO, Counts
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.metrics import Metric
from robust_fairness.numbers.partly import PartlyLabelled
from robust_fairness.numbers.quantities import Quantity

STEPS = 60  # of bisections
STRATA = 20  # of a probability
Array = np.ndarray


def bounds_in_counts(metric: Metric, cells: Counts) -> tuple[float, float]:
    """Smallest and largest value of a gap, a ratio or a worst group; NaN for other metrics.

    NaN also where only some rows have a label, since estimates of rates may be outside.
    """
    gap, groups = metric.gap, np.flatnonzero(cells.known())
    if isinstance(cells, PartlyLabelled):
        return np.nan, np.nan
    if gap is None or gap.how == "worst_gap" or len(groups) < TWO:
        return np.nan, np.nan
    of_rates = []
    for quantity in gap.of:
        values, among = cells.row_values(quantity)
        of = np.ones(values.shape) if among is None else among
        hits = (cells.weight * of * values).sum((1, 2))
        misses = (cells.weight * of).sum((1, 2)) - hits
        of_rates.append(
            _bounds(
                gap.how,
                metric.better == "higher",
                hits[groups],
                misses[groups],
                hits[-1],
                misses[-1],
            )  # fmt: skip
        )
    return _combined(gap.how, of_rates)


def _combined(how: str, of_rates: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The bounds of a gap of several rates."""
    combine: Any = {"sum": np.sum, "ratio": np.min}.get(how, np.max)
    least, most = (float(combine(ends)) for ends in zip(*of_rates, strict=True))
    return least, most


@dataclass(frozen=True)
class Strata:
    """Rows with the same probabilities of groups.

    Attributes:
        cells: sums by stratum, class and prediction; the last are the rows without probabilities.
        share: probability of every group in the strata ``[strata, groups]``.
    """

    cells: Counts
    share: Array

    @classmethod
    def of(cls, share: Array, y: Array, prediction: Array, classes: tuple[str, ...],
           sample_weight: Array | None) -> "Strata":  # fmt: skip
        """Those of rows ``[n]`` with probabilities ``[n, groups]``, NaN where there are none."""
        known = np.isfinite(share).all(1)
        rounded, stratum = np.unique(
            np.round(share[known] * STRATA), axis=0, return_inverse=True
        )  # fmt: skip
        index = np.full(len(share), -1)
        index[known] = stratum.ravel()
        groups = Groups.named(index, tuple(map(str, range(len(rounded)))))
        cells = Counts.of(groups, y, prediction, classes, sample_weight)
        weight = np.ones(len(share)) if sample_weight is None else sample_weight
        total = cells.weight[:-1].sum((1, 2))
        sums = [np.bincount(index[known], (weight * p)[known], len(total)) for p in share.T]
        return cls(cells, np.stack(sums, 1) / total[:, None])

    def rates(self, quantity: Quantity) -> tuple[Array, Array]:
        """Lowest and highest value of a rate, ``[groups]`` each."""
        values, among = self.cells.row_values(quantity)
        of = np.ones(values.shape) if among is None else among
        weight = self.cells.weight
        hits, misses = ((weight * of * part).sum((1, 2)) for part in (values, 1 - values))
        of_group = self.share * weight[:-1].sum((1, 2))[:, None]

        def ends(first: Array, second: Array) -> Array:
            """The largest share of the first kind of rows."""
            rest = (weight.sum((1, 2)) - second)[:-1, None]
            most = np.minimum(of_group, first[:-1, None]).sum(0) + first[-1]
            return most / (most + np.maximum(0, of_group - rest).sum(0))

        with np.errstate(divide="ignore", invalid="ignore"):
            return 1 - ends(misses, hits), ends(hits, misses)


def bounds_in_strata(metric: Metric, strata: Strata) -> tuple[float, float]:
    """Smallest and largest value of a gap, a ratio or a worst group; NaN for other metrics."""
    gap = metric.gap
    if gap is None or gap.how == "worst_gap":
        return np.nan, np.nan
    of_rates = []
    for low, high in map(strata.rates, gap.of):
        if not (np.isfinite(low) & np.isfinite(high)).all():
            return np.nan, np.nan
        others = ~np.eye(len(low), dtype=bool)
        if gap.how == "worst":
            worst = np.min if metric.better == "higher" else np.max
            of_rates.append((worst(low), worst(high)))
        elif gap.how == "ratio":
            with np.errstate(divide="ignore", invalid="ignore"):
                least = (low / high[:, None])[others].min()
                of_rates.append((least, min(1.0, high.min() / low.max())))
        else:
            of_rates.append(
                (max(0.0, low.max() - high.min()), (high[:, None] - low)[others].max())
            )  # fmt: skip
    return _combined(gap.how, of_rates)


def _bounds(
    kind: str, higher: bool, hits: Array, misses: Array, more: float, fewer: float
) -> tuple[float, float]:
    """Of one rate; ``more`` are the unknown hits, ``fewer`` the unknown misses."""
    n = hits + misses
    if not (n > 0).all():
        return np.nan, np.nan
    highest, lowest = (hits + more) / (n + more), hits / (n + fewer)
    overall = (hits.sum() + more) / (n.sum() + more + fewer)
    # the lowest rate that all groups can reach, and the highest that none need exceed
    level = _filled(hits, misses, more, overall)
    cap = 1 - _filled(misses, hits, fewer, 1 - overall)
    if kind == "worst":
        return (lowest.min(), level) if higher else (cap, highest.max())
    others = ~np.eye(len(n), dtype=bool)
    if kind == "ratio":
        with np.errstate(divide="ignore", invalid="ignore"):
            return float((lowest / highest[:, None])[others].min()), level / cap
    return max(cap - level, 0.0), float((highest[:, None] - lowest)[others].max())


def _filled(hits: Array, misses: Array, more: float, most: float) -> float:
    """The largest rate, at most ``most``, to which ``more`` hits lift all groups."""

    def needed(rate: float) -> float:
        return float(np.maximum(0, rate * misses / (1 - rate) - hits).sum()) if rate < 1 else np.inf

    low, high = 0.0, most
    if (misses.sum() == 0 and most >= 1) or needed(high) <= more:
        return high
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if needed(middle) <= more else (low, middle)
    return low
