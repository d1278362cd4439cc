"""What a metric is, how it is found by name, and how all of them are evaluated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from robust_fairness.errors import unknown_name
from robust_fairness.samples import Samples, groups_of

NOT_APPLICABLE = "not applicable: "

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Score:
    """A metric's value.

    Attributes:
        value: the value; None where it is not defined.
        n: number of rows that it rests on.
        note: why the value is missing.
    """

    value: float | None
    n: int
    note: str = ""


@dataclass(frozen=True)
class Metric:
    """A pure function of arrays, with what selection and evaluation must know of it.

    Attributes:
        function: takes what its signature names (see ``evaluate``) and returns a ``Score``, or a
            dict from group name to ``Score``.
        better: whether higher or lower values are better.
        task: the task that it is defined for.
    """

    function: Callable[..., Any]
    better: Literal["higher", "lower"]
    task: Literal["classification", "regression", "any"]

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arrays that it asks for."""
        return tuple(signature(self.function).parameters)


_METRICS: dict[str, Metric] = {}


def metric(
    better: Literal["higher", "lower"],
    task: Literal["classification", "regression", "any"] = "classification",
) -> Callable[[Function], Function]:
    """Register a function as a metric under its own name."""

    def register(function: Function) -> Function:
        _METRICS[function.__name__] = Metric(function, better, task)
        return function

    return register


@cache
def _scan() -> None:
    room = import_module("robust_fairness.metrics")
    for module in iter_modules(room.__path__):
        import_module(f"robust_fairness.metrics.{module.name}")


def metric_names() -> list[str]:
    """Names of all metrics, sorted."""
    _scan()
    return sorted(_METRICS)


def find_metric(name: str) -> Metric:
    """The metric of that name.

    Raises:
        InputError: no such name; the message gives the nearest ones.
    """
    if name not in metric_names():
        raise unknown_name("metric", name, metric_names())
    return _METRICS[name]


def evaluate(
    names: Sequence[str],
    samples: Samples,
    outputs: np.ndarray,
    per_row: Mapping[str, np.ndarray] | None = None,
) -> list[dict[str, Any]]:
    """Rows attribute, group, metric, value, n, note of every metric that applies.

    A metric is called with what its arguments name: ``y``, ``prediction`` (class index or
    outcome), ``outputs``, ``classes`` (names), ``attributes`` (the frame), any array of
    ``per_row``; and, once for every categorical attribute, ``group`` (int64 ``[n]``) and
    ``groups`` (names). Rows whose attribute is missing are left out. A metric of another task
    gives one row without value that says so; one that asks for an array of rows that is not
    there gives no row.

    Args:
        names: names of metrics.
        samples: the rows that were predicted.
        outputs: logits ``[n, classes]`` or outcomes ``[n, 1]``.
        per_row: further arrays ``[n]`` by name.
    """
    prediction = outputs.argmax(-1) if samples.classes else outputs[:, 0]
    arrays = {"y": samples.y, "prediction": prediction, "outputs": outputs, **(per_row or {})}
    whole = {"classes": samples.classes, "attributes": samples.attributes}
    task = "classification" if samples.classes else "regression"
    rows = []
    for name in names:
        one = find_metric(name)
        if one.task not in (task, "any"):
            score = Score(None, len(samples), f"{NOT_APPLICABLE}a metric of {one.task}")
            rows += _rows(name, "", score)
        elif not set(one.arguments) <= {*arrays, *whole, "group", "groups"}:
            continue
        elif "group" not in one.arguments:
            rows += _rows(name, "", _call(one, {**arrays, **whole}))
        else:
            for attribute, grouped in _by_attribute(samples.attributes, arrays):
                rows += _rows(name, attribute, _call(one, {**grouped, **whole}))
    return rows


def _by_attribute(
    attributes: pd.DataFrame, arrays: Mapping[str, np.ndarray]
) -> list[tuple[str, dict[str, Any]]]:
    """For every categorical attribute the rows where it is known, with ``group`` and ``groups``."""
    found = []
    for attribute in map(str, attributes.select_dtypes("category").columns):
        groups = groups_of(attributes, [attribute])
        known = groups.index >= 0
        grouped: dict[str, Any] = {name: array[known] for name, array in arrays.items()}
        grouped |= {"group": groups.index[known], "groups": groups.names}
        found.append((attribute, grouped))
    return found


def _call(one: Metric, arguments: Mapping[str, Any]) -> Score | dict[str, Score]:
    result: Score | dict[str, Score] = one.function(
        **{name: arguments[name] for name in one.arguments}
    )
    return result


def _rows(name: str, attribute: str, scores: Score | dict[str, Score]) -> list[dict[str, Any]]:
    named = scores if isinstance(scores, dict) else {"": scores}
    return [
        {
            "attribute": attribute,
            "group": group,
            "metric": name,
            "value": score.value,
            "n": score.n,
            "note": score.note,
        }
        for group, score in named.items()
    ]
