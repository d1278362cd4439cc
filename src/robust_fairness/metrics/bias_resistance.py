"""Resistance to bias: accuracy under other shares of the groups, majority against minority.

Source: "An Investigation of Critical Issues in Bias Mitigation Techniques" (WACV 2022), section 2.

A *class group* is a value of an attribute together with a class, such as blue sevens. The groups
are those that occur, never all that could. The *majority* of an attribute are the rows whose value
is the one most frequent among the training rows of their class, the *minority* are all others
(section 6.3: "if most 0s are blue and most 1s are green, the majority comprises blue 0s, green
1s").
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from robust_fairness.metrics._rates import EMPTY, by_group, missing, rates
from robust_fairness.metrics.base import NOT_APPLICABLE, Score, by_attribute, metric

SIDES = ("minority", "majority")


@metric(better="higher")
def accuracy_at(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    classes: tuple[str, ...],
    train_y: np.ndarray,
    train_group: np.ndarray,
    *,
    alpha: float = 0,
) -> Score:
    r"""Acc(alpha), accuracy under shifted shares of the class groups (section 2).

    .. math:: Acc(\alpha) = \sum_g p_g^\alpha Acc_g / \sum_g p_g^\alpha

    p_g is the share of class group g among the training rows. All groups weigh the same at 0 and
    as in training at 1; below 0 rare groups weigh more than frequent ones. A group without rows
    in training or here is left out at every alpha; the note counts such groups.
    """
    keys, here, there = _class_groups(y, group, train_y, train_group, len(classes))
    train_counts = np.bincount(there, minlength=len(keys))
    accuracies, counts = rates(prediction == y, here, len(keys))
    note = _absent(int(np.sum(train_counts == 0)), int(np.sum(counts == 0)))
    used = (train_counts > 0) & (counts > 0)
    if not used.any():
        return Score(None, 0, note or EMPTY)
    powers = alpha * np.log(train_counts[used])
    weights = np.exp(powers - powers.max())  # the largest is 1, whatever alpha and the counts
    value = np.average(accuracies[used], weights=weights)
    return Score(float(value), int(counts[used].sum()), note)


@metric(better="higher")
def mean_accuracy_at(
    y: np.ndarray,
    prediction: np.ndarray,
    classes: tuple[str, ...],
    attributes: pd.DataFrame,
    train_y: np.ndarray,
    train_attributes: pd.DataFrame,
    *,
    alpha: float = 0,
) -> Score:
    """Mean of ``accuracy_at`` over all categorical attributes."""
    one = partial(accuracy_at, alpha=alpha)
    return _mean(one, y, prediction, classes, attributes, train_y, train_attributes)


@metric(better="higher")
def unbiased_accuracy(
    y: np.ndarray,
    prediction: np.ndarray,
    classes: tuple[str, ...],
    attributes: pd.DataFrame,
    train_y: np.ndarray,
    train_attributes: pd.DataFrame,
) -> Score:
    """Acc(0), the mean over class groups, averaged over all categorical attributes (section 2).

    The source does not say how several attributes combine. All at once would leave nearly every
    test row out: 9,997 of 10,000 combinations of the seven of Biased MNIST have no training row.
    """
    return _mean(accuracy_at, y, prediction, classes, attributes, train_y, train_attributes)


@metric(better="higher")
def accuracy_by_subgroup(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    groups: tuple[str, ...],
    classes: tuple[str, ...],
    train_y: np.ndarray,
    train_group: np.ndarray,
) -> dict[str, Score]:
    """Accuracy within each class group of training or these rows, named ``value & class``."""
    keys, here, _ = _class_groups(y, group, train_y, train_group, len(classes))
    names = [f"{groups[value]} & {classes[label]}" for value, label in keys.tolist()]
    return by_group(*rates(prediction == y, here, len(names)), names)


@metric(better="higher")
def majority_accuracy(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    classes: tuple[str, ...],
    train_y: np.ndarray,
    train_group: np.ndarray,
) -> Score:
    """Accuracy within the majority (section 6.3)."""
    majority = in_majority(y, group, len(classes), train_y, train_group)
    return by_group(*_sides(prediction == y, majority), SIDES)["majority"]


@metric(better="higher")
def minority_accuracy(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    classes: tuple[str, ...],
    train_y: np.ndarray,
    train_group: np.ndarray,
) -> Score:
    """Accuracy within the minority (section 6.3)."""
    majority = in_majority(y, group, len(classes), train_y, train_group)
    return by_group(*_sides(prediction == y, majority), SIDES)["minority"]


@metric(better="lower")
def majority_minority_difference(
    y: np.ndarray,
    prediction: np.ndarray,
    group: np.ndarray,
    classes: tuple[str, ...],
    train_y: np.ndarray,
    train_group: np.ndarray,
) -> Score:
    """Accuracy within the majority minus that within the minority (MMD of section 2)."""
    majority = in_majority(y, group, len(classes), train_y, train_group)
    (minor, major), counts = _sides(prediction == y, majority)
    return missing(counts, SIDES) or Score(float(major - minor), len(y))


@metric(better="lower")
def mean_majority_minority_difference(
    y: np.ndarray,
    prediction: np.ndarray,
    classes: tuple[str, ...],
    attributes: pd.DataFrame,
    train_y: np.ndarray,
    train_attributes: pd.DataFrame,
) -> Score:
    """Mean of ``majority_minority_difference`` over all categorical attributes."""
    one = majority_minority_difference
    return _mean(one, y, prediction, classes, attributes, train_y, train_attributes)


def in_majority(
    y: np.ndarray, group: np.ndarray, classes: int, train_y: np.ndarray, train_group: np.ndarray
) -> np.ndarray:
    """Whether each row's value is the most frequent one of its class in training, bool ``[n]``.

    The first of equally frequent values counts; a class without training rows has no majority.

    Args:
        y: class of every row ``[n]``.
        group: number of its value ``[n]``.
        classes: number of classes.
        train_y: classes of the training rows ``[m]``.
        train_group: their values ``[m]``.
    """
    width = int(train_group.max(initial=0)) + 1
    keys, counts = np.unique(train_y * width + train_group, return_counts=True)
    labels, values = np.divmod(keys, width)
    order = np.lexsort((values, -counts, labels))
    present, first = np.unique(labels[order], return_index=True)
    most_frequent = np.full(classes, -1)
    most_frequent[present] = values[order][first]
    return most_frequent[y] == group


def _class_groups(
    y: np.ndarray, group: np.ndarray, train_y: np.ndarray, train_group: np.ndarray, classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value and class of every class group that occurs, and those of these and training rows."""
    here, there = group * classes + y, train_group * classes + train_y
    index, keys = pd.factorize(np.concatenate([here, there]), sort=True)
    return np.stack(np.divmod(keys, classes), axis=1), index[: len(y)], index[len(y) :]


def _absent(from_training: int, from_these: int) -> str:
    """How many class groups a value leaves out, and why."""
    parts = [(from_training, "training"), (from_these, "these rows")]
    told = [f"{number} absent from {where}" for number, where in parts if number]
    return f"class groups left out: {', '.join(told)}" if told else ""


def _sides(hits: np.ndarray, majority: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and counts of ``SIDES``."""
    return rates(hits, majority.astype(np.int64), len(SIDES))


def _mean(
    one: Callable[..., Score],
    y: np.ndarray,
    prediction: np.ndarray,
    classes: tuple[str, ...],
    attributes: pd.DataFrame,
    train_y: np.ndarray,
    train_attributes: pd.DataFrame,
) -> Score:
    """Mean of a metric of groups over all categorical attributes; missing where one of them is.

    It rests on as many rows as the attribute with the fewest.
    """
    grouped = by_attribute(
        {"y": y, "prediction": prediction}, attributes, train_y, train_attributes
    )
    if not grouped:
        return Score(None, 0, f"{NOT_APPLICABLE}no categorical attribute")
    scores = {}
    for name, arguments in grouped.items():
        del arguments["groups"]
        scores[name] = one(classes=classes, **arguments)
    values = [score.value for score in scores.values() if score.value is not None]
    note = "; ".join(f"{name}: {score.note}" for name, score in scores.items() if score.note)
    if len(values) < len(scores):
        return Score(None, 0, note)
    return Score(float(np.mean(values)), min(score.n for score in scores.values()), note)
