"""Figures: what a dataset's methods trade, how they degrade under shift, and how they rank.

Panels of a figure stand in plotly's own grid, so that a page can put them below each other where
it is narrow: ``layout.meta`` tells how many there are, and in how many columns at most.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy import stats

from robust_fairness.experiment.parameters import DEFAULT_TRIAL
from robust_fairness.metrics import find_metric
from robust_fairness.reporting.ranks import Comparison
from robust_fairness.reporting.statistics import CONFIDENCE, distinct

# Okabe and Ito 2008, told apart by the colour-blind; without their yellow, too pale on white.
# Markers, dashes and patterns differ as well, in numbers that share no divisor with the colours':
# what repeats in one channel does not in the other.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
PATTERNS = ("", "/", "x", "-", "\\", "+", "|", ".")
FAIRNESS = (
    "delta_eo",
    "delta_dp",
    "worst_group_mean_squared_error",
    "mean_majority_minority_difference",
    "majority_minority_difference",
    "accuracy_worst_gap",
    "recall_at_worst_gap",
    "faircocco_eo",
    "worst_group_accuracy",
    "worst_group_recall_at",
)
QUALITY = ("accuracy", "mean_squared_error", "recall_at")
BY_GROUP = (
    "accuracy_by_group",
    "mean_squared_error_by_group",
    "accuracy_by_subgroup",
    "recall_at_by_group",
)
MOST_GROUPS = 24
COLUMNS = 2  # of panels, where there is room
ROW, AROUND = 300, 150  # pixels of a row of panels, and of title, axes and legend
GAP = 0.3  # between panels, as a share of one
LINE = 28  # pixels of a line of a diagram of ranks
TEXT, GREY, GRID = "#1b1f24", "#57606a", "#dde2e7"
AXIS = {"gridcolor": GRID, "linecolor": GREY, "zerolinecolor": GRID, "automargin": True}
TEMPLATE = go.layout.Template(
    layout={
        "font": {"color": TEXT, "size": 13, "family": "system-ui, sans-serif"},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "colorway": COLOURS,
        "xaxis": AXIS,
        "yaxis": AXIS,
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"},
        "title": {"font": {"size": 16}, "x": 0, "xref": "paper"},
    }
)


Trace = dict[str, Any]  # a trace, or a part of the layout, as plotly's JSON has it


def style(number: int) -> dict[str, str]:
    """Colour and marker of the method of that number."""
    return {"color": COLOURS[number % len(COLOURS)], "symbol": MARKERS[number % len(MARKERS)]}


def line_style(number: int) -> dict[str, str]:
    """Colour and dashes of the method of that number."""
    return {"color": COLOURS[number % len(COLOURS)], "dash": DASHES[number % len(DASHES)]}


def bar_style(number: int) -> dict[str, object]:
    """Colour and pattern of the bars of that number."""
    pattern = {
        "shape": PATTERNS[number % len(PATTERNS)],
        "fgcolor": "white",
        "size": 6,
        "fillmode": "overlay",
    }
    colour = COLOURS[number % len(COLOURS)]
    return {"color": colour, "line": {"color": TEXT, "width": 1}, "pattern": pattern}


def told_by(column: str) -> dict[str, object]:
    """Options of plotly express: colours and markers that differ by a column."""
    return {
        "color": column,
        "symbol": column,
        "color_discrete_sequence": list(COLOURS),
        "symbol_sequence": list(MARKERS),
    }


def pareto_front(quality: np.ndarray, unfairness: np.ndarray) -> np.ndarray:
    """Which points no other point beats in both, bool ``[n]``: higher quality, lower unfairness."""
    better = (quality[None] >= quality[:, None]) & (unfairness[None] <= unfairness[:, None])
    strictly = (quality[None] > quality[:, None]) | (unfairness[None] < unfairness[:, None])
    beaten = np.any(better & strictly, axis=1)
    return np.logical_not(beaten)


def first_of(metrics: pd.DataFrame, names: tuple[str, ...]) -> str:
    """The first of some metrics that has values; "" where none has."""
    present = set(metrics.loc[metrics["value"].notna(), "metric"].unique())
    return next((name for name in names if name in present), "")


def first_attribute(metrics: pd.DataFrame, metric: str) -> str:
    """The attribute that a group metric was first evaluated for: the sensitive one comes first."""
    found = metrics[(metrics["metric"] == metric) & metrics["value"].notna()]["attribute"]
    return str(found.iloc[0]) if len(found) else ""


def over_seeds(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Columns ``mean``, ``count`` and ``half`` by keys: half of Student's 95 % interval.

    There is none of a single seed.
    """
    found = rows.groupby(list(keys), sort=False)["value"].agg(["mean", "std", "count"])
    freedom = (found["count"] - 1).where(found["count"] > 1)
    found["half"] = stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * found["std"] / np.sqrt(freedom + 1)
    return found.reset_index()


def summarised(metrics: pd.DataFrame, metric: str, attribute: str) -> pd.DataFrame:
    """A metric over seeds by method, trial, shift and severity; see ``over_seeds``."""
    rows = metrics[
        (metrics["metric"] == metric)
        & (metrics["attribute"] == attribute)
        & (metrics["group"] == "")
        & metrics["value"].notna()
    ]
    return over_seeds(rows, ["method", "trial", "shift", "severity"])


@dataclass(frozen=True)
class Shown:
    """A metric that a figure shows."""

    metric: str
    attribute: str

    @property
    def higher(self) -> bool:
        """Whether higher values are better."""
        return find_metric(self.metric).better == "higher"

    @property
    def title(self) -> str:
        """Name, attribute and direction, for an axis."""
        of = f" ({self.attribute})" if self.attribute else ""
        return f"{self.metric}{of}, {'higher' if self.higher else 'lower'} is better"


def shown(metrics: pd.DataFrame, names: tuple[str, ...]) -> Shown | None:
    """The first of some metrics that has values, and the attribute it was first scored for."""
    metric = first_of(metrics, names)
    return Shown(metric, first_attribute(metrics, metric)) if metric else None


def trade_off(metrics: pd.DataFrame, dataset: str) -> go.Figure | None:
    """Quality against unfairness, one panel unshifted and one for each shift at its strongest.

    Points are means over seeds, bars Student's 95 % intervals; the filled line links those that
    no other point beats in both. None where the dataset has no such metrics.
    """
    own = distinct(metrics[metrics["dataset"] == dataset])
    quality, unfair = shown(own, QUALITY), shown(own, FAIRNESS)
    if quality is None or unfair is None:
        return None
    points = summarised(own, quality.metric, quality.attribute).merge(
        summarised(own, unfair.metric, unfair.attribute),
        on=["method", "trial", "shift", "severity"],
        suffixes=("", "_unfair"),
    )
    if points.empty:
        return None
    strongest = points.groupby("shift", sort=False)["severity"].max()
    places = sorted(strongest.items(), key=lambda place: place[0] != "none")
    titles = ["unshifted" if s == "none" else f"{s}, {severity:g}" for s, severity in places]
    ranges = _range(points, "_unfair"), _range(points, "")
    traces = []
    numbers = {method: k for k, method in enumerate(points["method"].unique())}
    for place, (shift, severity) in enumerate(places):
        panel = points[(points["shift"] == shift) & (points["severity"] == severity)]
        traces.append(_placed(_front(panel, quality, unfair), place))
        for method, rows in panel.groupby("method", sort=False):
            trace = _points(rows.sort_values("mean_unfair"), str(method), numbers[method])
            traces.append(_placed(trace, place))
    return panelled(
        f"{dataset}: {quality.metric} against {unfair.metric}",
        [Panel(title, unfair.title, quality.title, *ranges) for title in titles],
        traces,
    )


def _points(rows: pd.DataFrame, method: str, number: int) -> Trace:
    """Trials of a method in a panel, with their intervals."""
    return {
        "x": rows["mean_unfair"],
        "y": rows["mean"],
        "error_x": _interval(rows["half_unfair"]),
        "error_y": _interval(rows["half"]),
        "text": rows["trial"],
        "customdata": rows["count"],
        "hovertemplate": "%{text}<br>%{x:.4f}, %{y:.4f}<br>%{customdata} seeds",
        "mode": "lines+markers" if len(rows) > 1 else "markers",
        "line": {"color": style(number)["color"], "width": 1, "dash": "dot"},
        "marker": {**style(number), "size": 11},
        "name": method,
        "legendgroup": method,
    }


def _front(panel: pd.DataFrame, quality: Shown, unfair: Shown) -> Trace:
    """The line that links the points of the Pareto front."""
    on_front = pareto_front(
        panel["mean"].to_numpy() * (1 if quality.higher else -1),
        panel["mean_unfair"].to_numpy() * (-1 if unfair.higher else 1),
    )
    front = panel[on_front].sort_values(["mean_unfair", "mean"])
    return {
        "x": front["mean_unfair"],
        "y": front["mean"],
        "mode": "lines+markers",
        "line": {"color": GREY, "width": 6, "shape": "vh" if unfair.higher else "hv"},
        "marker": {"color": GREY, "size": 18, "symbol": "circle"},
        "opacity": 0.35,
        "name": "Pareto front",
        "legendgroup": "Pareto front",
        "hoverinfo": "skip",
    }


def degradation(metrics: pd.DataFrame, dataset: str) -> go.Figure | None:
    """Quality and unfairness over severity, a row a shift, one curve a method."""
    own = distinct(metrics[(metrics["dataset"] == dataset) & (metrics["trial"] == DEFAULT_TRIAL)])
    shifts = [name for name in own["shift"].unique() if name != "none"]
    pair = [one for one in (shown(own, QUALITY), shown(own, FAIRNESS)) if one]
    if not shifts or not pair:
        return None
    points = {one: summarised(own, one.metric, one.attribute) for one in pair}
    ranges = {one: _range(rows, "") for one, rows in points.items()}
    places = [(shift, one) for shift in shifts for one in pair]
    traces = []
    numbers = {method: k for k, method in enumerate(own["method"].unique())}
    for place, (shift, one) in enumerate(places):
        rows = points[one][points[one]["shift"].isin(["none", shift])]
        for method, curve in rows.groupby("method", sort=False):
            trace = _curve(curve.sort_values("severity"), str(method), numbers[method])
            traces.append(_placed(trace, place))
    return panelled(
        f"{dataset}: what shift does",
        [Panel(shift, "severity", one.title, y_range=ranges[one]) for shift, one in places],
        traces,
        len(pair),
    )


def _curve(curve: pd.DataFrame, method: str, number: int) -> Trace:
    """A method over severities, with its intervals."""
    return {
        "x": curve["severity"],
        "y": curve["mean"],
        "error_y": _interval(curve["half"]),
        "mode": "lines+markers",
        "line": line_style(number),
        "marker": {**style(number), "size": 8},
        "name": method,
        "legendgroup": method,
    }


def group_bars(metrics: pd.DataFrame, dataset: str) -> go.Figure | None:
    """Accuracy, or mean squared error, within each group, unshifted, with 95 % intervals.

    The first ``MOST_GROUPS`` groups, where there are more.
    """
    own = distinct(metrics[(metrics["dataset"] == dataset) & (metrics["trial"] == DEFAULT_TRIAL)])
    own = own[(own["shift"] == "none") & own["value"].notna()]
    one = shown(own, BY_GROUP)
    if one is None:
        return None
    rows = own[(own["metric"] == one.metric) & (own["attribute"] == one.attribute)]
    groups = list(rows["group"].unique())
    bars = over_seeds(rows[rows["group"].isin(groups[:MOST_GROUPS])], ["method", "group"])
    left_out = len(groups) - MOST_GROUPS
    further = f", {left_out} further groups left out" if left_out > 0 else ""
    traces = [
        {
            "type": "bar",
            "x": own_bars["group"].to_numpy(),
            "y": own_bars["mean"].to_numpy(),
            "error_y": _interval(own_bars["half"]),
            "name": str(method),
            "marker": bar_style(number),
        }
        for number, (method, own_bars) in enumerate(bars.groupby("method", sort=False))
    ]
    panel = Panel("", one.attribute, one.title, y_range=[0, max(_range(bars, "")[1], 0)])
    title = f"{dataset}: {one.metric} by {one.attribute}{further}"
    return panelled(title, [panel], traces).update_xaxes(type="category")


def rank_diagram(comparison: Comparison, title: str) -> go.Figure | None:
    """A line a method at its average rank; bars below link methods that do not differ.

    None where there were not enough methods or datasets to test.
    """
    if comparison.test is None:
        return None
    ranks, groups = comparison.ranks, comparison.groups
    names = ["critical difference", *map(str, ranks.index), *["not told apart"] * len(groups)]
    panel = Panel("", "average rank, 1 is best", "", [0.8, len(ranks) + 0.4])
    points = {
        "x": ranks.to_numpy(),
        "y": np.arange(len(ranks)) + 1,
        "mode": "markers+text",
        "text": [f"{rank:.2f}" for rank in ranks],
        "textposition": "middle right",
        "marker": {"color": COLOURS[0], "size": 11},
        "name": "average rank",
        "showlegend": False,
    }
    bars = [_bar(1, 1 + comparison.critical_difference, 0, COLOURS[1])]
    for line, group in enumerate(groups, len(ranks) + 1):
        bars.append(_bar(ranks[group[0]], ranks[group[-1]], line, GREY))
    return panelled(title, [panel], [*bars, points], row=LINE * len(names)).update_yaxes(
        tickvals=np.arange(len(names)),
        ticktext=names,
        range=[len(names) - 0.5, -0.5],
        zeroline=False,
    )


def _bar(start: float, end: float, line: int, colour: str) -> Trace:
    """A thick horizontal line of a diagram of ranks."""
    return {
        "x": [start, end],
        "y": [line, line],
        "mode": "lines",
        "line": {"color": colour, "width": 7},
        "showlegend": False,
        "hoverinfo": "skip",
    }


FIGURES: dict[str, Callable[[pd.DataFrame, str], go.Figure | None]] = {
    "trade-off": trade_off,
    "degradation": degradation,
    "groups": group_bars,
}


@dataclass(frozen=True)
class Panel:
    """Title, axes and, where they are given, ranges of a panel."""

    title: str
    x: str
    y: str
    x_range: list[float] | None = None
    y_range: list[float] | None = None


def panelled(
    title: str,
    panels: Sequence[Panel],
    traces: Sequence[Trace],
    columns: int = COLUMNS,
    row: int = ROW,
) -> go.Figure:
    """A figure with panels, row by row.

    Args:
        title: of the whole.
        panels: the panels.
        traces: traces as plotly's, see ``_placed``; all at once, which is much faster.
        columns: how many panels stand beside each other where there is room.
        row: height of a row in pixels.
    """
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    axes: Trace = {}
    for place, panel in enumerate(panels):
        x, y = _axes(place)
        axes[f"xaxis{x[1:]}"] = {"title": {"text": panel.x}, "range": panel.x_range}
        axes[f"yaxis{y[1:]}"] = {"title": {"text": panel.y}, "range": panel.y_range}
    return go.Figure(
        list(traces),
        {
            "template": TEMPLATE,
            "title": {"text": title},
            "annotations": [
                _heading(panel.title, *_axes(place))
                for place, panel in enumerate(panels)
                if panel.title
            ],
            "meta": {"panels": len(panels), "columns": columns, "row": row, "around": AROUND},
            "grid": {
                "rows": rows,
                "columns": columns,
                "pattern": "independent",
                "xgap": GAP,
                "ygap": GAP,
            },
            "height": AROUND + rows * row,
            "margin": {"l": 10, "r": 15, "t": 60, "b": 10},
            **axes,
        },
    )


def _heading(text: str, x: str, y: str) -> Trace:
    """The title of a panel, above its left corner."""
    return {
        "text": text, "showarrow": False, "font": {"size": 14},
        "x": 0, "xref": f"{x} domain", "xanchor": "left",
        "y": 1, "yref": f"{y} domain", "yanchor": "bottom",
    }  # fmt: skip


def _axes(place: int) -> tuple[str, str]:
    """Names of the axes of a panel; the first have no number."""
    number = str(place + 1) if place else ""
    return f"x{number}", f"y{number}"


def _placed(trace: Trace, place: int) -> Trace:
    """A trace in a panel; the first panel's stand in the legend."""
    x, y = _axes(place)
    return {**trace, "xaxis": x, "yaxis": y, "showlegend": place == 0}


def _interval(half: pd.Series) -> Trace:
    """Bars of that half length."""
    return {"array": half.to_numpy(), "thickness": 1, "width": 3}


def _range(points: pd.DataFrame, suffix: str) -> list[float]:
    """From the lowest to the highest mean with its deviation, and a little more.

    Not the whole of the intervals: those of two seeds would leave the points in one spot.
    """
    mean, deviation = points[f"mean{suffix}"], points[f"std{suffix}"].fillna(0)
    low, high = float((mean - deviation).min()), float((mean + deviation).max())
    more = 0.08 * (high - low) or 0.05
    return [low - more, high + more]
