"""Figures of natural shift, drawn from the tables of its views."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.core.rendering.figures import (
    GREY,
    WRAP,
    Panel,
    Trace,
    drawn,
    in_panel,
    panelled,
    style,
)
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.answers import signed
from robust_fairness.report.statistics import fitted_line, within

KEYS = ["data", "attribute", "metric"]
POINTS = 20  # of a curve
DASHES = {"no change": "dot", "fitted line": "solid"}
END = 0.2  # of the colours of changes, the same in all panels and runs
WORSE_TO_BETTER = ["#b85a00", "#f0ac6c", "#f4f4f4", "#7fb2dc", "#1f66a8"]


def _panels(rows: pd.DataFrame) -> Iterator[tuple[int, str, str, pd.DataFrame]]:
    """Number, title and rows of every measure of every dataset."""
    for place, (names, part) in enumerate(rows.groupby(KEYS, sort=False)):
        data, attribute, metric = map(str, names)
        yield place, metric, f"{data} {attribute}".rstrip() + f"<br>{metric}", part


def draw_matrix(rows: pd.DataFrame) -> go.Figure:
    """Heat maps of the change, by source and target, of the first method of each measure."""
    first = rows[rows["method"] == rows["method"].iloc[0]]
    panels, traces = [], []
    for place, metric, title, part in _panels(first):
        table = part.pivot_table(
            index="trained_on", columns="tested_on", values="change", sort=False
        )
        panels.append(Panel(title, "tested on", "trained on"))
        trace: Trace = {
            "type": "heatmap",
            "x": list(table.columns),
            "y": list(table.index),
            "z": table.to_numpy().round(4).tolist(),
            "zmin": -END,
            "zmax": END,
            "colorscale": [[k / 4, item] for k, item in enumerate(WORSE_TO_BETTER)],
            "reversescale": find_metric(metric).better != "higher",
            "showscale": False,
            "text": [[signed(item) for item in row] for row in table.to_numpy()],
            "texttemplate": "%{text}",
            "hovertemplate": "%{y} → %{x}: %{z:+.3f}<extra></extra>",
        }
        traces.append({**in_panel(trace, place), "showlegend": False})
    title = f"Change in other domains, percentage points, {rows['method'].iloc[0]}"
    return panelled(title, panels, traces, columns=1)  # names of several domains are long


def draw_scatter(rows: pd.DataFrame) -> go.Figure:
    """Out of distribution against in distribution, a point per training, domain and method.

    Dotted: no change; solid: the line through all points, on the probit scale for proportions.
    """
    panels, traces = [], []
    looks = {name: style(number) for number, name in enumerate(rows["method"].unique())}
    for place, metric, title, part in _panels(rows):
        panels.append(Panel(title, "in distribution", "out of distribution"))
        known = part[["at_home", "ours"]].to_numpy()
        ends = np.array([np.nanmin(known), np.nanmax(known)])
        lines = {"no change": (ends, ends)}
        both, probit = (
            part.dropna(subset=["at_home", "ours"]),
            find_metric(metric).better == "higher",
        )
        home, away = both["at_home"].to_numpy(), both["ours"].to_numpy()
        if probit:
            home = within(home, both["n_at_home"].to_numpy())
            away = within(away, both["n"].to_numpy())
        fit = fitted_line(home, away, np.zeros(len(both), np.int64), probit)
        if np.isfinite(fit.slope):  # scores at home vary
            x = np.linspace(home.min(), home.max(), POINTS)
            lines["fitted line"] = (x, fit.at(x, np.zeros(POINTS, np.int64)))
        for name, (x, y) in lines.items():
            line = {"color": GREY, "dash": DASHES[name]}
            traces.append((place, name, {"x": x, "y": y, "mode": "lines", "line": line}))
        for method, points in part.groupby("method", sort=False):
            where = points["trained_on"] + " → " + points["tested_on"]
            marks = {"x": points["at_home"], "y": points["ours"], "text": where, "mode": "markers"}
            traces.append((place, str(method), marks | {"marker": looks[method]}))
    named = [
        in_panel(trace | {"name": name, "legendgroup": name}, place)
        for place, name, trace in traces
    ]
    return panelled("In and out of distribution", panels, named, WRAP)


def draw_curves(rows: pd.DataFrame) -> go.Figure:
    """A curve per training and method, from its last domain trained on to those that follow."""
    ends = rows.drop_duplicates([*KEYS, "method", "trained_until"])
    ends = ends.assign(tested_on=ends["trained_until"], ours=ends["at_home"], lag=0)
    order = list(dict.fromkeys([*rows["trained_until"], *rows["tested_on"]]))
    figure = drawn(
        pd.concat([ends, rows]), "Over ordered domains", colour="method", panel=KEYS, sort="lag",
        x="tested_on", line_group="trained_until",
    )  # fmt: skip
    return figure.update_xaxes(type="category", categoryorder="array", categoryarray=order)
