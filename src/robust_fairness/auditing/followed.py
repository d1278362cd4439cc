"""A gap that a monitor follows: what is growth, and the evidence for it.

A gap has grown when it is above ``bound``, its exact upper bound in the reference, plus a margin,
by default ``DEVIATIONS`` standard deviations of what varies between periods of the reference. The
gap of a reference of any size is above that bound with a probability of at most half of the
family's error, shared by all gaps; an e-process, which is averaged over groups, rates, sizes and
starts of a growth (``numbers.sequential``), is above its limit with that of the other half,
whenever one looks.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robust_fairness.metrics import Gap
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.intervals import bounds_of_gap
from robust_fairness.numbers.rates import LinearGap, linear_gap
from robust_fairness.numbers.sequential import Batches, Growth, Reference, growth, lower_bound

DEVIATIONS = 3.0  # between periods of the reference, that are no growth
FEWEST = 30  # rows that each rate of a group has in the reference, or the group is left out


@dataclass(frozen=True)
class Followed:
    """A gap in the reference and in every period since.

    Attributes:
        attribute: whose groups are compared.
        metric: name of the gap.
        of: the gap.
        left_out: groups with fewer than ``FEWEST`` rows of a rate in the reference.
        counts: of the periods since the reference.
        before: of those of the reference.
        family: number of gaps that are followed together.
        margin: by how much the gap may grow; None: what varies between periods of the reference.
    """

    attribute: str
    metric: str
    of: Gap
    left_out: tuple[str, ...]
    counts: Counts
    before: Counts
    family: int = 1
    margin: float | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that are compared."""
        return self.before.groups

    @cached_property
    def reference(self) -> Counts:
        """Counts of the reference."""
        return self.before.sum()

    @property
    def name(self) -> str:
        """Name of the gap in words."""
        return self.metric.replace("_", " ")

    @property
    def limit(self) -> float:
        """The evidence from which on there is an alarm."""
        return self.family / (LEVEL / 2)

    @cached_property
    def bound(self) -> float:
        """The largest gap that is no growth."""
        return float(np.minimum(self._bounds[0], 1.0).max() + (self.margin or 0.0) + self.allowed)

    @cached_property
    def allowed(self) -> float:
        """By how much the bound is higher since the gap varies between periods of the reference."""
        if self.margin is not None:
            return 0.0
        most, varied = self._bounds
        return float((most + varied).max() - most.max())

    @cached_property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Exact upper bounds of the differences in the reference, and what varies of each."""
        reference, functions = Reference(*hits_of(self.of, self.before)), self._gap.functions
        most = reference.most(functions, LEVEL / 2 / self.family)
        return most, DEVIATIONS * reference.variation(functions)

    @cached_property
    def evidence(self) -> np.ndarray:
        """The e-process after each period, at most 1e300."""
        log_e = self._growth.log_e if len(self.counts.n) else np.empty(0)
        return np.asarray(np.exp(np.minimum(log_e, 690.0)))

    @cached_property
    def alarm(self) -> int | None:
        """The number of the period with the first alarm; None without one."""
        return self._growth.alarm(1 / self.limit) if len(self.counts.n) else None

    @cached_property
    def since(self) -> int:
        """The number of the period in which the gap most likely grew; 0 without an alarm.

        No later one than that of the alarm, also where the gap grows further.
        """
        return 0 if self.alarm is None else int(self._growth.start[: self.alarm + 1].argmax())

    @cached_property
    def least_since(self) -> float:
        """What the largest gap from ``since`` on is at least, which holds whenever one looks."""
        return lower_bound(self._batches, self._gap, self.since, LEVEL / 2)

    @property
    def _gap(self) -> LinearGap:
        return linear_gap("largest", len(self.groups), len(self.of.of))

    @cached_property
    def _batches(self) -> Batches:
        return Batches.of(*hits_of(self.of, self.counts), *hits_of(self.of, self.reference))

    @cached_property
    def _growth(self) -> Growth:
        return growth(self._batches, self._gap, self.bound)


def hits_of(gap: Gap, counts: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Hits and rows of the rates of a gap, float64 ``[..., rates]`` in the order rate, group."""
    parts = []
    for values, among in map(counts.row_values, gap.of):
        rows = counts.n[..., :-1, :, :] * (1.0 if among is None else among.astype(np.float64))
        parts.append(((rows * values).sum((-2, -1)), rows.sum((-2, -1))))
    hits, n = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    return hits, n


def values_of(gap: Gap, counts: Counts) -> np.ndarray:
    """A gap with its interval, ``[3, periods]``; NaN where a group has no rows of a rate."""
    hits, n = hits_of(gap, counts)
    known = n.all(-1)
    shares = (hits[known] / n[known]).reshape(-1, len(gap.of), len(counts.groups))
    values = np.full((3, len(n)), np.nan)
    values[:, known] = np.ptp(shares, axis=2).max(1), *bounds_of_gap(gap, counts[known])
    return values
