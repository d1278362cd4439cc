"""The verdict of every claim as a sentence, and the drawing of all claims."""

from collections import Counter
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from robust_fairness.core.numbers import counted
from robust_fairness.core.numbers import written as as_text
from robust_fairness.core.rendering.effects import Effect, effects_svg
from robust_fairness.numbers.claims import BOUNDS, DECIDED
from robust_fairness.report.claims.declared import listed
from robust_fairness.report.claims.effects import MODELS

OPEN = ("undecided", "out of reach", "not run")  # verdicts that say what they need
WORDS = {  # of states, for one part and for several
    "holds": ("holds", "hold"), "reversed": ("is reversed", "are reversed"),
    "excluded": ("excluded",) * 2, "out of reach": ("out of reach",) * 2, "void": ("void",) * 2,
    "undecided": ("open",) * 2, "not run": ("not run",) * 2,
}  # fmt: skip


def judged(parts: pd.DataFrame) -> pd.DataFrame:
    """A row per claim of ``table``, with its verdict in words and the part furthest from the claim.

    Returns:
        Columns claim, at, verdict, counted (the verdict in words, with the states of several
        parts), says (the same with what is possible and what it needs, where it is open), needs
        (what would decide the open parts), whom ("these models" if any part that decides is about
        these only), known_before (of its parts), cost, and part, state, published, ours, low, high,
        margin, reach, seeds and question of the part furthest from the claim by standard errors.
    """
    return pd.DataFrame([_judged(rows) for rows in _by_claim(parts)])


def _by_claim(parts: pd.DataFrame) -> list[list[dict[Any, Any]]]:
    """The parts of every claim, with ``nearness``: how far inside of what is claimed, in errors."""
    bounds = np.array([BOUNDS[name] for name in parts["expect"]]) * parts[["margin"]].to_numpy()
    inside = np.minimum(parts["ours"] - bounds[:, 0], bounds[:, 1] - parts["ours"])
    nearness = (inside / parts["error"]).fillna(np.inf)
    claims: dict[str, list[dict[Any, Any]]] = {}
    for part in parts.assign(nearness=nearness).to_dict("records"):
        claims.setdefault(part["claim"], []).append(part)
    return list(claims.values())


def _judged(rows: Sequence[dict[Any, Any]]) -> dict[str, Any]:
    """The line of ``judged`` about the parts of a claim."""
    furthest = _furthest(rows)
    decides = [part["question"] for part in rows if part["state"] in DECIDED]
    models, verdict, states = decides.count(MODELS), str(rows[0]["verdict"]), _states(rows)
    if models:  # the verdict is about these only
        some = f" in {models} of {len(decides)}" if models < len(decides) else ""
        verdict = f"{verdict} (these models{some})"
    short = f"{verdict}: {states}" if states else verdict
    more = _possible(rows) if furthest["verdict"] in OPEN else ""
    says = f"{short}{';' if states else ':'} {more}" if more else short
    names = ("claim", "at", "verdict", "cost", "part", "state", "published", "ours", "low", "high",
             "margin", "reach", "seeds", "question")  # fmt: skip
    return {
        **{name: furthest[name] for name in names},
        "counted": short,
        "says": says,
        "needs": _needs(rows),
        "whom": MODELS if models else "",
        "known_before": ", ".join(dict.fromkeys(part["known_before"] for part in rows)),
    }


def _furthest(rows: Sequence[dict[Any, Any]]) -> dict[Any, Any]:
    """The part that is furthest from what is claimed."""
    return min(rows, key=itemgetter("nearness"))


def _states(rows: Sequence[dict[Any, Any]]) -> str:
    """How many parts have which state, where the verdict does not say it."""
    count = Counter(part["state"] for part in rows)
    if len(rows) == 1 or (len(count) == 1 and rows[0]["verdict"] != "undecided"):
        return ""
    return ", ".join(
        f"{count[state]} of {len(rows)} {words[int(count[state] > 1)]}"
        for state, words in WORDS.items()
        if state in count
    )


def _unclear(rows: Sequence[dict[Any, Any]]) -> list[dict[Any, Any]]:
    """The undecided part that is furthest from the claim; none if no part is undecided."""
    unclear = [part for part in rows if part["state"] == "undecided"]
    return [_furthest(unclear)] if unclear else []


def _possible(rows: Sequence[dict[Any, Any]]) -> str:
    """The range of the furthest undecided part, if there is one, and what is needed or costs."""
    if all(part["state"] == "not run" for part in rows):
        return str(rows[0]["cost"])
    ends = [
        f"{part['low']:.3f} to {part['high']:.3f}{' in ' * bool(part['part'])}{part['part']}"
        for part in _unclear(rows)
        if np.isfinite(part["low"])
    ]
    return "; ".join([*ends, _needs(rows)])


def _needs(rows: Sequence[dict[Any, Any]]) -> str:
    """What would decide the parts that are open."""
    closed = [part for part in rows if part["state"] in ("void", "out of reach")]
    needed = [part["needed"] for part in [*_unclear(rows), *closed]]
    said = [*dict.fromkeys(needed)][:2]
    if any(part["state"] == "not run" for part in rows):
        said.append("a run")
    return f"needs {', and '.join(said)}" if said else ""


def main_claim(paper: str, parts: pd.DataFrame) -> dict[str, Any]:
    """The main claim of a paper, that which the default run answers.

    Args:
        paper: name of the paper.
        parts: its ``table``.

    Returns:
        name, at and effect of the claim; part, the one furthest from the claim; published and ours,
        its effects in words; verdict, in words; line, as ``drawn``. Nothing where it was not run.
    """
    names = [claim.claim for claim in listed()[paper] if claim.default_run]
    rows = parts[parts["claim"].isin(names)]
    if (rows["state"] == "not run").all():
        return {}
    claim = _judged(_by_claim(rows)[0])
    ends = f" ({_signed(claim['low'])} to {_signed(claim['high'])})"
    ours = f"{_signed(claim['ours'])}{ends if claim['low'] < claim['high'] else ''}, "
    ours += counted({"seeds": claim["seeds"]})
    return {
        "name": claim["claim"],
        "at": claim["at"],
        "effect": rows["effect"].iloc[0],
        "part": claim["part"],
        "published": "" if np.isnan(claim["published"]) else _signed(claim["published"]),
        "ours": "" if np.isnan(claim["ours"]) else ours,
        "verdict": claim["says"],
        "line": drawn({"": rows}, legend=False),
    }


def _signed(effect: float) -> str:
    return as_text(effect, 2).replace("-", "\N{MINUS SIGN}")


def drawn(papers: Mapping[str, pd.DataFrame], legend: bool = True) -> Markup:
    """A line per claim with published effect, ours and verdict: SVG.

    Args:
        papers: ``table`` of papers by their titles; no title is shown of "".
        legend: whether it says what the marks mean.
    """
    return effects_svg(
        {title: list(map(_line, _by_claim(parts))) for title, parts in papers.items()},
        "Claims with their published effects, ours and verdicts.",
        legend,
    )


def _line(rows: Sequence[dict[Any, Any]]) -> Effect:
    furthest = _furthest(rows)
    scale = _in_margins(furthest)
    low, high = sorted((scale * furthest["low"], scale * furthest["high"]))
    return Effect(
        furthest["claim"], _judged(rows)["says"], scale * furthest["published"],
        scale * furthest["ours"], low, high,
        tuple(_in_margins(part) * part["ours"] for part in rows if part is not furthest),
        max((part["reach"] / part["margin"] for part in rows if part["state"] == "out of reach"),
            default=np.nan),
    )  # fmt: skip


def _in_margins(part: dict[Any, Any]) -> float:
    """What turns an effect into margins in the direction of the claim."""
    return (-1 if part["expect"] in ("below", "not above") else 1) / float(part["margin"])
