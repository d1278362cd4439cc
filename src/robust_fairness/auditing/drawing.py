"""Small drawings of values with their intervals, as inline SVG."""

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import pandas as pd
from markupsafe import Markup

from robust_fairness.auditing.who import Panel
from robust_fairness.core.numbers import number, within, written
from robust_fairness.core.rendering.forest import ARROW, SHAPES, axis_ticks, marker, percent

WIDTH, HEIGHT = 160, 16
ENDS = (0.5, 1.0, 2.0)  # of an axis of differences
ROW = 16  # height of a group
LOOKS = {"good": (0, "within the limit"), "bad": (2, "beyond the limit"), "unsure": (1, "not sure")}
LEFT, BROAD, RIGHT, TALL = 30, 230, 66, 140  # of a drawing of curves


def axis_of(limit: float, share: bool) -> tuple[float, float]:
    """Ends of the axis of a value with a limit.

    0 to 1 for shares; 0 to 0.5 for differences, wider where the limit is beyond; symmetric where it
    is negative.
    """
    size = abs(limit)
    end = 1.0 if share else next((end for end in ENDS if size <= end), 2 * size)
    return (-end if limit < 0 else 0.0), end


def interval_svg(
    value: float,
    low: float,
    high: float,
    axis: tuple[float, float],
    line: float | None = None,
    then: tuple[float, float, float] | None = None,
    interval: str = "95 %",
) -> Markup:
    """A dot with its interval on an axis; arrows where it goes beyond.

    Args:
        value: the value.
        low: lower bound; NaN without an interval.
        high: upper bound.
        axis: both ends of the axis.
        line: a limit or an overall value, drawn as a vertical line.
        then: earlier value with its bounds, drawn hollow below the value.
        interval: which interval it is, in words.
    """
    parts = [f"<path class=a d='M0 {HEIGHT / 2:g}H{WIDTH}'/>"]
    if line is not None and np.isfinite(line):
        parts.append(f"<path class=l d='M{_place(line, axis):g} 0V{HEIGHT}'/>")
    height = HEIGHT / 2 if then is None else HEIGHT / 4
    parts += _mark(value, low, high, axis, height, "v")
    said = f"{number(value, low, high)}, {interval} interval{within(low, high)}"
    if then is not None:
        parts += _mark(*then, axis, 3 * HEIGHT / 4, "t")
        said += f"; before {number(*then)}"
    return Markup(  # noqa: S704 - made of numbers
        f"<svg role=img aria-label='{escape(said)}' viewBox='0 0 {WIDTH} {HEIGHT}'>"
        f"{''.join(parts)}</svg>"
    )


def curves_svg(x: np.ndarray, lines: Mapping[str, np.ndarray], line: float, label: str) -> Markup:
    """Lines of values between 0 and 1 with their names at the right end, and a vertical line.

    Args:
        x: places of the points, increasing.
        lines: values of the points by name; the first line is solid, the second one dashed.
        line: place of the vertical line.
        label: alternative text.
    """
    axis = (float(x[0]), float(x[-1]))
    parts = [f"<path class=a d='M{LEFT} {_height(y):g}h{BROAD}'/>" for y in (0, 0.5, 1)]
    parts += [
        f"<text x={LEFT - 4} y={_height(y) + 4:g} text-anchor=end>{y:g}</text>" for y in (0, 0.5, 1)
    ]
    for name, (kind, values) in zip(lines, zip("vw", lines.values(), strict=False), strict=True):
        points = " ".join(
            f"{LEFT + _place(position, axis, BROAD):g},{_height(float(value)):g}"
            for position, value in zip(x, values, strict=True)
        )
        parts.append(f"<polyline class={kind} points='{points}'/>")
        end = _height(float(values[-1])) + 4
        parts.append(f"<text x={LEFT + BROAD + 4} y={end:g}>{escape(name)}</text>")
    parts.append(
        f"<path class=l d='M{LEFT + _place(line, axis, BROAD):g} {_height(1):g}V{_height(0):g}'/>"
    )
    for place in (0.0, 0.5, 1.0):
        value = axis[0] + place * (axis[1] - axis[0])
        at = LEFT + BROAD * place
        parts.append(f"<text x={at:g} y={TALL + 24} text-anchor=middle>{value:.2g}</text>")
    return Markup(  # noqa: S704 - made of numbers and escaped text
        f"<svg class=curves role=img aria-label='{escape(label, quote=True)}' "
        f"viewBox='0 0 {LEFT + BROAD + RIGHT} {TALL + 30}'>{''.join(parts)}</svg>"
    )


def series_svg(
    values: Sequence[tuple[float, float, float]],
    band: tuple[float, float],
    limit: float,
    alarm: int | None,
    ends: tuple[str, str],
    label: str,
) -> Markup:
    """Values of consecutive periods with their intervals, over the band of a reference.

    Args:
        values: value with its bounds of every period; NaN where it has none.
        band: interval of the reference.
        limit: drawn as a horizontal line.
        alarm: number of the period from which on dots are filled with the colour of alarms.
        ends: names of the first and the last period.
        label: alternative text.
    """
    known = np.array([[*value, limit, *band] for value in values])
    ticks = axis_ticks(0.0, max(0.05, float(np.nanmax(known, initial=0.0))))
    top = ticks[-1]
    step = BROAD / max(len(values), 1)
    high, low = (_height(end / top) for end in (band[1], band[0]))
    parts = [f"<rect x={LEFT} y={high:g} width={BROAD} height={low - high:g} />"]
    for tick in ticks:
        y = _height(tick / top)
        parts.append(f"<path class=a d='M{LEFT} {y:g}h{BROAD}'/>")
        parts.append(f"<text x={LEFT - 3} y={y + 4:g} text-anchor=end>{tick:g}</text>")
    parts.append(f"<path class=l d='M{LEFT} {_height(limit / top):g}h{BROAD}'/>")
    for place, (value, least, most) in enumerate(values):
        if not np.isfinite(value):
            continue
        x = round(LEFT + step * (place + 0.5), 1)
        kind = "r" if alarm is not None and place >= alarm else "v"
        ends_of = (_height(most / top), _height(least / top))
        parts.append(f"<path class={kind} d='M{x:g} {ends_of[0]:g}V{ends_of[1]:g}'/>")
        parts.append(f"<circle class={kind} cx={x:g} cy={_height(value / top):g} r=2.5 />")
    for name, x, anchor in zip(ends, (LEFT, LEFT + BROAD), ("start", "end"), strict=True):
        parts.append(f"<text x={x} y={TALL + 16} text-anchor={anchor}>{escape(name)}</text>")
    return Markup(  # noqa: S704 - made of numbers and escaped text
        f"<svg class='curves series' role=img aria-label='{escape(label, quote=True)}' "
        f"viewBox='0 0 {LEFT + BROAD + 8} {TALL + 22}'>{''.join(parts)}</svg>"
    )


def groups_figure(panels: Sequence[Panel], definition: str, most: int, most_crossed: int) -> Markup:
    """The groups of several attributes by a rate, as a table whose rows have a drawing.

    A dot with interval and rows for every group, what is within the limit shaded, the difference of
    the best and the worst group with its interval, and arrows from earlier values.

    Args:
        panels: the rate by attribute.
        definition: of the rate.
        most: groups of an attribute that are shown.
        most_crossed: those of an intersection.
    """
    places = [panel.shown(most_crossed if panel.crossed else most) for panel in panels]
    some = [panel.groups.iloc[kept] for panel, kept in zip(panels, places, strict=True)]
    known = np.concatenate([rows[["value", "low", "high", "then"]].to_numpy() for rows in some])
    ends = known[np.isfinite(known)]
    ticks = axis_ticks(ends.min(initial=1.0), ends.max(initial=0.0)) if len(ends) else [0.0, 1.0]
    anchors = ("start", *["middle"] * (len(ticks) - 2), "end")
    top = "".join(
        f"<text x='{percent(tick, ticks)}' y=12 text-anchor={anchor}"
        f"{' class=between' * (place % 2)}>{escape(_written(panels[0], tick))}</text>"
        for place, (tick, anchor) in enumerate(zip(ticks, anchors, strict=True))
    )
    rows = "".join(_panel(panel, kept, ticks) for panel, kept in zip(panels, places, strict=True))
    name = panels[0].name
    return Markup(  # noqa: S704 - made of numbers and escaped text
        f"<figure class='forest named who' aria-label='{escape(name, quote=True)} by group'>"
        f"<figcaption><strong>{escape(name[:1].upper() + name[1:])}</strong> "
        f"<span class=note>{escape(definition)}</span></figcaption><table><thead><tr>"
        "<th scope=col>attribute</th><th scope=col>group</th><th scope=col class=axis>"
        f"<span class=unseen>value, 95 % interval</span><svg aria-hidden=true>{top}</svg></th>"
        f"<th scope=col class=what>rows</th></tr></thead><tbody>{rows}</tbody></table></figure>"
    )


def _panel(panel: Panel, places: Sequence[int], ticks: Sequence[float]) -> str:
    """The groups of an attribute, and their difference."""
    band = ""
    if panel.within is not None:
        left, right = np.clip(panel.within, ticks[0], ticks[-1])
        wide = percent(right - left + ticks[0], ticks)
        band = f"<rect class=b x='{percent(left, ticks)}' width='{wide}' y=0 height={ROW} />"
    band += "".join(
        f"<line class=g x1='{at}' x2='{at}' y1=0 y2={ROW} />"
        for at in (percent(tick, ticks) for tick in ticks)
    )
    further = len(panel.groups) - len(places)
    more = f"<small class=note>{further} more between</small>" if further else ""
    head = f"<th scope=row rowspan={len(places) + 1}>{escape(panel.attribute)}{more}</th>"
    rows = []
    for place in places:
        group = panel.groups.iloc[place]
        state = group["state"]
        shape, words = LOOKS[state]
        pale = " pale" if group["small"] else ""
        said = f"{_estimate(panel, *group[['value', 'low', 'high']])}, {words}"
        if np.isfinite(group["then"]):
            said += f"; before {_written(panel, group['then'])}"
        rows.append(
            f"<td class=name><svg class='dot mark {state}' viewBox='-6 -6 12 12' aria-hidden=true>"
            f"<path d='{SHAPES[shape]}'/></svg>{escape(str(group.name))}</td>"
            f"<td class=axis><svg aria-hidden=true>{band}<g class='mark {state}{pale}'>"
            f"{_drawn(group, shape, ticks)}</g></svg><span class=unseen>{escape(said)}</span></td>"
            f"<td class=what>{group['n']:,.0f}</td>"
        )
    rows.append(_difference(panel, band, ticks))
    first = f"<tr class=first>{head}{rows[0]}</tr>"
    return first + "".join(f"<tr>{row}</tr>" for row in rows[1:])


def _drawn(group: pd.Series, shape: int, ticks: Sequence[float]) -> str:
    """Interval, dot, and an arrow from an earlier value."""
    value, low, high, then = (float(group[name]) for name in ("value", "low", "high", "then"))
    if not np.isfinite(value):
        return ""
    moved = np.isfinite(then)
    y, parts = ROW // 3 if moved else ROW // 2, []
    if np.isfinite([low, high]).all():
        ends = f"x1='{percent(low, ticks)}' x2='{percent(high, ticks)}'"
        parts.append(f"<line {ends} y1={y} y2={y} />")
    at = percent(value, ticks)
    if moved:
        below = ROW - 4
        ends = f"x1='{percent(then, ticks)}' x2='{at}'"
        parts.append(f"<line class=t {ends} y1={below} y2={below} />")
        parts.append(marker(ARROW, at, str(below), 0 if value >= then else 180))
    return "".join([*parts, marker(SHAPES[shape], at, str(y))])


def _difference(panel: Panel, band: str, ticks: Sequence[float]) -> str:
    """The distance of the worst group from the best one, and the interval of its end."""
    value, low, high = panel.gap
    best, worst = panel.groups["value"].iloc[panel.best], panel.groups["value"].iloc[panel.worst]
    sign, y, parts = np.sign(worst - best), ROW // 2, [band]
    if np.isfinite([low, high]).all():
        ends = " ".join(
            f"{name}='{percent(best + sign * end, ticks)}'"
            for name, end in (("x1", low), ("x2", high))
        )
        parts.append(f"<line class=t {ends} y1={y + 5} y2={y + 5} />")
    if np.isfinite(value):
        here, there = percent(best, ticks), percent(worst, ticks)
        parts.append(f"<line class=d x1='{here}' x2='{there}' y1={y} y2={y} />")
        parts += [
            f"<line class=d x1='{at}' x2='{at}' y1={y - 4} y2={y + 4} />" for at in (here, there)
        ]
    said, unit = _estimate(panel, value, low, high), ", points" if panel.is_share else ""
    return (
        f"<td class=name>difference{unit}</td>"
        f"<td class=axis><svg aria-hidden=true>{''.join(parts)}</svg></td>"
        f"<td class=what>{escape(said.replace(' %', ''))}</td>"
    )


def _written(panel: Panel, value: float) -> str:
    """A value as the figure writes it: per cent, or a number."""
    return f"{100 * value:.3g} %" if panel.is_share else written(value)


def _estimate(panel: Panel, value: float, low: float, high: float) -> str:
    """A value with its interval likewise."""
    if not np.isfinite(value):
        return "not known"
    factor, unit = (100, " %") if panel.is_share else (1, "")
    if not np.isfinite([low, high]).all():
        return f"{factor * value:.3g}{unit}"
    return f"{factor * value:.2g}{unit} ({factor * low:.2g} to {factor * high:.2g})"


def _height(value: float) -> float:
    return round(10 + (1 - value) * (TALL - 10), 1)


def _mark(
    value: float, low: float, high: float, axis: tuple[float, float], y: float, kind: str
) -> list[str]:
    """Interval, dot and arrows; nothing without a value."""
    if not np.isfinite(value):
        return []
    left, right = (value if np.isnan(end) else end for end in (low, high))
    parts = [f"<path class={kind} d='M{_place(left, axis):g} {y:g}H{_place(right, axis):g}'/>"]
    if right > axis[1]:
        parts.append(f"<path class=r d='M{WIDTH - 5} {y - 3:g}l5 3l-5 3'/>")
    if left < axis[0]:
        parts.append(f"<path class=r d='M5 {y - 3:g}l-5 3l5 3'/>")
    if axis[0] <= value <= axis[1]:
        parts.append(f"<circle class={kind} cx={_place(value, axis):g} cy={y:g} r=3 />")
    return parts


def _place(value: float, axis: tuple[float, float], width: float = WIDTH) -> float:
    """Distance from the left end of the axis, within the drawing."""
    share = (value - axis[0]) / ((axis[1] - axis[0]) or 1)
    return round(float(np.clip(share, 0, 1)) * width, 1)
