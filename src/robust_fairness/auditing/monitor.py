"""Gaps over any number of periods, and a monitor that may be looked at after each of them.

The monitor knows counts of groups, classes and predictions of every period, and nothing else. It is
therefore the same whether it is made from all rows again or from its file and the rows of a month.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from robust_fairness.auditing.changes import change_of
from robust_fairness.auditing.followed import FEWEST, Followed, hits_of, values_of
from robust_fairness.auditing.periods import Periods, order_of, periods_of, span
from robust_fairness.auditing.predictions import Predictions
from robust_fairness.auditing.read.cleaning import plain_code
from robust_fairness.auditing.read.columns import require_same_spelling
from robust_fairness.auditing.state import read, written
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.core.numbers import counted, estimate, number
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.counts import TWO, Counts
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.sequential import FEWEST_PERIODS

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
            value, low, high = values = values_of(gap.of, counts)
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
        self._require_alike(state, place)
        new = [name for name in self.periods if name not in state.periods]
        self._require_later(new, state, place)
        joined = {name: self._joined(name, state, new, place) for name in state.counts}
        return replace(
            state, periods=(*state.periods, *new), counts=joined, margin=self.margin,
            metrics=self.metrics,
        )  # fmt: skip

    def _require_alike(self, state: "Monitor", place: str) -> None:
        """Check that a state has the same columns, kind of periods and attributes."""
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

    def _require_later(self, new: Sequence[str], state: "Monitor", place: str) -> None:
        """Check that new periods are later than those of a state."""
        last = order_of(self.kind, state.periods[-1])
        for name in new:
            rounded = f"{float(name):g}" if self.kind == "number" else name
            if rounded in state.periods and ("e" in rounded or "." in name):
                raise InputError(
                    f"{place}: period {name} may be in {rounded}, a name that an earlier version "
                    "rounded; make the state again from the tables"
                )
            if self.kind != "name" and order_of(self.kind, name) <= last:
                raise InputError(
                    f"{place}: period {name} is earlier than its last one, {state.periods[-1]}; "
                    "allowed: later periods, or all periods without a state"
                )

    def _joined(self, attribute: str, state: "Monitor", new: Sequence[str], place: str) -> Counts:
        """Counts of a state with new periods; a period of both has the same rows."""
        added, kept = self.counts[attribute], state.counts[attribute]
        plain = tuple(map(plain_code, kept.groups))  # 1.0 of a state is 1
        kept = replace(kept, groups=plain) if len({*plain}) == len(plain) else kept
        places = [f"the table, column {attribute},", f"{place}, attribute {attribute},"]
        require_same_spelling(added.groups, kept.groups, places)
        groups = tuple(sorted({*kept.groups, *added.groups}))
        rows, old = added.of_groups(groups), kept.of_groups(groups)
        for here, name in enumerate(self.periods):
            if name not in new and (rows.n[here] != old.n[state.periods.index(name)]).any():
                raise InputError(
                    f"{place}: period {name} has other rows than when it was added; a period "
                    "is added once, when it is complete"
                )
        return old.before(rows[[self.periods.index(name) for name in new]])

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
        counts = {
            name: {
                group: of_attribute.n[:, code].reshape(-1, TWO * TWO).tolist()
                for code, group in enumerate(of_attribute.groups)
            }
            for name, of_attribute in self.counts.items()
        }
        return written(
            about=dict(self.about), kind=self.kind, periods=list(self.periods),
            reference=self.reference, counts=counts,
        )  # fmt: skip

    @classmethod
    def from_json(cls, text: str | bytes, place: str) -> "Monitor":
        """The state that ``to_json`` wrote.

        Raises:
            InputError: it is no state, of another version, or was changed.
        """
        state = read(text, place)
        counts, shape = {}, (-1, len(state.periods), TWO, TWO)
        for name, groups in state.counts.items():
            rows = np.array([*groups.values()], np.int64).reshape(shape)
            counts[name] = Counts.of_rows(np.moveaxis(rows, 0, 1), tuple(groups))
        return cls(state.about, state.kind, tuple(state.periods), state.reference, counts)


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
