"""Every metric as a function of arrays, with scikit-learn's and fairlearn's signature."""

from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.arrays import as_numbers, as_rows, as_weights, require_same_rows
from robust_fairness.core.errors import InputError
from robust_fairness.core.frames import rows_of, sensitive_columns
from robust_fairness.metrics.base import GROUPED, WEIGHTS, Array, Score
from robust_fairness.metrics.find import Metric, find_metric
from robust_fairness.metrics.groups import as_groups, as_groups_of_both

VECTORS = ("y_true", "y_pred", "y_score", "y_train", "y_standard", WEIGHTS)  # arrays [n]
CLASSES_OF_NUMBERS = ("integer", "floating", "boolean")  # kinds of pandas
TRAIN = "sensitive_features_train"
OF_TRAINING = (TRAIN, "y_train", "attributes_train")
FRAMES = ("attributes", "attributes_train")  # columns of any kind
SEVERAL = ("by_group", "by_subgroup")  # aggregations with a value per group

Value = float | dict[str, float]


def metric_function(name: str) -> Callable[..., Value]:
    """The metric of that name as a function.

    The function takes:

    - ``y_true``, ``y_pred``: classes (of two, 1, True or the last one in alphabetical
      order is positive unless ``pos_label`` says otherwise; numbers of which 1 is not the larger
      one, also as text, need it) or outcomes ``[n]``; metrics of
      probabilities take that of the positive class instead of ``y_pred``;
    - ``sensitive_features``: one label per row, or a frame whose combinations are the groups;
    - ``sample_weight``: weights ``[n]``, if the metric has weights;
    - by keyword, any further array that the metric needs, such as ``embedding``.

    It returns a number, or numbers by group for a metric ``..._by_group``; NaN is the value of a
    group for which the metric is not defined.

    Raises:
        InputError: no such metric. Called: an array is missing or does not fit, or the metric is
            not defined for these rows.
    """
    metric = find_metric(name)

    def computed(
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        pos_label: Any = None,
        **arrays: Any,
    ) -> Value:
        second = "y_score" if "y_score" in metric.needs else "y_pred"
        groups_train = arrays.pop(TRAIN, None)
        given = {"y_true": y_true, second: y_pred, **arrays}
        rows: dict[str, Any] = {key: _rows(name, key, values) for key, values in given.items()}
        if sample_weight is not None:
            rows[WEIGHTS] = _rows(name, WEIGHTS, sample_weight)
        groups = {
            key: (labels, sensitive_columns(labels))
            for key, labels in ((GROUPED, sensitive_features), (TRAIN, groups_train))
            if labels is not None
        }
        beside = rows | {key: rows_of(*labels) for key, labels in groups.items()}
        for of_training in (False, True):
            same = {key: beside[key] for key in beside if (key in OF_TRAINING) == of_training}
            require_same_rows(f"metric {name}", same)
        weights = rows.pop(WEIGHTS, None)
        encoded: dict[str, Any] = _encoded(metric, rows, pos_label)
        columns = [frame for _, frame in groups.values()]
        made = as_groups_of_both(*columns) if len(columns) > 1 else map(as_groups, columns)
        encoded |= zip(groups, made, strict=True)
        scores = _weighted(metric, encoded, weights).scores(encoded)
        return _values(metric, scores)

    computed.__name__ = computed.__qualname__ = name
    computed.__doc__ = metric.definition.function.__doc__
    return computed


def _rows(name: str, key: str, values: Any) -> Array | pd.Series | pd.DataFrame:
    """Values with a row for each, a pandas series as it is, attributes as a frame."""
    if key in FRAMES:
        return pd.DataFrame(values)
    rows = as_rows(values)
    shape = np.shape(rows)
    if not shape or (key in VECTORS and len(shape) > 1):
        raise InputError(f"metric {name}: {key} has shape {shape}, allowed: one value per row")
    return rows


def _encoded(metric: Metric, rows: dict[str, Any], pos_label: Any) -> dict[str, Any]:
    """The arrays with classes as numbers, the positive one of two classes as 1."""
    unknown = sorted({*rows} - {"y_true", "y_pred", *metric.needs})
    if unknown:
        raise InputError(f"metric {metric.name}: takes no {', '.join(unknown)}")
    labelled = ("y_true", "y_pred", "y_train", "y_standard")
    decided = () if metric.task == "regression" else labelled
    labels = {key: _labelled(metric.name, key, rows[key]) for key in decided if key in rows}
    numbers = {
        key: array if key in FRAMES else as_numbers(f"metric {metric.name}", key, array)
        for key, array in rows.items()
        if key not in labels
    }
    return {**numbers, **_coded(metric, labels, pos_label)} if labels else numbers


def _labelled(name: str, key: str, values: Any) -> pd.Index:
    """Classes, one per row, of which none is missing."""
    labels = pd.Index(np.asarray(values)).infer_objects()
    if labels.hasnans:
        row = int(labels.isna().argmax())
        raise InputError(f"metric {name}: {key} has missing values, first in row {row}")
    if labels.inferred_type == "floating" and (labels % 1 != 0).any():
        raise InputError(
            f"metric {name}: {key} has the value {labels[labels % 1 != 0][0]}, allowed: classes; "
            "compare probabilities with a threshold"
        )
    return labels


def _coded(metric: Metric, labels: dict[str, pd.Index], pos_label: Any) -> dict[str, Any]:
    """The labels as numbers of classes, and the names of the classes."""
    kinds = {key: item.inferred_type in CLASSES_OF_NUMBERS for key, item in labels.items()}
    if len(set(kinds.values())) > 1:
        raise InputError(
            f"metric {metric.name}: {' and '.join(labels)} are of different types, "
            f"{' and '.join(label.inferred_type for label in labels.values())}, allowed: the same"
        )
    lengths = [len(label) for label in labels.values()]
    codes, values = pd.factorize(np.concatenate(list(labels.values())), sort=True)
    classes = values.tolist()
    if len({str(label).strip().casefold() for label in classes}) < len(classes):
        raise InputError(
            f"metric {metric.name}: classes {', '.join(map(str, classes))} differ in spelling "
            "only, allowed: one spelling of each class"
        )
    if classes in ([0], [1]):
        codes, classes = codes + classes[0], [0, 1]
    elif len(classes) == 1 and type(pos_label) is type(classes[0]):  # the other has no rows
        positive = classes[0] == pos_label
        other = f"other than {pos_label}" if positive else classes[0]
        codes, classes = codes + positive, [other, pos_label]
    if pos_label is not None and (pos_label not in classes or len(classes) > 2):
        raise InputError(
            f"metric {metric.name}: pos_label {pos_label!r}, allowed: one of two classes, here "
            f"{', '.join(map(str, classes))}"
        )
    if metric.definition.binary and len(classes) != 2:
        raise InputError(f"metric {metric.name}: {len(classes)} classes, defined for two")
    numbers = pd.to_numeric(pd.Series(classes, dtype=object), errors="coerce")  # also of "2"
    unclear = pos_label is None and numbers.notna().all() and 1 not in numbers.iloc[-1:].tolist()
    if metric.definition.binary and unclear:
        raise InputError(
            f"metric {metric.name}: classes {classes[0]} and {classes[1]}, allowed: 1 and a "
            "smaller number, or pos_label, the positive one"
        )
    if pos_label is not None and pos_label == classes[0]:
        codes, classes = 1 - codes, classes[::-1]
    parts = np.split(codes, np.cumsum(lengths)[:-1])
    return {**dict(zip(labels, parts, strict=True)), "classes": tuple(map(str, classes))}


def _weighted(metric: Metric, arrays: dict[str, Any], weights: Any) -> Metric:
    """The metric with weights among its arrays."""
    absent = [need for need in metric.needs if need not in arrays]
    if absent:
        raise InputError(f"metric {metric.name}: needs {', '.join(absent)}")
    if weights is None:
        return metric
    arrays[WEIGHTS] = as_weights(f"metric {metric.name}", weights)
    return metric.weighted()


def _values(metric: Metric, scores: dict[str, Score]) -> Value:
    if metric.aggregation in SEVERAL or set(scores) != {""}:
        return {
            group: nan if item.value is None else float(item.value)
            for group, item in scores.items()
        }
    score = scores[""]
    if not score.applies:
        raise InputError(f"metric {metric.name}: {score.note}")
    if score.value is None:
        raise InputError(f"metric {metric.name}: not defined for these rows: {score.note}")
    return float(score.value)
