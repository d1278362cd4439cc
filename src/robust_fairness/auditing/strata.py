r"""The largest gap within a stratum of control features, and a test of whether strata disagree.

Differences of two groups that have opposite signs in two strata cancel in their mean
(``auditing.control``). Here each stratum s has its own difference :math:`d_s` of two groups, with
the variance :math:`v_s` of rates with a row added on either side. Strata disagree where

.. math:: Q = \sum_s (d_s - \bar d)^2 / v_s, \quad
    \bar d = \frac{\sum_s d_s / v_s}{\sum_s 1 / v_s}

is larger than chi-squared allows (Cochran 1954; Holm 1979 over rates, pairs and gaps). The interval
of the largest difference in any stratum holds for all of them at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import special

from robust_fairness.auditing.control import MOST_GROUPS, ControlStrata, strata_of
from robust_fairness.auditing.predictions import Predictions
from robust_fairness.core.numbers import estimate, p_value
from robust_fairness.metrics import Gap, find_metric
from robust_fairness.numbers.counts import TWO
from robust_fairness.numbers.estimate import LEVEL, small_counts
from robust_fairness.numbers.groups import groups_of, shown
from robust_fairness.numbers.verdicts import holm


@dataclass(frozen=True)
class InStrata:
    """The largest difference of two groups in a stratum.

    Attributes:
        attribute: the attribute.
        control: the control features.
        name: of the attribute in each stratum, which a gate may name.
        metric: the gap.
        rate: in words.
        groups: both groups; the first has the higher rate.
        stratum: where it is.
        value: the difference.
        low: lower bound of the largest difference in any stratum, at 95 %.
        high: its upper bound; 1 where a stratum has too few rows of a group.
        n: rows with attribute and control features.
        p: p-value of the test that all strata have the same differences, adjusted.
    """

    attribute: str
    control: str
    name: str
    metric: str
    rate: str
    groups: tuple[str, str]
    stratum: str
    value: float
    low: float
    high: float
    n: int
    p: float

    def __str__(self) -> str:
        return (
            f"{self.attribute}: {self.rate}: strata of {self.control} disagree "
            f"({p_value(self.p)}), a gap over all of them hides others; the largest in one is "
            f"{estimate(self.value, self.low, self.high)}: {self.groups[0]} less {self.groups[1]} "
            f"in {self.stratum}; a gate on it: {self.metric}[{self.name}]"
        )


def name_in_each(attribute: str, columns: Sequence[str]) -> str:
    """The name of an attribute in each stratum, for gates."""
    return f"{attribute} in each {shown(columns)}"


def in_strata(
    predictions: Predictions, metrics: Sequence[str], level: float = LEVEL
) -> list[InStrata]:
    """The largest difference in a stratum of control features by attribute and gap.

    Args:
        predictions: with control features; of numbers there is no difference.
        metrics: names of gaps, of which the largest differences are compared.
        level: of their intervals.
    """
    if not predictions.samples.classes:
        return []
    gaps = {name: find_metric(name).gap for name in metrics}
    largest = [
        made
        for attribute, strata in strata_of(predictions)
        for name, gap in gaps.items()
        if gap is not None and gap.how == "largest"
        for made in _largest(name, gap, attribute, strata, predictions.control, level)
    ]
    adjusted = holm([each.p for each in largest]).tolist()
    return [replace(each, p=p) for each, p in zip(largest, adjusted, strict=True)]


def as_rows(differences: Sequence[InStrata]) -> pd.DataFrame:
    """Rows of values, which gates judge."""
    rows = [
        {
            "attribute": each.name, "group": "", "metric": each.metric, "value": each.value,
            "low": each.low, "high": each.high, "n": each.n, "note": f"in {each.stratum}",
            "small": False, "applies": True,
        }
        for each in differences
    ]  # fmt: skip
    return pd.DataFrame(rows)


def _largest(
    name: str,
    gap: Gap,
    attribute: str,
    strata: ControlStrata,
    control: pd.DataFrame,
    level: float,
) -> Iterator[InStrata]:
    """The largest difference of a gap's rates in a stratum, if two groups have rows in one."""
    groups = len(strata.groups)
    if not TWO <= groups <= MOST_GROUPS:
        return
    first, second = np.array(list(combinations(range(groups), TWO))).T
    shape = (len(gap.of), strata.number, groups)
    parts = [strata.source.values(quantity) for quantity in gap.of]
    rate, variance, n = (
        np.array([getattr(part, field) for part in parts], np.float64).reshape(shape)
        for field in ("value", "variance", "counted")
    )
    raw = rate[..., first] - rate[..., second]  # [rates, strata, pairs]
    compared = np.isfinite(raw)
    if not compared.any():
        return
    centre, square = small_counts(rate, variance, n)
    difference = centre[..., first] - centre[..., second]
    error = np.sqrt(square[..., first] + square[..., second])
    known = compared & np.isfinite(difference)
    place = np.unravel_index(np.where(compared, np.abs(raw), -1).argmax(), raw.shape)
    size, tail = np.where(known, np.abs(difference), 0.0), level / TWO
    least = size + special.ndtri(tail / compared.sum()) * error
    most = size - special.ndtri(tail) * error
    columns = tuple(map(str, control))
    ends = [strata.groups[each[place[2]]] for each in (first, second)]
    value = float(abs(raw[place]))
    yield InStrata(
        attribute, strata.control, name_in_each(attribute, columns), name,
        gap.of[int(place[0])].words, tuple(ends if raw[place] >= 0 else ends[::-1]),
        groups_of(control, columns).names[int(place[1])], value,
        float(np.clip(np.where(known, least, 0.0).max(), 0.0, value)),
        float(np.clip(np.where(known, most, 1.0)[compared].max(), value, 1.0)),
        int((strata.codes >= 0).sum()), _disagreement(difference, error, known),
    )  # fmt: skip


def _disagreement(difference: np.ndarray, error: np.ndarray, known: np.ndarray) -> float:
    """P-value of equal differences in all strata, the second axis, over rates and pairs."""
    weight = np.where(known, 1 / np.where(known, error, 1.0) ** 2, 0.0)
    values = np.where(known, difference, 0.0)
    total = np.maximum(weight.sum(1, keepdims=True), np.finfo(float).tiny)
    mean = (weight * values).sum(1, keepdims=True) / total
    squares = (weight * (values - mean) ** 2).sum(1)
    degrees = known.sum(1) - 1
    p = np.where(degrees > 0, special.chdtrc(np.maximum(degrees, 1), squares), 1.0)
    return float(min(p.min() * (degrees > 0).sum(), 1.0))
