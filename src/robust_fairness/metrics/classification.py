"""Quantities of classification; rates are of the positive class, class 1.

Names and definitions are those of scikit-learn and fairlearn, ``sample_weight`` included.
"""

import numpy as np

from robust_fairness.metrics.base import (
    NO_ROWS,
    Array,
    Score,
    Undefined,
    Weights,
    measure,
    quantity,
)
from robust_fairness.metrics.groups import means_by_group

BINS = 10
SCORED = ("y_true", "y_score")


def _mean(values: Array, among: Array, sample_weight: Weights, what: str) -> float:
    """Mean of some values; a reason where there are none."""
    if not among.any():
        raise Undefined(f"{NO_ROWS} {what}")
    weights = None if sample_weight is None else sample_weight[among]
    return float(np.average(values[among], weights=weights))


def _require_probabilities(y_score: Array) -> None:
    if ((y_score < 0) | (y_score > 1)).any():
        raise Undefined("y_score has values that are no probabilities, allowed: 0 to 1")


@quantity(
    better="higher",
    of_groups=lambda y_true, y_pred, sensitive_features: means_by_group(
        y_pred == y_true, sensitive_features
    ),
)
def accuracy(y_true: Array, y_pred: Array, *, sample_weight: Weights = None) -> float:
    """Share of rows whose class is predicted."""
    return float(np.average(y_pred == y_true, weights=sample_weight))


@quantity(better="higher", binary=True)
def selection_rate(y_true: Array, y_pred: Array, *, sample_weight: Weights = None) -> float:
    """Share of positive predictions, P(Y'=1)."""
    return float(np.average(y_pred == 1, weights=sample_weight))


@quantity(better="higher", binary=True, among=lambda y_true, y_pred: y_true == 1)
def true_positive_rate(y_true: Array, y_pred: Array, *, sample_weight: Weights = None) -> float:
    """P(Y'=1 | Y=1), recall of the positive class."""
    return _mean(y_pred == 1, y_true == 1, sample_weight, "of class 1")


@quantity(better="lower", binary=True, among=lambda y_true, y_pred: y_true == 1)
def false_negative_rate(y_true: Array, y_pred: Array, *, sample_weight: Weights = None) -> float:
    """P(Y'=0 | Y=1)."""
    return _mean(y_pred == 0, y_true == 1, sample_weight, "of class 1")


@quantity(better="lower", binary=True, among=lambda y_true, y_pred: y_true == 0)
def false_positive_rate(y_true: Array, y_pred: Array, *, sample_weight: Weights = None) -> float:
    """P(Y'=1 | Y=0)."""
    return _mean(y_pred == 1, y_true == 0, sample_weight, "of class 0")


@quantity(better="higher", binary=True, among=lambda y_true, y_pred: y_true == 0)
def true_negative_rate(y_true: Array, y_pred: Array, *, sample_weight: Weights = None) -> float:
    """P(Y'=0 | Y=0)."""
    return _mean(y_pred == 0, y_true == 0, sample_weight, "of class 0")


@quantity(better="higher", binary=True, among=lambda y_true, y_pred: y_pred == 1)
def precision(y_true: Array, y_pred: Array, *, sample_weight: Weights = None) -> float:
    """P(Y=1 | Y'=1); undefined without a positive prediction."""
    return _mean(y_true == 1, y_pred == 1, sample_weight, "predicted as class 1")


@quantity(better="higher", needs=SCORED, binary=True)
def roc_auc(y_true: Array, y_score: Array, *, sample_weight: Weights = None) -> float:
    """Area under the ROC curve; undefined where rows are of one class."""
    from sklearn.metrics import roc_auc_score

    for label in (0, 1):
        if not (y_true == label).any():
            raise Undefined(f"{NO_ROWS} of class {label}")
    return float(roc_auc_score(y_true, y_score, sample_weight=sample_weight))


@quantity(better="lower", needs=SCORED, binary=True)
def brier_score(y_true: Array, y_score: Array, *, sample_weight: Weights = None) -> float:
    """Mean squared difference of the probability of class 1 and the class (Brier 1950)."""
    _require_probabilities(y_score)
    return float(np.average(np.square(y_score - y_true), weights=sample_weight))


@quantity(better="lower", needs=SCORED, binary=True)
def log_loss(y_true: Array, y_score: Array, *, sample_weight: Weights = None) -> float:
    """Mean negative log-likelihood of the classes, probabilities clipped as in scikit-learn."""
    from sklearn.metrics import log_loss as of_sklearn

    _require_probabilities(y_score)
    return float(of_sklearn(y_true, y_score, sample_weight=sample_weight, labels=[0, 1]))


@quantity(better="lower", needs=SCORED, binary=True, options={"bins": BINS})
def expected_calibration_error(
    y_true: Array,
    y_score: Array,
    *,
    sample_weight: Weights = None,
    bins: float = BINS,
) -> float:
    """Mean over rows of how far the probability of class 1 is from its frequency in the row's bin.

    Bins have equal width, and each includes its lower bound; 1 is in the last one (Naeini et al.
    2015): the sum over bins b of n_b / n times |mean of y in b - mean of p in b|.
    """
    _require_probabilities(y_score)
    weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
    number = np.minimum((y_score * bins).astype(np.int64), int(bins) - 1)
    gaps = np.bincount(number, weights=weight * (y_true - y_score))
    return float(np.abs(gaps).sum() / weight.sum())


@measure(better="higher", needs=("y_true", "y_train"), unshifted_only=True)
def constant_accuracy(y_true: Array, y_train: Array) -> Score:
    """Accuracy of always predicting the most frequent class of the training rows.

    A model below it has learned nothing that accuracy can show.
    """
    if not len(y_true) or not len(y_train):
        return Score(None, 0, NO_ROWS)
    return Score(float(np.mean(y_true == np.bincount(y_train).argmax())), len(y_true))
