"""Figures: trade-off of a dataset's methods, degradation under shift, and rank diagram."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.bench.experiment.experiment import DEFAULT_TRIAL
from robust_fairness.core.rendering.figures import (
    AROUND_POINTS,
    BESIDE,
    COLOURS,
    GREY,
    Panel,
    Trace,
    error_bars,
    in_panel,
    line_style,
    panelled,
    style,
)
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.estimate import FEWEST_REFITS, half_width
from robust_fairness.report.ranks import Comparison
from robust_fairness.report.results import UNSHIFTED, distinct, where
from robust_fairness.report.statistics import over_seeds

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
LINE = 28  # height in pixels of a line of the rank diagram


def pareto_front(quality: np.ndarray, unfairness: np.ndarray) -> np.ndarray:
    """Which points no other point beats in both, bool ``[n]``: higher quality, lower unfairness."""
    better = (quality[None] >= quality[:, None]) & (unfairness[None] <= unfairness[:, None])
    strictly = (quality[None] > quality[:, None]) | (unfairness[None] < unfairness[:, None])
    beaten = np.any(better & strictly, axis=1)
    return np.logical_not(beaten)


def with_half_widths(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """``over_seeds`` with a column half: half of Student's 95 % interval, missing for one seed."""
    result = over_seeds(rows, keys)
    return result.assign(half=half_width(result["std"], result["seeds"]) / np.sqrt(result["seeds"]))


def summarised(metrics: pd.DataFrame, part: "Shown") -> pd.DataFrame:
    """A metric over seeds by method, trial, shift and severity; see ``with_half_widths``."""
    rows = where(metrics, metric=part.metric, attribute=part.attribute, group="")
    return with_half_widths(rows.dropna(subset="value"), ["method", "trial", "shift", "severity"])


@dataclass(frozen=True)
class Shown:
    """A metric that a figure shows, with its first attribute, and what its axis is called."""

    metric: str
    attribute: str
    higher: bool  # whether higher values are better
    title: str


def shown(metrics: pd.DataFrame, names: tuple[str, ...]) -> Shown | None:
    """The first of some metrics that has values, with its first attribute, the sensitive one."""
    first = metrics[metrics["value"].notna()].drop_duplicates("metric").set_index("metric")
    metric = next((name for name in names if name in first.index), None)
    if metric is None:
        return None
    attribute = str(first.loc[metric, "attribute"])
    higher = find_metric(metric).better == "higher"
    by = f"by {attribute}, " if attribute else ""
    title = f"{metric}<br>{by}{'higher' if higher else 'lower'} is better"
    return Shown(metric, attribute, higher, title)


def trade_off(metrics: pd.DataFrame, dataset: str) -> go.Figure | None:
    """Quality against unfairness, one panel unshifted and one per shift at its largest severity.

    Points are means over seeds, bars Student's 95 % intervals; the grey line links the Pareto
    front. None if the dataset has no such metrics, or only trials of one method with few seeds.
    """
    scores = distinct(where(metrics, dataset=dataset))
    quality, unfair = shown(scores, QUALITY), shown(scores, FAIRNESS)
    if quality is None or unfair is None:
        return None
    points = summarised(scores, quality).merge(
        summarised(scores, unfair),
        on=["method", "trial", "shift", "severity"],
        suffixes=("", "_unfair"),
    )
    alone = points["method"].nunique() == 1 and points["seeds"].max() < FEWEST_REFITS
    if points.empty or alone:
        return None
    strongest = points.groupby("shift", sort=False)["severity"].max()
    places = sorted(strongest.items(), key=lambda place: place[0] != UNSHIFTED)
    titles = ["unshifted" if s == UNSHIFTED else f"{s}, {severity:g}" for s, severity in places]
    ranges = _range(points, "_unfair"), _range(points, "")
    traces = []
    numbers = {method: k for k, method in enumerate(points["method"].unique())}
    for place, (shift, severity) in enumerate(places):
        panel = where(points, shift=shift, severity=severity)
        traces.append(in_panel(_front(panel, quality, unfair), place))
        for method, rows in panel.groupby("method", sort=False):
            trace = _points(rows.sort_values("ours_unfair"), str(method), numbers[method])
            traces.append(in_panel(trace, place))
    return panelled(
        f"{dataset}: {quality.metric} against {unfair.metric}",
        [Panel(title, unfair.title, quality.title, *ranges) for title in titles],
        traces,
    )


def _points(rows: pd.DataFrame, method: str, number: int) -> Trace:
    """Trials of a method in a panel, with their intervals."""
    return {
        "x": rows["ours_unfair"],
        "y": rows["ours"],
        "error_x": error_bars(rows["half_unfair"]),
        "error_y": error_bars(rows["half"]),
        "text": rows["trial"],
        "customdata": rows["seeds"],
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
        panel["ours"].to_numpy() * (1 if quality.higher else -1),
        panel["ours_unfair"].to_numpy() * (-1 if unfair.higher else 1),
    )
    front = panel[on_front].sort_values(["ours_unfair", "ours"])
    return {
        "x": front["ours_unfair"],
        "y": front["ours"],
        "mode": "lines+markers",
        "line": {"color": GREY, "width": 6, "shape": "vh" if unfair.higher else "hv"},
        "marker": {"color": GREY, "size": 18, "symbol": "circle"},
        "opacity": 0.35,
        "name": "Pareto front",
        "legendgroup": "Pareto front",
        "hoverinfo": "skip",
    }


def degradation(metrics: pd.DataFrame, dataset: str) -> go.Figure | None:
    """Quality and unfairness over severity: a row per shift, a curve per method.

    Curves are beside each other, so that no interval hides another one.
    """
    scores = distinct(where(metrics, dataset=dataset, trial=DEFAULT_TRIAL))
    shifts = [name for name in scores["shift"].unique() if name != UNSHIFTED]
    pair = [item for item in (shown(scores, QUALITY), shown(scores, FAIRNESS)) if item]
    if not shifts or not pair:
        return None
    points = {item: summarised(scores, item) for item in pair}
    ranges = {item: _range(rows, "") for item, rows in points.items()}
    places = [(shift, item) for shift in shifts for item in pair]
    traces = []
    numbers = {method: k for k, method in enumerate(scores["method"].unique())}
    for place, (shift, part) in enumerate(places):
        rows = where(points[part], shift=[UNSHIFTED, shift])
        for method, curve in rows.groupby("method", sort=False):
            beside = (numbers[method] - (len(numbers) - 1) / 2) * BESIDE * rows["severity"].max()
            trace = _curve(curve.sort_values("severity"), str(method), numbers[method], beside)
            traces.append(in_panel(trace, place))
    return panelled(
        f"{dataset}: degradation under shift",
        [Panel(shift, "severity", item.title, y_range=ranges[item]) for shift, item in places],
        traces,
        len(pair),
    )


def _curve(curve: pd.DataFrame, method: str, number: int, beside: float) -> Trace:
    """A method over severities, with its intervals, drawn ``beside`` them."""
    return {
        "x": curve["severity"] + beside,
        "customdata": curve["severity"],
        "hovertemplate": "%{customdata}, %{y:.4f}",
        "y": curve["ours"],
        "error_y": error_bars(curve["half"]),
        "mode": "lines+markers",
        "line": line_style(number),
        "marker": {**style(number), "size": 8},
        "name": method,
        "legendgroup": method,
    }


def by_group(metrics: pd.DataFrame, dataset: str) -> go.Figure | None:
    """Accuracy, or mean squared error, by group, unshifted, with 95 % intervals.

    No more than the first ``MOST_GROUPS`` groups.
    """
    scores = distinct(where(metrics, dataset=dataset, trial=DEFAULT_TRIAL, shift=UNSHIFTED))
    scores = scores.dropna(subset="value")
    rates = shown(scores, BY_GROUP)
    if rates is None:
        return None
    rows = where(scores, metric=rates.metric, attribute=rates.attribute)
    groups = list(rows["group"].unique())
    bars = with_half_widths(rows[rows["group"].isin(groups[:MOST_GROUPS])], ["method", "group"])
    most = 1.0 if rates.higher else np.inf  # of a score, which is never below 0
    bars = bars.assign(
        above=np.minimum(bars["half"], most - bars["ours"]),
        below=np.minimum(bars["half"], bars["ours"]),
    )
    left_out = len(groups) - MOST_GROUPS
    further = f", first {MOST_GROUPS} of {len(groups)} groups" if left_out > 0 else ""
    traces: list[Trace] = [
        {
            "x": of_method["group"].to_numpy(),
            "y": of_method["ours"].to_numpy(),
            "error_y": error_bars(of_method["above"])
            | {"arrayminus": of_method["below"].to_numpy()},
            "name": str(method),
            "mode": "markers",
            "marker": {**style(number), "size": 8},
            "offsetgroup": str(method),
        }
        for number, (method, of_method) in enumerate(bars.groupby("method", sort=False))
    ]
    # the other axis names the attribute
    metric = f"{rates.metric}<br>{'higher' if rates.higher else 'lower'} is better"
    title = f"{dataset}: {rates.metric} by {rates.attribute}{further}"
    figure = panelled(title, [Panel("", rates.attribute, metric)], traces)
    return figure.update_xaxes(type="category").update_layout(scattermode="group")


def rank_diagram(comparison: Comparison, title: str) -> go.Figure | None:
    """A line per method at its average rank; bars below link methods that do not differ.

    None if there were not enough methods or datasets to test.
    """
    if comparison.test is None:
        return None
    ranks, groups = comparison.ranks, comparison.groups
    names = ["critical difference", *map(str, ranks.index), *["no difference"] * len(groups)]
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
    "groups": by_group,
}


def _range(points: pd.DataFrame, suffix: str) -> list[float]:
    """From the lowest to the highest mean, and a little more; not the whole of the intervals."""
    mean = points[f"ours{suffix}"]
    low, high = float(mean.min()), float(mean.max())
    more = AROUND_POINTS * (high - low) or 0.05
    return [low - more, high + more]
