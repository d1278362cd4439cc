r"""95 % intervals of differences, ratios and worst groups, computed from counts.

A difference between groups is reported as an absolute value and a worst group is a minimum, so
resampled values are biased, and percentile and basic bootstrap intervals cover the true value far
too rarely if groups are small or similar. Each interval is therefore derived from signed parts:

- Difference of two proportions: Newcombe's interval from Wilson's two (Newcombe 1998, method 10);
  if it contains 0, the interval of the absolute value is from 0 to the farther bound.
- Ratio of two proportions: the MOVER interval from Wilson's two (Donner and Zou 2012); if it
  contains 1, the interval of the smaller over the larger proportion ends at 1.
- Largest difference of rates of two classes, and their sum: the interval of
  ``robust_fairness.inference`` from linear functions of the rates.
- Sum or maximum of differences to all other groups d: a norm, for which

  .. math:: | \|\hat d\| - \|d\| | \le \|\hat d - d\|

  so the value plus and minus the 95 % quantile of the norm of the *error* has at least nominal
  coverage. Errors come from a Dirichlet bootstrap with ``PRIOR_ROWS`` rows added to each group,
  spread evenly, since otherwise a group of five equal rows has no variance.
- Change of any of them between two periods: the square-and-add rule of Zou and Donner (2008), from
  the intervals of both periods.
- Worst of several proportions: from the smallest lower bound to the smallest of upper bounds that
  hold simultaneously (Šidák 1967).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from robust_fairness import inference
from robust_fairness.core.intervals import CONFIDENCE, wilson_interval
from robust_fairness.inference import Rates
from robust_fairness.inference.gaps import Kind

RESAMPLES = 1000
PRIOR_ROWS = 2.0
NUMBERS_AT_ONCE = 2**22
TWO = 2
TAIL = (1 - CONFIDENCE) / 2
# Axes of differences [draws, group, class] over which a measure sums and takes the maximum.
NORMS = {
    "delta_dp_one_vs_rest": ((), (1, 2)),
    "delta_eo_one_vs_rest": ((2,), (1,)),
}


@dataclass(frozen=True)
class Bound:
    """An interval and the name of its construction."""

    interval: str
    low: float
    high: float


def bounds_of_classes(counts: np.ndarray, generator: np.random.Generator) -> dict[str, Bound]:
    """Intervals of the metrics that compare groups, by name of the metric.

    The differences of proportions are between two groups or, of more, between the two that differ
    most. Bounds are NaN for metrics that are not defined because a group has no row of a class.

    Args:
        counts: rows by group, class and predicted class, int64 ``[groups, classes, classes]``.
        generator: random numbers of the bootstrap.
    """
    rows, hits = counts.sum((1, 2)), counts.diagonal(axis1=1, axis2=2)
    found = {"worst_group_accuracy": worst_share(hits.sum(1), rows)}
    found |= _of_norms(counts, generator)
    if counts.shape[1] == TWO:
        found |= _of_gaps(counts)
    if counts.shape[:2] != (TWO, TWO):
        return found
    of_class, positive = counts.sum(2), counts[:, :, 1].sum(1)
    parity, impact = gap(positive, rows), ratio(positive, rows)
    return found | {
        "delta_dp": parity,
        "demographic_parity_difference": parity,
        "demographic_parity_ratio": impact,
        "delta_eopp": gap(hits[:, 0], of_class[:, 0]),
        "equal_opportunity_difference": gap(hits[:, 1], of_class[:, 1]),
        "disparate_impact": impact,
    }


def gap(hits: np.ndarray, rows: np.ndarray) -> Bound:
    """Newcombe's interval of the absolute difference of the proportions ``hits / rows`` ``[2]``."""
    first, second = np.transpose(_wilson(hits, rows))
    least, most = difference_of(second, first)
    if least <= 0 <= most:
        return Bound("Newcombe", 0.0, float(max(-least, most)))
    return Bound("Newcombe", *sorted((float(abs(least)), float(abs(most)))))


def difference_of(minuend: Iterable[Any], subtrahend: Iterable[Any]) -> tuple[Any, Any]:
    """Interval of the difference of two independent estimates, from their separate intervals.

    The square-and-add rule, MOVER: equation 4 of Zou and Donner (2008), which is Newcombe's method
    10 (1998) for Wilson's intervals of two proportions.

    Args:
        minuend: estimates with their lower and upper bounds, ``[...]`` each.
        subtrahend: those that are subtracted.
    """
    (one, low, high), (other, other_low, other_high) = minuend, subtrahend
    least = one - other - np.hypot(one - low, other_high - other)
    most = one - other + np.hypot(high - one, other - other_low)
    return least, most


def ratio(hits: np.ndarray, rows: np.ndarray) -> Bound:
    """Interval of the smaller over the larger of the proportions ``hits / rows`` ``[2]``.

    Equation 8 of Donner and Zou (2012).
    """
    kind = "Donner and Zou"
    share, low, high = _wilson(hits, rows)
    small, large = np.argsort(share, kind="stable")
    if not share[large] > 0:
        return Bound(kind, np.nan, np.nan)
    product = share[small] * share[large]
    above, below = (bound * (2 * share - bound) for bound in (low, high))
    least = 0.0
    if product > 0:
        least = above[small] / (product + np.sqrt(product**2 - above[small] * below[large]))
    most = (product + np.sqrt(product**2 - below[small] * above[large])) / above[large]
    if most > 1:
        least, most = min(least, 1 / most), 1.0
    return Bound(kind, float(least), float(most))


def worst_share(hits: np.ndarray, rows: np.ndarray) -> Bound:
    """Interval of the smallest of the proportions ``hits / rows`` ``[groups]``, from Wilson's.

    Groups without rows are ignored.
    """
    hits, rows = hits[rows > 0], rows[rows > 0]
    _, low, _ = _wilson(hits, rows)
    _, _, high = _wilson(hits, rows, 1 - 2 * simultaneous_tail(len(rows)))
    return Bound("Wilson, worst", float(low.min()), float(high.min()))


def worst_mean(groups: Sequence[np.ndarray]) -> Bound:
    """Interval, at least 0, of the largest mean of groups of values ``[n]``, from Student's."""
    kind = "Student's t, worst"
    n = np.array([len(values) for values in groups])
    if n.min() < TWO:
        return Bound(kind, np.nan, np.nan)
    means = np.array([values.mean() for values in groups])
    errors = np.array([values.std(ddof=1) for values in groups]) / np.sqrt(n)
    low = means - special.stdtrit(n - 1, 1 - simultaneous_tail(len(groups))) * errors
    high = means + special.stdtrit(n - 1, 1 - TAIL) * errors
    return Bound(kind, float(max(low.max(), 0)), float(high.max()))


def simultaneous_tail(count: int) -> float:
    """Tail of each of ``count`` bounds that hold together with a tail of ``TAIL`` (Šidák 1967)."""
    return float(-np.expm1(np.log1p(-TAIL) / count))


def _wilson(
    hits: np.ndarray, rows: np.ndarray, confidence: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Proportions with lower and upper bounds, ``[n]`` each; NaN for groups without rows."""
    share = np.divide(hits, rows, out=np.full(len(rows), np.nan), where=rows > 0)
    low, high = wilson_interval(share, rows, confidence)
    # exact bounds at 0 and 1, where rounding errors would remain
    low, high = np.where(hits == 0, 0.0, low), np.where(hits == rows, 1.0, high)
    return share, low, high


def _of_gaps(counts: np.ndarray) -> dict[str, Bound]:
    """Intervals of gaps of rates of two classes, by name.

    Nothing is known of a rate on fewer than ``FEWEST_ROWS`` rows: the interval is that of all gaps.
    """
    rows, of_class = counts.sum((1, 2)), counts.sum(2)
    positive = counts[:, :, 1]
    rates = {
        "demographic_parity_difference": ((positive.sum(1), rows),),
        "equal_opportunity_difference": ((positive[:, 1], of_class[:, 1]),),
        "equalized_odds_difference": tuple(zip(positive.T, of_class.T, strict=True)),
    }
    kinds: dict[str, Kind] = dict.fromkeys(rates, "largest")
    if len(counts) == TWO:
        rates["delta_eo"], kinds["delta_eo"] = rates["equalized_odds_difference"], "sum"
    found = {}
    for name, parts in rates.items():
        hits, n = (np.concatenate(one)[None].astype(float) for one in zip(*parts, strict=True))
        of = inference.gap(kinds[name], len(counts), len(parts))
        low, high = np.nan, np.nan
        if n.all():
            value, most = float(of.of(hits / n)[0]), float(len(parts) if name == "delta_eo" else 1)
            low, high = (float(one[0]) for one in inference.interval(Rates.of_counts(hits, n), of))
            low, high = np.fmin(max(low, 0.0), value), np.fmax(min(high, most), value)
            if n.min() < inference.FEWEST_ROWS:
                low, high = 0.0, most
        found[name] = Bound("linear functions", float(low), float(high))
    return found


def _of_norms(counts: np.ndarray, generator: np.random.Generator) -> dict[str, Bound]:
    """Intervals of sums and maxima of differences, by name."""
    added = counts + PRIOR_ROWS / np.prod(counts.shape[1:])
    # the added rows move the centre without reducing the variance
    rows = counts.sum((1, 2), keepdims=True)
    spread = added * rows / (rows + PRIOR_ROWS)
    centre = differences(added[None])
    at_once = max(1, NUMBERS_AT_ONCE // counts.size)
    errors: dict[str, list[np.ndarray]] = {name: [] for name in centre}
    for start in range(0, RESAMPLES, at_once):
        draws = min(at_once, RESAMPLES - start)
        # proportions of gamma variates are Dirichlet
        gamma = generator.standard_gamma(spread, (draws, *counts.shape))
        for name, drawn in differences(gamma).items():
            errors[name].append(norm(name, drawn - centre[name]))
    own_values = {name: norm(name, one)[0] for name, one in differences(counts[None]).items()}
    bounds = {}
    for name, own in errors.items():
        radius = np.quantile(np.concatenate(own), CONFIDENCE)
        middle, value = norm(name, centre[name])[0], own_values[name]
        summed, _ = NORMS[name]
        most = float(counts.shape[1]) if summed else 1.0
        low, high = max(middle - radius, 0.0), min(middle + radius, most)
        bounds[name] = Bound("bootstrap", float(min(low, value)), float(max(high, value)))
    return bounds


def norm(name: str, values: np.ndarray) -> np.ndarray:
    """The measure ``[draws]`` of differences ``[draws, group, class]``."""
    summed, largest = NORMS[name]
    made: np.ndarray = np.abs(values).sum(summed, keepdims=True).max((*largest, *summed))
    return made


def differences(counts: np.ndarray) -> Mapping[str, np.ndarray]:
    """Signed differences ``[draws, group, class]`` by name of the measure made of them."""
    rows = counts.sum((2, 3))[..., None]
    hits = counts.diagonal(axis1=2, axis2=3)
    of_class, predicted = counts.sum(3), counts.sum(2)
    recalls = _divided(hits, of_class)
    found = {
        "delta_dp_one_vs_rest": _divided(predicted, rows) - _rest(predicted, rows),
        "delta_eo_one_vs_rest": recalls - _rest(hits, of_class),
    }
    return found


def _divided(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Quotients; NaN where the denominator is 0."""
    above, below = np.broadcast_arrays(above, below)
    return np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)


def _rest(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Quotients of the sums over all other groups; groups are axis 1."""
    others = (values.sum(1, keepdims=True) - values for values in (above, below))
    return _divided(*others)
