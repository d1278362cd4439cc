"""Quantities of classification; rates are of the positive class, class 1.

Names and definitions are those of scikit-learn and fairlearn, ``sample_weight`` included.

Which classes a precision or recall is averaged over decides the number (finDML, D.4).
``macro_precision`` and ``macro_recall`` average over the classes that occur among the labels *or
the predictions* of the rows, the default of scikit-learn and what the published tables must have: a
group with few classes loses for every further class that it is mistaken for.
``macro_precision_present`` and ``balanced_accuracy`` average over the classes that the rows have.
D.4 divides by the number of all classes and swaps false positives and false negatives; both are
taken the usual way here.
"""

import numpy as np
import pandas as pd

from robust_fairness.numbers.gaps import quantity_of_counts
from robust_fairness.numbers.quantities import (
    NO_ROWS,
    Array,
    RowValues,
    Score,
    Undefined,
    Weights,
    means_of_rows,
    measure,
    quantity,
)

BINS = 10
SCORED = ("y_true", "y_score")
OF_POSITIVES, OF_NEGATIVES = NO_ROWS + " of class {1}", NO_ROWS + " of class {0}"


def _require_probabilities(y_score: Array) -> None:
    if ((y_score < 0) | (y_score > 1)).any():
        raise Undefined("y_score has values that are no probabilities, allowed: 0 to 1")


@quantity(better="higher")
def accuracy(y_true: Array, y_pred: Array) -> RowValues:
    """Share of rows whose class is predicted."""
    return RowValues(y_pred == y_true)


@quantity(better="higher", binary=True)
def selection_rate(y_true: Array, y_pred: Array) -> RowValues:
    """Share of positive predictions, P(Y'=1)."""
    return RowValues(y_pred == 1)


@quantity(better="higher", binary=True)
def true_positive_rate(y_true: Array, y_pred: Array) -> RowValues:
    """P(Y'=1 | Y=1), recall of the positive class."""
    return RowValues(y_pred == 1, y_true == 1, OF_POSITIVES)


@quantity(better="lower", binary=True)
def false_negative_rate(y_true: Array, y_pred: Array) -> RowValues:
    """P(Y'=0 | Y=1)."""
    return RowValues(y_pred == 0, y_true == 1, OF_POSITIVES)


@quantity(better="lower", binary=True)
def false_positive_rate(y_true: Array, y_pred: Array) -> RowValues:
    """P(Y'=1 | Y=0)."""
    return RowValues(y_pred == 1, y_true == 0, OF_NEGATIVES)


@quantity(better="higher", binary=True)
def true_negative_rate(y_true: Array, y_pred: Array) -> RowValues:
    """P(Y'=0 | Y=0)."""
    return RowValues(y_pred == 0, y_true == 0, OF_NEGATIVES)


@quantity(better="higher", binary=True)
def precision(y_true: Array, y_pred: Array) -> RowValues:
    """P(Y=1 | Y'=1); undefined without a positive prediction."""
    return RowValues(y_true == 1, y_pred == 1, NO_ROWS + " predicted as class {1}")


@quantity(better="higher", needs=SCORED, binary=True)
def roc_auc(y_true: Array, y_score: Array, *, sample_weight: Weights = None) -> Score:
    r"""Area under the ROC curve; undefined where rows are of one class.

    The share of pairs of a positive and a negative row that the score orders rightly, half of the
    ties. Its variance is that of DeLong, DeLong and Clarke-Pearson (1988): with the share
    :math:`V_i` of the rows of the other class that are on the right side of row i,
    :math:`s^2(V_1) / n_1 + s^2(V_0) / n_0`, and at least that of a share of twice as many rows as
    the smaller class has: near 1 few rows are on the wrong side, often none.
    """
    weight = np.ones(len(y_true)) if sample_weight is None else sample_weight
    sides = []
    for label in (0, 1):
        rows = np.flatnonzero(y_true == label)
        if not weight[rows].sum() > 0:
            raise Undefined(f"{NO_ROWS} of class {label}")
        rows = rows[np.argsort(y_score[rows], kind="stable")]
        sides.append((y_score[rows], weight[rows]))
    negatives, positives = sides
    below = _share_below(*negatives, positives[0])
    above = 1 - _share_below(*positives, negatives[0])
    parts = [
        means_of_rows(np.zeros(len(share), dtype=np.int64), share, 1, entry)
        for share, entry in ((below, positives[1]), (above, negatives[1]))
    ]
    area = float(parts[0].value[0])
    least = min(float(part.effective[0]) for part in parts)
    variance = sum(float(part.variance[0]) for part in parts)
    known = None if np.isnan(variance) else max(variance, area * (1 - area) / (2 * least - 1))
    return Score(area, len(y_true), variance=known, rows=least)


def _share_below(scores: Array, weight: Array, of: Array) -> Array:
    """Share of the weight of sorted scores below each of others, half of it for ties."""
    sums = np.concatenate([[0.0], np.cumsum(weight)])
    below, through = (sums[np.searchsorted(scores, of, side)] for side in ("left", "right"))
    return np.asarray((below + through) / (2 * sums[-1]))


@quantity(better="lower", needs=SCORED, binary=True)
def brier_score(y_true: Array, y_score: Array) -> RowValues:
    """Mean squared difference of the positive class and its probability (Brier 1950)."""
    _require_probabilities(y_score)
    return RowValues(np.square(y_score - y_true))


@quantity(better="lower", needs=SCORED, binary=True, signed=True)
def mean_calibration_error(y_true: Array, y_score: Array) -> RowValues:
    """Mean probability of the positive class less its share: too high is above 0."""
    _require_probabilities(y_score)
    return RowValues(np.subtract(y_score, y_true, dtype=np.float64))


@quantity(better="lower", needs=SCORED, binary=True)
def log_loss(y_true: Array, y_score: Array) -> RowValues:
    """Mean negative log-likelihood of the classes, probabilities clipped as in scikit-learn."""
    _require_probabilities(y_score)
    least = np.finfo(y_score.dtype if y_score.dtype.kind == "f" else np.float64).eps
    clipped = np.clip(y_score, least, 1 - least)
    return RowValues(-np.log(np.where(y_true == 1, clipped, 1 - clipped)))


@quantity(better="lower", needs=SCORED, binary=True, options={"bins": BINS})
def expected_calibration_error(
    y_true: Array,
    y_score: Array,
    *,
    sample_weight: Weights = None,
    bins: float = BINS,
) -> float:
    """Mean distance of the positive class's probability from its frequency in the row's bin.

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


@quantity_of_counts(better="higher")
def balanced_accuracy(weight: Array) -> Array:
    """Mean recall of the classes that the rows have (scikit-learn); rows of weight 0 are none."""
    of_class = weight.sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        recall = np.where(of_class > 0, np.einsum("...cc->...c", weight) / of_class, 0.0)
        return np.asarray(recall.sum(-1) / (of_class > 0).sum(-1))


def _mean_share(predicted: np.ndarray, among: np.ndarray, counted: np.ndarray) -> float:
    """Mean over classes of the share of rows of a class in ``among`` that have it in ``predicted``.

    ``among`` has predicted classes for precision, true ones for recall; ``counted`` names the
    classes that are averaged over, any number of times each.
    """
    classes = np.sort(pd.unique(counted))  # hashed: np.unique sorts the rows
    number, occurring = pd.factorize(among, sort=True)
    hits = np.bincount(number, predicted == among) / np.bincount(number)
    present = np.isin(classes, occurring)
    shares = np.zeros(len(classes))
    shares[present] = hits[np.searchsorted(occurring, classes[present])]
    return float(shares.sum() / len(classes))
