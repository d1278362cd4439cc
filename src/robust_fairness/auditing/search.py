"""The subgroup that a model most clearly serves worse, among all that the attributes have.

Subgroups are all combinations of values of up to three attributes. Of every rate the subgroup with
the smallest p-value (Fisher's exact test against all other rows) is shown. The p-value is that of
the test times the number of subgroups that were tried (Bonferroni), and over the rates Holm's
(1979); the interval of the difference has exact bounds of both rates, each with its share of 5 %
over the tried subgroups. Neither depends on the order of the rows, nor on chance. Weighted rows
count as their effective number, which is no larger than that of the rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, combinations
from math import prod

import numpy as np

from robust_fairness.auditing.naming import option
from robust_fairness.auditing.predictions import Options, Predictions
from robust_fairness.core.errors import InputError
from robust_fairness.core.numbers import counted, number, p_value
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.counts import TWO, Counts
from robust_fairness.numbers.estimate import LEVEL, exact_bounds
from robust_fairness.numbers.groups import groups_of
from robust_fairness.numbers.quantities import Quantity
from robust_fairness.numbers.verdicts import holm

RATES = ("accuracy", "true_positive_rate", "false_positive_rate")
MOST_ATTRIBUTES = 3  # of a subgroup
MOST_SUBGROUPS = 100_000
ROUNDING = 1e-6  # of a number of rows that is whole


@dataclass(frozen=True)
class Worst:
    """The subgroup whose rate is most clearly worse; others may be worse by more.

    Attributes:
        metric: the rate.
        attributes: attributes of the subgroup.
        values: their values.
        n: its rows, of the rate.
        value: the rate.
        rest: that of all other rows.
        difference: by how much the subgroup is worse; negative if it is not.
        low: lower bound of the difference, at 95 % for all subgroups that were tried.
        high: upper bound.
        p: one-sided p-value, adjusted for the subgroups and the rates.
        tried: number of subgroups with enough rows, among which it was found.
    """

    metric: str
    attributes: tuple[str, ...]
    values: tuple[str, ...]
    n: int
    value: float
    rest: float
    difference: float
    low: float
    high: float
    p: float
    tried: int

    def __str__(self) -> str:
        where = ", ".join(map("{} {}".format, self.attributes, self.values))
        rate = self.metric.replace("_", " ")
        rows = f"{counted({'rows': self.n})}; the clearest of {self.tried:,} subgroups"
        if self.p < LEVEL:
            return (
                f"{rate} of {where} is {number(self.value)}, of all other rows "
                f"{number(self.rest)} (worse by {number(max(self.low, 0))} to {number(self.high)}, "
                f"{p_value(self.p)}, {rows})"
            )
        most = f"may be worse by up to {number(self.high)}"
        return f"{rate}: no subgroup is shown to be worse; {where} {most} ({rows})"


@dataclass(frozen=True)
class _Compared:
    """A rate of each group and of all other rows, float64 ``[2, groups]``.

    Attributes:
        value: the rates.
        rows: their rows.
        effective: those of equal weight, whole numbers and at most as many.
        sign: 1 where a larger rate is worse, else -1.
    """

    value: np.ndarray
    rows: np.ndarray
    effective: np.ndarray
    sign: float

    @classmethod
    def of(cls, counts: Counts, rate: str) -> "_Compared":
        metric = find_metric(rate).definition
        assert isinstance(metric, Quantity)
        parts = [part.values(metric) for part in (counts, counts.others())]
        effective = np.array([np.fmin(part.effective, part.counted) for part in parts])
        sign = -1.0 if metric.better == "higher" else 1.0
        rows, value = np.array([part.n for part in parts]), np.array([part.value for part in parts])
        return cls(np.nan_to_num(value), rows, np.floor(np.nan_to_num(effective) + ROUNDING), sign)

    @cached_property
    def bad(self) -> np.ndarray:
        """Rows that are decided wrongly, of those of equal weight."""
        share = self.value if self.sign > 0 else 1 - self.value
        return np.round(share * self.effective)

    @cached_property
    def p(self) -> np.ndarray:
        """One-sided p-values of Fisher's test that a group is worse ``[groups]``."""
        from scipy import stats  # slow to import

        bad, rows = self.bad, self.effective
        return stats.hypergeom.sf(bad[0] - 1, rows.sum(0), bad.sum(0), rows[0])

    @cached_property
    def difference(self) -> np.ndarray:
        """By how much the groups are worse ``[groups]``."""
        return self.sign * (self.value[0] - self.value[1])

    def bounds(self, group: int, level: float) -> tuple[float, float]:
        """Bounds of a difference that both hold with a probability of 1 - ``level``."""
        low, high = exact_bounds(self.bad[:, group], self.effective[:, group], level / 4)
        return float(low[0] - high[1]), float(high[0] - low[1])


def searched(predictions: Predictions, options: Options) -> list[Worst]:
    """The worst subgroup of every rate.

    Args:
        predictions: of classes, with labels.
        options: ``small`` is the least number of rows of a subgroup, and of all others.

    Raises:
        InputError: rows are not independent or have no labels or classes, or there is no subgroup.
    """
    subgroups = []
    for attributes in _attributes(predictions, options):
        groups = groups_of(predictions.samples.attributes, attributes)
        subgroups.append((attributes, groups.values, predictions.counts_of(groups)))
    clearest: list[Worst] = []
    for rate in RATES if len(predictions.samples.classes) == TWO else RATES[:1]:
        tried, best, place = 0, (np.inf, 0.0), None
        for attributes, values, counts in subgroups:
            compared = _Compared.of(counts, rate)
            enough = compared.rows.min(0) >= options.small
            tried += int(enough.sum())
            for group in np.flatnonzero(enough & (compared.p <= best[0])).tolist():
                key = float(compared.p[group]), -float(compared.difference[group])
                if key < best:
                    best, place = key, (attributes, values[group], group, compared)
        if place:
            attributes, subgroup, group, compared = place
            value, rest = compared.value[:, group].tolist()
            low, high = compared.bounds(group, LEVEL / tried)
            n, p = int(compared.rows[0, group]), min(best[0] * tried, 1.0)
            clearest.append(
                Worst(rate, attributes, subgroup, n, value, rest, -best[1], low, high, p, tried)
            )
    if not clearest:
        raise InputError(f"search: no subgroup has {options.small} rows, nor have all others")
    adjusted = holm([worst.p for worst in clearest]).tolist()
    return [replace(worst, p=p) for worst, p in zip(clearest, adjusted, strict=True)]


def _attributes(predictions: Predictions, options: Options) -> Iterator[tuple[str, ...]]:
    """The attributes of subgroups: one, two or three categories."""
    others = {
        option("unit"): options.unit, option("replicate_weights"): options.replicate_weights,
        option("membership"): options.membership, option("continuous"): options.continuous,
        "rows without a label": not predictions.labelled,
    }  # fmt: skip
    for name, value in others.items():
        if value:
            raise InputError(
                f"search: not with {name}; allowed: independent rows with classes and labels"
            )
    categories = predictions.samples.attributes.select_dtypes("category")
    sizes = {str(name): len(cells.cat.categories) for name, cells in categories.items()}
    several = [combinations(sizes, size) for size in range(1, MOST_ATTRIBUTES + 1)]
    names = [*chain.from_iterable(several)]
    subgroups = sum(prod(map(sizes.__getitem__, some)) for some in names)
    if not 0 < subgroups <= MOST_SUBGROUPS:
        raise InputError(
            f"search: the attributes have {subgroups:,} subgroups, allowed: 1 to "
            f"{MOST_SUBGROUPS:,}; see {option('bins')}"
        )
    yield from names
