"""How far the groups' values of a metric lie apart, in four ways, and the worst group's.

Source: Dullerud et al., "Is Fairness Only Metric Deep?" (ICLR 2022), 5 and D.4. Each of
``QUANTITIES`` has the metrics ``{quantity}_majority_gap``, ``_worst_gap``, ``_halves_gap``,
``_light_dark_gap`` and ``worst_group_{quantity}``, with the quantity's own options:
``recall_at_majority_gap(k=4)``. The functions take scores by group, so that they serve values from
elsewhere too.

A group without rows is left out, and the note names it. Where a group with rows has no value there
is no gap: what is left out then would be what went wrong.
"""

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from typing import Any

import numpy as np

from robust_fairness.metrics._rates import listed
from robust_fairness.metrics.accuracy import accuracy_by_group
from robust_fairness.metrics.base import NOT_APPLICABLE, Score, declared, metric
from robust_fairness.metrics.macro_averages import (
    balanced_accuracy_by_group,
    macro_precision_by_group,
    macro_precision_present_by_group,
    macro_recall_by_group,
)
from robust_fairness.metrics.representation import (
    negative_alignment_by_group,
    nmi_by_group,
    positive_alignment_by_group,
    recall_at_by_group,
    u_kl_by_group,
)

LIGHT, DARK = ("I", "II", "III"), ("IV", "V", "VI")  # Fitzpatrick skin types
LEAST_GROUPS = 2
QUANTITIES: dict[str, Callable[..., dict[str, Score]]] = {
    "recall_at": recall_at_by_group,
    "nmi": nmi_by_group,
    "u_kl": u_kl_by_group,
    "positive_alignment": positive_alignment_by_group,
    "negative_alignment": negative_alignment_by_group,
    "macro_precision": macro_precision_by_group,
    "macro_recall": macro_recall_by_group,
    "macro_precision_present": macro_precision_present_by_group,
    "balanced_accuracy": balanced_accuracy_by_group,
    "accuracy": accuracy_by_group,
}
FEW = "fewer than two groups with rows"


def majority_gap(scores: Mapping[str, Score], training: np.ndarray) -> Score:
    """Value of the group with most training rows less that of the one with fewest.

    Of equally many the first group is the majority and the last the minority. Its sign is as it
    comes: of a quantity that is better when lower, a positive gap favours the minority.

    Args:
        scores: one a group.
        training: number of training rows of every group, in the same order, int64 ``[groups]``.
    """
    counts = dict(zip(scores, training.tolist(), strict=True))
    present = _present(scores)
    if reason := _no_gap(present):
        return reason
    majority = max(present, key=counts.__getitem__)
    minority = min(reversed(present), key=counts.__getitem__)
    return _difference(scores, [majority], [minority])


def worst_gap(scores: Mapping[str, Score], higher: bool) -> Score:
    """Mean of the other groups' values less the worst group's, never below 0.

    Args:
        scores: one a group.
        higher: whether higher values are better.
    """
    present = _present(scores)
    if reason := _no_gap(present):
        return reason
    *others, worst = _ranked(present, higher)
    return _difference(scores, others, [worst], 1 if higher else -1)


def halves_gap(scores: Mapping[str, Score], higher: bool) -> Score:
    """Mean of the better half of the groups less that of the worse half, never below 0.

    Groups are ranked by these very values, so that the gap is above 0 whenever they differ, by
    chance too. The middle one of an odd number of groups is in neither half.

    Args:
        scores: one a group.
        higher: whether higher values are better.
    """
    present = _present(scores)
    if reason := _no_gap(present):
        return reason
    ranked, half = _ranked(present, higher), len(present) // 2
    return _difference(scores, ranked[:half], ranked[-half:], 1 if higher else -1)


def light_dark_gap(scores: Mapping[str, Score]) -> Score:
    """Mean value of Fitzpatrick skin types I to III less that of IV to VI.

    Types count alike, however many rows they have. Its sign is as it comes.

    Args:
        scores: one a skin type.
    """
    if not set(scores) <= {*LIGHT, *DARK}:
        return Score(None, 0, f"{NOT_APPLICABLE}groups that are no skin types I to VI")
    present = _present(scores)
    light, dark = ([name for name in side if name in present] for side in (LIGHT, DARK))
    for side, found in ((LIGHT, light), (DARK, dark)):
        if not found:
            return Score(None, 0, f"no rows of skin types {side[0]} to {side[-1]}")
    return _no_gap(present) or _difference(scores, light, dark)


def worst_group(scores: Mapping[str, Score], higher: bool) -> Score:
    """The worst value of a group; n is that group's, and the note names it.

    Args:
        scores: one a group.
        higher: whether higher values are better.
    """
    present = _present(scores)
    if not present:
        return Score(None, 0, "no rows")
    if reason := _no_value(present):
        return reason
    worst = _ranked(present, higher)[-1]
    return Score(present[worst].value, present[worst].n, _note(scores, f"group {worst}"))


def _present(scores: Mapping[str, Score]) -> dict[str, Score]:
    """The groups that have rows."""
    return {name: score for name, score in scores.items() if score.n}


def _no_value(present: Mapping[str, Score]) -> Score | None:
    missing = [f"group {name}: {one.note}" for name, one in present.items() if one.value is None]
    return Score(None, 0, listed(missing, "; ")) if missing else None


def _no_gap(present: Mapping[str, Score]) -> Score | None:
    """The missing gap of groups that have none, and why; None where there is one."""
    return Score(None, 0, FEW) if len(present) < LEAST_GROUPS else _no_value(present)


def _ranked(present: Mapping[str, Score], higher: bool) -> list[str]:
    """Groups from the best to the worst; of equal ones the last is the worst."""
    sign = -1 if higher else 1
    return sorted(present, key=lambda name: sign * _value(present[name]))


def _difference(
    scores: Mapping[str, Score], first: Sequence[str], second: Sequence[str], sign: int = 1
) -> Score:
    """Mean over the first groups less that over the second, times the sign."""
    values = [np.mean([_value(scores[name]) for name in names]) for names in (first, second)]
    rows = sum(scores[name].n for name in (*first, *second))
    note = " less ".join(map(listed, (first, second)))
    return Score(float(sign * (values[0] - values[1])), rows, _note(scores, note))


def _value(score: Score) -> float:
    assert score.value is not None
    return score.value


def _note(scores: Mapping[str, Score], note: str) -> str:
    absent = [name for name, score in scores.items() if not score.n]
    return f"{note}; left out: {listed(absent)} (no rows)" if absent else note


def _register(quantity: str, of_groups: Callable[..., dict[str, Score]]) -> None:
    """Make metrics of what the groups' values of one quantity are."""
    known = declared(of_groups)
    higher = known.better == "higher"

    def counted(
        scores: dict[str, Score], train_group: np.ndarray, groups: tuple[str, ...]
    ) -> Score:
        return majority_gap(scores, np.bincount(train_group, minlength=len(groups)))

    summaries: dict[str, tuple[Callable[..., Score], str]] = {
        f"{quantity}_majority_gap": (counted, "of the majority less the minority"),
        f"{quantity}_worst_gap": (
            lambda scores, **_: worst_gap(scores, higher),
            "between the worst group and the others",
        ),
        f"{quantity}_halves_gap": (
            lambda scores, **_: halves_gap(scores, higher),
            "between the better and the worse half of the groups",
        ),
        f"{quantity}_light_dark_gap": (
            lambda scores, **_: light_dark_gap(scores),
            "of skin types I to III less IV to VI",
        ),
    }
    for name, (summary, what) in summaries.items():
        arguments = ["train_group"] if summary is counted else []
        made = _summarised(
            name, f"``{of_groups.__name__}``, {what}.", of_groups, summary, arguments
        )
        metric("lower", known.task)(made)
    if quantity != "accuracy":  # whose worst group is older than this file
        name = f"worst_group_{quantity}"
        text = f"``{of_groups.__name__}`` of the worst group; n is that group's."
        made = _summarised(
            name, text, of_groups, lambda scores, **_: worst_group(scores, higher), []
        )
        metric(known.better, known.task)(made)


def _summarised(
    name: str,
    text: str,
    of_groups: Callable[..., dict[str, Score]],
    summary: Callable[..., Score],
    further: Sequence[str],
) -> Callable[..., Score]:
    """A metric with the arguments of another that has one value a group, and further ones.

    Args:
        name: what it is called.
        text: its docstring.
        of_groups: the other metric.
        summary: a score from the groups' ``scores``, ``groups`` and the further arguments.
        further: names of arrays that the summary asks for.
    """
    own = signature(of_groups).parameters

    def made(**arguments: Any) -> Score:
        mine = {one: arguments.pop(one) for one in further}
        return summary(scores=of_groups(**arguments), groups=arguments["groups"], **mine)

    plain = [one for one in own.values() if one.kind != Parameter.KEYWORD_ONLY]
    options = [one for one in own.values() if one.kind == Parameter.KEYWORD_ONLY]
    added = [Parameter(one, Parameter.POSITIONAL_OR_KEYWORD) for one in further]
    made.__name__, made.__qualname__, made.__doc__ = name, name, text
    made.__signature__ = signature(of_groups).replace(  # type: ignore[attr-defined]
        parameters=[*plain, *added, *options], return_annotation=Score
    )
    return made


for _quantity, _of_groups in QUANTITIES.items():
    _register(_quantity, _of_groups)
