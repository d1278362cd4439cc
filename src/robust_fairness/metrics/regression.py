"""Quantities of regression."""

import numpy as np

from robust_fairness.numbers.quantities import Array, RowValues, Undefined, Weights, quantity


@quantity(better="lower", task="regression")
def mean_squared_error(y_true: Array, y_pred: Array) -> RowValues:
    """Mean squared error, in squared units of the outcome."""
    return RowValues(np.square(y_pred - y_true, dtype=np.float64))


@quantity(better="lower", task="regression")
def mean_absolute_error(y_true: Array, y_pred: Array) -> RowValues:
    """Mean absolute error, in units of the outcome."""
    return RowValues(np.abs(y_pred - y_true))


@quantity(better="lower", task="regression", signed=True)
def mean_error(y_true: Array, y_pred: Array) -> RowValues:
    """Mean of prediction less outcome, in units of the outcome: overestimates are positive."""
    return RowValues(np.subtract(y_pred, y_true, dtype=np.float64))


@quantity(better="lower", task="regression", signed=True)
def mean_prediction(y_true: Array, y_pred: Array) -> RowValues:
    """Mean of the predictions, in units of the outcome (fairlearn); neither end is better."""
    return RowValues(np.asarray(y_pred, np.float64))


@quantity(better="lower", task="regression")
def unexplained_variance(y_true: Array, y_pred: Array, *, sample_weight: Weights = None) -> float:
    """Mean squared error over the variance of the outcome in these rows: 1 minus R squared.

    1 is the best constant; undefined where the outcome does not vary.
    """
    counted = y_true if sample_weight is None else y_true[sample_weight > 0]
    if (counted == counted[0]).all():
        raise Undefined("the outcome is constant")
    error = mean_squared_error(y_true, y_pred, sample_weight=sample_weight)
    if sample_weight is None:
        return error / float(np.var(y_true, dtype=np.float64))
    mean = np.average(y_true, weights=sample_weight)
    return error / float(np.average(np.square(y_true - mean), weights=sample_weight))
