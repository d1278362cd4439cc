"""Effects with their intervals on one axis, as an SVG that needs no colour and no script."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

import numpy as np
from markupsafe import Markup

WIDTH, EDGE, CHARACTERS = 400, 14, 47  # of a drawing, beside its axis, of a line of text
END = 4.0  # of the axis on both sides, in margins
LINE, STRIP, GAP = 16, 20, 12  # heights
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1b1f24}.b{font-weight:600}.h{font-size:16px;"
    "font-weight:700}.s{fill:#57606a;font-size:12px}.z{stroke:#57606a}.m{fill:#e8ebef}"
    ".i{stroke:#1b1f24;stroke-width:2.5}.o{fill:#1b1f24}.p{fill:#fff;stroke:#1b1f24;"
    "stroke-width:1.5}.d{fill:none;stroke:#57606a}.r{fill:#fff;stroke:#1b1f24}"
)


@dataclass(frozen=True)
class Effect:
    """A line of the drawing; numbers are in margins, positive as claimed.

    Attributes:
        name: what is claimed.
        verdict: in words.
        published: missing where it is not known.
        ours: missing where it is not known.
        low: lower end of the interval.
        high: upper end of the interval.
        others: further effects of the same claim.
        reach: the largest effect that is possible where a part is out of reach.
    """

    name: str
    verdict: str
    published: float = np.nan
    ours: float = np.nan
    low: float = np.nan
    high: float = np.nan
    others: Sequence[float] = ()
    reach: float = np.nan


def effects_svg(groups: Mapping[str, Iterable[Effect]], title: str, legend: bool = True) -> Markup:
    """A line per effect, by group: published and ours with its interval, and the verdict.

    Args:
        groups: effects by the title of their group.
        title: what the drawing shows; its text alternative goes on with every verdict.
        legend: whether to say what the marks mean.
    """
    parts, said, y = [], [title], 4.0
    if legend:
        parts += _legend(y)
        y += 9 * LINE + GAP
    for heading, effects in groups.items():
        if heading:
            y += GAP
            parts.append(_text(EDGE, y + LINE, heading, "h"))
            said.append(f"{heading}:")
            y += LINE + GAP
        for effect in effects:
            for line in wrap(effect.name, CHARACTERS):
                y += LINE
                parts.append(_text(EDGE, y, line, "b"))
            for line in wrap(effect.verdict, CHARACTERS + 9):
                y += LINE
                parts.append(_text(EDGE, y, line, "s"))
            if np.isfinite(effect.ours) or np.isfinite(effect.published):
                parts += _strip(effect, y + 4)
                y += STRIP + 4
            y += GAP
            said.append(f"{effect.name}: {effect.verdict}.")
    height = y + EDGE
    alternative = escape(" ".join(said), quote=True)
    return Markup(  # noqa: S704 - made of numbers and escaped text
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{alternative}" '
        f'viewBox="0 0 {WIDTH} {height:g}" width="560" style="max-width:100%;height:auto">'
        f"<style>{STYLE}</style>"
        f'<rect width="{WIDTH}" height="{height:g}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def _legend(y: float) -> list[str]:
    sample = Effect("", "", 2.0, 1.2, 0.5, 1.9, (2.6,))
    below = y + LINE + STRIP + 2
    lines = (
        "Square: ours with its 95 % interval, or the range of few",
        "seeds, of the part furthest from the claim. Circles: its other",
        "parts. Diamond: published.",
        f"Grey: less than the margin. The axis ends at {END:g} margins.",
        "Black outline: what is possible in parts out of reach, which",
        "is less than the margin.",
    )
    return [
        _text(EDGE, y + LINE, "against the claim", "s"),
        _text(WIDTH - EDGE, y + LINE, "as claimed", "s", "end"),
        *_strip(sample, y + LINE + 2),
        *(_text(EDGE, below + LINE * n, line, "s") for n, line in enumerate(lines, 1)),
    ]


def _strip(effect: Effect, y: float) -> list[str]:
    """The axis of an effect with its marks."""
    middle = y + STRIP / 2
    left, zero, right = _place(-1), _place(0), _place(1)
    parts = [
        f'<rect class="m" x="{left:g}" y="{y:g}" width="{right - left:g}" height="{STRIP}"/>',
        f'<path class="z" d="M{EDGE} {middle:g}H{WIDTH - EDGE}M{zero:g} {y:g}v{STRIP}"/>',
    ]
    if np.isfinite(effect.reach):
        width = max(_place(effect.reach) - zero, 1.5)
        parts.append(
            f'<rect class="r" x="{zero:g}" y="{y + 1:g}" width="{width:g}" height="{STRIP - 2}"/>'
        )
    parts += [
        f'<circle class="d" cx="{_place(value):g}" cy="{middle:g}" r="3"/>'
        for value in effect.others
        if np.isfinite(value)
    ]
    if np.isfinite(effect.published):
        x = _place(effect.published)
        parts.append(f'<path class="p" d="M{x - 6:g} {middle:g}l6 -6 6 6 -6 6z"/>')
    if np.isfinite(effect.ours):
        ends = [value if np.isfinite(value) else effect.ours for value in (effect.low, effect.high)]
        low, high = map(_place, ends)
        parts.append(f'<path class="i" d="M{low:g} {middle:g}H{high:g}"/>')
        for x, value, way in ((low, ends[0], 1), (high, ends[1], -1)):
            if abs(value) > END:
                parts.append(f'<path class="o" d="M{x:g} {middle:g}l{6 * way} -5v10z"/>')
    if abs(effect.ours) <= END:
        x = _place(effect.ours)
        parts.append(f'<rect class="o" x="{x - 4:g}" y="{middle - 4:g}" width="8" height="8"/>')
    return parts


def _place(value: float) -> float:
    share = (min(max(value, -END), END) + END) / (2 * END)
    return round(EDGE + share * (WIDTH - 2 * EDGE), 1)


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'
