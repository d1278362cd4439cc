"""The page of an audit: one file without scripts that needs no network."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from robust_fairness.auditing.change_parts import ALL, COLUMN, OF_SHARE, PARTS, REGION, Why, name_of
from robust_fairness.auditing.changes import MIX, joined
from robust_fairness.auditing.curves import KEPT, Curve, curves
from robust_fairness.auditing.definitions import definition
from robust_fairness.auditing.drawing import (
    axis_of,
    curves_svg,
    groups_figure,
    interval_svg,
    series_svg,
)
from robust_fairness.auditing.findings import AuditFindings
from robust_fairness.auditing.gates import Judgement
from robust_fairness.auditing.metric_names import MISSING, SHARE
from robust_fairness.auditing.monitor import Monitor
from robust_fairness.auditing.verdict import (
    Lack,
    advice,
    answers,
    lacking,
    of_strata,
    power_line,
    uncertain,
    undefined,
    who,
)
from robust_fairness.auditing.who import Panel
from robust_fairness.core.numbers import number, within
from robust_fairness.core.rendering.forest import SHAPES
from robust_fairness.core.rendering.html import rendered
from robust_fairness.metrics import find_metric

MOST_GROUPS = 30  # of an attribute, which the page shows
MOST_LINES = 6  # attributes of the first figure
MOST_SHOWN = 10  # groups of each of them
MOST_CROSSED = 6  # intersections
MOST_GATES = 60  # lines of gates
MOST_COLUMNS = 5  # that tell the periods apart
SHARES_OF = {"group_share": "share of {}", "positive_share": "positive class in {}"}
NO_METRICS = (MISSING, SHARE, MIX)
SHARES = (0.0, 1.0)
NO_CHANGE = {"text": "", "word": ""}
OF_THEN = ("then", "then_low", "then_high", "change", "low_change", "high_change")
UNCHANGED: dict[str, Any] = {
    **dict.fromkeys(OF_THEN, np.nan),
    "note_change": "",
}  # columns without a reference
# Rates of groups, and what they are of all rows.
RATES = {
    f"{rate}_by_group": rate
    for rate in (
        "accuracy", "selection_rate", "true_positive_rate", "false_positive_rate", "precision",
    )
}  # fmt: skip


def audit_page(audit: AuditFindings) -> str:
    """The page as HTML; the same audit gives the same text."""
    rows, predictions, options = audit.rows, audit.predictions, audit.options
    changes, table = audit.changed, rows[rows["applies"]]
    if changes is None:
        table = table.assign(**UNCHANGED)
    else:
        empty = {"note": "", "note_change": "", "small": False}
        table = joined(table, changes).fillna(empty)
    names = [str(name) for name in rows["attribute"].unique() if name]
    order = {name: number for number, name in enumerate(options.sensitive_features)}
    names.sort(key=lambda name: (order.get(name, len(order)), name))
    drawn = {}
    if predictions.labelled and len(predictions.score) and predictions.score.ndim == 1:
        samples, score, weight = predictions.samples, predictions.score, predictions.weight
        drawn = curves(samples.y, score, predictions.groups, weight)
    of_rates = audit.figure.panels if audit.figure else []
    return rendered(
        "robust_fairness.auditing",
        "audit.html",
        audit=audit,
        rows=f"{len(predictions.samples):,}",
        kind=predictions.kind,
        classes=predictions.samples.classes,
        answers=answers(audit),
        advice=advice(audit),
        who=who(audit),
        shapes=SHAPES,
        figures=[*_figures(of_rates)],
        estimated=audit.assumption and predictions.known is None,
        limited=any(panel.limit is not None for panels in of_rates for panel in panels),
        strata=of_strata(audit),
        searched=[str(worst) for worst in audit.worst],
        gates=[_gate_line(judgement) for judgement in audit.judgements[:MOST_GATES]],
        hidden_gates=max(0, len(audit.judgements) - MOST_GATES),
        lacking=[*undefined(rows), *map(Lack, [*uncertain(rows), *lacking(audit)])],
        power=power_line(audit) if audit.power else "",
        overall=_lines(table[(table["attribute"] == "") & (table["group"] == "")]),
        sections=[
            _section(table, name) | _curve(drawn.get(name), predictions.threshold) for name in names
        ],
        compared=changes is not None,
        why=None if audit.why is None else _why(audit.why),
        followed=[] if audit.monitor is None else _followed(audit.monitor),
        said=[] if audit.monitor is None else audit.monitor.sentences(),
    )


def _figures(of_rates: Sequence[Sequence[Panel]]) -> Iterator[Markup]:
    """A figure for every rate of the first figure."""
    for panels in of_rates:
        of_class = f"Class {panels[0].label} against all others: " if panels[0].label else ""
        text = of_class + definition(panels[0].quantity.name)
        yield groups_figure(panels[:MOST_LINES], text, MOST_SHOWN, MOST_CROSSED)


def _why(why: Why) -> dict[str, Any]:
    """Parts of changes, regions, and what differs most between the periods."""
    shares, regions = (
        [row for row in why.of(part) if row["low"] > 0 or row["high"] < 0]
        for part in (OF_SHARE, REGION)
    )
    return {
        "said": why.sentences(),
        "changes": [
            {
                "name": name_of(change),
                **_ends(change),
                "parts": [_part(change["parts"].get(name)) for name in (ALL, *PARTS)],
            }
            for change in why.changes()
        ],
        "regions": [
            {
                "name": name_of(row | {"of": ""}),
                "where": row["of"],
                **_ends(row),
                "change": _part(row),
                "rows": f"{row['then_n']:,} and {row['now_n']:,}",
            }
            for row in regions
        ],
        "shares": [
            {
                "name": SHARES_OF[row["metric"]].format(
                    " ".join(filter(None, (row["attribute"], row["of"]))) or "all rows"
                ),
                "change": _part(row),
                **_ends(row),
            }
            for row in shares
        ],
        "columns": [(row["of"], f"{row['auc']:.2f}") for row in why.of(COLUMN)[:MOST_COLUMNS]],
        "auc": f"{why.auc:.2f}",
    }


def _ends(row: Mapping[str, Any]) -> dict[str, str]:
    """Values then and now, with the digits that the interval of the change justifies."""
    return {name: number(row[name], row["low"], row["high"]) for name in ("then", "now")}


def _part(row: Mapping[str, Any] | None) -> dict[str, str]:
    if row is None or row["low"] == row["high"]:  # 0 by definition
        return NO_CHANGE
    return _change_text(row["change"], row["low"], row["high"])


def _followed(monitor: Monitor) -> list[dict[str, Any]]:
    """A chart and the numbers of every gap that is monitored."""
    rows, periods = monitor.to_frame(), monitor.periods[monitor.reference :]
    charts = []
    for gap in monitor.gaps if periods else ():
        of_gap = rows[(rows["attribute"] == gap.attribute) & (rows["metric"] == gap.metric)]
        then, later = of_gap.iloc[0], of_gap.iloc[1:]
        last = later.iloc[-1]
        words = (
            f"{gap.attribute}: {gap.name} in {len(periods)} periods from {periods[0]} to "
            f"{periods[-1]}"
        )
        values = list(later[["value", "low", "high"]].itertuples(index=False, name=None))
        band = (then["low"], then["high"])
        charts.append(
            {
                "attribute": gap.attribute, "metric": gap.name,
                "then": _estimate(then["value"], then["low"], then["high"]),
                "now": _estimate(last["value"], last["low"], last["high"]),
                "change": _change_text(last["change"], last["change_low"], last["change_high"]),
                "evidence": f"{min(last['evidence'], 1e6):,.3g}", "limit": f"{gap.limit:,.0f}",
                "left_out": ", ".join(gap.left_out), "grew": gap.alarm is not None,
                "drawn": series_svg(
                    values, band, gap.bound, gap.alarm, (periods[0], periods[-1]), words
                ),
            }
        )  # fmt: skip
    return charts


def _curve(drawn: Curve | None, threshold: float) -> dict[str, Any]:
    """Accuracy and gap over the threshold, drawn and in words."""
    if drawn is None:
        return {}
    at = drawn.fairest
    words = (
        f"The equalized odds difference is smallest, {drawn.gap[at]:.3f}, from a score of "
        f"{drawn.threshold[at]:.3g} on, with accuracy {drawn.accuracy[at]:.3f}; only thresholds "
        f"with {KEPT:.0%} of the best accuracy, {drawn.accuracy.max():.3f}, are considered."
    )
    lines = {"accuracy": drawn.accuracy, "gap": drawn.gap}
    line = curves_svg(drawn.threshold, lines, threshold, words)
    return {"curve": {"drawn": line, "words": words, "threshold": f"{threshold:.3g}"}}


def _gate_line(judgement: Judgement) -> dict[str, Any]:
    """A line of the table of gates."""
    gate, row = judgement.gate, judgement.row
    drawn = ""
    if np.isfinite(row.value):
        share = gate.metric in NO_METRICS or find_metric(gate.metric).better == "higher"
        axis = axis_of(gate.limit, share and not gate.change)
        if gate.change:
            axis = (-axis[1], axis[1])
        drawn = interval_svg(
            row.value, row.low, row.high, axis, gate.limit, interval=judgement.intervals
        )
    return {
        "verdict": judgement.verdict,
        "gate": gate.text,
        "definition": definition(gate.metric),
        "place": row.place,
        "value": _estimate(row.value, row.low, row.high),
        "note": row.note,
        "drawn": drawn,
        "n": "" if np.isnan(row.n) else f"{row.n:,.0f}",
    }


def _section(table: pd.DataFrame, name: str) -> dict[str, Any]:
    """Measures between the groups of an attribute, rates within them, and their shares."""
    rows = table[table["attribute"] == name]
    of_groups = rows[rows["group"] != ""]
    missing = rows[(rows["metric"] == MISSING) & (rows["value"] > 0)]
    shares = of_groups[of_groups["metric"] == SHARE]
    rates = [rate for rate in RATES if (of_groups["metric"] == rate).any()]
    overall = table[table["attribute"] == ""].set_index("metric")["value"]
    cells = {
        (row["group"], row["metric"]): row
        for row in of_groups[of_groups["metric"].isin(rates)].to_dict("records")
    }
    return {
        "name": name,
        "between": _lines(rows[(rows["group"] == "") & (rows["metric"] != MISSING)]),
        "missing": list(missing["note"]),
        "rates": [{"name": rate, "definition": definition(rate)} for rate in rates],
        "groups": [
            {
                "name": group["group"],
                "n": f"{np.nan_to_num(group['n']):,.0f}",
                "share": _texts(group),
                "cells": [
                    _rate(cells.get((group["group"], rate)), overall.get(RATES[rate]))
                    for rate in rates
                ],
            }
            for group in shares.head(MOST_GROUPS).to_dict("records")
        ],
        "further": max(0, len(shares) - MOST_GROUPS),
    }


def _lines(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Lines of a table of measures."""
    return [
        {
            "metric": row["metric"],
            "definition": definition(row["metric"]),
            **_texts(row),
        }
        for row in rows[rows["value"].notna() | rows["then"].notna()].to_dict("records")
    ]


def _texts(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A value now and then, its change, and the notes of both."""
    return {
        "value": _estimate(row["value"], row["low"], row["high"]),
        "then": _estimate(row["then"], row["then_low"], row["then_high"]),
        "change": _change_text(row["change"], row["low_change"], row["high_change"]),
        "note": "; ".join(filter(None, (row["note"], row["note_change"]))),
    }


def _rate(row: Mapping[Any, Any] | None, overall: float | None) -> dict[str, Any]:
    """A rate of a group: text, drawing, and change."""
    if row is None or np.isnan(row["value"]):
        return {"text": "n/a", "drawn": "", "change": NO_CHANGE}
    if row["small"]:
        return {
            "text": f"few rows{within(row['low'], row['high'])}", "drawn": "", "change": NO_CHANGE
        }  # fmt: skip
    then = (row["then"], row["then_low"], row["then_high"])
    return {
        "text": number(row["value"], row["low"], row["high"]),
        "drawn": interval_svg(
            row["value"], row["low"], row["high"], SHARES, overall,
            None if np.isnan(row["then"]) else then,
        ),
        "change": _change_text(row["change"], row["low_change"], row["high_change"]),
    }  # fmt: skip


def _estimate(value: float, low: float, high: float, sign: str = "") -> str:
    """A value with its interval, which is not broken over lines."""
    interval = "" if np.isnan(value) else within(low, high, sign).strip()
    unbroken = interval.replace(" ", "\N{NO-BREAK SPACE}")
    return " ".join(filter(None, (number(value, low, high, sign), unbroken)))


def _change_text(change: float, low: float, high: float) -> dict[str, str]:
    """A change with its sign, and in a word whether its interval excludes 0."""
    if np.isnan(change):
        return NO_CHANGE
    if np.isnan(low):
        return {"text": number(change, sign="+"), "word": ""}
    word = "rose" if low > 0 else "fell" if high < 0 else "unclear"
    return {
        "text": _estimate(change, low, high, "+"), "word": word,
        "value": number(change, low, high, "+"),
        "interval": f"{within(low, high, '+').strip()}, {word}",
    }  # fmt: skip
