"""Gaps between groups, each declared once, and forms: from values in groups to what they say.

Everything that is said about a gap follows from its declaration: its value, its interval, its tests
and its bounds from the values of its quantities by group, its parts from a decomposition. A gap of
a plug-in therefore works in runs, audits, monitors and gates.

A form applies to every quantity and any number of groups, under the name of its pattern:
``accuracy_by_group``, ``worst_group_accuracy``, ``recall_at_majority_gap(k=4)``. The functions take
``Means`` and names of groups, so they serve values from elsewhere too.

A group without rows is left out, and the note names it. Where a group with rows has no value, there
is no aggregate either: leaving it out would hide what went wrong.

The four gaps of forms are those of Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), 5
and D.4.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.numbers.counts import Counts, Rows, Source
from robust_fairness.numbers.groups import Groups, as_groups, everyone, listed
from robust_fairness.numbers.quantities import (
    DEFINITIONS,
    GROUPED,
    NO_ROWS,
    WEIGHTS,
    Array,
    Better,
    Definition,
    Means,
    Measure,
    NotApplicable,
    Options,
    Quantity,
    Score,
    Undefined,
    Weights,
    registered,
)

How = Literal["largest", "sum", "worst", "worst_gap", "ratio"]  # groups are compared
Names = Sequence[str]

LIGHT, DARK = ("I", "II", "III"), ("IV", "V", "VI")  # Fitzpatrick skin types
LEAST_GROUPS = 2
FEW = "fewer than two groups with rows"


def difference(means: Means, names: Names) -> Score:
    """Largest difference between two groups: the highest value less the lowest.

    Source: ``MetricFrame.difference`` of fairlearn.
    """
    if reason := _undefined(means, names):
        return reason
    highest, *_, lowest = _ranked(means, higher=True)
    return _gap(means, names, [highest], [lowest])


def ratio(means: Means, names: Names) -> Score:
    """The lowest value of a group over the highest one (``MetricFrame.ratio`` of fairlearn)."""
    if reason := _undefined(means, names):
        return reason
    highest, *_, lowest = _ranked(means, higher=True)
    if not means.value[highest]:
        return Score(None, 0, "0 in every group")
    note = _note(means, names, f"{names[lowest]} over {names[highest]}")
    rows = int(means.n[[highest, lowest]].astype(np.int64).sum())
    return Score(float(means.value[lowest] / means.value[highest]), rows, note)


def worst_group(means: Means, names: Names, higher: bool) -> Score:
    """The worst value of a group; n is that group's, and the note names it.

    Source: Sagawa et al. 2020, whose groups are the subgroups of group and class.
    """
    if reason := _undefined(means, names, 1):
        return reason
    present = np.flatnonzero(means.shown)
    worst = present[((1 if higher else -1) * means.value[present]).argmin()]
    note = _note(means, names, f"group {names[worst]}")
    value, variance = float(means.value[worst]), float(means.variance[worst])
    return Score(value, int(means.n[worst]), note, variance=variance)


def mean_group(means: Means, names: Names) -> Score:
    """Mean over groups, however many rows they have; missing where one has none.

    The mean of ``accuracy`` over head and tail is the unbiased accuracy of questions (Shrestha et
    al. 2022, Table 2).
    """
    if absent := missing(means.shown, names) or _undefined(means, names, 1):
        return absent
    variance = float(means.variance.sum() / len(names) ** 2)
    return Score(float(means.value.mean()), int(means.n.astype(np.int64).sum()), variance=variance)


def majority_gap(means: Means, names: Names, training: Array) -> Score:
    """Value of the group with most training rows less that of the one with fewest.

    Of equally many the first group is the majority and the last the minority. The sign is kept: of
    a quantity that is better when lower, a positive gap favours the minority.

    Args:
        means: values by group.
        names: names of the groups.
        training: number of training rows of every group, int64 ``[groups]``.
    """
    if reason := _undefined(means, names):
        return reason
    present = np.flatnonzero(means.shown)
    majority = int(present[training[present].argmax()])
    minority = int(present[::-1][training[present][::-1].argmin()])
    return _gap(means, names, [majority], [minority])


def worst_gap(means: Means, names: Names, higher: bool) -> Score:
    """Mean of the other groups' values less the worst group's, never below 0."""
    if reason := _undefined(means, names):
        return reason
    *others, worst = _ranked(means, higher)
    return _gap(means, names, others, [worst], 1 if higher else -1)


def halves_gap(means: Means, names: Names, higher: bool) -> Score:
    """Mean of the better half of the groups less that of the worse half, never below 0.

    Groups are ranked by these very values, so the gap is above 0 whenever they differ, by chance
    too. The middle one of an odd number of groups is in neither half.
    """
    if reason := _undefined(means, names):
        return reason
    ranked = _ranked(means, higher)
    half = len(ranked) // 2
    return _gap(means, names, ranked[:half], ranked[-half:], 1 if higher else -1)


def light_dark_gap(means: Means, names: Names) -> Score:
    """Mean value of Fitzpatrick skin types I to III less that of IV to VI, with its sign.

    Types count alike, however many rows they have.
    """
    if not set(names) <= {*LIGHT, *DARK}:
        return NotApplicable("groups that are no skin types I to VI").score()
    present = {names[place]: place for place in np.flatnonzero(means.shown).tolist()}
    light, dark = ([present[name] for name in side if name in present] for side in (LIGHT, DARK))
    for side, item in ((LIGHT, light), (DARK, dark)):
        if not item:
            return Score(None, 0, f"no rows of skin types {side[0]} to {side[-1]}")
    return _undefined(means, names) or _gap(means, names, light, dark)


def missing(counts: Array | Sequence[int], names: Names, among: str = "") -> Score | None:
    """The missing value of a gap where a group is empty, which it names; None where none is."""
    empty = [name for name, n in zip(names, counts, strict=True) if not n]
    return Score(None, 0, f"{NO_ROWS} of group {listed(empty)}{among}") if empty else None


def _undefined(means: Means, names: Names, fewest: int = LEAST_GROUPS) -> Score | None:
    """The missing value of fewer groups with rows, or of one without a value; else None."""
    present = np.flatnonzero(means.shown)
    if len(present) < fewest:
        return Score(None, 0, NO_ROWS if fewest == 1 else FEW)
    unknown = present[np.isnan(means.value[present])]
    reasons = [f"group {names[place]}: {means.notes[place]}" for place in unknown]
    return Score(None, 0, listed(reasons, "; ")) if reasons else None


def _ranked(means: Means, higher: bool) -> list[int]:
    """Groups with rows from the best to the worst; of equal ones the last is the worst."""
    present = np.flatnonzero(means.shown)
    order = np.argsort((-1 if higher else 1) * means.value[present], kind="stable")
    return present[order].tolist()


def _gap(
    means: Means, names: Names, first: Sequence[int], second: Sequence[int], sign: int = 1
) -> Score:
    """Mean over the first groups less that over the second, times the sign."""
    value = means.value[first].mean() - means.value[second].mean()
    minuend, subtrahend = [names[place] for place in first], [names[place] for place in second]
    note = _note(means, names, f"{listed(minuend)} less {listed(subtrahend)}")
    variances = [means.variance[[*side]].sum() / len(side) ** 2 for side in (first, second)]
    rows = int(means.n[[*first, *second]].astype(np.int64).sum())  # whole ones
    return Score(float(sign * value), rows, note, variance=float(sum(variances)))


def _note(means: Means, names: Names, note: str) -> str:
    if means.shown.all():
        return note
    absent = [name for name, n in zip(names, means.shown, strict=True) if not n]
    return f"{note}; left out: {listed(absent)} ({NO_ROWS})"


@dataclass(frozen=True)
class Form:
    """How the values of a quantity in groups become scores.

    Attributes:
        name: name of the form.
        pattern: name of the metric, with ``{}`` for the quantity.
        scores: scores by group from a quantity, a source and options; ``""`` is of all groups.
        better: of the aggregate; None if it is that of the quantity.
        needs: arrays beside those of the quantity.
        how: how groups are compared, where a linear function of their values is the aggregate.
        signed: whether it is defined for values on either side of 0, of which neither end is worse.
    """

    name: str
    pattern: str
    scores: Callable[[Quantity, Source, Options], dict[str, Score]]
    better: Better | None = None
    needs: tuple[str, ...] = ("sensitive_features",)
    how: How | None = None
    signed: bool = True

    @property
    def of_classes(self) -> bool:
        """Whether it is defined for classification only."""
        return "classes" in self.needs


def _overall(quantity: Quantity, source: Source, options: Options) -> dict[str, Score]:
    return source.everyone.values(quantity, options).scores([""])


def _by_group(quantity: Quantity, source: Source, options: Options) -> dict[str, Score]:
    return source.values(quantity, options).scores(source.names)


def _by_subgroup(quantity: Quantity, source: Source, options: Options) -> dict[str, Score]:
    """Subgroups of these rows or the training rows: a group's values and a class."""
    return _by_group(quantity, source.subgroups(trained=True), options)


def _worst_subgroup(quantity: Quantity, source: Source, options: Options) -> dict[str, Score]:
    return _ranking(worst_group)(quantity, source.subgroups(), options)


def _one_vs_rest(quantity: Quantity, source: Source, options: Options) -> dict[str, Score]:
    """Largest difference between a group and all other rows."""
    gaps, codes = [], np.arange(len(source.names))
    for code, name in enumerate(source.names):
        names = (name, f"not {name}")
        inside = source.merged((codes != code).astype(np.int64), names)
        means = inside.values(quantity, options)
        if means.shown.all():
            gaps.append(difference(means, names))
    undefined = [score for score in gaps if score.value is None]
    if undefined or not gaps:
        return {"": undefined[0] if undefined else Score(None, 0, FEW)}
    return {"": max(gaps, key=lambda score: score.value or 0.0)}


def _majority_gap(quantity: Quantity, source: Source, options: Options) -> dict[str, Score]:
    training = source.arrays["sensitive_features_train"].counts  # type: ignore[union-attr]
    return {"": majority_gap(source.values(quantity, options), source.names, training)}


def _summary(summary: Callable[[Means, Names], Score]) -> Callable[..., dict[str, Score]]:
    return lambda item, source, options: {"": summary(source.values(item, options), source.names)}


def _ranking(summary: Callable[[Means, Names, bool], Score]) -> Callable[..., dict[str, Score]]:
    return lambda item, source, options: {
        "": summary(source.values(item, options), source.names, item.better == "higher")
    }


SUBGROUPS = ("sensitive_features", "y_true", "classes")
OF_TRAINING = ("y_train", "sensitive_features_train")
OVERALL = Form("", "{}", _overall, needs=())
FORMS = (
    Form("by_group", "{}_by_group", _by_group),
    Form("by_subgroup", "{}_by_subgroup", _by_subgroup, needs=(*SUBGROUPS, *OF_TRAINING)),
    Form("worst_group", "worst_group_{}", _ranking(worst_group), how="worst", signed=False),
    Form("worst_subgroup", "worst_subgroup_{}", _worst_subgroup, needs=SUBGROUPS, signed=False),
    Form("mean_group", "mean_group_{}", _summary(mean_group)),
    Form("difference", "{}_difference", _summary(difference), "lower", how="largest"),
    Form("ratio", "{}_ratio", _summary(ratio), "higher", how="ratio", signed=False),
    Form("one_vs_rest_difference", "{}_one_vs_rest_difference", _one_vs_rest, "lower"),
    Form("majority_gap", "{}_majority_gap", _majority_gap, "lower",
         ("sensitive_features", "sensitive_features_train")),
    Form("worst_gap", "{}_worst_gap", _ranking(worst_gap), "lower", how="worst_gap",
         signed=False),
    Form("halves_gap", "{}_halves_gap", _ranking(halves_gap), "lower", signed=False),
    Form("light_dark_gap", "{}_light_dark_gap", _summary(light_dark_gap), "lower"),
)  # fmt: skip


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

    >>> import numpy as np
    >>> from robust_fairness.metrics.classification import balanced_accuracy
    >>> balanced_accuracy(np.array([1, 0, 1, 1]), np.array([1, 1, 1, 1]))
    0.5
    """

    def declared(of_counts: Callable[[Array], Array]) -> Callable[..., float]:
        def by_groups(
            y_true: Array, y_pred: Array, sensitive_features: Groups, sample_weight: Weights = None
        ) -> Means:
            number = 1 + max(int(y_true.max(initial=0)), int(y_pred.max(initial=0)))
            classes = tuple(map(str, range(number)))
            counts = Counts.of(sensitive_features, y_true, y_pred, classes, sample_weight)
            return counts.values(definition)

        @wraps(of_counts, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
        def computed(y_true: Array, y_pred: Array, *, sample_weight: Weights = None) -> float:
            means = by_groups(y_true, y_pred, everyone(len(y_true)), sample_weight)
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
