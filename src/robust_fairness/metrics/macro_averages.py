"""Precision and recall, averaged over classes (finDML, D.4).

Which classes are averaged over decides the number. ``macro_precision`` and ``macro_recall`` average
over the classes that occur among the labels *or the predictions* of the rows, the default of
scikit-learn and what the published tables must have: a group with few classes loses for every
further class that it is mistaken for. ``macro_precision_present`` and ``balanced_accuracy`` average
over the classes that the rows have. D.4 divides by the number of all classes and swaps false
positives and false negatives; both are taken the usual way here.
"""

import numpy as np
import pandas as pd

from robust_fairness.numbers.quantities import Undefined, Weights, quantity


@quantity(better="higher")
def macro_precision(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """Share of the rows predicted as a class that are of it, over classes of rows or predictions.

    0 for a class that is never predicted.
    """
    return _mean_share(y_true, y_pred, np.concatenate([y_true, y_pred]))


@quantity(better="higher")
def macro_recall(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """Share of the rows of a class that are predicted so, over classes of rows or predictions.

    0 for a class without rows.
    """
    return _mean_share(y_pred, y_true, np.concatenate([y_true, y_pred]))


@quantity(better="higher")
def macro_precision_present(y_true: np.ndarray, y_pred: np.ndarray) -> float:
    """``macro_precision`` over the classes that the rows have."""
    return _mean_share(y_true, y_pred, y_true)


@quantity(better="higher")
def balanced_accuracy(
    y_true: np.ndarray, y_pred: np.ndarray, *, sample_weight: Weights = None
) -> float:
    """Mean recall of the classes that the rows have (scikit-learn); rows of weight 0 are none."""
    if sample_weight is not None:
        weighty = sample_weight > 0
        y_true, y_pred, sample_weight = y_true[weighty], y_pred[weighty], sample_weight[weighty]
        if not len(y_true):
            raise Undefined("no row has weight")
    return _mean_share(y_pred, y_true, y_true, sample_weight)


def _mean_share(
    predicted: np.ndarray, among: np.ndarray, counted: np.ndarray, sample_weight: Weights = None
) -> float:
    """Mean over classes of the share of rows of a class in ``among`` that have it in ``predicted``.

    ``among`` has predicted classes for precision, true ones for recall; ``counted`` names the
    classes that are averaged over, any number of times each.
    """
    classes = np.sort(pd.unique(counted))  # hashed: np.unique sorts the rows
    number, occurring = pd.factorize(among, sort=True)
    right = (predicted == among) * (1.0 if sample_weight is None else sample_weight)
    hits = np.bincount(number, right) / np.bincount(number, sample_weight)
    present = np.isin(classes, occurring)
    shares = np.zeros(len(classes))
    shares[present] = hits[np.searchsorted(occurring, classes[present])]
    return float(shares.sum() / len(classes))
