"""Style of all figures, figures made of several panels, and figures and images as HTML.

Panels are in plotly's grid, so that a narrow page can stack them: ``layout.meta`` has the number
of panels and the largest number of columns.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from io import BytesIO
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from markupsafe import Markup
from pandas.api.types import is_number
from PIL import Image
from plotly.basedatatypes import BaseTraceType
from plotly.io import to_json

from robust_fairness.core.numbers import exact, written

# The colour-blind safe palette of Okabe and Ito (2008) without yellow, too pale on white. Markers
# and dashes repeat with other periods, so that no combination repeats early.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "hexagon")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
COLUMNS, WRAP = 2, 3  # of panels on a wide page: large and small ones
BESIDE = 0.012  # distance between series, in largest values of the axis
ROW, AROUND = 300, 150  # height in pixels: a row of panels; title, axes and legend together
GAP = 0.3  # between panels, as a share of a panel
BELOW = 0.36  # of a row of panels: numbers, a title of two lines and the next heading
AROUND_POINTS = 0.2  # of an axis beyond the points, as a share of their range
ARROWS = {"x": ("triangle-left", "triangle-right"), "y": ("triangle-down", "triangle-up")}
TEXT, GREY, GRID = "#1b1f24", "#57606a", "#dde2e7"
AXIS = {
    "gridcolor": GRID, "linecolor": GREY, "zerolinecolor": GRID, "automargin": True,
    "ticklabelstandoff": 6,  # room for the arrow of an interval that goes on
}  # fmt: skip
TEMPLATE = go.layout.Template(
    layout={
        "font": {"color": TEXT, "size": 13, "family": "system-ui, sans-serif"},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "colorway": COLOURS,
        "xaxis": AXIS,
        "yaxis": AXIS,
        "legend": {
            "orientation": "h",
            "yref": "container",
            "y": 0,
            "yanchor": "bottom",
            "title": {"side": "top"},
        },
        "title": {"font": {"size": 16}, "x": 0, "xref": "paper"},
    }
)
SMALL = TEMPLATE.to_plotly_json()  # instead of plotly's, which takes 7 kB per figure
MOST_PANELS = 12  # that the alternative text of a figure describes

Trace = dict[str, Any]  # a trace or a part of the layout, in plotly's JSON form


def style(number: int) -> dict[str, str]:
    """Marker style of the method with this number."""
    return {"color": COLOURS[number % len(COLOURS)], "symbol": MARKERS[number % len(MARKERS)]}


def line_style(number: int) -> dict[str, str]:
    """Line style of the method with this number."""
    return {"color": COLOURS[number % len(COLOURS)], "dash": DASHES[number % len(DASHES)]}


def by_column(column: str) -> dict[str, object]:
    """Options of plotly express: one colour and marker per value of a column."""
    return {
        "color": column,
        "symbol": column,
        "color_discrete_sequence": list(COLOURS),
        "symbol_sequence": list(MARKERS),
    }


def faceted(figure: go.Figure, title: str) -> go.Figure:
    """A figure of plotly express with its title, in the style of all figures.

    Headings of its facets lose the names ``panel`` and ``space``.
    """
    figure.for_each_annotation(
        lambda item: item.update(text=item.text.replace("panel=", "").replace("space=", ""))
    )
    return figure.update_layout(title=title, template=TEMPLATE)


def drawn(
    rows: pd.DataFrame,
    title: str,
    kind: str = "line",
    colour: str | None = None,
    panel: Sequence[str] = (),
    sort: str = "",
    apart: bool | None = None,
    words: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    **options: Any,
) -> go.Figure:
    """A figure of plotly express of the column ``ours`` or another ``y``, see ``faceted``.

    Args:
        rows: what is drawn; intervals in columns low and high become bars.
        title: title of the figure.
        kind: name of the function of plotly express.
        colour: column of colours and markers.
        panel: columns that have a panel for each combination of values, with axes of its own.
        sort: column in whose order points are linked.
        apart: whether series with intervals are drawn beside each other, so that none hides another
            one; by default lines are.
        words: texts that replace values, by column.
        options: further options of the function.
    """
    import plotly.express as px

    rows = rows.replace({column: dict(texts) for column, texts in words.items()})
    if panel:
        texts = (rows[name].map(lambda v: exact(v) if is_number(v) else v) for name in panel)
        titles = (filter(None, names) for names in zip(*texts, strict=True))
        rows = rows.assign(panel=[*map(", ".join, titles)])
        options = {"facet_col": "panel", "facet_col_wrap": WRAP} | options
    if sort:
        rows = rows.sort_values(["panel", sort] if panel else sort, kind="stable")
    # the default template of plotly express is large
    options = {"y": "ours", "template": TEMPLATE} | options
    if {"low", "high"} <= set(rows):
        middle = rows[options["y"]]
        bars = {"error_y": rows["high"] - middle, "error_y_minus": middle - rows["low"]}
        options = {name: bar.to_numpy() for name, bar in bars.items()} | options
    marked = {"line": {"markers": True}, "scatter": {}}
    looks = marked[kind] | by_column(colour) if colour and kind in marked else {"color": colour}
    figure = getattr(px, kind)(rows, **(looks | options))
    if "error_y" in options and (kind == "line" if apart is None else apart):
        _beside(figure)
    if not panel:
        return faceted(figure, title)
    return _in_grid(figure, title, [*map(str, rows["panel"].unique())])


def _beside(figure: go.Figure) -> None:
    """Draw series at numbers beside each other; their texts keep the numbers."""
    names = {name: number for number, name in enumerate(dict.fromkeys(t.name for t in figure.data))}
    for trace in figure.data:
        x = np.asarray(trace.x)
        if np.issubdtype(x.dtype, np.number) and len(x):
            away = (names[trace.name] - (len(names) - 1) / 2) * BESIDE * float(np.abs(x).max())
            template = trace.hovertemplate.replace("%{x}", "%{text}")
            trace.update(x=x + away, text=x, hovertemplate=template)


def _in_grid(figure: go.Figure, title: str, panels: Sequence[str]) -> go.Figure:
    """A figure of plotly express with facets as one of panels, which a narrow page stacks."""
    columns = min(WRAP, len(panels))
    rows = -(-len(panels) // columns)
    titles = {
        letter: next((axis.title.text for axis in axes if axis.title.text), "")
        for letter, axes in (("x", figure.select_xaxes()), ("y", figure.select_yaxes()))
    }
    for trace in figure.data:  # plotly express counts rows from the bottom
        row, column = divmod(int((trace.xaxis or "x")[1:] or 1) - 1, columns)
        trace.xaxis, trace.yaxis = _axes((rows - 1 - row) * columns + column)
    made = panelled(
        title, [Panel(name, titles["x"], titles["y"]) for name in panels], figure.data, columns
    )
    return made.update_layout(legend_title=figure.layout.legend.title, barmode="relative")


@dataclass(frozen=True)
class Panel:
    """Title, axis titles and, optionally, axis ranges of a panel."""

    title: str
    x: str
    y: str
    x_range: list[float] | None = None
    y_range: list[float] | None = None


def panelled(
    title: str,
    panels: Sequence[Panel],
    traces: Sequence[Trace | BaseTraceType],
    columns: int = COLUMNS,
    row: int = ROW,
) -> go.Figure:
    """A figure of panels, filled row by row."""
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    axes: Trace = {}
    headings = []  # above the left corner of each panel
    for place, panel in enumerate(panels):
        x, y = _axes(place)
        axes[f"xaxis{x[1:]}"] = {"title": {"text": panel.x}, "range": panel.x_range}
        axes[f"yaxis{y[1:]}"] = {"title": {"text": panel.y}, "range": panel.y_range}
        if panel.title:
            heading = {"text": panel.title, "showarrow": False, "font": {"size": 14}}
            across = {"x": 0, "xref": f"{x} domain", "xanchor": "left", "align": "left"}
            headings.append(heading | across | {"y": 1, "yref": f"{y} domain", "yanchor": "bottom"})
    return go.Figure(
        list(traces),
        {
            "template": TEMPLATE,
            "title": {"text": title},
            "annotations": headings,
            "meta": {"panels": len(panels), "columns": columns, "row": row, "around": AROUND},
            "grid": {
                "rows": rows,
                "columns": columns,
                "pattern": "independent",
                "xgap": GAP,
                "ygap": BELOW,
            },
            "height": AROUND + rows * row,
            "margin": {"l": 10, "r": 15, "t": 60, "b": 10},
            **axes,
        },
    )


def _axes(place: int) -> tuple[str, str]:
    """Names of the axes of a panel; those of the first panel have no number."""
    number = str(place + 1) if place else ""
    return f"x{number}", f"y{number}"


def in_panel(trace: Trace, place: int) -> Trace:
    """The trace, placed in a panel; the legend shows the traces of the first panel."""
    x, y = _axes(place)
    return {**trace, "xaxis": x, "yaxis": y, "showlegend": place == 0}


def cut(figure: Trace) -> Trace:
    """A figure whose axes follow the points; intervals that go on beyond them end in an arrow.

    Axes whose range is set keep it, those without intervals or with a logarithmic scale, too.

    Args:
        figure: in plotly's JSON form, which is not changed.
    """
    layout, arrows = dict(figure["layout"]), []
    for letter, heads in ARROWS.items():
        parts: dict[str, list[Trace]] = {}
        for trace in figure["data"]:
            parts.setdefault(f"{letter}axis{trace.get(f'{letter}axis', letter)[1:]}", []).append(
                trace
            )
        for name, traces in parts.items():
            ended = [part for part in map(partial(_intervals, letter), traces) if part is not None]
            axis = layout.get(name, {})
            if not ended or axis.get("type") == "log":
                continue
            if axis.get("range") is None:
                along = [trace[letter] for trace in traces if trace.get(letter) is not None]
                bars = any(trace["type"] == "bar" for trace in traces)
                numbers = [pd.to_numeric(pd.Series([*some]), errors="coerce") for some in along]
                points = np.concatenate([*numbers, [0.0] * bars]).astype(np.float64)
                points = points[np.isfinite(points)]
                axis = layout[name] = axis | {"range": _range(points, ended)}
            low, high = axis["range"]
            for trace, lows, highs in ended:
                if trace["type"] == "scatter":
                    ends = ((lows < low, low, heads[0]), (highs > high, high, heads[1]))
                    arrows += [_heads(trace, letter, *end) for end in ends if end[0].any()]
    return figure | {"layout": layout, "data": [*figure["data"], *arrows]}


def _intervals(letter: str, trace: Trace) -> tuple[Trace, np.ndarray, np.ndarray] | None:
    """A trace with the ends of its intervals along an axis, if it has some."""
    error = trace.get(f"error_{letter}", {})
    if error.get("array") is None:
        return None
    points, up = (np.asarray(values, np.float64) for values in (trace[letter], error["array"]))
    down = np.asarray(error.get("arrayminus", up), np.float64)
    return trace, points - down, points + up


def _range(
    points: np.ndarray, ended: Sequence[tuple[Trace, np.ndarray, np.ndarray]]
) -> list[float]:
    """The range of some points and a little more; of a single one its interval."""
    low, high = (float(points.min()), float(points.max())) if len(points) else (0.0, 0.0)
    longest = max((np.nanmax(highs - lows, initial=0.0) for _, lows, highs in ended), default=0.0)
    more = AROUND_POINTS * (high - low) or 0.6 * float(longest) or abs(low) or 1.0
    return [low - more, high + more]


def _heads(trace: Trace, letter: str, mask: np.ndarray, end: float, symbol: str) -> Trace:
    """Arrow heads at the end of an axis, of the intervals that go on."""
    other = "y" if letter == "x" else "x"
    colours = [trace.get(part, {}).get("color") for part in ("marker", "line")]
    kept = {
        name: trace[name]
        for name in ("xaxis", "yaxis", "legendgroup", "offsetgroup")
        if name in trace
    }
    return kept | {
        letter: np.full(mask.sum(), end), other: np.asarray(trace[other])[mask],
        "type": "scatter", "mode": "markers", "showlegend": False, "hoverinfo": "skip",
        "cliponaxis": False, "opacity": 0.8,
        "marker": {"symbol": symbol, "size": 9, "color": colours[0] or colours[1]},
    }  # fmt: skip


def error_bars(half: pd.Series) -> Trace:
    """Symmetric error bars of this half length."""
    return {"array": half.to_numpy(), "thickness": 1, "width": 3}


@cache
def plotly_source() -> Markup:
    """JavaScript of Plotly, compressed by gzip, as base64; see ``plotly/ATTRIBUTION.md``."""
    path = files("robust_fairness.core.rendering") / "plotly" / "plotly-cartesian.min.js.gz"
    return Markup(base64.b64encode(path.read_bytes()).decode())  # noqa: S704 - letters and digits


def figure(drawn: go.Figure, name: str) -> dict[str, Any]:
    """A figure for a page: its JSON, alternative text, and whether its panels may be rearranged.

    The page draws it when it becomes visible.
    """
    parts = cut(drawn.to_plotly_json())
    # the page shows the title, since plotly's does not wrap
    changed = {"template": SMALL, "autosize": True, "title": {}}
    shown = parts | {"layout": parts["layout"] | changed}
    # as in jinja2's tojson: nothing in a script may look like its end
    text = to_json(shown, validate=False).replace("<", "\\u003c")
    return {
        "name": f"figure-{name}",
        "title": drawn.layout.title.text or "",
        "label": in_words(drawn),
        "fluid": bool(drawn.layout.meta),
        "json": Markup(text),  # noqa: S704 - without tags
    }


def in_words(drawn: go.Figure) -> str:
    """Alternative text: the title and, for every panel, the range and the extreme series."""
    panels: dict[tuple[str, str], list[Any]] = {}
    for trace in drawn.data:
        if trace.hoverinfo != "skip":
            panels.setdefault((trace.xaxis or "x", trace.yaxis or "y"), []).append(trace)
    titles = {note.xref: note.text.replace("<br>", " ") for note in drawn.layout.annotations}
    described = []  # range of a panel and, if it has several named traces, those with its ends
    for (x, y), traces in panels.items():
        ends = []
        for trace in traces:
            values = np.asarray(() if getattr(trace, "y", None) is None else trace.y)
            if not np.issubdtype(values.dtype, np.number):  # of heat maps and names
                continue
            if len(values := values[np.isfinite(values)]):
                name = str(trace.name or "")
                ends += [(float(values.min()), name), (float(values.max()), name)]
        if not ends:
            continue
        (low, lowest), (high, highest) = min(ends), max(ends)
        axis = (drawn.layout[f"yaxis{y[1:]}"].title.text or "values").replace("<br>", ", ")
        several = len({name for _, name in ends}) > 1
        who = f", lowest {lowest}, highest {highest}" if several else ""
        title = titles.get(f"{x} domain", "")
        place = f"{title}: " if title else ""
        described.append(f"{place}{axis}, from {written(low)} to {written(high)}{who}.")
    further = (
        f"{len(described) - MOST_PANELS} further panels." if len(described) > MOST_PANELS else ""
    )
    title = drawn.layout.title.text or "Figure"
    return " ".join([f"{title}.", *described[:MOST_PANELS], further]).strip()


def image(shown: np.ndarray, caption: str) -> dict[str, str]:
    """A PNG image as base64 text, with its caption."""
    content = BytesIO()
    Image.fromarray(shown).save(content, format="PNG")
    return {"content": base64.b64encode(content.getvalue()).decode(), "shows": caption}
