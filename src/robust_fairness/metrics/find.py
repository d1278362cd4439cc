"""Metrics by name: ``accuracy``, ``worst_group_accuracy``, ``recall_at_majority_gap(k=4)``."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite
from pathlib import Path
from typing import TypeGuard

import pandas as pd

from robust_fairness.core import registry
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.metrics.aggregations import AGGREGATIONS, OVERALL, Aggregation
from robust_fairness.metrics.base import (
    DEFINITIONS,
    Arrays,
    Better,
    Definition,
    Options,
    Quantity,
    Score,
    Task,
)
from robust_fairness.metrics.gaps import Gap


@dataclass(frozen=True)
class Metric:
    """A quantity with an aggregation, or a named measure, with the values of all its options.

    ``name`` is as it is written in configuration and tables.
    """

    name: str
    definition: Definition
    how: Aggregation
    options: Options

    @property
    def quantity(self) -> str:
        """Name of the quantity, or of the measure."""
        return self.definition.name

    @property
    def aggregation(self) -> str:
        """Name of the aggregation; empty for all rows together and for a measure."""
        return self.how.name

    @property
    def is_measure(self) -> bool:
        """Whether it is a named measure or gap."""
        return not isinstance(self.definition, Quantity)

    @property
    def gap(self) -> Gap | None:
        """The gap between groups that it is, named or an aggregation of a mean; None of others."""
        definition = self.definition
        if isinstance(definition, Gap):
            return definition
        if self.how.how is None or self.options or not is_mean(definition):
            return None
        return Gap(
            name=self.name, function=definition.function, better=self.better, how=self.how.how,
            of=(definition,), binary=definition.binary,
        )  # fmt: skip

    @property
    def better(self) -> Better:
        """Whether higher or lower values are better."""
        return self.how.better or self.definition.better

    def weighted(self) -> "Metric":
        """The same, which also needs the array ``sample_weight``."""
        return replace(self, definition=self.definition.weighted())

    @property
    def task(self) -> Task:
        """The task that it is defined for."""
        return "classification" if self.how.of_classes else self.definition.task

    @property
    def unshifted_only(self) -> bool:
        """Whether it is computed on the unshifted test set only."""
        return self.definition.unshifted_only

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the arrays that it is computed from."""
        return tuple(dict.fromkeys((*self.definition.needs, *self.how.needs)))

    def scores(self, arrays: Arrays) -> dict[str, Score]:
        """Scores by group from the arrays that it needs; ``""`` is a score of all groups."""
        return self.how.function(self.definition, arrays, self.options)


def is_mean(definition: Definition) -> TypeGuard[Quantity]:
    """Whether a metric is the mean of row values."""
    return isinstance(definition, Quantity) and definition.rows is not None


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


def _all_names() -> dict[str, tuple[Definition, Aggregation]]:
    """Every metric by its name without options; a measure takes precedence."""
    quantities = [DEFINITIONS[name] for name in metric_names()]
    result = {
        how.form.format(quantity.name): (quantity, how)
        for quantity in quantities
        if isinstance(quantity, Quantity)
        for how in AGGREGATIONS
        if not (how.of_classes and quantity.task == "regression")
    }
    return result | {quantity.name: (quantity, OVERALL) for quantity in quantities}


def all_metrics() -> list[Metric]:
    """All metrics with their default options; measures, and all aggregations of all quantities."""
    return [Metric(name, item, how, item.options) for name, (item, how) in _all_names().items()]


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
    definition, how = known[plain]
    changed = _parse_options(name, text, definition.options) if bracket else {}
    return Metric(name, definition, how, {**definition.options, **changed})


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
