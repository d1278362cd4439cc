"""Metrics of an audit that are functions of a user's own."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy as np
from scipy import special

from robust_fairness.core.errors import InputError, first_line
from robust_fairness.core.intervals import CONFIDENCE
from robust_fairness.metrics import Metric, Score, find_metric
from robust_fairness.numbers.forms import FORMS, OVERALL
from robust_fairness.numbers.groups import Groups, everyone
from robust_fairness.numbers.quantities import WEIGHTS, Array, Means, Quantity, Weights

BLOCKS = 20  # of the jackknife
SHOWN = ("by_group", "difference")  # aggregations beside the value of all rows


def metrics_of_functions(functions: Mapping[str, Callable[..., float]]) -> dict[str, Metric]:
    """The metrics that an audit shows of functions: overall, by group, and their difference.

    Args:
        functions: ``f(y_true, y_pred)`` or ``f(y_true, y_pred, sample_weight)`` by name.

    Raises:
        InputError: a name is that of a metric, or no name of Python.
    """
    metrics = {}
    for name, function in functions.items():
        if not name.isidentifier():
            raise InputError(
                f"metrics: {name!r} is no name; give one, metrics={{'name': function}}"
            )
        quantity = _quantity(name, function)
        for form in [OVERALL, *(item for item in FORMS if item.name in SHOWN)]:
            metric = Metric(form.pattern.format(name), quantity, form, {})
            metrics[metric.name] = metric
    for name in metrics:
        try:
            find_metric(name)
        except InputError:
            continue
        raise InputError(f"metrics: {name} is a metric already; give the function another name")
    return metrics


def _quantity(name: str, function: Callable[..., float]) -> Quantity:
    r"""A function as a quantity with the variance of a jackknife over blocks of rows.

    The rows of a group are dealt to ``BLOCKS`` blocks in random order (of seed 0), or to as many as
    it has rows; with the values :math:`v_b` without block b the variance is
    :math:`\frac{B - 1}{B} \sum_b (v_b - \bar v)^2` (Shao and Tu 1995, section 2.3), widened from
    Student's distribution of n - 1 to that of B - 1 degrees of freedom.
    """

    def by_groups(
        y_true: Array,
        y_pred: Array,
        *,
        sensitive_features: Groups,
        sample_weight: Weights = None,
    ) -> Means:
        weights = () if sample_weight is None else (sample_weight,)
        arrays = (y_true, y_pred, *weights)
        codes = range(len(sensitive_features.values))
        of_groups = [
            [array[sensitive_features.codes == code] for array in arrays] for code in codes
        ]
        return Means.of_scores([_score(function, of_group) for of_group in of_groups])

    def of_all(y_true: Array, y_pred: Array, *, sample_weight: Weights = None) -> Score:
        groups = everyone(len(y_true))
        means = by_groups(y_true, y_pred, sensitive_features=groups, sample_weight=sample_weight)
        return means.scores([""])[""]

    if not _takes_weights(function):
        del of_all.__annotations__[WEIGHTS]
    of_all.__doc__ = function.__doc__ or f"{name}, a function of the audit."
    return Quantity(
        name=name, function=of_all, better="higher", task="any", by_groups=by_groups, signed=True
    )


def _takes_weights(function: Callable[..., Any]) -> bool:
    try:
        return WEIGHTS in signature(function).parameters
    except ValueError:  # a builtin
        return False


def _score(function: Callable[..., float], arrays: list[Array]) -> Score:
    """The value of rows with its variance; missing, with the reason, where the function fails."""
    n = len(arrays[0])
    if not n:
        return Score(None, 0, "no rows")
    blocks = min(BLOCKS, n)
    block = np.random.default_rng(0).permutation(n) % blocks
    try:
        value, *others = (
            _called(function, [array[kept] for array in arrays])
            for kept in (np.ones(n, bool), *(block != number for number in range(blocks)))
        )
    except Exception as error:  # of a user's own
        return Score(None, n, f"{type(error).__name__}: {first_line(error)}")
    if not np.isfinite([value, *others]).all() or blocks < 2:  # noqa: PLR2004
        return Score(value if np.isfinite(value) else None, n, "" if np.isfinite(value) else "NaN")
    tail = (1 - CONFIDENCE) / 2
    wider = special.stdtrit(blocks - 1, 1 - tail) / special.stdtrit(n - 1, 1 - tail)
    variance = (blocks - 1) * float(np.var(others)) * wider**2
    return Score(value, n, variance=variance)


def _called(function: Callable[..., float], arrays: list[Array]) -> float:
    y_true, y_pred, *weights = arrays
    return float(function(y_true, y_pred, **dict(zip([WEIGHTS], weights, strict=False))))
