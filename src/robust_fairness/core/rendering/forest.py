"""Gaps with their intervals as static plots: forest plots, and accuracy against gaps.

A forest plot is a table whose rows contain a drawing, so that its numbers are text. Models differ
in colour and in marker.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from markupsafe import Markup

from robust_fairness.core.rendering.html import breakable

COLOURS = 7  # of ``base.html``: the palette of all figures
SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0", "M-3.5-3.5h7v7h-7z", "M0-5l5 5l-5 5l-5-5z",
    "M0-5l5 8h-10z", "M0 5l5-8h-10z", "M-1.5-5h3v3.5H5v3H1.5V5h-3V1.5H-5v-3h3.5z",
    "M-5-2h10v4h-10z", "M-2-5h4v10h-4z",
)  # fmt: skip
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0)  # between ticks of an axis
TICKS = 4  # most steps between ticks of an axis
ROOM = 1.1  # of an axis from 0, in largest points; intervals that go on end in an arrow
ARROW = "M-5-4l5 4l-5 4z"  # to the right
HEIGHT, MIDDLE = 16, 8  # of a line in pixels
NUMBER = tuple[float, float, float]  # a value with the bounds of its interval


@dataclass(frozen=True)
class Mark:
    """A gap with its interval, and the one that it is compared with.

    Attributes:
        name: of the model; "" where there is one.
        value: the gap with the bounds of its interval.
        before: the gap that it is compared with, likewise; none if NaN.
        text: what is known of the change, in a few signs.
        words: the same for those who listen.
        worse: whether the change is a bad one.
        look: number of colour and marker.
        ticks: further values, each a small tick.
    """

    name: str
    value: NUMBER
    before: NUMBER
    text: str
    words: str = ""
    worse: bool = False
    look: int = 0
    ticks: tuple[float, ...] = ()


def forest(
    lines: Sequence[tuple[str, Sequence[Mark]]],
    caption: str,
    headings: tuple[str, str, str],
    write: Callable[[float], str],
    further: str = "",
) -> Markup:
    """A forest plot as HTML, of lines with their names.

    Args:
        lines: name and marks of every line, such as a test set and its models.
        caption: what the plot shows.
        headings: of the names, of the names of marks, and of the texts.
        write: the text of a value.
        further: what is not shown.
    """
    gaps = [end for _, marks in lines for mark in marks for end in (mark.value[0], mark.before[0])]
    ticks = axis_ticks(0.0, ROOM * max(np.asarray(gaps)[np.isfinite(gaps)], default=0.1))
    named = any(mark.name for _, marks in lines for mark in marks)
    anchors = ("start", *["middle"] * (len(ticks) - 2), "end")
    top = "".join(
        f"<text x='{percent(tick, ticks)}' y=12 text-anchor={anchor}>{escape(write(tick))}</text>"
        for tick, anchor in zip(ticks, anchors, strict=True)
    )
    rows = "".join(_rows(name, marks, ticks, named, write) for name, marks in lines)
    model = f"<th scope=col>{escape(headings[1])}</th>" if named else ""
    note = f"<p class=note>{escape(further)}</p>" if further else ""
    return Markup(  # noqa: S704 - made of numbers and escaped text
        f"<figure class='forest{' named' if named else ''}'>"
        f"<figcaption>{escape(caption)}</figcaption><table><thead><tr>"
        f"<th scope=col>{escape(headings[0])}</th>{model}<th scope=col class=axis>"
        "<span class=unseen>gap, 95 % interval</span>"
        f"<svg aria-hidden=true>{top}</svg></th><th scope=col class=what>{escape(headings[2])}</th>"
        f"</tr></thead><tbody>{rows}</tbody></table>{note}</figure>"
    )


def _rows(
    name: str,
    marks: Sequence[Mark],
    ticks: Sequence[float],
    named: bool,
    write: Callable[[float], str],
) -> str:
    rows = []
    for place, mark in enumerate(marks):
        head = f"<th scope=row rowspan={len(marks)}>{breakable(name)}</th>" if not place else ""
        model = f"<td class=name>{_dot(mark.look)}{breakable(mark.name)}</td>" if named else ""
        strong = " worse" if mark.worse else ""
        heard = f"<span class=unseen>{escape(mark.words)}</span>" if mark.words else ""
        hidden = " aria-hidden=true" if mark.words else ""
        value, before = (
            "{} ({} to {})".format(*map(write, part)) for part in (mark.value, mark.before)
        )
        gap = value if np.isnan(mark.before[0]) else f"{value}, at home {before}"
        rows.append(
            f"<tr{'' if place else ' class=first'}>{head}{model}"
            f"<td class=axis>{_drawn(mark, ticks)}"
            f"<span class=unseen>{escape(gap)}</span></td>"
            f"<td class='what{strong}'><span{hidden}>{escape(mark.text)}</span>{heard}</td></tr>"
        )
    return "".join(rows)


def _drawn(mark: Mark, ticks: Sequence[float]) -> str:
    """The drawing of a line: band of what is compared with, interval, marker."""
    places = [percent(tick, ticks) for tick in ticks]
    parts = [f"<line class=g x1='{at}' x2='{at}' y1=0 y2={HEIGHT} />" for at in places]
    before, low, high = mark.before
    if np.isfinite([before, low, high]).all():
        left, right = np.clip([low, high], ticks[0], ticks[-1])
        wide = percent(right - left + ticks[0], ticks)
        place = f"x='{percent(left, ticks)}' width='{wide}'"
        parts.append(f"<rect class=h {place} y=2 height={HEIGHT - 4} />")
    if np.isfinite(before):
        at = percent(before, ticks)
        parts.append(f"<line class=t x1='{at}' x2='{at}' y1=2 y2={HEIGHT - 2} />")
    value, low, high = mark.value
    parts.append(f"<g class='mark m{mark.look % COLOURS}'>")
    if np.isfinite([low, high]).all():
        ends = f"x1='{percent(low, ticks)}' x2='{percent(high, ticks)}'"
        parts.append(f"<line {ends} y1={MIDDLE} y2={MIDDLE} />")
    for tick in mark.ticks:
        at = percent(tick, ticks)
        parts.append(f"<line class=r x1='{at}' x2='{at}' y1={HEIGHT - 5} y2={HEIGHT} />")
    if high > ticks[-1]:
        parts.append(marker(ARROW, "100%", str(MIDDLE)))
    if np.isfinite(value):
        parts.append(marker(SHAPES[mark.look % len(SHAPES)], percent(value, ticks), str(MIDDLE)))
    return f"<svg aria-hidden=true>{''.join(parts)}</g></svg>"


def marker(path: str, x: str, y: str, turned: int = 0) -> str:
    """A marker at a place of a drawing, turned by degrees."""
    turn = f" transform='rotate({turned})'" if turned else ""
    return f"<svg x='{x}' y='{y}' overflow=visible><path{turn} d='{path}'/></svg>"


def _dot(look: int) -> str:
    shape, colour = SHAPES[look % len(SHAPES)], look % COLOURS
    box = "viewBox='-6 -6 12 12' aria-hidden=true"
    return f"<svg class='dot mark m{colour}' {box}><path d='{shape}'/></svg>"


def axis_ticks(low: float, high: float) -> list[float]:
    """Round numbers from one at most ``low`` to one at least ``high``, two to six of them.

    >>> axis_ticks(0.0, 0.43)
    [0.0, 0.2, 0.4, 0.6]
    """
    step = next((step for step in STEPS if (high - low) <= TICKS * step), (high - low) / TICKS)
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return [round(float(k * step), 10) for k in np.arange(first, max(last, first + 1) + 1)]


def percent(value: float, ticks: Sequence[float], start: float = 0.0, width: float = 100.0) -> str:
    """The place of a value on an axis, in per cent of its length; the nearest end if beyond."""
    share = np.clip((value - ticks[0]) / (ticks[-1] - ticks[0]), 0, 1)
    return f"{start + width * share:.4g}%"


def scatter(
    models: Mapping[str, tuple[int, NUMBER, NUMBER]], x: str, y: str, write: Callable[[float], str]
) -> Markup:
    """Models by two values with their intervals, as SVG with a list of the models.

    Args:
        models: by name the number of colour and marker, and both values with their bounds.
        x: name of the first value.
        y: name of the second one.
        write: the text of a value.
    """
    axes, parts, listed = [], [], []
    for points in np.array([(first[0], second[0]) for _, first, second in models.values()]).T:
        known = points[np.isfinite(points)]
        around = max(0.1 * float(np.ptp(known)), STEPS[0])
        axes.append(axis_ticks(float(known.min()) - around, float(known.max()) + around))
    across, up = axes
    for tick in across:
        at = percent(tick, across, 9, 88)
        parts.append(f"<line class=g x1='{at}' x2='{at}' y1='3%' y2='83%'/>")
        parts.append(f"<text x='{at}' y='89%' text-anchor=middle>{escape(write(tick))}</text>")
    for tick in up:
        at = percent(tick, up, 83, -80)
        parts.append(f"<line class=g x1='9%' x2='97%' y1='{at}' y2='{at}'/>")
        parts.append(f"<text x='8%' y='{at}' dy=4 text-anchor=end>{escape(write(tick))}</text>")
    parts.append(f"<text x='97%' y='97%' text-anchor=end>{escape(x)} →</text>")
    parts.append(f"<text x='0' y='0%' dy=-2>↑ {escape(y)}</text>")
    for name, (look, first, second) in models.items():
        (here, left, right), (there, low, high) = (
            [percent(value, ticks, *span) for value in values]
            for values, ticks, span in ((first, across, (9, 88)), (second, up, (83, -80)))
        )
        cut = (
            (first[1] < across[0], left, there, 180), (first[2] > across[-1], right, there, 0),
            (second[1] < up[0], here, low, 90), (second[2] > up[-1], here, high, 270),
        )  # fmt: skip
        arrows = [marker(ARROW, at, level, turned) for is_cut, at, level, turned in cut if is_cut]
        parts.append(
            f"<g class='mark m{look % COLOURS}'><line x1='{left}' x2='{right}' y1='{there}' "
            f"y2='{there}'/><line x1='{here}' x2='{here}' y1='{low}' y2='{high}'/>"
            f"{marker(SHAPES[look % len(SHAPES)], here, there)}{''.join(arrows)}</g>"
        )
        values = "; ".join("{} ({} to {})".format(*map(write, part)) for part in (first, second))
        listed.append(
            f"<li>{_dot(look)}{breakable(name)} <span class=note>{escape(values)}</span></li>"
        )
    return Markup(  # noqa: S704 - made of numbers and escaped text
        f"<svg class=scatter role=img aria-label='{escape(y)} against {escape(x)}, values below'>"
        f"{''.join(parts)}</svg><ul class=models>{''.join(listed)}</ul>"
    )
