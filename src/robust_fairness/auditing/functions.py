"""Metrics of an audit that are functions of a user's own."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

import numpy as np

from robust_fairness.core.errors import InputError, first_line
from robust_fairness.metrics import Metric, Score, find_metric
from robust_fairness.numbers.gaps import FORMS, OVERALL
from robust_fairness.numbers.groups import Groups, everyone
from robust_fairness.numbers.quantities import WEIGHTS, Array, Means, Quantity, Weights

DRAWS = 200  # of the bootstrap
MOST_ROWS = 2_000  # of a draw
LEAST_KNOWN = 0.9  # of the draws that a function has a value of
OF_SCORES = ("y_score", "y_proba", "y_prob", "pred_decision")  # parameters, in scikit-learn
SHOWN = ("by_group", "difference")  # aggregations beside the value of all rows


def metrics_of_functions(functions: Mapping[str, Callable[..., float]]) -> dict[str, Metric]:
    """The metrics that an audit shows of functions: overall, by group, and their difference.

    Args:
        functions: ``f(y_true, y_pred)`` or ``f(y_true, y_pred, sample_weight)`` by name; one whose
            second parameter is called ``y_score`` or ``y_proba``, as in ``roc_auc_score``, is
            called with the probability of the positive class.

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
    """A function as a quantity with the variance of a bootstrap within each group.

    Intervals have the degrees of freedom of sqrt(n) rows: the bootstrap's variance of a quantile
    has a relative error of the order n^(-1/4) (Hall and Martin 1988), that of a smooth function
    one of n^(-1/2).
    """
    parameters = _parameters(function)
    of_scores = bool({*OF_SCORES}.intersection(parameters[1:2])) or "log_loss" in getattr(
        function, "__name__", ""
    )

    def by_groups(
        *, sensitive_features: Groups, sample_weight: Weights = None, **predicted: Array
    ) -> Means:
        arrays = [*predicted.values(), *([] if sample_weight is None else [sample_weight])]
        of_groups = [
            [array[sensitive_features.codes == code] for array in arrays]
            for code in range(len(sensitive_features.values))
        ]
        means = Means.of_scores([_score(function, of_group) for of_group in of_groups])
        return means._replace(counted=np.sqrt(means.n))

    def of_all(*, sample_weight: Weights = None, **predicted: Array) -> Score:
        groups = everyone(len(predicted["y_true"]))
        means = by_groups(sensitive_features=groups, sample_weight=sample_weight, **predicted)
        return means.scores([""])[""]

    if WEIGHTS not in parameters:
        del of_all.__annotations__[WEIGHTS]
    of_all.__doc__ = function.__doc__ or f"{name}, a function of the audit."
    return Quantity(
        name=name, function=of_all, better="higher", by_groups=by_groups, signed=True,
        task="classification" if of_scores else "any", binary=of_scores,
        needs=("y_true", "y_score" if of_scores else "y_pred"),
    )  # fmt: skip


def _parameters(function: Callable[..., Any]) -> list[str]:
    try:
        return list(signature(function).parameters)
    except ValueError:  # a builtin
        return []


def _score(function: Callable[..., float], arrays: list[Array]) -> Score:
    """The value of rows with its variance; missing, with the reason, where the function fails.

    The variance is that of ``DRAWS`` draws of the rows with replacement (Efron 1979), which also
    holds for medians and other quantiles; draws have at most ``MOST_ROWS`` rows and vary as much
    more (Bickel, Goetze and van Zwet 1997). It is not known where too many of them have no value,
    such as an area without rows of one class.
    """
    n = len(arrays[0])
    if not n:
        return Score(None, n, "no rows")
    try:
        value = _called(function, arrays)
    except Exception as error:  # of a user's own
        return Score(None, n, f"{type(error).__name__}: {first_line(error)}")
    if not np.isfinite(value):
        return Score(None, n, "NaN")
    size = min(n, MOST_ROWS)
    places = np.random.default_rng(0).integers(0, n, (DRAWS, size))
    draws = np.array([_drawn(function, [array[rows] for array in arrays]) for rows in places])
    known = draws[np.isfinite(draws)]
    if len(known) < LEAST_KNOWN * DRAWS or not known.var():
        return Score(value, n)
    return Score(value, n, variance=float(known.var(ddof=1)) * size / (n - 1))


def _drawn(function: Callable[..., float], arrays: list[Array]) -> float:
    try:
        return _called(function, arrays)
    except Exception:  # noqa: BLE001 - of a user's own, which has a value of all rows
        return np.nan


def _called(function: Callable[..., float], arrays: list[Array]) -> float:
    y_true, y_pred, *weights = arrays
    return float(function(y_true, y_pred, **dict(zip([WEIGHTS], weights, strict=False))))
