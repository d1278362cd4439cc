"""Gates: conditions that fail an audit, such as ``equalized_odds_difference[sex]>0.1``.

A condition on a change is ``change(equalized_odds_difference[sex])>0.05``, one on a group
``accuracy_by_group[sex=female]<0.7``.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.auditing.labelled import NO_PART
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.numbers import number, within

FORM = re.compile(
    r"\s*(?P<change>change\s*\(\s*)?(?P<metric>[a-z][a-z0-9_]*)\s*(\[(?P<attribute>.+?)\])?\s*"
    r"(?(change)\)\s*)(?P<sign>>=|<=|>|<)"
    r"\s*(?P<limit>[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)\s*"
)
EXAMPLES = "equalized_odds_difference[sex]>0.1, accuracy_by_group<0.7 or change(accuracy)<-0.02"
SHORT = {"dp": "delta_dp", "eo": "delta_eo", "impact_ratio": "demographic_parity_ratio"}
AMBIGUOUS = {
    "eopp": (
        "equal_opportunity_difference (true positive rates)",
        "delta_eopp (true negative rates, as printed in Equalized Robustness)",
    ),
    "eod": (
        "equalized_odds_difference (the larger gap)",
        "delta_eo (the sum of both gaps)",
        "equal_opportunity_difference",
    ),
}
# What is defined for any number of groups where these are for two.
ANY_GROUPS = {
    "delta_dp": "demographic_parity_difference",
    "delta_eo": "equalized_odds_difference",
    "disparate_impact": "demographic_parity_ratio",
}
EMPTY: Mapping[str, str] = {}
COMPARED = {">": np.greater, ">=": np.greater_equal, "<": np.less, "<=": np.less_equal}

PLAIN, SIMULTANEOUS = "95 %", "simultaneous 95 %"  # intervals
Rule = Literal["estimate", "evidence", "doubt"]
Verdict = Literal["FAIL", "INCONCLUSIVE", "PASS"]
VERDICTS: tuple[Verdict, ...] = ("FAIL", "INCONCLUSIVE", "PASS")


@dataclass(frozen=True)
class Gate:
    """A condition that fails an audit.

    Attributes:
        text: as it was written.
        metric: what is judged.
        attribute: only of this attribute; "" of all.
        sign: the comparison.
        limit: what is compared with.
        change: whether the change since an earlier period is judged.
        group: only of this group of the attribute; "" of all.
    """

    text: str
    metric: str
    attribute: str
    sign: str
    limit: float
    change: bool = False
    group: str = ""

    def judgements(
        self,
        rows: pd.DataFrame,
        rule: Rule = "estimate",
        lacking: Mapping[str, str] = EMPTY,
        intervals: str = PLAIN,
    ) -> Iterator["Judgement"]:
        """The judgement of each value of the metric.

        Args:
            rows: rows of an audit, or changes as ``as_values`` makes them.
            rule: what fails the gate: an ``estimate`` that meets the condition; ``evidence``, an
                interval that meets it as a whole; or ``doubt``, one that meets it in part. A value
                without interval is its own; the estimate of a small group and a value that is not
                defined need evidence. Where a bound is not known every value is possible.
            lacking: attributes without groups, and why; a gate on groups fails on each of them.
            intervals: which intervals the rows have, in words.
        """
        if self.change and "change" not in rows:
            raise InputError(f"gate {self.text!r}: a change needs an earlier period")
        judged = rows[rows["metric"] == self.metric]
        if self.attribute:
            judged = judged[judged["attribute"] == self.attribute]
        of_groups = judged.empty or (judged["attribute"] != "").any()
        unjudged = {
            name: reason for name, reason in lacking.items()
            if of_groups and self.attribute in ("", name) and name not in {*judged["attribute"]}
        }  # fmt: skip
        nothing = Judged(applies=False)
        yield from (
            Judgement(self, "FAIL", f"{self.text}: {reason}", Judged(name, applies=False))
            for name, reason in unjudged.items()
        )
        if self.group:
            known = rows.loc[(rows["attribute"] == self.attribute) & (rows["group"] != ""), "group"]
            if self.group not in {*known}:
                raise unknown_name("group", self.group, known.unique(), f"gate {self.text!r}")
            judged = judged[judged["group"] == self.group]
            if judged.empty:
                raise InputError(
                    f"gate {self.text!r}: {self.metric} has no value of a group; allowed: metrics "
                    "such as accuracy_by_group"
                )
        if judged.empty and not unjudged:
            yield Judgement(self, "FAIL", f"{self.text}: the audit has no such row", nothing)
        if "small" not in judged:  # changes
            judged = judged.assign(small=False, applies=True)
        judged = judged.reindex(columns=[field.name for field in fields(Judged)])
        for row in judged.itertuples(index=False):
            yield self._judgement(Judged(*row), rule, intervals)

    def _judgement(self, row: "Judged", rule: Rule, intervals: str) -> "Judgement":
        place = f"{self.metric}{f' ({row.place})' if row.place else ''}"
        if self.change:
            place = f"change of {place}"
        if not row.applies:
            other = ANY_GROUPS.get(self.metric)
            advice = f"; {other} is for any number of groups" if other else ""
            reason = f"{self.text}: {place} has no value: {row.note}{advice}"
            return Judgement(self, "FAIL", reason, row)
        verdict = self._verdict(row, rule)
        value = "not defined" if np.isnan(row.value) else number(row.value, row.low, row.high)
        if np.isfinite(row.value) and float(value.replace(",", "")) == self.limit != row.value:
            value = f"{row.value:.6g}"  # the side of the limit that it is on
        interval = within(row.low, row.high).replace("(", f"({intervals} ")
        reason = f"{self.text}: {place} is {value}{interval}"
        if np.isnan(row.value) and row.note:
            reason += f"; {row.note}"
        evident = self._verdict(row, "evidence") == verdict
        if verdict == "FAIL" and not evident:
            estimated = "the estimate fails, its interval does not exclude values that pass"
            possible = "its interval does not exclude values that fail"
            reason += f"; {estimated if self.meets(row.value) else possible}"
        return Judgement(self, verdict, reason, row, evident, intervals)

    def meets(self, value: float) -> bool:
        """Whether a value meets the condition; one that is not defined does not."""
        return bool(COMPARED[self.sign](value, self.limit))

    def _verdict(self, row: "Judged", rule: Rule) -> Verdict:
        defined = bool(np.isfinite(row.value))
        low, high = row.low, row.high
        if defined and np.isnan(low) and np.isnan(high):
            low = high = row.value
        ends = (-np.inf if np.isnan(low) else low, np.inf if np.isnan(high) else high)
        by_end = [self.meets(end) for end in ends]
        fails = {
            "estimate": all(by_end)
            if (row.group and row.small) or not defined
            else self.meets(row.value),
            "evidence": all(by_end),
            "doubt": any(by_end),
        }
        if fails[rule]:
            return "FAIL"
        return "INCONCLUSIVE" if any(by_end) else "PASS"


@dataclass(frozen=True)
class Judged:
    """A value that a gate judges."""

    attribute: str = ""
    group: str = ""
    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    n: float = np.nan
    note: str = ""
    small: bool = False
    applies: bool = True

    @property
    def place(self) -> str:
        """Attribute and group, separated by a comma."""
        return ", ".join(filter(None, (str(self.attribute), str(self.group))))


@dataclass(frozen=True)
class Judgement:
    """The verdict of a gate on a value, with one line that says why, and whether it is evident.

    ``intervals`` says in words which interval the value has.
    """

    gate: Gate
    verdict: Verdict
    reason: str
    row: Judged = Judged()
    evident: bool = True
    intervals: str = PLAIN

    def undecided(self) -> "Judgement":
        """The same of a value that rests on labels which are no random part of the rows."""
        if not self.row.applies:
            return self
        reason = f"{self.reason}; {NO_PART}"
        return replace(self, verdict="INCONCLUSIVE", reason=reason, evident=False)


def as_values(changes: pd.DataFrame) -> pd.DataFrame:
    """Changes as values, which gates judge; n is that of the smaller period."""
    return changes.assign(value=changes["change"], n=changes[["now_n", "then_n"]].min(axis=1))


def parse(text: str) -> Gate:
    """The gate of a text: a metric, optionally an attribute, a comparison and a number."""
    parts = FORM.fullmatch(text)
    if parts is None or not np.isfinite(float(parts["limit"])):
        raise InputError(
            f"gate {text!r}, allowed: a metric, a comparison and a number, such as {EXAMPLES}"
        )
    metric = SHORT.get(parts["metric"], parts["metric"])
    if metric in AMBIGUOUS:
        raise InputError(
            f"gate {text.strip()!r}: {metric} may be {' or '.join(AMBIGUOUS[metric])}; "
            "allowed: one of these names"
        )
    attribute, _equals, group = (parts["attribute"] or "").partition("=")
    return Gate(
        text.strip(), metric, attribute.strip(), parts["sign"], float(parts["limit"]),
        bool(parts["change"]), group.strip(),
    )  # fmt: skip
