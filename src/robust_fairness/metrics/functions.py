"""Every metric as a function of arrays, with scikit-learn's and fairlearn's signature."""

from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError
from robust_fairness.metrics.base import Array, Score
from robust_fairness.metrics.find import Metric, find_metric
from robust_fairness.metrics.groups import as_groups

TWO = 2
NUMBERS = ("y_score", "outputs", "embedding")  # arrays that are no classes
SEVERAL = ("by_group", "by_subgroup")  # aggregations with a value per group

Value = float | dict[str, float]


def metric_function(name: str) -> Callable[..., Value]:
    """The metric of that name as a function.

    The function takes:

    - ``y_true``, ``y_pred``: classes (of two classes, 1, True or the last one in order is positive
      unless ``pos_label`` says otherwise) or outcomes ``[n]``; metrics of probabilities take that
      of the positive class in the place of ``y_pred``;
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
        given = {"y_true": y_true, second: y_pred, **arrays}
        found = {key: np.asarray(array) for key, array in given.items()}
        _require_lengths(name, found, sensitive_features, sample_weight)
        encoded: dict[str, Any] = _encoded(metric, found, pos_label)
        if sensitive_features is not None:
            encoded["sensitive_features"] = as_groups(_labels(sensitive_features))
        scores = _weighted(metric, encoded, sample_weight).scores(encoded)
        return _values(metric, scores)

    computed.__name__ = computed.__qualname__ = name
    computed.__doc__ = metric.definition.function.__doc__
    return computed


def _require_lengths(name: str, arrays: dict[str, Array], groups: Any, weights: Any) -> None:
    lengths = {key: len(array) for key, array in arrays.items()}
    lengths |= {
        key: len(values)
        for key, values in (("sensitive_features", groups), ("sample_weight", weights))
        if values is not None
    }
    if len(set(lengths.values())) > 1:
        raise InputError(f"metric {name}: arrays differ in length: {lengths}")


def _encoded(metric: Metric, arrays: dict[str, Array], pos_label: Any) -> dict[str, Any]:
    """The arrays with classes as numbers, the positive one of two classes as 1."""
    if metric.task == "regression":
        return dict(arrays)
    labels = {key: array for key, array in arrays.items() if key in ("y_true", "y_pred")}
    classes = np.unique(np.concatenate(list(labels.values()))).tolist()
    if classes in ([0], [1], [False], [True]):
        classes = [0, 1]
    if pos_label is not None:
        if pos_label not in classes or len(classes) > TWO:
            raise InputError(
                f"metric {metric.name}: pos_label {pos_label!r}, allowed: one of two classes, here "
                f"{', '.join(map(str, classes))}"
            )
        classes.sort(key=lambda one: one == pos_label)
    if metric.definition.binary and len(classes) != TWO:
        raise InputError(f"metric {metric.name}: {len(classes)} classes, defined for two")
    codes = {key: pd.Index(classes).get_indexer(pd.Index(array)) for key, array in labels.items()}
    return {**arrays, **codes, "classes": tuple(map(str, classes))}


def _labels(sensitive_features: Any) -> Any:
    """One label per row; those of several columns are joined."""
    frame = pd.DataFrame(sensitive_features).reset_index(drop=True)
    if frame.shape[1] == 1:
        return frame.iloc[:, 0]
    if frame.isna().any(axis=None):
        raise InputError("sensitive_features: a row has a missing value")
    return frame.astype(str).agg(" & ".join, axis=1)


def _weighted(metric: Metric, arrays: dict[str, Any], weights: Any) -> Metric:
    """The metric with weights among its arrays."""
    absent = [one for one in metric.needs if one not in arrays]
    if absent:
        raise InputError(f"metric {metric.name}: needs {', '.join(absent)}")
    if weights is None:
        return metric
    arrays["sample_weight"] = np.asarray(weights, dtype=np.float64)
    return metric.weighted()


def _values(metric: Metric, scores: dict[str, Score]) -> Value:
    if metric.aggregation in SEVERAL or set(scores) != {""}:
        return {
            group: nan if one.value is None else float(one.value) for group, one in scores.items()
        }
    score = scores[""]
    if score.value is None:
        raise InputError(f"metric {metric.name}: not defined for these rows: {score.note}")
    return float(score.value)
