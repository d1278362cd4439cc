"""Gaps between groups, each declared once: the quantities that it compares, and how.

Everything that is said about a gap follows from its declaration: its value from the values of its
quantities by group; its interval, its tests and its bounds from counts (``inference.counts``); its
parts from a decomposition. A gap of a plug-in therefore works in runs, audits, monitors and gates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import numpy as np

from robust_fairness.inference.counts import Counts
from robust_fairness.metrics.aggregations import How, difference, ratio
from robust_fairness.metrics.base import (
    DEFINITIONS,
    GROUPED,
    WEIGHTS,
    Array,
    Arrays,
    Definition,
    NotApplicable,
    Options,
    Quantity,
    Score,
    Weights,
    registered,
)
from robust_fairness.metrics.groups import as_groups, missing


@dataclass(frozen=True, kw_only=True)
class Gap(Definition):
    """A gap between groups.

    Attributes:
        of: the quantities that it compares.
        how: ``largest`` difference of two groups in any quantity, ``sum`` of the differences, the
            lowest ``ratio``; of aggregations also ``worst`` and ``worst_gap``.
        groups: number of groups that it is defined for; None for any number.
    """

    of: tuple[Quantity, ...]
    how: How = "largest"
    groups: int | None = None

    @property
    def takes_weights(self) -> bool:
        return all(item.takes_weights for item in self.of)

    def weighted(self) -> "Gap":
        return replace(
            self,
            needs=(*self.needs, WEIGHTS),
            of=tuple(item.weighted() for item in self.of),  # type: ignore[misc]
        )

    def scores(self, arrays: Arrays, options: Options) -> dict[str, Score]:
        """The gap of all groups, under the name ``""``."""
        groups = arrays[GROUPED]
        if self.groups not in (None, len(groups.names)):
            reason = f"{len(groups.names)} groups, defined for two"
            return {"": NotApplicable(reason).score()}
        if self.groups and (absent := missing(groups.counts, groups.names)):
            return {"": absent}
        compare = ratio if self.how == "ratio" else difference
        parts = [compare(item.by_group(arrays, groups, item.options)) for item in self.of]
        undefined = [part for part in parts if part.value is None]
        if undefined:
            return {"": undefined[0]}
        if self.how == "sum":
            total = sum(part.value or 0.0 for part in parts)
            return {"": Score(total, sum(part.n for part in parts))}
        worst: Callable[..., Score] = min if self.how == "ratio" else max
        return {"": worst(parts, key=lambda part: part.value or 0.0)}


def row_values(quantity: Quantity, counts: Counts) -> tuple[Array, Array | None]:
    """Row values of a mean by class and decision, and the rows that it is taken among."""
    assert quantity.rows is not None
    rows = quantity.rows(*counts.grid(), **quantity.options)
    return np.asarray(rows.values, np.float64), rows.among


def gap(
    of: Sequence[Callable[..., Any]], *, how: How = "largest", groups: int | None = None
) -> Callable[[Callable[[], None]], Callable[..., Score]]:
    """Declare a gap between groups: its name and its meaning are those of an empty function.

    Args:
        of: functions declared by ``@quantity`` that are means of row values.
        how: see ``Gap``.
        groups: likewise.

    Returns:
        A decorator. The function that it makes takes ``y_true``, ``y_pred``,
        ``sensitive_features`` (one label per row, or ``Groups``) and ``sample_weight``, and returns
        a ``Score``.

    >>> from robust_fairness.metrics.classification import precision
    >>> @gap(of=[precision])
    ... def precision_gap() -> None:
    ...     "Largest difference of precisions between two groups."
    >>> y_true, y_pred, sex = np.array([1, 0, 1, 1]), np.array([1, 1, 1, 1]), list("aabb")
    >>> precision_gap(y_true, y_pred, sensitive_features=sex).value
    0.5
    """
    quantities = [DEFINITIONS[function.__name__] for function in of]

    def declared(meaning: Callable[[], None]) -> Callable[..., Score]:
        @wraps(meaning)
        def computed(
            y_true: Array, y_pred: Array, *, sensitive_features: Any, sample_weight: Weights = None
        ) -> Score:
            arrays = {"y_true": y_true, "y_pred": y_pred, GROUPED: as_groups(sensitive_features)}
            of_rows: Definition = definition
            if sample_weight is not None:
                arrays[WEIGHTS], of_rows = sample_weight, definition.weighted()
            return of_rows.scores(arrays, {})[""]

        definition = Gap(
            name=meaning.__name__, function=computed, how=how, groups=groups,
            better="higher" if how == "ratio" else "lower", needs=("y_true", "y_pred", GROUPED),
            binary=any(item.binary for item in quantities),
            of=tuple(item for item in quantities if isinstance(item, Quantity)),
        )  # fmt: skip
        registered(definition)
        return computed

    return declared
