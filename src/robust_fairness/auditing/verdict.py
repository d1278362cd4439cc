"""The answers of an audit, and what the console shows."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from robust_fairness.auditing.findings import AuditFindings
from robust_fairness.auditing.gates import VERDICTS, Judgement, Verdict
from robust_fairness.auditing.labelled import NO_PART
from robust_fairness.auditing.metric_names import MISSING, SHARE
from robust_fairness.auditing.naming import option
from robust_fairness.auditing.who import GAPS, GAPS_OF_CLASSES, SUGGESTED, gap_names
from robust_fairness.core.numbers import counted, estimate, exact, number, within
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.answers import answer, gated, grew_in
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.intervals import ALL_VALUES

MOST_GATES = 3  # of each verdict, which the console shows
MOST_LINES = 4  # of gaps, and of what is missing, which the console shows
WORST = {"accuracy_by_group": "accuracy", "mean_squared_error_by_group": "mean squared error"}
MARGIN = 0.05  # change of a gap that is immaterial, see ``numbers.verdicts``
LATER = "the later period"
NO_LIMIT = "Unknown: no gate sets a limit for the gaps"
NOTHING_ESTIMATED = "Unknown: no gap between groups can be estimated"


def answers(audit: AuditFindings) -> list[str]:
    """The answers that console, page and model card begin with, see ``numbers.answers``.

    About gates first, then about changes; an audit with neither is answered by a gate on its first
    gap, whose evidence decides.
    """
    if audit.label_selection:
        return [f"Unknown: {NO_PART}: {audit.label_selection[0]}"]
    said = [grew_in(*alarm) for alarm in audit.monitor.alarms[:1]] if audit.monitor else []
    changed = [] if audit.changed is None else _of_changes(audit, audit.changed)
    if audit.judgements:
        said = [_of_gates(audit.judgements), *said, *changed]
    else:
        said = [*said, *changed] or [_without_gates(audit)]
    # what these sentences hide where strata disagree: their largest gap
    if disagree := [each for each in audit.strata if each.p < LEVEL]:
        worst = max(disagree, key=lambda each: each.low)
        value = estimate(worst.value, worst.low, worst.high)
        said.append(
            f"But {worst.control} matters: {worst.rate} of {worst.groups[0]} less "
            f"{worst.groups[1]} is {value} in {worst.stratum}"
        )
    return said


def who(audit: AuditFindings) -> list[str]:
    """Which groups differ, where the answers do not say it already: the title and what is more."""
    figure = audit.figure
    if figure is None:
        return []
    said = any(figure.title in line for line in answers(audit))
    lines = ["" if said else figure.title, figure.also and f"also: {figure.also}", *figure.left_out]
    ours = ("no group", "predictions", "the ", "also")  # other lines begin with a name of the table
    return [line[0].upper() + line[1:] if line.startswith(ours) else line for line in lines if line]


def _of_gates(judgements: Sequence[Judgement]) -> str:
    """The answer about gates, with the value that is furthest from the limit of the worst gate."""
    like_first = [
        judgement for judgement in judgements
        if (judgement.gate, judgement.verdict) == (judgements[0].gate, judgements[0].verdict)
    ]  # fmt: skip
    distances = [abs(judgement.row.value - judgement.gate.limit) for judgement in like_first]
    first = like_first[int(np.argmax(np.nan_to_num(distances, nan=-1.0)))]
    gate, row, names = first.gate, first.row, {**GAPS, **GAPS_OF_CLASSES}
    metric = f"the {names[gate.metric]}" if gate.metric in names else gate.metric
    by = f" by {row.place}" if row.place else ""
    what = f"{'the change of ' if gate.change else ''}{metric}{by}"
    if not row.applies:
        return f"No: {what} is not defined for these groups, so its gate fails"
    verdicts, above = [judgement.verdict for judgement in judgements], gate.sign in (">", ">=")
    # whether the value or the whole interval fails, and not only a part of the interval
    is_past, fails = first.evident or gate.meets(row.value), first.verdict == "FAIL"
    if fails and is_past and np.isnan(row.value):  # the bound that fails
        value = f"at least {number(row.low)}" if above else f"at most {number(row.high)}"
    elif not np.isnan(row.value) and (first.verdict == "PASS" or (fails and is_past)):
        value = number(row.value, row.low, row.high)
    else:
        value = within(row.low, row.high).strip(" ()") or "not defined"
    side = f"{'above' if above else 'below'} {exact(gate.limit)}"
    return gated(verdicts, what, value, side, first.evident, is_past)


def _without_gates(audit: AuditFindings) -> str:
    """What a gate on the first gap would say; the gaps have no limit of their own."""
    gate = suggested(audit)
    if not gate or audit.options.continuous:
        return NO_LIMIT if gate else NOTHING_ESTIMATED
    if audit.figure and audit.figure.beyond:
        return f"No: {audit.figure.title}"
    return _of_gates(audit.judgements_of(gate, "evidence"))


def _of_changes(audit: AuditFindings, changes: pd.DataFrame) -> list[str]:
    """The answer about the first gap between groups now and then, never Yes if another one grew."""
    words = gap_names(audit.rows)
    known = changes[(changes["state"] != "") & changes["metric"].isin(list(words))]
    if known.empty:
        return [NOTHING_ESTIMATED]
    pairs = known.assign(data="", place=LATER, margin=MARGIN, limit="", group="", have=np.nan)
    pairs["bound"] = pairs[["low", "high"]].abs().max(axis=1)
    of_gap = {name: pairs[pairs["metric"] == name] for name in words if {name} & {*known["metric"]}}
    first, *others = of_gap
    said = answer(of_gap[first], in_fractions)
    grown = [name for name in others if of_gap[name]["state"].isin(["grew", "reversed"]).any()]
    if said.startswith("No") or not grown:
        return [said]
    of_grown = answer(of_gap[grown[0]], in_fractions)
    return [f"{of_grown} ({words[grown[0]]})", f"{said} ({words[first]})"]


def in_fractions(value: float) -> str:
    """A value as sentences and plots of an audit write it."""
    return f"{value:.2f}"


def suggested(audit: AuditFindings) -> str:
    """A gate for an audit that has none; "" without gaps."""
    known = audit.rows.loc[audit.rows["group"].eq("") & audit.rows["value"].notna(), "metric"]
    metric = next((name for name in gap_names(audit.rows) if name in {*known}), "")
    return metric and f"{metric}>{'LIMIT' if audit.options.continuous else SUGGESTED}"


def advice(audit: AuditFindings) -> str:
    """How to set a gate; "" of an audit that has one, or no gaps."""
    gate = "" if audit.judgements else suggested(audit)
    if not gate:
        return ""
    written = f"failures({gate!r})" if option("fail_if") == "fail_if" else f"--fail-if '{gate}'"
    limit = "" if audit.options.continuous else f", and the answer takes {SUGGESTED} as the limit"
    limit = "" if audit.changed is not None else limit
    return f"No gate is set, so nothing fails{limit}; an example: {written}"


def worst_group(rows: pd.DataFrame) -> str:
    """The group with the lowest accuracy or the largest error.

    Groups that are flagged as small are left out; "" without any other.
    """
    of_groups = rows[rows["metric"].isin(list(WORST)) & rows["value"].notna() & ~rows["small"]]
    if of_groups.empty:
        return ""
    accuracy = of_groups["metric"].iloc[0] == "accuracy_by_group"
    place = of_groups["value"].argmin() if accuracy else of_groups["value"].argmax()
    row = of_groups.iloc[int(place)]
    return (
        f"worst group: {row['attribute']} {row['group']}, {WORST[row['metric']]} "
        f"{estimate(row['value'], row['low'], row['high'])}, {counted({'rows': row['n']})}"
    )


def gaps(rows: pd.DataFrame, changes: pd.DataFrame | None = None) -> list[str]:
    """The gaps between the groups of every attribute with their intervals, a line each."""
    names = gap_names(rows)
    known = rows[rows["metric"].isin(list(names)) & rows["value"].notna() & (rows["group"] == "")]
    changed = {} if changes is None else _changes(changes)
    lines: dict[str, list[str]] = {}
    for metric, name in names.items():
        for row in known[known["metric"] == metric].to_dict("records"):
            text = f"{name} {estimate(row['value'], row['low'], row['high'])}"
            text += changed.get((row["attribute"], metric), "")
            lines.setdefault(row["attribute"], []).append(text)
    return [f"{attribute}: {', '.join(lines[attribute])}" for attribute in sorted(lines)]


def _changes(changes: pd.DataFrame) -> dict[tuple[str, str], str]:
    known = changes[changes["change"].notna() & (changes["group"] == "")]
    return {
        (row["attribute"], row["metric"]): (
            f", changed by {estimate(row['change'], row['low'], row['high'], '+')}"
        )
        for row in known.to_dict("records")
    }


def power_line(audit: AuditFindings) -> str:
    """What the rows show with a power of 80 %, of the first gap of every attribute; "" without."""
    of_attributes = {power.attribute: power for power in reversed(audit.power)}
    known = [str(of_attributes[name]) for name in reversed(of_attributes)]
    return f"80 % power: {'; '.join(_first(known, MOST_LINES))}" if known else ""


def of_strata(audit: AuditFindings) -> list[str]:
    """Differences of the gaps shown that are others within strata, and strata that disagree."""
    names = gap_names(audit.rows)
    said = [str(between) for between in audit.between if between.metric in names]
    said += [str(each) for each in audit.strata if each.p < LEVEL]
    return _first([*dict.fromkeys(said)], MOST_LINES)


def lacking(audit: AuditFindings) -> list[str]:
    """What the audit could not compare: missing values and small groups."""
    rows, dropped, names = audit.rows, audit.predictions.dropped, gap_names(audit.rows)
    left_out = f"{counted({'rows': dropped})} without target or prediction left out"
    lines = [left_out] if dropped else []
    for attribute, of_attribute in rows[rows["attribute"] != ""].groupby("attribute", sort=False):
        shares = of_attribute[of_attribute["metric"] == SHARE]
        missing = of_attribute[(of_attribute["metric"] == MISSING) & (of_attribute["value"] > 0)]
        bounded = of_attribute[
            of_attribute["metric"].isin(list(names)) & of_attribute["lowest"].notna()
        ]
        whatever = [
            f"{names[row['metric']]} {number(row['lowest'])} to {number(row['highest'])} whatever "
            "they are"
            for row in bounded.to_dict("records")
        ]
        lines += [
            f"{attribute}: {note}{''.join(f'; {text}' for text in whatever)}"
            for note in missing["note"]
        ]
        if shares["small"].any():
            few = shares.loc[shares["small"], "group"]
            some = ", ".join(few.head(MOST_GATES)) + (", ..." if len(few) > MOST_GATES else "")
            lines.append(f"{attribute}: too few rows of {some}; gaps contain them")
    return lines


class Lack(NamedTuple):
    """Something that was not compared, with the groups for which it was not."""

    text: str
    groups: tuple[str, ...] = ()

    def __str__(self) -> str:
        few = ", ".join(_first(self.groups, MOST_GATES, "groups are on the page"))
        return f"{self.text}: {few}" if self.groups else self.text


def undefined(rows: pd.DataFrame) -> list[Lack]:
    """The gaps between groups that are not defined, by attribute, with groups, rows and reasons."""
    names = gap_names(rows)
    lacks = rows[
        rows["metric"].isin(list(names)) & rows["value"].isna() & rows["applies"]
        & (rows["attribute"] != "")
    ]  # fmt: skip
    merged: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for row in lacks.to_dict("records"):
        gap = find_metric(row["metric"]).gap
        rates = {f"{quantity.name}_by_group" for quantity in gap.of} if gap else set()
        of_rates = rows[rows["metric"].isin(rates) & (rows["attribute"] == row["attribute"])]
        groups = of_rates[of_rates["value"].isna()].drop_duplicates(["group", "note"])
        shown = tuple(
            f"{group['group']} ({f'{note}, ' if (note := group['note']) else ''}"
            f"{counted({'rows': group['n']})})"
            for group in groups.to_dict("records")
        )
        why = (row["attribute"], shown, "" if shown else f": {row['note']}")
        merged.setdefault(why, []).append(names[row["metric"]])
    return [
        Lack(f"{attribute}: {', '.join(gaps_)} not defined{note}", shown)
        for (attribute, shown, note), gaps_ in merged.items()
    ]


def uncertain(rows: pd.DataFrame) -> list[str]:
    """Why gaps have no narrower interval than all possible values, or than from a bound on."""
    names = gap_names(rows)
    unknown = (rows["interval"] == ALL_VALUES) | (rows["value"].isna() & (rows["low"] > 0))
    of_gaps = rows[rows["metric"].isin(list(names)) & unknown]
    said: dict[tuple[str, str, str], list[str]] = {}
    for row in of_gaps.to_dict("records"):
        every = row["interval"] == ALL_VALUES
        known = "any value" if every else f"any value from {number(row['low'])} on"
        key = (row["attribute"], known, row["note"])
        said.setdefault(key, []).append(names[row["metric"]])
    return [
        f"{attribute}: {known} of the {', '.join(gaps_)} is possible: {note}"
        for (attribute, known, note), gaps_ in said.items()
    ]


def console(audit: AuditFindings) -> Iterator[tuple[str, bool]]:
    """The lines of warnings, verdict, gates, gaps and what is missing; whether each failed."""
    rows, judgements = audit.rows, audit.judgements
    for text in filter(None, (audit.warning, *of_strata(audit), audit.assumption)):
        yield f"warning: {text}", False
    yield from ((f"hint: {line}", False) for line in _first(audit.hints, MOST_LINES))
    yield from ((f"{line}.", False) for line in answers(audit))
    if audit.then:
        yield f"{audit.name} against {audit.then}", False
    yield from ((f"{line}.", False) for line in who(audit))
    if text := advice(audit):
        yield f"{text}.", False
    verdicts = [judgement.verdict for judgement in judgements]
    counts = [f"{verdicts.count(name)} {name}" for name in VERDICTS if name in verdicts]
    if counts:
        yield f"gates: {', '.join(counts)}", False
    undecided = _lines(judgements, "INCONCLUSIVE")
    yield from ((f"failed: {line}", True) for line in _lines(judgements, "FAIL"))
    yield from ((f"inconclusive: {line}", False) for line in undecided)
    if audit.monitor is not None:
        said_by_monitor = [line for line, _ in audit.monitor.sentences()]
        yield from ((f"monitor: {line}", False) for line in _first(said_by_monitor, MOST_LINES))
    yield from ((line, False) for line in _first(gaps(rows, audit.changed), MOST_LINES))
    if audit.why is not None:
        yield from ((f"why: {line}", False) for line in _first(audit.why.sentences(), MOST_LINES))
    if worst := worst_group(rows):
        yield worst, False
    yield from ((f"search: {worst}", False) for worst in audit.worst)
    if audit.power:
        yield power_line(audit), False
    yield from ((line, False) for line in _first([*map(str, undefined(rows))], MOST_LINES))
    yield from ((line, False) for line in _first(uncertain(rows), MOST_LINES))
    yield from ((line, False) for line in _first(lacking(audit), MOST_LINES))


def _lines(judgements: Sequence[Judgement], verdict: Verdict) -> list[str]:
    """The gates of a verdict, one line each."""
    return _first(
        [judgement.reason for judgement in judgements if judgement.verdict == verdict], MOST_GATES
    )


def _first(lines: Sequence[str], most: int, further: str = "are on the page") -> list[str]:
    """The first lines, and how many more there are."""
    if len(lines) <= most:
        return list(lines)
    return [*lines[: most - 1], f"{len(lines) - most + 1} more {further}"]
