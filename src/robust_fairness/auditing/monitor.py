"""Gaps over any number of periods, and a monitor that may be looked at after each of them.

The monitor knows counts of groups, classes and predictions of every period, and nothing else. It is
therefore the same whether it is made from all rows again or from its file and the rows of a month.

A gap has grown when it is above ``bound``, its exact upper bound in the reference, plus a margin,
by default ``DEVIATIONS`` standard deviations of what varies between periods of the reference. The
gap of a reference of any size is above that bound with a probability of at most half of the
family's error, shared by all gaps; an e-process, which is averaged over groups, rates, sizes and
starts of a growth (``numbers.sequential``), is above its limit with that of the other half,
whenever one looks.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Self

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field, model_validator

from robust_fairness.auditing.changes import change_of
from robust_fairness.auditing.digits import estimate, number
from robust_fairness.auditing.periods import Periods, order_of, periods_of, span
from robust_fairness.auditing.predictions import Predictions
from robust_fairness.auditing.read.cleaning import plain_code
from robust_fairness.auditing.read.columns import require_same_spelling
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import checksum
from robust_fairness.core.rendering.html import counted
from robust_fairness.metrics import Gap, find_metric
from robust_fairness.numbers.counts import TWO, Counts
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.intervals import bounds_of_gap
from robust_fairness.numbers.rates import LinearGap, linear_gap
from robust_fairness.numbers.sequential import (
    FEWEST_PERIODS,
    Batches,
    Growth,
    Reference,
    growth,
    lower_bound,
)

VERSION = 1
FORMAT = "robust-fairness monitor"
DEVIATIONS = 3.0  # between periods of the reference, that are no growth
FEWEST = 30  # rows that each rate of a group has in the reference, or the group is left out
MONITOR = {
    "attribute": "str", "metric": "str", "period": "str", "role": "str",
    "value": "float64", "low": "float64", "high": "float64", "n": "int64",
    "change": "float64", "change_low": "float64", "change_high": "float64",
    "bound": "float64", "evidence": "float64", "limit": "float64", "alarm": "bool",
}  # fmt: skip
REFERENCE, FOLLOWED = "reference", "followed"
METRICS = (
    "equalized_odds_difference", "equal_opportunity_difference", "demographic_parity_difference",
)  # fmt: skip


@dataclass(frozen=True)
class Monitor:
    """Counts of a reference and of every period since.

    Attributes:
        about: what the counts are of, such as the columns and the threshold.
        kind: the order of periods, see ``Periods``.
        periods: their names in their order.
        reference: how many of them, from the first on, are the reference.
        counts: by attribute, with periods as their first axis.
        margin: by how much gaps may grow, None: see above; no part of the state.
        metrics: names of the gaps that are followed, likewise.
    """

    about: Mapping[str, str]
    kind: str
    periods: tuple[str, ...]
    reference: int
    counts: Mapping[str, Counts]
    margin: float | None = None
    metrics: Sequence[str] = METRICS

    @cached_property
    def gaps(self) -> list["Followed"]:
        """The gaps of every attribute that two groups or more have a reference for."""
        gaps = []
        for attribute, counts in self.counts.items():
            before, since = counts[: self.reference], counts[self.reference :]
            for metric in self.metrics:
                gap = find_metric(metric).gap
                assert gap is not None
                _, n = hits_of(gap, before.sum())
                enough = np.asarray((n.reshape(len(gap.of), -1) >= FEWEST).all(0))
                if enough.sum() >= TWO:
                    left_out = tuple(np.array(counts.groups, dtype=object)[~enough])
                    compared = since.take(enough), before.take(enough)
                    gaps.append(Followed(attribute, metric, gap, left_out, *compared))
        return [replace(gap, family=len(gaps), margin=self.margin) for gap in gaps]

    def to_frame(self) -> pd.DataFrame:
        """A row per gap and period with the columns ``MONITOR``, the reference first."""
        return self._frame.copy()

    @cached_property
    def _frame(self) -> pd.DataFrame:
        reference, since = self.periods[: self.reference], self.periods[self.reference :]
        frames = []
        for gap in self.gaps:
            counts = gap.reference.before(gap.counts)
            value, low, high = values = _values(gap.of, counts)
            change = [value - value[0], *change_of(values, values[:, :1])]
            for part in change:
                part[0] = np.nan  # of the reference
            columns = {
                "attribute": gap.attribute, "metric": gap.metric,
                "period": [span(reference), *since],
                "role": [REFERENCE, *(FOLLOWED for _ in since)],
                "value": value, "low": low, "high": high, "n": counts.known().sum(-1),
                "change": change[0], "change_low": change[1], "change_high": change[2],
                "bound": gap.bound, "evidence": [np.nan, *gap.evidence], "limit": gap.limit,
                "alarm": [
                    gap.alarm is not None and place >= gap.alarm
                    for place in range(-1, len(since))
                ],
            }  # fmt: skip
            frames.append(pd.DataFrame(columns).astype(MONITOR))
        return pd.concat(frames or [tables.table(MONITOR, [])], ignore_index=True)

    @property
    def alarms(self) -> list[tuple[str, str]]:
        """Attributes of gaps with an alarm, and the periods in which these grew, most likely."""
        periods = self.periods[self.reference :]
        return [(gap.attribute, periods[gap.since]) for gap in self.gaps if gap.alarm is not None]

    @property
    def not_followed(self) -> dict[str, str]:
        """A line per attribute of which a gap is not followed, where there are periods to follow.

        No two groups have enough rows in the reference, or have rows in the last period; or a group
        that the reference lacks has enough rows since then.
        """
        since = self.periods[self.reference :]
        lines = {}
        for attribute, counts in self.counts.items() if since else ():
            gaps = [gap for gap in self.gaps if gap.attribute == attribute]
            left_out = [name for name in counts.groups if any(name in gap.left_out for gap in gaps)]
            rows = dict(zip(counts.groups, counts[self.reference :].sum().known(), strict=True))
            new = [name for name in left_out if rows[name] >= FEWEST]
            if not gaps:
                problem = f"fewer than two groups have {FEWEST} rows of each rate in the reference"
            elif new:
                problem = f"the reference has too few rows of {', '.join(new)}"
            elif any((gap.counts.known()[-1] > 0).sum() < TWO for gap in gaps):
                problem = f"fewer than two of its groups have rows in {since[-1]}"
            else:
                continue
            lines[attribute] = f"{attribute} is not followed: {problem}; make the state again"
        return lines

    def sentences(self) -> list[tuple[str, bool]]:
        """A line per alarm, per attribute that is not followed, and one for all other gaps.

        With each line whether the monitor fails by it.
        """
        since = self.periods[self.reference :]
        lacking = self.not_followed
        said = [(line, True) for line in lacking.values()]
        quiet = []
        for gap in self.gaps:
            if gap.alarm is None:
                quiet += [] if gap.attribute in lacking else [(gap.attribute, gap.metric)]
                continue
            line = (
                f"{gap.attribute}: {gap.name} grew, most likely in {since[gap.since]}, from at "
                f"most {number(gap.bound, 0, gap.bound)} to at least "
                f"{number(gap.least_since, 0, gap.bound)}; alarm in {since[gap.alarm]}"
                f"{self._said_of_margin(gap)}"
            )
            said.append((line, True))
        if quiet and since:
            rows = self._frame[self._frame["role"] == FOLLOWED]
            of_quiet = pd.MultiIndex.from_frame(rows[["attribute", "metric"]]).isin(quiet)
            line = f"no alarm, {counted({'gaps': len(quiet), 'periods': len(since)})}"
            for row in rows[of_quiet].nlargest(1, "value").to_dict("records"):
                line += (
                    f"; largest: {row['attribute']}, {row['metric'].replace('_', ' ')} "
                    f"{estimate(row['value'], row['low'], row['high'])} in {row['period']}"
                )
            said.append((line, False))
        return said

    def _said_of_margin(self, gap: "Followed") -> str:
        """What the margin of an alarm is; "" if it was given, or is 0 as the reference shows."""
        if gap.margin is not None:
            return ""
        if self.reference < FEWEST_PERIODS:
            return (
                f"; a reference of {FEWEST_PERIODS} periods (--first) would show how much a gap "
                "varies between them"
            )
        most = number(gap.allowed, 0, gap.bound)
        return f"; between periods of the reference up to {most} is usual" if gap.allowed else ""

    def after(self, state: "Monitor", place: str) -> "Monitor":
        """The periods of a state and those that are new here.

        Raises:
            InputError: both are of other columns or kinds of periods, a period of both has other
                rows here, or a new one is earlier than the last one of the state.
        """
        if state.kind == "name" != self.kind:
            state = state.in_order(place)
        for name in sorted({*self.about, *state.about, "periods"}):
            here, there = (
                monitor.kind if name == "periods" else monitor.about.get(name, "none")
                for monitor in (self, state)
            )
            if here != there:
                raise InputError(f"{place}: {name} is {there!r}, this table has {here!r}")
        if {*self.counts} != {*state.counts}:
            raise InputError(
                f"{place}: attributes {', '.join(state.counts)}, this table has "
                f"{', '.join(self.counts)}"
            )
        require_same_spelling(self.periods, state.periods, ["the table", place])
        new = [name for name in self.periods if name not in state.periods]
        for name in new:
            rounded = f"{float(name):g}" if self.kind == "number" else name
            if rounded in state.periods and ("e" in rounded or "." in name):
                raise InputError(
                    f"{place}: period {name} may be in {rounded}, a name that an earlier version "
                    "rounded; make the state again from the tables"
                )
            last = order_of(self.kind, state.periods[-1])
            if self.kind != "name" and order_of(self.kind, name) <= last:
                raise InputError(
                    f"{place}: period {name} is earlier than its last one, {state.periods[-1]}; "
                    "allowed: later periods, or all periods without a state"
                )
        joined = {}
        for attribute, kept_counts in state.counts.items():
            added = self.counts[attribute]
            plain = tuple(map(plain_code, kept_counts.groups))  # 1.0 of a state is 1
            unique = len({*plain}) == len(plain)
            counts = replace(kept_counts, groups=plain) if unique else kept_counts
            places = [f"the table, column {attribute},", f"{place}, attribute {attribute},"]
            require_same_spelling(added.groups, counts.groups, places)
            groups = tuple(sorted({*counts.groups, *added.groups}))
            rows, old = added.of_groups(groups), counts.of_groups(groups)
            for place_here, name in enumerate(self.periods):
                if (
                    name not in new
                    and (rows.n[place_here] != old.n[state.periods.index(name)]).any()
                ):
                    raise InputError(
                        f"{place}: period {name} has other rows than when it was added; a period "
                        "is added once, when it is complete"
                    )
            kept = [self.periods.index(name) for name in new]
            joined[attribute] = old.before(rows[kept])
        periods = (*state.periods, *new)
        return replace(
            state, periods=periods, counts=joined, margin=self.margin, metrics=self.metrics
        )

    def in_order(self, place: str) -> "Monitor":
        """The monitor with periods of which an earlier version knew the names only."""
        periods = periods_of(pd.Series(self.periods), None, place)
        if (np.diff(periods.codes) <= 0).any():
            raise InputError(
                f"{place}: periods {', '.join(self.periods)} are not in their order; make the "
                "state again from the tables"
            )
        return replace(self, kind=periods.kind, periods=periods.names)

    def to_json(self) -> str:
        """The state as JSON: counts only, with a version and a checksum."""
        content = {
            "format": FORMAT, "version": VERSION, "about": dict(self.about), "kind": self.kind,
            "periods": list(self.periods), "reference": self.reference,
            "counts": {
                name: {
                    group: counts.n[:, code].reshape(-1, TWO * TWO).tolist()
                    for code, group in enumerate(counts.groups)
                }
                for name, counts in self.counts.items()
            },
        }  # fmt: skip
        return json.dumps(content | {"checksum": checksum(content)}) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes, place: str) -> "Monitor":
        """The state that ``to_json`` wrote.

        Raises:
            InputError: it is no state, of another version, or was changed.
        """
        try:
            content = json.loads(text)
            if content["format"] != FORMAT:
                raise KeyError("format")
            if content["version"] != VERSION:
                raise InputError(
                    f"{place}: state of version {content['version']}, allowed: {VERSION}; make it "
                    "again from the tables"
                )
            if content.pop("checksum") != checksum(content):
                raise InputError(
                    f"{place}: was changed since it was written; restore it, or make it again from "
                    "the tables"
                )
            state = State.model_validate(content)
        except InputError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError):
            raise InputError(f"{place}: is no state of a monitor") from None
        counts, shape = {}, (-1, len(state.periods), TWO, TWO)
        for name, groups in state.counts.items():
            rows = np.array([*groups.values()], np.int64).reshape(shape)
            counts[name] = Counts.of_rows(np.moveaxis(rows, 0, 1), tuple(groups))
        return cls(state.about, state.kind, tuple(state.periods), state.reference, counts)


Count = Annotated[int, Field(ge=0, lt=2**53)]
Table = Annotated[list[Count], Field(min_length=TWO * TWO, max_length=TWO * TWO)]


class State(BaseModel, extra="forbid", strict=True):
    """What the file of a monitor holds: a table of rows by attribute, group and period."""

    format: str
    version: int
    about: dict[str, str]
    kind: str
    periods: list[str]
    reference: int
    counts: dict[str, dict[str, list[Table]]]

    @model_validator(mode="after")
    def _require_periods(self) -> Self:
        number = len({*self.periods})
        tables = [rows for groups in self.counts.values() for rows in groups.values()]
        if not self.reference >= 1 or number != len(self.periods) or not number:
            raise ValueError("periods: allowed: one or more, each once")
        if any(len(rows) != number for rows in tables):
            raise ValueError("counts: allowed: a table per period")
        return self


def monitor_of(
    predictions: Predictions,
    periods: Periods,
    groups: Mapping[str, Groups],
    about: Mapping[str, str],
    reference: int = 1,
    metrics: Sequence[str] = (),
) -> Monitor:
    """The counts of a table.

    Args:
        predictions: of two classes.
        periods: of the rows.
        groups: by attribute.
        about: what the counts are of.
        reference: number of periods, from the first on, that are the reference.
        metrics: names of metrics; gaps among them are followed beside ``METRICS``.

    Raises:
        InputError: the target has not two classes, or there are fewer periods.
    """
    classes = predictions.samples.classes
    if len(classes) != TWO:
        raise InputError(
            f"period: a monitor needs a target of two classes, this one has "
            f"{len(classes) or 'numbers'}"
        )
    counts = {}
    for name, of_rows in groups.items():
        known = of_rows.index >= 0
        shape = (len(periods.names), len(of_rows.names), TWO, TWO)
        codes = (periods.codes, of_rows.index, predictions.samples.y, predictions.prediction)
        place = np.ravel_multi_index(tuple(part[known] for part in codes), shape)
        rows = np.bincount(place, minlength=int(np.prod(shape))).reshape(shape)
        counts[name] = Counts.of_rows(rows, of_rows.names).of_groups(sorted(of_rows.names))
    of_classes = {"classes": ", ".join(classes), "predictions": predictions.kind}
    followed: dict[tuple[str, ...], str] = {}
    for metric in map(find_metric, [*METRICS, *metrics]):
        if metric.gap is not None and metric.gap.how == "largest" and metric.is_counted:
            compared = tuple(quantity.name for quantity in metric.gap.of)
            followed.setdefault(compared, metric.name)
    return Monitor(
        {**about, **of_classes}, periods.kind, periods.names, reference, counts,
        metrics=tuple(followed.values()),
    )  # fmt: skip


@dataclass(frozen=True)
class Followed:
    """A gap in the reference and in every period since.

    Attributes:
        attribute: whose groups are compared.
        metric: name of the gap.
        of: the gap.
        left_out: groups with fewer than ``FEWEST`` rows of a rate in the reference.
        counts: of the periods since the reference.
        before: of those of the reference.
        family: number of gaps that are followed together.
        margin: by how much the gap may grow; None: what varies between periods of the reference.
    """

    attribute: str
    metric: str
    of: Gap
    left_out: tuple[str, ...]
    counts: Counts
    before: Counts
    family: int = 1
    margin: float | None = None

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that are compared."""
        return self.before.groups

    @cached_property
    def reference(self) -> Counts:
        """Counts of the reference."""
        return self.before.sum()

    @property
    def name(self) -> str:
        """Name of the gap in words."""
        return self.metric.replace("_", " ")

    @property
    def limit(self) -> float:
        """The evidence from which on there is an alarm."""
        return self.family / (LEVEL / 2)

    @cached_property
    def bound(self) -> float:
        """The largest gap that is no growth."""
        return float(np.minimum(self._bounds[0], 1.0).max() + (self.margin or 0.0) + self.allowed)

    @cached_property
    def allowed(self) -> float:
        """By how much the bound is higher since the gap varies between periods of the reference."""
        if self.margin is not None:
            return 0.0
        most, varied = self._bounds
        return float((most + varied).max() - most.max())

    @cached_property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Exact upper bounds of the differences in the reference, and what varies of each."""
        reference, functions = Reference(*hits_of(self.of, self.before)), self._gap.functions
        most = reference.most(functions, LEVEL / 2 / self.family)
        return most, DEVIATIONS * reference.variation(functions)

    @cached_property
    def evidence(self) -> np.ndarray:
        """The e-process after each period, at most 1e300."""
        log_e = self._growth.log_e if len(self.counts.n) else np.empty(0)
        return np.asarray(np.exp(np.minimum(log_e, 690.0)))

    @cached_property
    def alarm(self) -> int | None:
        """The number of the period with the first alarm; None without one."""
        return self._growth.alarm(1 / self.limit) if len(self.counts.n) else None

    @cached_property
    def since(self) -> int:
        """The number of the period in which the gap most likely grew; 0 without an alarm.

        No later one than that of the alarm, also where the gap grows further.
        """
        return 0 if self.alarm is None else int(self._growth.start[: self.alarm + 1].argmax())

    @cached_property
    def least_since(self) -> float:
        """What the largest gap from ``since`` on is at least, which holds whenever one looks."""
        return lower_bound(self._batches, self._gap, self.since, LEVEL / 2)

    @property
    def _gap(self) -> LinearGap:
        return linear_gap("largest", len(self.groups), len(self.of.of))

    @cached_property
    def _batches(self) -> Batches:
        return Batches.of(*hits_of(self.of, self.counts), *hits_of(self.of, self.reference))

    @cached_property
    def _growth(self) -> Growth:
        return growth(self._batches, self._gap, self.bound)


def hits_of(gap: Gap, counts: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Hits and rows of the rates of a gap, float64 ``[..., rates]`` in the order rate, group."""
    parts = [counts.hits(*counts.row_values(quantity)) for quantity in gap.of]
    hits, n = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    return hits, n


def _values(gap: Gap, counts: Counts) -> np.ndarray:
    """A gap with its interval, ``[3, periods]``; NaN where a group has no rows of a rate."""
    hits, n = hits_of(gap, counts)
    known = n.all(-1)
    shares = (hits[known] / n[known]).reshape(-1, len(gap.of), len(counts.groups))
    values = np.full((3, len(n)), np.nan)
    values[:, known] = np.ptp(shares, axis=2).max(1), *bounds_of_gap(gap, counts[known])
    return values
