"""Metrics by name: a quantity in a form, a gap or a measure, of a source or of arrays.

``accuracy``, ``worst_group_accuracy``, ``recall_at_majority_gap(k=4)``.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core import registry
from robust_fairness.core.arrays import as_numbers, as_rows, as_weights, require_same_rows
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.frames import rows_of as rows_of_frame
from robust_fairness.core.frames import sensitive_columns
from robust_fairness.numbers.counts import Counts, Rows, Source
from robust_fairness.numbers.gaps import FORMS, OVERALL, Form, Gap
from robust_fairness.numbers.groups import as_groups, as_groups_of_both
from robust_fairness.numbers.quantities import (
    DEFINITIONS,
    GROUPED,
    WEIGHTS,
    Array,
    Arrays,
    Better,
    Definition,
    NotApplicable,
    Options,
    Quantity,
    Score,
    Task,
)

TWO = 2
VECTORS = ("y_true", "y_pred", "y_score", "y_train", "y_standard", WEIGHTS)  # arrays [n]
CLASSES_OF_NUMBERS = ("integer", "floating", "boolean")  # kinds of pandas
TRAIN = "sensitive_features_train"
OF_TRAINING = (TRAIN, "y_train", "attributes_train")
FRAMES = ("attributes", "attributes_train")  # columns of any kind
MOST_GROUPS = 500  # of one attribute, each of which has a row or a column
SEVERAL = ("by_group", "by_subgroup")  # aggregations with a value per group

Value = float | dict[str, float]


OF_COUNTS = frozenset(("y_true", "y_pred", "classes", GROUPED))  # arrays that are counted


@dataclass(frozen=True)
class Metric:
    """A quantity in a form, a gap or a named measure, with the values of all its options.

    ``name`` is as it is written in configuration and tables.
    """

    name: str
    definition: Definition
    form: Form
    options: Options

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The metric as a function of arrays, see ``names.metric_function``."""
        return as_function(self)

    @cached_property
    def quantity(self) -> str:
        """Name of the quantity, or of the measure."""
        return self.definition.name

    @cached_property
    def aggregation(self) -> str:
        """Name of the form; empty for all rows together and for a measure."""
        return self.form.name

    @cached_property
    def is_measure(self) -> bool:
        """Whether it is a named measure or gap."""
        return not isinstance(self.definition, Quantity)

    @cached_property
    def is_mean(self) -> bool:
        """Whether it is made of means of row values of all rows or of groups."""
        return isinstance(self.definition, Quantity) and self.definition.rows is not None

    @cached_property
    def is_signed(self) -> bool:
        """Whether it is made of values on either side of 0, of which neither end is better."""
        return isinstance(self.definition, Quantity) and self.definition.signed

    @cached_property
    def gap(self) -> Gap | None:
        """The gap between groups that it is, named or a form of a mean; None of others."""
        definition = self.definition
        if isinstance(definition, Gap):
            return definition
        if self.form.how is None or self.options or not isinstance(definition, Quantity):
            return None
        if definition.rows is None:
            return None
        return Gap(
            name=self.name, function=definition.function, better=self.better, how=self.form.how,
            of=(definition,), binary=definition.binary,
        )  # fmt: skip

    @cached_property
    def better(self) -> Better:
        """Whether higher or lower values are better."""
        return self.form.better or self.definition.better

    @cached_property
    def task(self) -> Task:
        """The task that it is defined for."""
        return "classification" if self.form.of_classes else self.definition.task

    @property
    def unshifted_only(self) -> bool:
        """Whether it is computed on the unshifted test set only."""
        return self.definition.unshifted_only

    @cached_property
    def needs(self) -> tuple[str, ...]:
        """Names of the arrays that it is computed from."""
        return tuple(dict.fromkeys((*self.definition.needs, *self.form.needs)))

    @cached_property
    def is_counted(self) -> bool:
        """Whether it is a function of counts by group, class and decision."""
        definition = self.definition
        if not OF_COUNTS.issuperset(self.needs) or self.task == "regression":
            return False
        if isinstance(definition, Quantity) and definition.by_groups is not None:
            return definition.of_counts is not None
        return definition.takes_weights

    def of(self, source: Source) -> dict[str, Score]:
        """Scores by group from rows or counts; ``""`` is a score of all groups."""
        if self.definition.binary and len(source.classes) not in (0, TWO):
            reason = f"{len(source.classes)} classes, defined for two"
            return {"": NotApplicable(reason).score()}
        if isinstance(self.definition, Quantity):
            return self.form.scores(self.definition, source, self.options)
        if isinstance(self.definition, Gap):
            return {"": self.definition.value(source)}
        measure: Any = self.definition
        if isinstance(source, Counts) and measure.of_counts is not None:
            result = measure.of_counts(source)
        else:
            result = source.measured(measure, self.options)
        return result if isinstance(result, dict) else {"": result}

    def scores(self, arrays: Arrays) -> dict[str, Score]:
        """Scores by group from the arrays that it needs, weighted if ``sample_weight`` is one."""
        return self.of(Rows(arrays, arrays.get(GROUPED)))


def rows_of(name: str, attribute: str, scores: Mapping[str, Score]) -> list[dict[str, Any]]:
    """Rows of the scores of a metric by group; too many groups are not listed."""
    if len(scores) > MOST_GROUPS:
        rows = sum(score.n for score in scores.values())
        reason = f"{len(scores):,} groups, at most {MOST_GROUPS} are listed"
        scores = {"": NotApplicable(reason).score(rows)}
    return [
        {"attribute": attribute, "group": group, "metric": name, **asdict(score)}
        for group, score in scores.items()
    ]


def as_function(metric: Metric) -> Callable[..., Value]:
    """A metric as a function of arrays, see ``names.metric_function``."""
    name = metric.name

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
        given = {"y_true": y_true, second: y_pred, WEIGHTS: sample_weight, **arrays}
        given |= {GROUPED: sensitive_features, TRAIN: given.pop(TRAIN, None)}
        given = {key: values for key, values in given.items() if values is not None}
        rows = {key: _rows(name, key, values) for key, values in given.items()}
        tables = {key: table for key, table in rows.items() if isinstance(table, pd.DataFrame)}
        beside = rows | {key: rows_of_frame(given[key], table) for key, table in tables.items()}
        for of_training in (False, True):
            same = {key: beside[key] for key in beside if (key in OF_TRAINING) == of_training}
            require_same_rows(f"metric {name}", same)
        labels = {key: rows.pop(key) for key in (GROUPED, TRAIN) if key in rows}
        weights = rows.pop(WEIGHTS, None)
        encoded: dict[str, Any] = _encoded(metric, rows, pos_label)
        groups = labels.values()
        made = as_groups_of_both(*groups) if len(groups) > 1 else map(as_groups, groups)
        encoded |= zip(labels, made, strict=True)
        absent = [need for need in metric.needs if need not in encoded]
        if absent:
            raise InputError(f"metric {name}: needs {', '.join(absent)}")
        if weights is not None:
            if not metric.definition.takes_weights:
                raise InputError(f"{metric.quantity}: takes no sample_weight")
            encoded[WEIGHTS] = as_weights(f"metric {name}", weights)
        return _values(metric, metric.of(Rows(encoded, encoded.get(GROUPED))))

    computed.__name__ = computed.__qualname__ = name
    computed.__doc__ = metric.definition.function.__doc__
    return computed


def _rows(name: str, key: str, values: Any) -> Array | pd.Series | pd.DataFrame:
    """Values with a row for each, a pandas series as it is, attributes as a frame."""
    if key in FRAMES:
        return pd.DataFrame(values)
    if key in (GROUPED, TRAIN):
        if isinstance(values, list):
            values = np.array(values, dtype=object)  # 1 and "1" are two labels
        return as_rows(values) if np.ndim(values) == 1 else sensitive_columns(values)
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


def metric_names() -> list[str]:
    """Names of all quantities and named measures, sorted.

    Those of the package, of a project's ``plugins/metrics/*.py`` and of installed packages.
    """
    _load(registry.plugins_folder().absolute())
    return sorted(DEFINITIONS)


@cache
def _load(folder: Path) -> None:
    """Import all plug-ins, once for each folder of a project's own."""
    registry.load("metric")


def _all_names() -> dict[str, tuple[Definition, Form]]:
    """Every metric by its name without options; a measure takes precedence."""
    quantities = [DEFINITIONS[name] for name in metric_names()]
    result = {
        form.pattern.format(quantity.name): (quantity, form)
        for quantity in quantities
        if isinstance(quantity, Quantity)
        for form in FORMS
        if not (form.of_classes and quantity.task == "regression")
        and (form.signed or not quantity.signed)
    }
    return result | {quantity.name: (quantity, OVERALL) for quantity in quantities}


def all_metrics() -> list[Metric]:
    """All metrics with their default options; measures, and all forms of all quantities."""
    return [Metric(name, item, form, item.options) for name, (item, form) in _all_names().items()]


@cache
def find_metric(name: str) -> Metric:
    """The metric of that name, with the options in its brackets: ``accuracy_at(alpha=-0.5)``.

    Raises:
        InputError: no such metric or option (the message has the nearest ones), or an option that
            appears twice or is not a finite number.
    """
    plain, bracket, text = name.partition("(")
    known = _all_names()
    if plain not in known:
        raise unknown_name("metric", plain, known)
    definition, form = known[plain]
    changed = _parse_options(name, text, definition.options) if bracket else {}
    return Metric(name, definition, form, {**definition.options, **changed})


def _parse_options(name: str, text: str, allowed: Mapping[str, float]) -> dict[str, float]:
    """The numbers of ``alpha=-0.5, beta=2)``, which follows the bracket of the metric ``name``."""
    plain = name.partition("(")[0]
    if not allowed:
        raise InputError(f"metric {name!r}: {plain} takes no options")
    usage = ", ".join(f"{option}={value:g}" for option, value in allowed.items())
    if not text.endswith(")"):
        raise InputError(
            f"metric {name!r} does not end in a parenthesis, allowed: {plain}({usage})"
        )
    result: dict[str, float] = {}
    for part in text[:-1].split(","):
        option, _, number = part.strip().partition("=")
        if option not in allowed:
            raise unknown_name(f"option of metric {plain}", option, allowed)
        if option in result:
            raise InputError(f"metric {name!r} has {option} twice, allowed: {plain}({usage})")
        result[option] = _number(name, option, number)
    return result


def _number(name: str, option: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number) or "_" in text:
        raise InputError(f"metric {name!r}: {option} is {text!r}, allowed: a finite number")
    return number


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
    return find_metric(name).function


def parse_metrics(names: pd.Series) -> pd.DataFrame:
    """What the metrics of a column are, row by row.

    Returns:
        Columns quantity, aggregation, better, and one per option; a name that is no metric is a
        quantity without aggregation.
    """
    facts_of: dict[str, dict[str, object]] = {}
    for name in names.dropna().unique():
        try:
            metric = find_metric(name)
        except InputError:
            facts_of[name] = {"quantity": name, "aggregation": "", "better": ""}
            continue
        facts = {"quantity": metric.quantity, "aggregation": metric.aggregation}
        facts_of[name] = {**facts, "better": metric.better, **metric.options}
    rows = [facts_of.get(name, {}) for name in names]
    options = [key for facts in facts_of.values() for key in facts]
    columns = dict.fromkeys(["quantity", "aggregation", "better", *options])
    return pd.DataFrame(rows, index=names.index, columns=list(columns))
