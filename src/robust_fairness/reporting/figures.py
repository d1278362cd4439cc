"""Figures: what a dataset's methods trade, and how they degrade under shift."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from robust_fairness.reporting.statistics import distinct

# Okabe and Ito 2008: told apart by the colour-blind; the markers differ as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
MARKERS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")
FAIRNESS = ("delta_eo", "delta_dp", "worst_group_mean_squared_error")
QUALITY = ("accuracy", "mean_squared_error")


def style(number: int) -> dict[str, str]:
    """Colour and marker of the method of that number."""
    return {"color": COLOURS[number % len(COLOURS)], "symbol": MARKERS[number % len(MARKERS)]}


def told_by(column: str) -> dict[str, object]:
    """Options of plotly express: colours and markers that differ by a column."""
    return {
        "color": column,
        "symbol": column,
        "color_discrete_sequence": list(COLOURS),
        # one fewer than colours, so that pairs of both repeat late
        "symbol_sequence": list(MARKERS[: len(COLOURS) - 1]),
    }


def pareto_front(quality: np.ndarray, unfairness: np.ndarray) -> np.ndarray:
    """Which points no other point beats in both, bool ``[n]``: higher quality, lower unfairness."""
    better = (quality[None] >= quality[:, None]) & (unfairness[None] <= unfairness[:, None])
    strictly = (quality[None] > quality[:, None]) | (unfairness[None] < unfairness[:, None])
    beaten = np.any(better & strictly, axis=1)
    return np.logical_not(beaten)


def first_of(metrics: pd.DataFrame, names: tuple[str, ...]) -> str:
    """The first of some metrics that has values; "" where none has."""
    present = set(metrics.dropna(subset="value")["metric"])
    return next((name for name in names if name in present), "")


def first_attribute(metrics: pd.DataFrame, metric: str) -> str:
    """The attribute that a group metric was first evaluated for: the sensitive one comes first."""
    found = metrics[(metrics["metric"] == metric) & metrics["value"].notna()]["attribute"]
    return str(found.iloc[0]) if len(found) else ""


def summarised(metrics: pd.DataFrame, metric: str, attribute: str) -> pd.DataFrame:
    """Mean, deviation and seeds of a metric by method, trial, shift and severity."""
    rows = metrics[
        (metrics["metric"] == metric)
        & (metrics["attribute"] == attribute)
        & (metrics["group"] == "")
    ]
    return (
        rows.groupby(["method", "trial", "shift", "severity"], sort=False)["value"]
        .agg(["mean", "std", "count"])
        .reset_index()
    )


def trade_off(metrics: pd.DataFrame, dataset: str) -> go.Figure | None:
    """Quality against unfairness, one panel unshifted and one for each shift at its strongest.

    Points are means over seeds, bars standard deviations; the filled ones with a black rim lie
    on the Pareto front. None where the dataset has no such metrics.
    """
    own = distinct(metrics[metrics["dataset"] == dataset])
    quality, fairness = first_of(own, QUALITY), first_of(own, FAIRNESS)
    if not quality or not fairness:
        return None
    attribute = first_attribute(own, fairness)
    keys = ["method", "trial", "shift", "severity"]
    points = summarised(own, quality, "").merge(
        summarised(own, fairness, attribute), on=keys, suffixes=("", "_unfair")
    )
    strongest = points.groupby("shift", sort=False)["severity"].max()
    panels = sorted(strongest.items(), key=lambda panel: panel[0] != "none")
    titles = ["unshifted" if s == "none" else f"{s}, {severity:g}" for s, severity in panels]
    figure = make_subplots(1, len(panels), subplot_titles=titles, shared_yaxes=True)
    methods = list(dict.fromkeys(points["method"]))
    for column, (shift, severity) in enumerate(panels, 1):
        panel = points[(points["shift"] == shift) & (points["severity"] == severity)]
        sign = -1 if quality == "mean_squared_error" else 1
        front = pareto_front(sign * panel["mean"].to_numpy(), panel["mean_unfair"].to_numpy())
        for number, method in enumerate(methods):
            of_method = panel["method"] == method
            rows = panel[of_method].sort_values("mean_unfair")
            on_front = pd.Series(front, panel.index)[rows.index]
            figure.add_trace(
                go.Scatter(
                    x=rows["mean_unfair"],
                    y=rows["mean"],
                    error_x={"array": rows["std_unfair"], "thickness": 1},
                    error_y={"array": rows["std"], "thickness": 1},
                    text=rows["trial"],
                    customdata=rows["count"],
                    hovertemplate="%{text}<br>%{x:.4f}, %{y:.4f}<br>%{customdata} seeds",
                    mode="lines+markers" if len(rows) > 1 else "markers",
                    line={"color": style(number)["color"], "width": 1, "dash": "dot"},
                    marker={
                        **style(number),
                        "size": 11,
                        "line": {"width": np.where(on_front, 2, 0), "color": "black"},
                    },
                    name=method,
                    legendgroup=method,
                    showlegend=column == 1,
                ),
                1,
                column,
            )
        figure.update_xaxes(title_text=f"{fairness} ({attribute})", row=1, col=column)
    figure.update_yaxes(title_text=quality, row=1, col=1)
    return _laid_out(figure, f"{dataset}: {quality} against unfairness")


def degradation(metrics: pd.DataFrame, dataset: str) -> go.Figure | None:
    """A fairness and a quality metric over severity, one curve a method, one column a shift."""
    own = distinct(metrics[(metrics["dataset"] == dataset) & (metrics["trial"] == "default")])
    shifts = [name for name in dict.fromkeys(own["shift"]) if name != "none"]
    chosen = [name for name in (first_of(own, QUALITY), first_of(own, FAIRNESS)) if name]
    if not shifts or not chosen:
        return None
    figure = make_subplots(
        len(chosen), len(shifts), column_titles=shifts, shared_xaxes=True, shared_yaxes="rows"
    )
    methods = list(dict.fromkeys(own["method"]))
    for row, metric in enumerate(chosen, 1):
        points = summarised(own, metric, first_attribute(own, metric))
        for column, shift in enumerate(shifts, 1):
            for number, method in enumerate(methods):
                curve = points[
                    (points["method"] == method) & points["shift"].isin(["none", shift])
                ].sort_values("severity")
                figure.add_trace(
                    go.Scatter(
                        x=curve["severity"],
                        y=curve["mean"],
                        error_y={"array": curve["std"], "thickness": 1},
                        mode="lines+markers",
                        line={"color": style(number)["color"]},
                        marker={**style(number), "size": 8},
                        name=method,
                        legendgroup=method,
                        showlegend=row == column == 1,
                    ),
                    row,
                    column,
                )
            figure.update_xaxes(title_text="severity", row=len(chosen), col=column)
        figure.update_yaxes(title_text=metric, row=row, col=1)
    return _laid_out(figure, f"{dataset}: what shift does", 300 * len(chosen) + 120)


def group_bars(metrics: pd.DataFrame, dataset: str) -> go.Figure | None:
    """Accuracy, or mean squared error, within each group, unshifted."""
    own = distinct(metrics[(metrics["dataset"] == dataset) & (metrics["trial"] == "default")])
    own = own[own["shift"] == "none"]
    metric = first_of(own, ("group_accuracy", "group_mean_squared_error"))
    if not metric:
        return None
    rows = own[(own["metric"] == metric) & (own["attribute"] == first_attribute(own, metric))]
    bars = rows.groupby(["method", "group"], sort=False)["value"].agg(["mean", "std"]).reset_index()
    figure = go.Figure()
    for number, method in enumerate(dict.fromkeys(bars["method"])):
        of_method = bars[bars["method"] == method]
        figure.add_trace(
            go.Bar(
                x=of_method["group"],
                y=of_method["mean"],
                error_y={"array": of_method["std"]},
                name=method,
                marker_color=style(number)["color"],
            )
        )
    figure.update_yaxes(title_text=metric)
    return _laid_out(figure, f"{dataset}: {metric} by group")


FIGURES: dict[str, Callable[[pd.DataFrame, str], go.Figure | None]] = {
    "trade-off": trade_off,
    "degradation": degradation,
    "groups": group_bars,
}


def _laid_out(figure: go.Figure, title: str, height: int = 420) -> go.Figure:
    return figure.update_layout(
        title={"text": title, "font": {"size": 16}},
        template="plotly_white",
        height=height,
        margin={"l": 60, "r": 20, "t": 80, "b": 90},
        legend={"orientation": "h", "y": -0.25},
    )
