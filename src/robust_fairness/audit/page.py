"""The page of an audit: opens from disk, without network."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from robust_fairness.audit.gates import Gate
from robust_fairness.audit.intervals import RESAMPLES
from robust_fairness.audit.report import SHARE
from robust_fairness.rendering.figures import Panel, bar_style, panelled
from robust_fairness.rendering.html import figure, rendered, table

SHOWN = ["metric", "group", "value", "low", "high", "interval", "n", "small", "note"]


def audit_page(
    rows: pd.DataFrame,
    *,
    name: str,
    target: str,
    prediction: str,
    kind: str,
    attributes: Sequence[str],
    classes: Sequence[str],
    count: int,
    small: int,
    gates: Mapping[Gate, Sequence[str]],
) -> str:
    """The page as HTML; the same arguments give the same text.

    Args:
        rows: rows of the audit.
        name: name of the table.
        target: its column of what is true.
        prediction: its column of what was predicted.
        kind: what predictions are.
        attributes: columns of the sensitive attributes.
        classes: names of the classes; none of a continuous target.
        count: number of rows of the table.
        small: rows below which a group is flagged.
        gates: gates, each with the reasons why it failed; none where it held.
    """
    names = [one for one in dict.fromkeys(rows["attribute"]) if one]
    names.sort(key=lambda one: (list(attributes).index(one) if one in attributes else 99, one))
    return rendered(
        "robust_fairness.audit",
        "audit.html",
        name=name,
        rows=f"{count:,}",
        target=target,
        prediction=prediction,
        kind=kind,
        attributes=attributes,
        classes=classes,
        small=small,
        resamples=f"{RESAMPLES:,}",
        gates=[{"text": gate.text, "failures": why} for gate, why in gates.items()],
        overall=table(_shown(rows[rows["attribute"] == ""], grouped=False), "All rows"),
        sections=[
            _section(rows[rows["attribute"] == one], one, number)
            for number, one in enumerate(names)
        ],
    )


def _section(rows: pd.DataFrame, name: str, number: int) -> dict[str, Any]:
    """Tables and figure of an attribute."""
    values, groups = rows[rows["group"] == ""], rows[rows["group"] != ""]
    drawn = _rates(groups, name)
    return {
        "name": name,
        "figure": drawn and figure(drawn, f"audit-{number}"),
        "between": len(values) and table(_shown(values, grouped=False), f"{name}: between groups"),
        "within": len(groups) and table(_shown(groups, grouped=True), f"{name}: within groups"),
    }


def _shown(rows: pd.DataFrame, grouped: bool) -> pd.DataFrame:
    """The columns to show, small groups marked in words."""
    shown = rows[SHOWN].astype({"small": object})
    shown["small"] = rows["small"].map({True: "small", False: ""})
    return shown if grouped else shown.drop(columns="group")


def _rates(rows: pd.DataFrame, name: str) -> go.Figure | None:
    """Rates within each group with their intervals; None where the attribute has no groups.

    What is of parts of groups, such as the shares of ten ranges of probability, is in the table.
    """
    whole = rows["group"].isin(rows[rows["metric"] == SHARE]["group"])
    rows = rows[whole & (rows["metric"] != SHARE) & rows["value"].notna()]
    if rows.empty:
        return None
    traces = []
    for number, metric in enumerate(dict.fromkeys(rows["metric"])):
        own = rows[rows["metric"] == metric]
        traces.append(
            {
                "type": "bar",
                "x": own["group"].to_numpy(),
                "y": own["value"].to_numpy(),
                "error_y": {
                    "array": (own["high"] - own["value"]).to_numpy(),
                    "arrayminus": (own["value"] - own["low"]).to_numpy(),
                },
                "name": metric,
                "marker": bar_style(number),
            }
        )
    title = f"Rates within the groups of {name}, 95 % intervals"
    return panelled(title, [Panel("", name, "value")], traces).update_xaxes(type="category")
