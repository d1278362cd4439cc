"""Metrics as functions of counts by group, class and decision."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robust_fairness.inference.counts import Counts
from robust_fairness.metrics.base import (
    GROUPED,
    NO_ROWS,
    NO_WEIGHT,
    WEIGHTS,
    Quantity,
    RowValues,
    Score,
    Undefined,
    as_score,
)
from robust_fairness.metrics.find import Metric, is_mean
from robust_fairness.metrics.gaps import Gap
from robust_fairness.samples import Groups

NEEDS = frozenset(("y_true", "y_pred", "classes", "sensitive_features"))


def in_counts(metric: Metric) -> bool:
    """Whether a metric is a function of counts by group, class and decision."""
    definition = metric.definition
    if not NEEDS.issuperset(metric.needs) or metric.task == "regression":
        return False
    if isinstance(definition, Quantity) and definition.by_groups is not None:
        return False
    return is_mean(definition) or definition.takes_weights


@dataclass(frozen=True, kw_only=True)
class CountedQuantity(Quantity):
    """A quantity of counts, which aggregations take of groups."""

    counts: Counts

    def by_group(
        self, arrays: Mapping[str, Any], groups: Groups, options: Mapping[str, float]
    ) -> dict[str, Score]:
        """The score of every group; ``groups.index`` are those that the cells' belong to."""
        return self._scores(self.counts.merged(groups.index, groups.names), options)

    def scores(self, arrays: Mapping[str, Any], options: Mapping[str, float]) -> dict[str, Score]:
        """The score of all rows."""
        return self._scores(self.counts.everyone, options)

    def _scores(self, counts: Counts, options: Mapping[str, float]) -> dict[str, Score]:
        rows_of = counts.known()
        if self.rows is None:
            return {
                name: _called(self, counts, number, options) if count else _none(0)
                for number, (name, count) in enumerate(zip(counts.groups, rows_of, strict=True))
            }
        try:
            rows = self.rows(*counts.grid(), **options)
        except Undefined as reason:
            return {
                name: reason.score(int(count)) if count else _none(0)
                for name, count in zip(counts.groups, rows_of, strict=True)
            }
        means = counts.means(np.asarray(rows.values, np.float64), rows.among)
        return {
            name: Score(
                float(value), int(n), variance=None if np.isnan(variance) else float(variance)
            )
            if np.isfinite(value)
            else _none(int(count), _why(rows, counts, int(n), int(count)))
            for name, value, variance, n, count in zip(
                counts.groups, means.value, means.variance, means.n, rows_of, strict=True
            )
        }


def _why(rows: RowValues, counts: Counts, n: int, count: int) -> str:
    """Why a group has no mean."""
    if not count:
        return NO_ROWS
    return NO_WEIGHT if n else rows.none.format(*counts.classes)


def _none(n: int, note: str = NO_ROWS) -> Score:
    return Score(None, n, note)


def _called(
    definition: Quantity, counts: Counts, group: int, options: Mapping[str, float]
) -> Score:
    """A quantity that is no mean, of the rows of a group."""
    y, prediction = np.nonzero(counts.n[group])
    weights = {WEIGHTS: counts.weight[group][y, prediction]}
    n = int(counts.n[group].sum())
    try:
        score = definition.function(y, prediction, **weights, **options)
    except Undefined as reason:
        return reason.score(n)
    return as_score(score, n)


def scores_of(metric: Metric, counts: Counts) -> dict[str, Score]:
    """Scores of a metric ``in_counts`` by group; ``""`` is one of all groups."""
    definition = metric.definition
    arrays: dict[str, Any] = {GROUPED: Groups.named(np.arange(len(counts.groups)), counts.groups)}
    if isinstance(definition, Quantity):
        counted = CountedQuantity(**vars(definition), counts=counts)
        return metric.how.function(counted, arrays, metric.options)
    if isinstance(definition, Gap):
        of = tuple(CountedQuantity(**vars(quantity), counts=counts) for quantity in definition.of)
        return replace(definition, of=of).scores(arrays, metric.options)
    group, y, prediction = np.nonzero(counts.n[:-1])
    arrays = {
        "y_true": y, "y_pred": prediction, "sensitive_features": Groups.named(group, counts.groups),
        "classes": counts.classes, WEIGHTS: counts.weight[:-1][group, y, prediction],
    }  # fmt: skip
    return metric.weighted().scores(arrays)
