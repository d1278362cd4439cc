"""Metrics by name: ``accuracy``, ``worst_group_accuracy``, ``recall_at_majority_gap(k=4)``."""

from collections.abc import Callable, Mapping
from functools import cache
from math import isfinite
from pathlib import Path

import pandas as pd

from robust_fairness.core import registry
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.numbers.forms import FORMS, OVERALL, Form
from robust_fairness.numbers.metrics import Metric, Value
from robust_fairness.numbers.quantities import DEFINITIONS, Definition, Quantity


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
    facts_of = {name: _described(name) for name in names.dropna().unique()}
    rows = [facts_of.get(name, {}) for name in names]
    options = [key for facts in facts_of.values() for key in facts]
    columns = dict.fromkeys(["quantity", "aggregation", "better", *options])
    return pd.DataFrame(rows, index=names.index, columns=list(columns))


def _described(name: str) -> dict[str, object]:
    try:
        metric = find_metric(name)
    except InputError:
        return {"quantity": name, "aggregation": "", "better": ""}
    facts = {
        "quantity": metric.quantity,
        "aggregation": metric.aggregation,
        "better": metric.better,
    }
    return {**facts, **metric.options}
