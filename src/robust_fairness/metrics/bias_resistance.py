"""Resistance to bias: accuracy under other shares of the groups, majority against minority.

Source: "An Investigation of Critical Issues in Bias Mitigation Techniques" (WACV 2022), section 2.

A *subgroup* (a class group in the paper) is a value of an attribute together with a class, such as
blue sevens. Subgroups are those that occur, never all that could. The *majority* of an attribute
are the rows whose value is the most frequent one of their class in training, the *minority* are
all others (section 6.3: "if most 0s are blue and most 1s are green, the majority comprises blue 0s,
green 1s").

Measures of the majority and the minority take ``sensitive_features``, ``y_train`` and
``sensitive_features_train``, means over attributes the arrays of ``OF_ALL``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.metrics.evaluation import by_attribute
from robust_fairness.numbers.gaps import missing
from robust_fairness.numbers.groups import Groups, as_groups, as_groups_of_both, subgroups
from robust_fairness.numbers.quantities import (
    NO_ROWS,
    Array,
    NotApplicable,
    RowValues,
    Score,
    means_of,
    means_of_rows,
    measure,
)

SIDES = ("minority", "majority")
TRAINED = ("y_true", "y_pred", "sensitive_features", "y_train", "sensitive_features_train")
BESIDE_STANDARD = ("y_true", "y_pred", "y_standard", "sensitive_features")
OF_ALL = ("y_true", "y_pred", "attributes", "y_train", "attributes_train")


@measure(better="higher", needs=TRAINED, options={"alpha": 0})
def accuracy_at(
    y_true: Array,
    y_pred: Array,
    *,
    sensitive_features: Any,
    y_train: Array,
    sensitive_features_train: Any,
    alpha: float = 0,
) -> Score:
    r"""Acc(alpha), accuracy under shifted shares of the subgroups (section 2).

    .. math:: Acc(\alpha) = \sum_g p_g^\alpha Acc_g / \sum_g p_g^\alpha

    p_g is the share of subgroup g among the training rows. All subgroups weigh the same at 0 and
    as in training at 1; below 0 rare ones weigh more than frequent ones. A subgroup without rows
    in training or here is left out at every alpha; the note counts such subgroups.
    """
    groups, groups_train = as_groups_of_both(sensitive_features, sensitive_features_train)
    keys, here, there = subgroups(y_true, groups.index, y_train, groups_train.index)
    train_counts = np.bincount(there, minlength=len(keys))
    means = means_of_rows(here, y_pred == y_true, len(keys))
    accuracies, counts = means.value, means.n
    note = _absent(int(np.sum(train_counts == 0)), int(np.sum(counts == 0)))
    used = (train_counts > 0) & (counts > 0)
    if not used.any():
        return Score(None, 0, note or NO_ROWS)
    powers = alpha * np.log(train_counts[used])
    weights = np.exp(powers - powers.max())  # the largest is 1, whatever alpha and the counts
    value = np.average(accuracies[used], weights=weights)
    return Score(float(value), int(counts[used].sum()), note)


@measure(better="higher", needs=OF_ALL, options={"alpha": 0})
def mean_accuracy_at(y_true: Array, y_pred: Array, *, alpha: float = 0, **frames: Any) -> Score:
    """Mean of ``accuracy_at`` over all categorical attributes."""
    return _mean(accuracy_at, y_true, y_pred, alpha=alpha, **frames)


@measure(better="higher", needs=OF_ALL)
def unbiased_accuracy(y_true: Array, y_pred: Array, **frames: Any) -> Score:
    """Acc(0), the mean over subgroups, averaged over all categorical attributes (section 2).

    The source does not say how several attributes combine. All at once would leave nearly every
    test row out: 9,997 of 10,000 combinations of the seven of Biased MNIST have no training row.
    """
    return _mean(accuracy_at, y_true, y_pred, **frames)


@measure(better="higher", needs=TRAINED)
def majority_accuracy(y_true: Array, y_pred: Array, **groups: Any) -> Score:
    """Accuracy within the majority (section 6.3)."""
    return _by_side(y_true, y_pred, **groups)["majority"]


@measure(better="higher", needs=TRAINED)
def minority_accuracy(y_true: Array, y_pred: Array, **groups: Any) -> Score:
    """Accuracy within the minority (section 6.3)."""
    return _by_side(y_true, y_pred, **groups)["minority"]


@measure(better="lower", needs=TRAINED)
def majority_minority_difference(y_true: Array, y_pred: Array, **groups: Any) -> Score:
    """Accuracy within the majority minus that within the minority (MMD of section 2)."""
    scores = _by_side(y_true, y_pred, **groups)
    if absent := missing([score.n for score in scores.values()], SIDES):
        return absent
    minor, major = (scores[side].value or 0.0 for side in SIDES)
    return Score(major - minor, len(y_true))


@measure(better="lower", needs=OF_ALL)
def mean_majority_minority_difference(y_true: Array, y_pred: Array, **frames: Any) -> Score:
    """Mean of ``majority_minority_difference`` over all categorical attributes."""
    return _mean(majority_minority_difference, y_true, y_pred, **frames)


@measure(better="higher", needs=BESIDE_STANDARD)
def improvement_by_group(
    y_true: Array, y_pred: Array, *, y_standard: Array, sensitive_features: Any
) -> dict[str, Score]:
    """Accuracy minus that of ``y_standard``, the standard model's predictions, by group (IOSM, 2).

    The class groups of the source are combinations of an attribute and the class. As rows are
    paired, the variance is that of the differences of the same rows.
    """
    improved = (y_pred == y_true).astype(np.float64) - (y_standard == y_true)
    groups = as_groups(sensitive_features)
    return means_of(RowValues(improved), groups).scores(groups.names)


def in_majority(y: Array, group: Array, y_train: Array, group_train: Array) -> Array:
    """Whether each row's group is the most frequent one of its class in training, bool ``[n]``.

    The first of equally frequent groups counts; a class without training rows has no majority.
    """
    classes = int(max(y.max(initial=0), y_train.max(initial=0))) + 1
    width = int(group_train.max(initial=0)) + 1
    keys, counts = np.unique(y_train * width + group_train, return_counts=True)
    labels, values = np.divmod(keys, width)
    order = np.lexsort((values, -counts, labels))
    present, first = np.unique(labels[order], return_index=True)
    most_frequent = np.full(classes, -1)
    most_frequent[present] = values[order][first]
    return most_frequent[y] == group


def _by_side(
    y_true: Array,
    y_pred: Array,
    sensitive_features: Any,
    y_train: Array,
    sensitive_features_train: Any,
) -> dict[str, Score]:
    """Accuracy within the minority and within the majority."""
    groups, groups_train = as_groups_of_both(sensitive_features, sensitive_features_train)
    majority = in_majority(y_true, groups.index, y_train, groups_train.index)
    sides = Groups.named(majority.astype(np.int64), SIDES)
    return means_of(RowValues(y_pred == y_true), sides).scores(SIDES)


def _absent(from_training: int, from_these: int) -> str:
    """How many subgroups a value leaves out, and why."""
    parts = [(from_training, "training"), (from_these, "these rows")]
    absent = [f"{number} absent from {where}" for number, where in parts if number]
    return f"class groups left out: {', '.join(absent)}" if absent else ""


def _mean(
    function: Callable[..., Score],
    y_true: Array,
    y_pred: Array,
    attributes: pd.DataFrame,
    y_train: Array,
    attributes_train: pd.DataFrame,
    **options: float,
) -> Score:
    """Mean of a metric of groups over all categorical attributes; missing where one of them is.

    It rests on as many rows as the attribute with the fewest.
    """
    arrays = {"y_true": y_true, "y_pred": y_pred}
    by_name = by_attribute(arrays, attributes, y_train, attributes_train)
    scores = {name: function(**part, **options) for name, part in by_name.items()}
    if not scores:
        return NotApplicable("no categorical attribute").score()
    values = [score.value for score in scores.values() if score.value is not None]
    note = "; ".join(f"{name}: {score.note}" for name, score in scores.items() if score.note)
    if len(values) < len(scores):
        return Score(None, 0, note)
    return Score(float(np.mean(values)), min(score.n for score in scores.values()), note)
