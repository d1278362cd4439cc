"""The page of an audit, one file that needs no network."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from robust_fairness.audit.gates import Gate
from robust_fairness.audit.intervals import RESAMPLES
from robust_fairness.audit.predictions import Predictions, Roles
from robust_fairness.audit.report import SHARE
from robust_fairness.rendering.figures import Panel, bar_style, panelled
from robust_fairness.rendering.html import figure, rendered, table

SHOWN = ["metric", "group", "value", "low", "high", "interval", "n", "small", "note"]


def audit_page(
    rows: pd.DataFrame,
    predictions: Predictions,
    roles: Roles,
    *,
    name: str,
    small: int,
    failures: Mapping[Gate, Sequence[str]],
) -> str:
    """The page as HTML; the same arguments give the same text."""
    order = {one: number for number, one in enumerate(roles.attributes)}
    names = {str(one) for one in rows["attribute"] if one}
    return rendered(
        "robust_fairness.audit",
        "audit.html",
        name=name,
        rows=f"{len(predictions.samples):,}",
        roles=roles,
        kind=predictions.kind,
        classes=predictions.samples.classes,
        small=small,
        resamples=f"{RESAMPLES:,}",
        gates=[{"text": gate.text, "failures": why} for gate, why in failures.items()],
        overall=table(_shown(rows[rows["attribute"] == ""], grouped=False), "All rows"),
        sections=[
            _section(rows[rows["attribute"] == one], one, number)
            for number, one in enumerate(
                sorted(names, key=lambda one: (order.get(one, len(order)), one))
            )
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
    """The columns to show; small groups are marked in words."""
    shown = rows[SHOWN].astype({"small": object})
    shown["small"] = rows["small"].map({True: "small", False: ""})
    return shown if grouped else shown.drop(columns="group")


def _rates(rows: pd.DataFrame, name: str) -> go.Figure | None:
    """Rates by group with their intervals; None if the attribute has no groups.

    Only rates of whole groups: the table has those of parts, such as ranges of probability.
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
