"""Accuracy on rare and on frequent answers of a local group (Kervadec et al. 2021, GQA-OOD).

An answer class is in the tail of a group if it is rarer there than the group's answers are on
average. Source: "An Investigation of Critical Issues in Bias Mitigation Techniques" (WACV 2022),
A.1.
"""

from typing import Any

import numpy as np

from robust_fairness.core.questions import in_tail
from robust_fairness.numbers.estimate import wilson_interval
from robust_fairness.numbers.gaps import missing
from robust_fairness.numbers.groups import Groups, as_groups
from robust_fairness.numbers.quantities import RowValues, Score, means_of, measure

SIDES = ("head", "tail")
BETA = 0.2


def _by_side(
    y_true: np.ndarray, y_pred: np.ndarray, sensitive_features: Any, beta: float
) -> dict[str, Score]:
    """Accuracy on the head and on the tail."""
    classes = int(y_true.max(initial=0)) + 1
    tail = in_tail(y_true, as_groups(sensitive_features).index, classes, beta)
    means = means_of(RowValues(y_pred == y_true), Groups.named(tail.astype(np.int64), SIDES))
    return means.scores(SIDES, *wilson_interval(means.value, means.n), "Wilson")


@measure(better="higher", options={"beta": BETA})
def tail_accuracy(
    y_true: np.ndarray, y_pred: np.ndarray, *, sensitive_features: Any, beta: float = BETA
) -> Score:
    """Accuracy on the rows of tail classes, see ``in_tail``."""
    return _by_side(y_true, y_pred, sensitive_features, beta)["tail"]


@measure(better="higher", options={"beta": BETA})
def head_accuracy(
    y_true: np.ndarray, y_pred: np.ndarray, *, sensitive_features: Any, beta: float = BETA
) -> Score:
    """Accuracy on all other rows."""
    return _by_side(y_true, y_pred, sensitive_features, beta)["head"]


@measure(better="lower", options={"beta": BETA})
def head_tail_difference(
    y_true: np.ndarray, y_pred: np.ndarray, *, sensitive_features: Any, beta: float = BETA
) -> Score:
    """Accuracy on the head less that on the tail, as a share of the latter (GQA-OOD).

    Missing where either side has no row, or no row of the tail is right.
    """
    scores = _by_side(y_true, y_pred, sensitive_features, beta)
    if absent := missing([score.n for score in scores.values()], SIDES):
        return absent
    head, tail = (scores[side].value or 0.0 for side in SIDES)
    if not tail:
        return Score(None, len(y_true), "accuracy of the tail is 0")
    return Score((head - tail) / tail, len(y_true))
