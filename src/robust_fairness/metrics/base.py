"""What a metric is, how it is found by name, and how all of them are evaluated."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib import import_module
from inspect import Parameter, signature
from math import isfinite
from pkgutil import iter_modules
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.metrics.renamed import RENAMED
from robust_fairness.samples import Samples, groups_of, numbers_of, width_of

NOT_APPLICABLE = "not applicable: "
COLUMNS = ("attribute_columns", "given_columns")
MOST_GROUPS = 500  # of one attribute that are told one by one, or measured as columns
TRAINING = frozenset(("train_y", "train_group", "train_attributes"))

NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Score:
    """A metric's value.

    Attributes:
        value: the value; None where it is not defined.
        n: number of rows that it rests on.
        note: why the value is missing, or what it leaves out.
    """

    value: float | None
    n: int
    note: str = ""


@dataclass(frozen=True)
class Metric:
    """A pure function of arrays, with what selection and evaluation must know of it.

    Attributes:
        function: takes what its signature names (see ``evaluate``) and returns a ``Score``, or a
            dict from group name to ``Score``. Its keyword-only parameters are *options*, numbers
            with defaults.
        better: whether higher or lower values are better.
        task: the task that it is defined for.
        unshifted_only: whether it is computed on the test set as it is only, and not on shifted
            ones.
    """

    function: Callable[..., Any]
    better: Literal["higher", "lower"]
    task: Literal["classification", "regression", "any"]
    unshifted_only: bool = False

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arrays that it asks for."""
        return tuple(name for name, one in self._parameters if one.kind != Parameter.KEYWORD_ONLY)

    @property
    def options(self) -> dict[str, float]:
        """Its options with their values."""
        return {
            name: one.default
            for name, one in self._parameters
            if one.kind == Parameter.KEYWORD_ONLY
        }

    @property
    def _parameters(self) -> list[tuple[str, Parameter]]:
        return list(signature(self.function).parameters.items())


_METRICS: dict[str, Metric] = {}


def metric(
    better: Literal["higher", "lower"],
    task: Literal["classification", "regression", "any"] = "classification",
    unshifted_only: bool = False,
) -> Callable[[Function], Function]:
    """Register a function as a metric under its own name."""

    def register(function: Function) -> Function:
        _METRICS[function.__name__] = Metric(function, better, task, unshifted_only)
        return function

    return register


def declared(function: Callable[..., Any]) -> Metric:
    """The metric that a function under the decorator is."""
    return _METRICS[function.__name__]


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
    """The metric of that name, with the options that the name gives: ``accuracy_at(alpha=-0.5)``.

    Raises:
        InputError: no such metric or option (the message gives the nearest ones), or an option
            that is given twice or is no finite number.
    """
    plain, bracket, options = name.partition("(")
    if plain in RENAMED:
        raise InputError(f"metric {plain!r} is called {RENAMED[plain]!r} now")
    if plain not in metric_names():
        raise unknown_name("metric", plain, metric_names())
    found = _METRICS[plain]
    if not bracket:
        return found
    given = _parse_options(name, options, found.options)
    return replace(found, function=partial(found.function, **given))


def _parse_options(name: str, text: str, allowed: Mapping[str, float]) -> dict[str, float]:
    """The numbers of ``alpha=-0.5, beta=2)``, what follows the bracket of the metric ``name``."""
    plain = name.partition("(")[0]
    if not allowed:
        raise InputError(f"metric {name!r}: {plain} takes no options")
    usage = ", ".join(f"{option}={value:g}" for option, value in allowed.items())
    if not text.endswith(")"):
        raise InputError(f"metric {name!r} does not end in a bracket, allowed: {plain}({usage})")
    found: dict[str, float] = {}
    for part in text[:-1].split(","):
        option, _, number = part.strip().partition("=")
        if option not in allowed:
            raise unknown_name(f"option of metric {plain}", option, allowed)
        if option in found:
            raise InputError(f"metric {name!r} gives {option} twice, allowed: {plain}({usage})")
        if not NUMBER.fullmatch(number) or not isfinite(float(number)):
            raise InputError(f"metric {name!r}: {option} is {number!r}, allowed: a finite number")
        found[option] = float(number)
    return found


def evaluate(
    names: Sequence[str],
    samples: Samples,
    outputs: np.ndarray,
    per_row: Mapping[str, np.ndarray] | None = None,
    train: Samples | None = None,
    groupings: Sequence[Sequence[str]] = (),
) -> list[dict[str, Any]]:
    """Rows attribute, group, metric, value, n, note of every metric that applies.

    A metric is called with what its arguments name: ``y``, ``prediction`` (class index or
    outcome), ``outputs``, ``classes`` (names), ``attributes`` (the frame), ``train_y`` and
    ``train_attributes`` (of the training rows), any array of ``per_row``; and, once for every
    categorical attribute and every combination of ``groupings``, ``group`` (int64 ``[n]``),
    ``groups`` (names) and ``train_group``; or, once for every attribute, categorical or not, for
    the sensitive ones together and for every combination, ``attribute_columns`` and
    ``given_columns`` (numbers ``[n, columns]``); sensitive attributes come first. Rows whose
    attribute is missing are left out. A metric of another task gives one row without value that
    says so; one that asks for an array that is not there gives no row.

    Args:
        names: names of metrics, with their options.
        samples: the rows that were predicted.
        outputs: logits ``[n, classes]`` or outcomes ``[n, 1]``.
        per_row: further arrays ``[n, ...]`` by name.
        train: the rows that the model was trained on.
        groupings: combinations of categorical attributes, each an attribute of its own, called
            ``texture & digit_color``.

    Raises:
        InputError: no such metric or option, or a grouping names an attribute that does not exist
            or is continuous.
    """
    samples = _sensitive_first(samples)
    prediction = outputs.argmax(-1) if samples.classes else outputs[:, 0]
    arrays = {"y": samples.y, "prediction": prediction, "outputs": outputs, **(per_row or {})}
    asked = {argument for name in names for argument in find_metric(name).arguments}
    whole: dict[str, Any] = {"classes": samples.classes, "attributes": samples.attributes}
    offered = {*arrays, *whole, "group", "groups", *COLUMNS}
    if train is not None:
        whole |= {"train_y": train.y, "train_attributes": train.attributes}
        offered |= TRAINING
    # rows of arrays are taken, and wide ones made, only where a metric asks for them
    used = {name: array for name, array in arrays.items() if name in asked}
    grouped = by_attribute(
        used, samples.attributes, whole.get("train_y"), whole.get("train_attributes"), groupings
    )
    columns = by_columns(used, samples, groupings) if "attribute_columns" in asked else {}
    task = "classification" if samples.classes else "regression"
    rows = []
    for name in names:
        one = find_metric(name)
        if one.task not in (task, "any"):
            score = Score(None, len(samples), f"{NOT_APPLICABLE}a metric of {one.task}")
            rows += _rows(name, "", score)
        elif not offered.issuperset(one.arguments):
            continue
        elif not {"group", "attribute_columns"}.intersection(one.arguments):
            rows += _rows(name, "", _call(one, {**arrays, **whole}))
        else:
            found = grouped if "group" in one.arguments else columns
            for attribute, arguments in found.items():
                rows += _rows(name, attribute, _call(one, {**whole, **arguments}))
    return rows


def _sensitive_first(samples: Samples) -> Samples:
    """The sensitive attributes before the others: who shows one attribute shows the first."""
    names = dict.fromkeys([*samples.sensitive, *samples.attributes])
    return replace(samples, attributes=samples.attributes[list(names)])


def by_attribute(
    arrays: Mapping[str, np.ndarray],
    attributes: pd.DataFrame,
    train_y: np.ndarray | None = None,
    train_attributes: pd.DataFrame | None = None,
    groupings: Sequence[Sequence[str]] = (),
) -> dict[str, dict[str, Any]]:
    """What a metric of groups is called with, for every categorical attribute and combination.

    That is the arrays of the rows whose group is known, with ``group`` and ``groups``; and
    ``train_y`` and ``train_group`` of such training rows, where these are given. A number means
    the same group in both.

    Args:
        arrays: arrays ``[n, ...]`` by name.
        attributes: attributes of these rows.
        train_y: labels of the training rows ``[m]``.
        train_attributes: attributes of the training rows.
        groupings: combinations of categorical attributes.
    """
    together = pd.concat([attributes, train_attributes])
    alone = ((str(name),) for name in attributes.select_dtypes("category"))
    found = {}
    for columns in [*alone, *groupings]:
        groups = groups_of(together, columns)
        group, train_group = np.split(groups.index, [len(attributes)])
        rows = slice(None) if (group >= 0).all() else group >= 0  # a view where all are known
        arguments: dict[str, Any] = {name: array[rows] for name, array in arrays.items()}
        arguments |= {"group": group[group >= 0], "groups": groups.names}
        if train_y is not None:
            known = train_group >= 0
            arguments |= {"train_y": train_y[known], "train_group": train_group[known]}
        found[" & ".join(columns)] = arguments
    return found


def by_columns(
    arrays: Mapping[str, np.ndarray], samples: Samples, groupings: Sequence[Sequence[str]] = ()
) -> dict[str, dict[str, np.ndarray]]:
    """What a metric of attributes as numbers is called with, for every attribute.

    One of more than ``MOST_GROUPS`` categories is left out: it would take as many columns.

    Args:
        arrays: arrays ``[n, ...]`` by name.
        samples: the rows.
        groupings: combinations of attributes, beside each alone and the sensitive ones together.
    """
    numbers = {
        str(name): numbers_of(values)
        for name, values in samples.attributes.items()
        if width_of(values) <= MOST_GROUPS
    }
    given = numbers_of(samples.given_values())
    wanted = [*((name,) for name in numbers if name != samples.given), *map(tuple, groupings)]
    if len(samples.sensitive) > 1:
        wanted.append(samples.sensitive)
    found = {}
    for names in dict.fromkeys(wanted):
        if not numbers.keys() >= set(names):
            continue
        attribute = np.concatenate([numbers[name] for name in names], axis=1)
        known = ~np.isnan(attribute).any(axis=1) & ~np.isnan(given).any(axis=1)
        arguments = {name: array[known] for name, array in arrays.items()}
        arguments |= {"attribute_columns": attribute[known], "given_columns": given[known]}
        found[" & ".join(names)] = arguments
    return found


def _call(one: Metric, arguments: Mapping[str, Any]) -> Score | dict[str, Score]:
    result: Score | dict[str, Score] = one.function(
        **{name: arguments[name] for name in one.arguments}
    )
    return result


def _rows(name: str, attribute: str, scores: Score | dict[str, Score]) -> list[dict[str, Any]]:
    named = scores if isinstance(scores, dict) else {"": scores}
    if len(named) > MOST_GROUPS:
        rows = sum(score.n for score in named.values())
        note = f"{NOT_APPLICABLE}{len(named):,} groups, of at most {MOST_GROUPS} each is told"
        named = {"": Score(None, rows, note)}
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
