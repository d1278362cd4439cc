"""Figures and images as HTML, with their alternative text."""

import base64
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
import plotly.graph_objects as go
from markupsafe import Markup
from PIL import Image
from plotly.io import to_json

from robust_fairness.core.numbers import written
from robust_fairness.core.rendering.figures import TEMPLATE, cut

SMALL = TEMPLATE.to_plotly_json()
MOST_PANELS = 12  # that the alternative text of a figure describes


@cache
def plotly_source() -> Markup:
    """JavaScript of Plotly, compressed by gzip, as base64; see ``plotly/ATTRIBUTION.md``."""
    path = files("robust_fairness.core.rendering") / "plotly" / "plotly-cartesian.min.js.gz"
    return Markup(base64.b64encode(path.read_bytes()).decode())  # noqa: S704 - letters and digits


def figure(drawn: go.Figure, name: str) -> dict[str, Any]:
    """A figure for a page: its JSON, alternative text, and whether its panels may be rearranged.

    The page draws it when it becomes visible.
    """
    # one small template instead of plotly's, which takes 7 kB per figure
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
    traces: dict[tuple[str, str], list[Any]] = {}
    for trace in drawn.data:
        if trace.hoverinfo != "skip":
            traces.setdefault((trace.xaxis or "x", trace.yaxis or "y"), []).append(trace)
    titles = {note.xref: note.text.replace("<br>", " ") for note in drawn.layout.annotations}
    told = [
        _panel_in_words(titles.get(f"{axes[0]} domain", ""), drawn, axes, part)
        for axes, part in traces.items()
    ]
    told = [item for item in told if item]
    further = f"{len(told) - MOST_PANELS} further panels." if len(told) > MOST_PANELS else ""
    title = drawn.layout.title.text or "Figure"
    return " ".join([f"{title}.", *told[:MOST_PANELS], further]).strip()


def _panel_in_words(
    title: str, drawn: go.Figure, axes: tuple[str, str], traces: Sequence[Any]
) -> str:
    """Range of a panel and, if it has several named traces, those with the extreme points."""
    result = []
    for trace in traces:
        values = _numbers(trace)
        if len(values):
            name = str(trace.name or "")
            result += [(float(values.min()), name), (float(values.max()), name)]
    if not result:
        return ""
    (low, lowest), (high, highest) = min(result), max(result)
    axis = (drawn.layout[f"yaxis{axes[1][1:]}"].title.text or "values").replace("<br>", ", ")
    names = {name for _, name in result}
    who = f", lowest {lowest}, highest {highest}" if len(names) > 1 else ""
    place = f"{title}: " if title else ""
    return f"{place}{axis}, from {written(low)} to {written(high)}{who}."


def _numbers(trace: Any) -> np.ndarray:
    """Finite y values of a trace; empty for heat maps and for names."""
    values = np.asarray(() if getattr(trace, "y", None) is None else trace.y)
    if not np.issubdtype(values.dtype, np.number):
        return np.empty(0)
    return values[np.isfinite(values)]


def image(shown: np.ndarray, caption: str) -> dict[str, str]:
    """A PNG image as base64 text, with its caption."""
    content = BytesIO()
    Image.fromarray(shown).save(content, format="PNG")
    return {"content": base64.b64encode(content.getvalue()).decode(), "shows": caption}
