"""Figures of natural shift, drawn from the tables of its views."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.metrics import find_metric
from robust_fairness.rendering.figures import (
    GREY,
    Panel,
    Trace,
    in_panel,
    line_style,
    panelled,
    style,
)
from robust_fairness.reporting.effective_robustness import fitted_line, within
from robust_fairness.reporting.first_screen import signed

KEYS = ["data", "attribute", "metric"]
POINTS = 20  # of a curve
END = 0.2  # of the colours of changes, the same in all panels and runs
WORSE_TO_BETTER = ["#b85a00", "#f0ac6c", "#f4f4f4", "#7fb2dc", "#1f66a8"]


def better_higher(metric: object) -> bool:
    """Whether higher values of a metric are better."""
    return find_metric(str(metric)).better == "higher"


def _panels(rows: pd.DataFrame) -> Iterator[tuple[int, str, str, pd.DataFrame]]:
    """Number, title and rows of every measure of every dataset."""
    for place, (names, part) in enumerate(rows.groupby(KEYS, sort=False)):
        data, attribute, metric = map(str, names)
        yield place, metric, " ".join(filter(None, [data, metric, attribute])), part


def draw_matrix(rows: pd.DataFrame) -> go.Figure:
    """Heat maps of the change, by source and target, of the first method of each measure."""
    first = rows[rows["method"] == rows["method"].iloc[0]]
    panels, traces = [], []
    for place, metric, title, part in _panels(first):
        table = part.pivot_table(
            index="trained_on", columns="tested_on", values="change", sort=False
        )
        panels.append(Panel(f"{title}: change", "tested on", "trained on"))
        trace: Trace = {
            "type": "heatmap",
            "x": list(table.columns),
            "y": list(table.index),
            "z": table.to_numpy().round(4).tolist(),
            "zmin": -END,
            "zmax": END,
            "colorscale": [[k / 4, item] for k, item in enumerate(WORSE_TO_BETTER)],
            "reversescale": not better_higher(metric),
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
    panels, traces, methods = [], [], list(rows["method"].unique())
    for place, metric, title, part in _panels(rows):
        panels.append(Panel(title, "in distribution", "out of distribution"))
        ends = [part[["at_home", "ours"]].min().min(), part[["at_home", "ours"]].max().max()]
        traces.append(in_panel(_line("no change", ends, ends, "dot"), place))
        for curve in _fitted(metric, part):
            traces.append(in_panel(_line("fitted line", *curve, "solid"), place))
        for number, method in enumerate(methods):
            subset = part[part["method"] == method]
            points: Trace = {
                "type": "scatter",
                "mode": "markers",
                "name": method,
                "legendgroup": method,
                "x": subset["at_home"].round(4).tolist(),
                "y": subset["ours"].round(4).tolist(),
                "text": (subset["trained_on"] + " → " + subset["tested_on"]).tolist(),
                "marker": style(number),
            }
            traces.append(in_panel(points, place))
    return panelled("In and out of distribution", panels, traces)


def _fitted(metric: str, part: pd.DataFrame) -> Iterator[tuple[list[float], list[float]]]:
    """The line through all points of a panel; none where scores at home do not vary."""
    probit, part = better_higher(metric), part.dropna(subset=["at_home", "ours"])
    home, away = part["at_home"].to_numpy(), part["ours"].to_numpy()
    if probit:
        home, away = within(home, part["n_at_home"].to_numpy()), within(away, part["n"].to_numpy())
    line = fitted_line(home, away, np.zeros(len(part), np.int64), probit)
    if np.isfinite(line.slope):
        x = np.linspace(home.min(), home.max(), POINTS)
        yield x.round(4).tolist(), line.at(x, np.zeros(POINTS, np.int64)).round(4).tolist()


def _line(name: str, x: Sequence[float], y: Sequence[float], dash: str) -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "legendgroup": name,
        "x": list(x),
        "y": list(y),
        "line": {"color": GREY, "dash": dash},
        "hoverinfo": "skip",
    }


def draw_curves(rows: pd.DataFrame) -> go.Figure:
    """A curve per training and method, from its last domain trained on to those that follow."""
    panels, traces, methods = [], [], list(rows["method"].unique())
    for place, _, title, part in _panels(rows):
        panels.append(Panel(title, "tested on", "score"))
        shown: set[str] = set()
        for (method, start), item in part.groupby(["method", "trained_until"], sort=False):
            curve: Trace = {
                "type": "scatter",
                "mode": "lines+markers",
                "name": method,
                "legendgroup": method,
                "x": [start, *item["tested_on"]],
                "y": [item["at_home"].iloc[0], *item["ours"]],
                "text": f"trained up to {start}",
                "line": line_style(methods.index(method)),
                "marker": style(methods.index(method)),
            }
            placed = in_panel(curve, place)
            placed["showlegend"] = placed["showlegend"] and method not in shown
            shown.add(str(method))
            traces.append(placed)
    figure = panelled("Over ordered domains", panels, traces)
    order = list(dict.fromkeys([*rows["trained_until"], *rows["tested_on"]]))
    return figure.update_xaxes(type="category", categoryorder="array", categoryarray=order)
