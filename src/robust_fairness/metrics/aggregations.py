"""Aggregations: from the values of a quantity in groups to what they say together.

Each applies to every quantity and any number of groups, under the name of its form:
``accuracy_by_group``, ``worst_group_accuracy``, ``recall_at_majority_gap(k=4)``. The functions take
scores by group, so they serve values from elsewhere too:
``difference(by_group(accuracy, y_true, y_pred, sensitive_features=sex))``.

A group without rows is left out, and the note names it. Where a group with rows has no value, there
is no aggregate either: leaving it out would hide what went wrong.

The four gaps are those of Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), 5 and D.4.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.metrics.base import (
    DEFINITIONS,
    NO_ROWS,
    WEIGHTS,
    Array,
    Arrays,
    Better,
    NotApplicable,
    Options,
    Quantity,
    Score,
    Weights,
)
from robust_fairness.metrics.groups import as_groups, listed, missing, subgroups
from robust_fairness.samples import Groups

Scores = Mapping[str, Score]
How = Literal["largest", "sum", "worst", "worst_gap", "ratio"]  # groups are compared

LIGHT, DARK = ("I", "II", "III"), ("IV", "V", "VI")  # Fitzpatrick skin types
LEAST_GROUPS = 2
FEW = "fewer than two groups with rows"


def by_group(
    function: Callable[..., float | Score],
    *arrays: Array,
    sensitive_features: Any,
    sample_weight: Weights = None,
    **options: float,
) -> dict[str, Score]:
    """Value of a quantity on the rows of each group.

    Raises:
        InputError: the function is not declared as a quantity.
    """
    quantity = DEFINITIONS.get(function.__name__)
    if not isinstance(quantity, Quantity) or quantity.function is not function:
        raise InputError(f"by_group: {function.__name__} is not declared by @quantity")
    by_need = dict(zip(quantity.needs, arrays, strict=True))
    if sample_weight is not None:
        quantity = replace(quantity, needs=(*quantity.needs, WEIGHTS))
        by_need[WEIGHTS] = sample_weight
    return quantity.by_group(by_need, as_groups(sensitive_features), options)


def difference(scores: Scores) -> Score:
    """Largest difference between two groups: the highest value less the lowest.

    Source: ``MetricFrame.difference`` of fairlearn.
    """
    present = _present(scores)
    if reason := _no_gap(present):
        return reason
    highest, *_, lowest = _ranked(present, higher=True)
    return _gap(scores, [highest], [lowest])


def ratio(scores: Scores) -> Score:
    """The lowest value of a group over the highest one (``MetricFrame.ratio`` of fairlearn)."""
    present = _present(scores)
    if reason := _no_gap(present):
        return reason
    highest, *_, lowest = _ranked(present, higher=True)
    top, bottom = present[highest], present[lowest]
    if not _value(top):
        return Score(None, 0, "0 in every group")
    note = _note(scores, f"{lowest} over {highest}")
    return Score(_value(bottom) / _value(top), top.n + bottom.n, note)


def worst_group(scores: Scores, higher: bool) -> Score:
    """The worst value of a group; n is that group's, and the note names it.

    Source: Sagawa et al. 2020, whose groups are the subgroups of group and class.
    """
    present = _present(scores)
    if not present:
        return Score(None, 0, NO_ROWS)
    if reason := _no_value(present):
        return reason
    sign = 1 if higher else -1
    worst = min(present, key=lambda name: sign * _value(present[name]))
    note = _note(scores, f"group {worst}")
    return Score(present[worst].value, present[worst].n, note, variance=present[worst].variance)


def mean_group(scores: Scores) -> Score:
    """Mean over groups, however many rows they have; missing where one has none.

    The mean of ``accuracy`` over head and tail is the unbiased accuracy of questions (Shrestha et
    al. 2022, Table 2).
    """
    counts = [score.n for score in scores.values()]
    if absent := missing(counts, tuple(scores)) or _no_value(scores):
        return absent
    mean = float(np.mean([_value(item) for item in scores.values()]))
    return Score(mean, sum(counts), variance=_variance_of_mean(scores, tuple(scores)))


def majority_gap(scores: Scores, training: np.ndarray) -> Score:
    """Value of the group with most training rows less that of the one with fewest.

    Of equally many the first group is the majority and the last the minority. The sign is kept: of
    a quantity that is better when lower, a positive gap favours the minority.

    Args:
        scores: one per group.
        training: number of training rows of every group, in the same order, int64 ``[groups]``.
    """
    counts = dict(zip(scores, training.tolist(), strict=True))
    present = _present(scores)
    if reason := _no_gap(present):
        return reason
    majority = max(present, key=counts.__getitem__)
    minority = min(reversed(present), key=counts.__getitem__)
    return _gap(scores, [majority], [minority])


def worst_gap(scores: Scores, higher: bool) -> Score:
    """Mean of the other groups' values less the worst group's, never below 0."""
    present = _present(scores)
    if reason := _no_gap(present):
        return reason
    *others, worst = _ranked(present, higher)
    return _gap(scores, others, [worst], 1 if higher else -1)


def halves_gap(scores: Scores, higher: bool) -> Score:
    """Mean of the better half of the groups less that of the worse half, never below 0.

    Groups are ranked by these very values, so the gap is above 0 whenever they differ, by chance
    too. The middle one of an odd number of groups is in neither half.
    """
    present = _present(scores)
    if reason := _no_gap(present):
        return reason
    ranked, half = _ranked(present, higher), len(present) // 2
    return _gap(scores, ranked[:half], ranked[-half:], 1 if higher else -1)


def light_dark_gap(scores: Scores) -> Score:
    """Mean value of Fitzpatrick skin types I to III less that of IV to VI, with its sign.

    Types count alike, however many rows they have.
    """
    if not set(scores) <= {*LIGHT, *DARK}:
        return NotApplicable("groups that are no skin types I to VI").score()
    present = _present(scores)
    light, dark = ([name for name in side if name in present] for side in (LIGHT, DARK))
    for side, item in ((LIGHT, light), (DARK, dark)):
        if not item:
            return Score(None, 0, f"no rows of skin types {side[0]} to {side[-1]}")
    return _no_gap(present) or _gap(scores, light, dark)


def _present(scores: Scores) -> dict[str, Score]:
    """The groups that have rows."""
    return {name: score for name, score in scores.items() if score.n}


def _no_value(present: Scores) -> Score | None:
    reasons = [f"group {name}: {item.note}" for name, item in present.items() if item.value is None]
    return Score(None, 0, listed(reasons, "; ")) if reasons else None


def _no_gap(present: Scores) -> Score | None:
    """The missing gap of groups that have none, and why; None where there is one."""
    return Score(None, 0, FEW) if len(present) < LEAST_GROUPS else _no_value(present)


def _ranked(present: Scores, higher: bool) -> list[str]:
    """Groups from the best to the worst; of equal ones the last is the worst."""
    sign = -1 if higher else 1
    return sorted(present, key=lambda name: sign * _value(present[name]))


def _gap(scores: Scores, first: Sequence[str], second: Sequence[str], sign: int = 1) -> Score:
    """Mean over the first groups less that over the second, times the sign."""
    values = [np.mean([_value(scores[name]) for name in names]) for names in (first, second)]
    rows = sum(scores[name].n for name in (*first, *second))
    note = " less ".join(map(listed, (first, second)))
    parts = [_variance_of_mean(scores, names) for names in (first, second)]
    variance = None if None in parts else sum(part for part in parts if part is not None)
    value = float(sign * (values[0] - values[1]))
    return Score(value, rows, _note(scores, note), variance=variance)


def _variance_of_mean(scores: Scores, names: Sequence[str]) -> float | None:
    """Variance of the mean of independent groups; None where one of theirs is not known."""
    known = [variance for name in names if (variance := scores[name].variance) is not None]
    return sum(known) / len(names) ** 2 if len(known) == len(names) else None


def _value(score: Score) -> float:
    assert score.value is not None
    return score.value


def _note(scores: Scores, note: str) -> str:
    absent = [name for name, score in scores.items() if not score.n]
    return f"{note}; left out: {listed(absent)} ({NO_ROWS})" if absent else note


@dataclass(frozen=True)
class Aggregation:
    """How the values of a quantity in groups become scores.

    Attributes:
        name: name of the aggregation.
        form: name of the metric, with ``{}`` for the quantity.
        function: scores by group from a quantity, arrays and options; ``""`` is of all groups.
        better: of the aggregate; None if it is that of the quantity.
        needs: arrays beside those of the quantity.
        how: how groups are compared, where a linear function of their values is the aggregate.
    """

    name: str
    form: str
    function: Callable[[Any, Arrays, Options], dict[str, Score]]
    better: Better | None = None
    needs: tuple[str, ...] = ("sensitive_features",)
    how: How | None = None

    @property
    def of_classes(self) -> bool:
        """Whether it is defined for classification only."""
        return "classes" in self.needs


OVERALL = Aggregation(
    "", "{}", lambda item, arrays, options: item.scores(arrays, options), needs=()
)


def _by_group(quantity: Quantity, arrays: Arrays, options: Options) -> dict[str, Score]:
    return quantity.by_group(arrays, arrays["sensitive_features"], options)


def _by_subgroup(quantity: Quantity, arrays: Arrays, options: Options) -> dict[str, Score]:
    """Subgroups of these rows or the training rows: a group's values and a class."""
    here, there = arrays["sensitive_features"], arrays["sensitive_features_train"]
    keys, index, _ = subgroups(arrays["y_true"], here.index, arrays["y_train"], there.index)
    values = [(*here.values[group], arrays["classes"][label]) for group, label in keys.tolist()]
    return quantity.by_group(arrays, Groups(index, tuple(values)), options)


def _worst_subgroup(quantity: Quantity, arrays: Arrays, options: Options) -> dict[str, Score]:
    none = Groups(np.empty(0, np.int64), arrays["sensitive_features"].values)
    without = {**arrays, "y_train": none.index, "sensitive_features_train": none}
    return {"": worst_group(_by_subgroup(quantity, without, options), quantity.better == "higher")}


def _one_vs_rest(quantity: Quantity, arrays: Arrays, options: Options) -> dict[str, Score]:
    """Largest difference between a group and all other rows."""
    groups = arrays["sensitive_features"]
    gaps = []
    for number, name in enumerate(groups.names):
        inside = Groups.named((groups.index != number).astype(np.int64), (name, f"not {name}"))
        if inside.counts.all():
            gaps.append(difference(quantity.by_group(arrays, inside, options)))
    undefined = [score for score in gaps if score.value is None]
    if undefined or not gaps:
        return {"": undefined[0] if undefined else Score(None, 0, FEW)}
    return {"": max(gaps, key=_value)}


def _majority_gap(quantity: Quantity, arrays: Arrays, options: Options) -> dict[str, Score]:
    training = arrays["sensitive_features_train"].counts
    return {"": majority_gap(_by_group(quantity, arrays, options), training)}


def _summary(summary: Callable[[Scores], Score]) -> Callable[..., dict[str, Score]]:
    return lambda item, arrays, options: {"": summary(_by_group(item, arrays, options))}


def _ranking(summary: Callable[[Scores, bool], Score]) -> Callable[..., dict[str, Score]]:
    return lambda item, arrays, options: {
        "": summary(_by_group(item, arrays, options), item.better == "higher")
    }


SUBGROUPS = ("sensitive_features", "y_true", "classes")
AGGREGATIONS = (
    Aggregation("by_group", "{}_by_group", _by_group),
    Aggregation(
        "by_subgroup",
        "{}_by_subgroup",
        _by_subgroup,
        needs=(*SUBGROUPS, "y_train", "sensitive_features_train"),
    ),
    Aggregation("worst_group", "worst_group_{}", _ranking(worst_group), how="worst"),
    Aggregation("worst_subgroup", "worst_subgroup_{}", _worst_subgroup, needs=SUBGROUPS),
    Aggregation("mean_group", "mean_group_{}", _summary(mean_group)),
    Aggregation("difference", "{}_difference", _summary(difference), "lower", how="largest"),
    Aggregation("ratio", "{}_ratio", _summary(ratio), "higher", how="ratio"),
    Aggregation("one_vs_rest_difference", "{}_one_vs_rest_difference", _one_vs_rest, "lower"),
    Aggregation(
        "majority_gap",
        "{}_majority_gap",
        _majority_gap,
        "lower",
        ("sensitive_features", "sensitive_features_train"),
    ),
    Aggregation("worst_gap", "{}_worst_gap", _ranking(worst_gap), "lower", how="worst_gap"),
    Aggregation("halves_gap", "{}_halves_gap", _ranking(halves_gap), "lower"),
    Aggregation("light_dark_gap", "{}_light_dark_gap", _summary(light_dark_gap), "lower"),
)
