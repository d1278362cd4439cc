"""Small drawings of values with their intervals, as inline SVG."""

from html import escape

import numpy as np
from markupsafe import Markup

WIDTH, HEIGHT = 160, 16
ENDS = (0.5, 1.0, 2.0)  # of an axis of differences


def axis_of(limit: float, share: bool) -> tuple[float, float]:
    """Ends of the axis of a value with a limit.

    0 to 1 for shares; 0 to 0.5 for differences, wider where the limit is beyond; symmetric where it
    is negative.
    """
    size = abs(limit)
    end = 1.0 if share else next((one for one in ENDS if size <= one), 2 * size)
    return (-end if limit < 0 else 0.0), end


def interval_svg(
    value: float,
    low: float,
    high: float,
    axis: tuple[float, float],
    line: float | None = None,
    then: tuple[float, float, float] | None = None,
) -> Markup:
    """A dot with its interval on an axis; arrows where it goes beyond.

    Args:
        value: the value.
        low: lower bound; NaN without an interval.
        high: upper bound.
        axis: both ends of the axis.
        line: a limit or an overall value, drawn as a vertical line.
        then: earlier value with its bounds, drawn hollow below the value.
    """
    parts = [f"<path class=a d='M0 {HEIGHT / 2:g}H{WIDTH}'/>"]
    if line is not None and np.isfinite(line):
        parts.append(f"<path class=l d='M{_place(line, axis):g} 0V{HEIGHT}'/>")
    height = HEIGHT / 2 if then is None else HEIGHT / 4
    parts += _mark(value, low, high, axis, height, "v")
    said = f"{value:.3f}, 95 % interval {low:.3f} to {high:.3f}"
    if then is not None:
        parts += _mark(*then, axis, 3 * HEIGHT / 4, "t")
        said += f"; before {then[0]:.3f}"
    return Markup(  # noqa: S704 - made of numbers
        f"<svg role=img aria-label='{escape(said)}' viewBox='0 0 {WIDTH} {HEIGHT}'>"
        f"{''.join(parts)}</svg>"
    )


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


def _place(value: float, axis: tuple[float, float]) -> float:
    """Distance from the left, within the drawing."""
    share = (value - axis[0]) / (axis[1] - axis[0])
    return round(float(np.clip(share, 0, 1)) * WIDTH, 1)
