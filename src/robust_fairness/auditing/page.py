"""The page of an audit: one file without scripts that needs no network."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.auditing.changes import CHANGES, MIX, joined
from robust_fairness.auditing.curves import KEPT, curve
from robust_fairness.auditing.definitions import definition
from robust_fairness.auditing.drawing import axis_of, curves_svg, interval_svg
from robust_fairness.auditing.gates import VERDICTS, Gate, Judgement, Verdict, judged
from robust_fairness.auditing.intervals import RESAMPLES
from robust_fairness.auditing.predictions import Predictions, Roles
from robust_fairness.auditing.report import MISSING, SHARE, groups_in
from robust_fairness.auditing.trivial import trivial_predictor
from robust_fairness.auditing.verdict import GAPS, lacking, sentence_of, within
from robust_fairness.core import tables
from robust_fairness.metrics import find_metric
from robust_fairness.rendering.html import rendered
from robust_fairness.samples import Groups

MOST_GROUPS = 30  # of an attribute, which the page shows
MOST_GATES = 60  # lines of gates
NO_METRICS = (MISSING, SHARE, MIX)
SHARES = (0.0, 1.0)
NO_CHANGE = {"text": "", "word": ""}
RATES = (
    "accuracy_by_group", "selection_rate_by_group", "true_positive_rate_by_group",
    "false_positive_rate_by_group", "precision_by_group",
)  # fmt: skip
OVERALL = {
    "accuracy_by_group": "accuracy", "selection_rate_by_group": "selection_rate",
    "true_positive_rate_by_group": "true_positive_rate", "precision_by_group": "precision",
    "false_positive_rate_by_group": "false_positive_rate",
}  # fmt: skip


def audit_page(
    rows: pd.DataFrame,
    predictions: Predictions,
    roles: Roles,
    *,
    name: str,
    small: int,
    failures: Mapping[Gate, Sequence[str]],
    changes: pd.DataFrame | None = None,
    then: str = "",
    assumption: str = "",
) -> str:
    """The page as HTML; the same arguments give the same text.

    Args:
        rows: the values, with the columns ``AUDIT``.
        predictions: the predictions that they are of.
        roles: the columns of the table.
        name: name of the table or of the period.
        small: rows below which a group is flagged.
        failures: the lines of the failures of every gate.
        changes: changes since an earlier period, with the columns ``CHANGES``.
        then: name of that period.
        assumption: of estimated values.
    """
    judgements = [
        (_verdict(one, failures[gate]), one)
        for gate in failures
        for one in judged(gate, rows, changes, "evidence")
    ]
    judgements.sort(key=lambda pair: VERDICTS.index(pair[0]))
    compared = tables.table(CHANGES, []) if changes is None else changes
    table = joined(rows[rows["applies"]], compared).fillna(
        {"note": "", "note_change": "", "small": False}
    )
    names = [str(one) for one in rows["attribute"].unique() if one]
    order = {one: number for number, one in enumerate(roles.attributes)}
    names.sort(key=lambda one: (order.get(one, len(order)), one))
    groups = groups_in(predictions, not set(names) <= order.keys())
    return rendered(
        "robust_fairness.auditing",
        "audit.html",
        name=name,
        then=then,
        assumption=assumption,
        rows=f"{len(predictions.samples):,}",
        roles=roles,
        kind=predictions.kind,
        classes=predictions.samples.classes,
        small=small,
        resamples=f"{RESAMPLES:,}",
        warning=trivial_predictor(predictions),
        verdict=sentence_of(
            [verdict for verdict, _ in judgements], judgements[0][1].reason if judgements else ""
        ),
        gates=[_gate_line(*one) for one in judgements[:MOST_GATES]],
        hidden_gates=max(0, len(judgements) - MOST_GATES),
        gaps=_lines(table[table["metric"].isin(list(GAPS))], named=True),
        lacking=lacking(rows),
        overall=_lines(table[(table["attribute"] == "") & (table["group"] == "")]),
        sections=[
            _section(table, one) | {"curve": groups.get(one) and _curve(predictions, groups[one])}
            for one in names
        ],
        compared=changes is not None,
    )


def _curve(predictions: Predictions, groups: Groups) -> dict[str, Any] | None:
    """Accuracy and gap over the threshold, drawn and in words; None without scores."""
    if not len(predictions.score):
        return None
    found = curve(predictions.samples.y, predictions.score, groups)
    if found is None:
        return None
    at = found.fairest
    words = (
        f"The equalized odds difference is smallest, {found.gap[at]:.3f}, from a score of "
        f"{found.threshold[at]:.3g} on, with accuracy {found.accuracy[at]:.3f}; only thresholds "
        f"with {KEPT:.0%} of the best accuracy, {found.accuracy.max():.3f}, are considered."
    )
    lines = {"accuracy": found.accuracy, "gap": found.gap}
    return {
        "drawn": curves_svg(found.threshold, lines, predictions.threshold, words),
        "words": words,
        "threshold": f"{predictions.threshold:.3g}",
    }


def _verdict(judgement: Judgement, failures: Sequence[str]) -> Verdict:
    return "FAIL" if judgement.reason in failures else judgement.verdict


def _gate_line(verdict: Verdict, one: Judgement) -> dict[str, Any]:
    """A line of the table of gates."""
    gate, row = one.gate, one.row
    drawn = ""
    if np.isfinite(row.value):
        axis = axis_of(gate.limit, not gate.change and _is_share(gate.metric))
        if gate.change:
            axis = (-axis[1], axis[1])
        drawn = interval_svg(row.value, row.low, row.high, axis, gate.limit)
    return {
        "verdict": verdict,
        "gate": gate.text,
        "definition": definition(gate.metric),
        "place": row.place,
        "value": _interval_text(row.value, row.low, row.high),
        "note": row.note,
        "drawn": drawn,
        "n": "" if np.isnan(row.n) else f"{row.n:,.0f}",
    }


def _is_share(metric: str) -> bool:
    """Whether 1 is the best value, or the value is a share of rows."""
    return metric in NO_METRICS or find_metric(metric).better == "higher"


def _section(table: pd.DataFrame, name: str) -> dict[str, Any]:
    """Measures between the groups of an attribute, rates within them, and their shares."""
    own = table[table["attribute"] == name]
    between = own[(own["group"] == "") & (own["metric"] != MISSING)]
    missing = own[(own["metric"] == MISSING) & (own["value"] > 0)]
    return {
        "name": name,
        "between": _lines(between),
        "missing": [] if missing.empty else list(missing["note"]),
        **_groups(table, own[own["group"] != ""]),
    }


def _lines(rows: pd.DataFrame, named: bool = False) -> list[dict[str, Any]]:
    """Lines of a table of measures, ``named`` with their attributes."""
    return [
        {
            "metric": f"{row['attribute']}: {row['metric']}" if named else row["metric"],
            "definition": definition(row["metric"]),
            **_texts(row),
        }
        for row in rows.to_dict("records")
    ]


def _texts(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A value now and then, its change, and the notes of both."""
    return {
        "value": _interval_text(row["value"], row["low"], row["high"]),
        "then": _interval_text(row["then"], row["then_low"], row["then_high"]),
        "change": _change_text(row["change"], row["low_change"], row["high_change"]),
        "note": "; ".join(filter(None, (row["note"], row["note_change"]))),
    }


def _groups(table: pd.DataFrame, rows: pd.DataFrame) -> dict[str, Any]:
    """Shares of the groups of an attribute, and rates within them."""
    shares = rows[rows["metric"] == SHARE]
    rates = [one for one in RATES if (rows["metric"] == one).any()]
    overall = table[table["attribute"] == ""].set_index("metric")["value"]
    cells = {
        (row["group"], row["metric"]): row
        for row in rows[rows["metric"].isin(rates)].to_dict("records")
    }
    return {
        "rates": [{"name": one, "definition": definition(one)} for one in rates],
        "groups": [
            {
                "name": group["group"],
                "n": f"{np.nan_to_num(group['n']):,.0f}",
                "share": _texts(group),
                "cells": [
                    _rate(cells.get((group["group"], one)), overall.get(OVERALL[one]))
                    for one in rates
                ],
            }
            for group in shares.head(MOST_GROUPS).to_dict("records")
        ],
        "further": max(0, len(shares) - MOST_GROUPS),
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
        "text": f"{row['value']:.3f}",
        "drawn": interval_svg(
            row["value"], row["low"], row["high"], SHARES, overall,
            None if np.isnan(row["then"]) else then,
        ),
        "change": _change_text(row["change"], row["low_change"], row["high_change"]),
    }  # fmt: skip


def _interval_text(value: float, low: float, high: float) -> str:
    if np.isnan(value):
        return "n/a"
    return f"{value:.3f}" if np.isnan(low) else f"{value:.3f} ({low:.3f} to {high:.3f})"


def _change_text(change: float, low: float, high: float) -> dict[str, str]:
    """A change with its sign, and in a word whether its interval excludes 0."""
    if np.isnan(change):
        return NO_CHANGE
    if np.isnan(low):
        return {"text": f"{change:+.3f}", "word": ""}
    word = "rose" if low > 0 else "fell" if high < 0 else "unclear"
    return {"text": f"{change:+.3f} ({low:+.3f} to {high:+.3f})", "word": word}
