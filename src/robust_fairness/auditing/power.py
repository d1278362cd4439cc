"""The smallest gap and the smallest change that the rows of an audit show."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from robust_fairness.core.numbers import counted, number
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.estimate import LEVEL, POWER
from robust_fairness.numbers.intervals import Compared
from robust_fairness.numbers.rates import Rates, contrast

HALF = 0.5
STEPS = 4  # towards the gap that is shown
UNKNOWN = 1e9  # larger than any variance of rates


@dataclass(frozen=True)
class Power:
    """What the rows of an attribute show of a gap with a probability of 80 %.

    Attributes:
        attribute: the attribute.
        metric: the gap.
        rate: in words, the rate of the least group.
        group: the least group: the one whose rate varies most.
        n: its rows; effective ones of weighted rows.
        gap: smallest gap of the least group and the group that varies most after it whose interval
            excludes 0; NaN where no gap is shown.
        change: smallest change of such a difference since the reference, or against as many rows,
            that is significant after Holm's correction for all changes that are shown, whatever the
            verdict: that a gap grew is shown from larger ones.
    """

    attribute: str
    metric: str
    rate: str
    group: str
    n: int
    gap: float
    change: float

    def __str__(self) -> str:
        name = self.metric.replace("_", " ")
        ends = [
            f"{what} from {number(value)}" if np.isfinite(value) else f"no {what}"
            for what, value in (("gaps", self.gap), ("changes of any kind", self.change))
        ]
        rows = f"{counted({'rows': self.n})} of the {self.rate}"
        return f"{self.attribute}: {name}, {' and '.join(ends)} ({self.group}, {rows})"


def power_of(
    now: Mapping[tuple[str, str], Compared],
    then: Mapping[tuple[str, str], Compared],
    names: Collection[str],
) -> list[Power]:
    r"""What is shown of every gap: :math:`(z_{1 - \alpha / m} + z_{0.8})` standard errors.

    m are the signed differences of pairs and rates, for a change times the gaps of all attributes.
    The error is that of the interval, at the rates of these rows.

    Args:
        now: what gaps compare, by attribute and metric.
        then: in an earlier period; the same for one with as many rows.
        names: the gaps.
    """
    tests = sum(metric in names for _, metric in now)
    return [
        _power(key, compared, then.get(key), tests)
        for name in names
        for key, compared in now.items()
        if key[1] == name
        and compared.rates.value.shape[1] % len(compared.groups) == 0
        and np.isfinite(compared.rates.value).all()
    ]


def _power(key: tuple[str, str], now: Compared, then: Compared | None, tests: int) -> Power:
    functions, most, tail = now.gap.functions, now.most, LEVEL / len(now.gap.functions)
    parts = np.nan_to_num(now.rates.corrected().variance[0], nan=UNKNOWN)
    of_functions = functions**2 * parts
    least = int(of_functions[of_functions.sum(1).argmax()].argmax())
    gap, change = _shown([now.rates], functions, tail, most), np.nan
    if then is not None and then.groups == now.groups:
        change = _shown([now.rates, then.rates], functions, tail / tests, most)
    rate, group = divmod(least, len(now.groups))
    of_gap = find_metric(key[1]).gap
    words = [quantity.words for quantity in of_gap.of] if of_gap else ["rate"]
    n = int(now.rates.n[0, least])
    return Power(*key, words[rate % len(words)], now.groups[group], n, gap, change)


def _shown(ends: Sequence[Rates], functions: np.ndarray, tail: float, most: float) -> float:
    """The largest over functions; NaN where one is unknown, or above what is possible.

    With a gap, shares of rows are nearer to one half and vary more than without: each is moved
    towards it by half of the gap.
    """
    corrected = [rates.corrected() for rates in ends]
    before = corrected[1] if len(ends) > 1 else None
    variance = contrast(corrected[0], before, functions, functions).variance[0]
    quantiles = special.ndtri(1 - tail) + special.ndtri(POWER)
    value = quantiles * np.sqrt(variance)
    if all(rates.bounded for rates in ends):
        for _ in range(STEPS):
            plain, moved = (
                sum(
                    np.where(functions != 0, functions**2 * part, 0.0).sum(1)
                    for rates in corrected
                    for part in [_spread(rates, distance)]
                )
                for distance in (np.zeros_like(value), value / 2)
            )
            value = quantiles * np.sqrt(variance * moved / plain)
    largest = float(value.max())
    return largest if largest <= most else np.nan


def _spread(rates: Rates, distance: np.ndarray) -> np.ndarray:
    """Variances ``[functions, rates]`` of rates that are nearer to one half by a distance."""
    mean, variance = rates.mean[0], rates.variance[0]
    away = np.maximum(np.abs(mean - HALF) - distance[:, None], 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(variance * (HALF**2 - away**2) / (mean * (1 - mean)))
