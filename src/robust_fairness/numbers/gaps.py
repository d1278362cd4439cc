"""Gaps between groups, each declared once: the quantities that it compares, and how.

Everything that is said about a gap follows from its declaration: its value, its interval, its tests
and its bounds from the values of its quantities by group, its parts from a decomposition. A gap of
a plug-in therefore works in runs, audits, monitors and gates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any

from robust_fairness.core.errors import InputError
from robust_fairness.numbers.counts import Counts, Source
from robust_fairness.numbers.forms import How, difference, missing, ratio
from robust_fairness.numbers.groups import Groups, as_groups, everyone
from robust_fairness.numbers.quantities import (
    DEFINITIONS,
    GROUPED,
    WEIGHTS,
    Array,
    Definition,
    Means,
    Measure,
    NotApplicable,
    Quantity,
    Score,
    Undefined,
    Weights,
    registered,
)
from robust_fairness.numbers.rows import Rows


@dataclass(frozen=True, kw_only=True)
class Gap(Definition):
    """A gap between groups.

    Attributes:
        of: the quantities that it compares.
        how: ``largest`` difference of two groups in any quantity, ``sum`` of the differences, the
            lowest ``ratio``; of forms also ``worst`` and ``worst_gap``.
        groups: number of groups that it is defined for; None for any number.
    """

    of: tuple[Quantity, ...]
    how: How = "largest"
    groups: int | None = None

    @property
    def takes_weights(self) -> bool:
        return all(item.takes_weights for item in self.of)

    def value(self, source: Source) -> Score:
        """The gap of all groups."""
        if self.groups not in (None, len(source.names)):
            return NotApplicable(f"{len(source.names)} groups, defined for two").score()
        parts = [source.values(quantity) for quantity in self.of]
        if self.groups and (absent := missing(parts[0].shown, source.names)):
            return absent
        compare = ratio if self.how == "ratio" else difference
        scores = [compare(part, source.names) for part in parts]
        undefined = [score for score in scores if score.value is None]
        if undefined:
            return undefined[0]
        if self.how == "sum":
            total = sum(score.value or 0.0 for score in scores)
            return Score(total, sum(score.n for score in scores))
        worst: Callable[..., Score] = min if self.how == "ratio" else max
        return worst(scores, key=lambda score: score.value or 0.0)


def gap(
    of: Sequence[Callable[..., Any]], *, how: How = "largest", groups: int | None = None
) -> Callable[[Callable[[], None]], Callable[..., Score]]:
    """Declare a gap between groups: its name and its meaning are those of an empty function.

    ``of`` are functions declared by ``@quantity`` that are means of row values; ``how`` and
    ``groups`` are those of ``Gap``.

    Returns:
        A decorator. The function that it makes takes ``y_true``, ``y_pred``,
        ``sensitive_features`` (one label per row, or ``Groups``) and ``sample_weight``, and returns
        a ``Score``.

    >>> import numpy as np
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
            arrays = {"y_true": y_true, "y_pred": y_pred}
            if sample_weight is not None:
                arrays[WEIGHTS] = sample_weight
            return definition.value(Rows(arrays, as_groups(sensitive_features)))

        definition = Gap(
            name=meaning.__name__, function=computed, how=how, groups=groups,
            better="higher" if how == "ratio" else "lower", needs=("y_true", "y_pred", GROUPED),
            binary=any(item.binary for item in quantities),
            of=tuple(item for item in quantities if isinstance(item, Quantity)),
        )  # fmt: skip
        registered(definition)
        return computed

    return declared


def quantity_of_counts(**facts: Any) -> Callable[[Callable[[Array], Array]], Callable[..., float]]:
    """Register a function of weights as a quantity, with these fields of ``Quantity``.

    It takes sums of weights ``[..., groups, classes, decisions]`` and returns a value of every
    group, NaN where a group has none.

    Returns:
        A decorator. The function that it makes takes ``y_true``, ``y_pred`` and ``sample_weight``.
    """

    def declared(of_counts: Callable[[Array], Array]) -> Callable[..., float]:
        def by_groups(
            y_true: Array,
            y_pred: Array,
            *,
            sensitive_features: Groups,
            sample_weight: Weights = None,
        ) -> Means:
            number = 1 + max(int(y_true.max(initial=0)), int(y_pred.max(initial=0)))
            classes = tuple(map(str, range(number)))
            counts = Counts.of(sensitive_features, y_true, y_pred, classes, sample_weight)
            return counts.values(definition)

        @wraps(of_counts, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
        def computed(y_true: Array, y_pred: Array, *, sample_weight: Weights = None) -> float:
            groups = everyone(len(y_true))
            means = by_groups(
                y_true, y_pred, sensitive_features=groups, sample_weight=sample_weight
            )
            if means.notes[0]:
                raise Undefined(means.notes[0])
            return float(means.value[0])

        definition = Quantity(
            name=of_counts.__name__, function=computed, by_groups=by_groups, of_counts=of_counts,
            **facts,
        )  # fmt: skip
        registered(definition)
        return computed

    return declared


def measure_of_counts(**facts: Any) -> Callable[[Callable[[Counts], Any]], Callable[..., Any]]:
    """Register a function of counts as a named measure, with these fields of ``Measure``.

    Returns:
        A decorator. The function that it makes takes ``y_true``, ``y_pred``,
        ``sensitive_features`` (one label per row, or ``Groups``), the names of the ``classes``
        (numbered if none are given) and ``sample_weight``.
    """

    def declared(of_counts: Callable[[Counts], Any]) -> Callable[..., Any]:
        name = of_counts.__name__

        def computed(
            y_true: Array,
            y_pred: Array,
            *,
            sensitive_features: Any,
            classes: Sequence[str] = (),
            sample_weight: Weights = None,
        ) -> Any:
            number = 1 + max(int(y_true.max(initial=1)), int(y_pred.max(initial=1)))
            names = tuple(classes) or tuple(map(str, range(number)))
            if len(names) < number:
                raise InputError(
                    f"metric {name}: {number} classes, of which {len(names)} have names"
                )
            groups = as_groups(sensitive_features)
            return of_counts(Counts.of(groups, y_true, y_pred, names, sample_weight))

        computed.__name__ = computed.__qualname__ = name
        computed.__doc__ = of_counts.__doc__
        computed.__module__ = of_counts.__module__
        needs = ("y_true", "y_pred", GROUPED, "classes")
        registered(Measure(name=name, function=computed, of_counts=of_counts, needs=needs, **facts))
        return computed

    return declared
