"""The subgroup that a model most clearly serves worse, found on one half of the rows.

Subgroups are all combinations of values of up to three attributes. Of every rate the subgroup whose
difference from all other rows is largest in standard errors is found on a random half of the rows.
The other half, which had no part in it, estimates and tests this difference alone: p-value
and interval hold for any number of subgroups that were tried (p-values of the rates: Holm 1979).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations
from math import prod

import numpy as np

from robust_fairness.auditing.digits import number, p_value
from robust_fairness.auditing.naming import option
from robust_fairness.auditing.predictions import Options, Predictions
from robust_fairness.core.errors import InputError
from robust_fairness.inference import LEVEL, Estimate, Rates, contrast, holm
from robust_fairness.inference.counts import TWO, Counts, Means
from robust_fairness.metrics import find_metric
from robust_fairness.metrics.base import Quantity
from robust_fairness.metrics.gaps import row_values
from robust_fairness.samples import Groups, groups_of

RATES = ("accuracy", "true_positive_rate", "false_positive_rate")
MOST_ATTRIBUTES = 3  # of a subgroup
MOST_SUBGROUPS = 100_000


@dataclass(frozen=True)
class Worst:
    """The subgroup whose rate is worse by most standard errors; others may be worse by more.

    Attributes:
        metric: the rate.
        attributes: attributes of the subgroup.
        values: their values.
        n: rows of the rate in the half that tests it.
        value: the rate, there.
        rest: that of all other rows, there.
        difference: by how much the subgroup is worse; negative if it is not.
        low: lower bound of the difference, at 95 %; NaN where rows are too few.
        high: upper bound.
        p: one-sided p-value, adjusted for the rates.
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
        rows = f"{self.n:,} rows; the clearest of {self.tried:,} subgroups"
        if self.p < LEVEL:
            return (
                f"{rate} of {where} is {number(self.value)}, of all other rows "
                f"{number(self.rest)} (worse by {number(self.low)} to {number(self.high)}, "
                f"{p_value(self.p)}, {rows})"
            )
        known = np.isfinite(self.high)
        most = f"may be worse by up to {number(self.high)}" if known else "has too few rows"
        return f"{rate}: no subgroup is shown to be worse; {where} {most} ({rows})"


def searched(predictions: Predictions, options: Options, seed: int = 0) -> list[Worst]:
    """The worst subgroup of every rate.

    Args:
        predictions: of classes, with labels.
        options: ``small`` is the least number of rows of a subgroup, and of all others, in a half.
        seed: of the halves.

    Raises:
        InputError: rows are not independent or have no labels or classes, or there is no subgroup.
    """
    random = np.random.default_rng(seed).permutation(len(predictions.prediction))
    find, test = np.split(random, [len(random) // 2])
    rates = RATES if len(predictions.samples.classes) == TWO else RATES[:1]
    best: dict[str, tuple[float, tuple[str, ...], int, Groups]] = {}
    tried = dict.fromkeys(rates, 0)
    for attributes in _attributes(predictions, options):
        groups = groups_of(predictions.samples.attributes, attributes)
        counts = _counts(predictions, groups, find)
        for rate in rates:
            worse, parts = _worse(counts, rate)
            enough = np.min([part.n for part in parts], axis=0) >= options.small
            with np.errstate(divide="ignore", invalid="ignore"):
                score = np.where(enough, (worse.value / worse.error)[:, 0], np.nan)
            known = np.isfinite(score)
            tried[rate] += int(known.sum())
            code = int(np.where(known, score, -np.inf).argmax())
            if known.any() and (rate not in best or score[code] > best[rate][0]):
                best[rate] = (float(score[code]), attributes, code, groups)
    if not best:
        raise InputError(f"search: no subgroup has {options.small} rows in a half of the table")
    result = []
    for rate, (_, attributes, code, groups) in best.items():
        worse, parts = _worse(_counts(predictions, groups, test), rate)
        value, rest = (float(part.value[code]) for part in parts)
        low, high, p = (float(part[code, 0]) for part in (*worse.interval(), worse.p_above()))
        result.append(
            Worst(
                rate, attributes, groups.values[code], int(parts[0].n[code]), value, rest,
                _sign(rate) * (value - rest), low, high, p, tried[rate],
            )
        )  # fmt: skip
    adjusted = holm([worst.p for worst in result])
    return [replace(worst, p=float(p)) for worst, p in zip(result, adjusted, strict=True)]


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


def _counts(predictions: Predictions, groups: Groups, rows: np.ndarray) -> Counts:
    """Counts of some rows; groups without any are kept."""
    samples, weight = predictions.samples, predictions.weight
    return Counts.of(
        groups.take(rows), samples.y[rows], predictions.prediction[rows], samples.classes,
        None if weight is None else weight[rows],
    )  # fmt: skip


def _worse(counts: Counts, rate: str) -> tuple[Estimate, list[Means]]:
    """By how much a rate of each group is worse than that of all other rows, and both rates."""
    quantity = find_metric(rate).definition
    assert isinstance(quantity, Quantity)
    parts = [part.means(*row_values(quantity, counts)) for part in (counts, counts.others())]
    value, variance, n = (
        np.stack([getattr(part, field) for part in parts], -1)
        for field in ("value", "variance", "effective")
    )
    both = Rates(value[..., None], variance, n).corrected()
    return contrast(both, None, _sign(rate) * np.array([[1.0, -1.0]]), None), parts


def _sign(rate: str) -> float:
    """1 where a larger rate is worse, else -1."""
    return -1.0 if find_metric(rate).definition.better == "higher" else 1.0
