"""The first screen of the report: the answer, what limits it, the matrix, accuracy and gap."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from robust_fairness.inference.estimate import LEVEL
from robust_fairness.inference.variance import FEWEST_REFITS
from robust_fairness.rendering.html import counted, rendered
from robust_fairness.reporting.figures import pareto_front
from robust_fairness.reporting.matrix import (
    CHANGED,
    METHOD_QUESTION,
    MODEL_QUESTION,
    PLACE,
    SMALL,
    STATES,
    home_against_plain,
    is_plain,
    matrices,
    other_networks,
    preferred,
    test_set_name,
    undefined,
    words_of,
)
from robust_fairness.reporting.results import Results

ALL = "all datasets"
EDGES = (-0.10, -0.05, -0.02, 0.02, 0.05, 0.10)  # of the colours of changes
WIDEST = 0.3  # end of the axis of intervals
MOST_NAMED = 2  # test sets of an answer
ROOMY = 90  # letters of all test sets up to which their names are written horizontally
LEAST = 8  # letters that a column takes at least
LISTED = 5  # pairs that are named
OTHER_NETWORK = "another network"  # of a model, in words
TRIVIALITY = {"constant_accuracy", "selection_rate_by_group"}  # metrics that tell trivial ones
AXIS = 180  # its width in pixels
SYMBOLS = {
    "grew": "▲", "shrank": "▼", "reversed": "⇄", "changed": "≠", "held": "=", "inconclusive": "?",
    "not estimable": "∅", "trivial": "T", "missing": "–",
}  # fmt: skip


def panels(
    results: Results, failed: Mapping[tuple[str, str], str] | None = None
) -> list[dict[str, Any]]:
    """A panel per gap and dataset, and one of all datasets first where there are several.

    Args:
        results: the tables of the run.
        failed: reasons of failed cells by dataset and method.
    """
    unknown = TRIVIALITY.isdisjoint(results.metrics["metric"])
    shown = [
        panel(rows, gap, data, results) | {"unknown": unknown}
        for gap, data, rows in _parts(matrices(results, failed), results)
    ]
    return [content | {"id": f"panel-{number}"} for number, content in enumerate(shown)]


def answers(results: Results) -> list[dict[str, str]]:
    """The answers to the preferred gap: of every dataset and attribute, in words.

    Returns:
        ``data``, ``attribute``, ``answer`` (a few words), ``told`` (a sentence with counts and
        bounds), ``limit`` (what limits it, and what would suffice), ``refits`` (which question is
        answered) and ``other`` (the answer to the other one).
    """
    gap_and_rows = preferred(results)
    if gap_and_rows is None:
        return []
    return _answers(gap_and_rows[1], gap_and_rows[0], ALL, results)


def comparison(first: Results, second: Results, names: tuple[str, str]) -> str:
    """The page that sets the first screens of two runs below each other."""
    both = [
        shown | {"id": f"{name}-{shown['id']}", "run": name}
        for name, run in zip(names, (first, second), strict=True)
        for shown in panels(run)[:1]
    ]
    return rendered("robust_fairness.reporting", "comparison.html", panels=both, names=names)


def _parts(
    by_gap: Mapping[str, pd.DataFrame], results: Results
) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Gap, dataset and rows of every panel; none where nothing can be estimated."""
    for gap, rows in by_gap.items():
        names = dict.fromkeys([*rows["data"], *(data for data, _ in undefined(results, gap))])
        if len(names) > 1:
            yield gap, ALL, rows
        for name in names:
            yield gap, str(name), rows[rows["data"] == name]


def panel(rows: pd.DataFrame, gap: str, data: str, results: Results) -> dict[str, Any]:
    """Answers, matrices and accuracy against gaps of some rows of a matrix."""
    of_attribute = _by_attribute(rows)
    told = _answers(rows, gap, data, results)
    tables = [_matrix(part, place, name, gap) for place, name, part in of_attribute]
    notes = {line["note"] for table in tables for line in table["lines"]}
    return {
        "gap": gap,
        "words": words_of(gap),
        "data": data,
        "answers": told,
        "several": len(told) > 1,
        "matrices": tables,
        "margin": margins(rows),
        "networks": OTHER_NETWORK in notes,
        "trade_off": [
            {"data": place, "attribute": name, "models": trade_off(part, results, gap)}
            for place, name, part in of_attribute
        ],
        "tests": counted({"tests": int(rows["p"].count())}),
        "level": f"{100 * LEVEL:g} %",
        "file": f"matrix-{gap}.csv",
        "csv": "data:text/csv;charset=utf-8," + quote(rows.to_csv(index=False)),
    }


def _by_attribute(rows: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    return [
        (str(data), str(attribute), part)
        for (data, attribute), part in rows.groupby(["data", "attribute"], sort=False)
    ]


def _answers(rows: pd.DataFrame, gap: str, data: str, results: Results) -> list[dict[str, str]]:
    """``answers`` to a gap of some rows of its matrix, of a dataset or of all."""
    by_attribute = {(place, name): part for place, name, part in _by_attribute(rows)}
    told = [
        answer(part, gap) | _other_question(part, results, gap) | {"data": place, "attribute": name}
        for (place, name), part in by_attribute.items()
    ]
    told += [
        {"data": place, "attribute": name, "told": f"{why}.",
         "answer": f"Unknown: the gap by {name} cannot be estimated",
         "limit": _merge(small), "refits": "", "other": ""}
        for (place, name), (why, small) in undefined(results, gap).items()
        if data in (ALL, place) and (place, name) not in by_attribute
    ]  # fmt: skip
    return told


def answer(rows: pd.DataFrame, gap: str) -> dict[str, str]:
    """What is known of the changes of a gap, its bound and what limits it, in words.

    Args:
        rows: rows of a matrix, of a dataset and an attribute.
        gap: its name.
    """
    run = rows[~rows["state"].isin(["missing", "trivial"])]
    if run.empty:
        what = "Unknown: every model predicts one class or learned nothing"
        return {"answer": what, "told": "", "limit": "", "refits": ""}
    counts = run["state"].value_counts().reindex(STATES, fill_value=0)
    pairs = counted({"pairs": len(run)})
    certain = {
        "grew": "grew", "shrank": "shrank", "reversed": "turned its sign",
        "changed": "changed (grew or shrank)",
        "held": f"held within ±{margins(run)} points",
    }  # fmt: skip
    parts = [f"{words} in {counts[name]}" for name, words in certain.items() if counts[name]]
    rest = run[run["state"] == "inconclusive"]
    if len(rest):
        bounds = rest["bound"].dropna()
        most = f"at {1 - LEVEL:.0%} a change of at most {points(bounds.median())} points"
        several = f" in the median pair, {points(bounds.max())} in any" if len(bounds) > 1 else ""
        parts.append(f"is inconclusive in {len(rest)} ({most}{several})")
    if counts["not estimable"]:
        parts.append(f"cannot be estimated in {counts['not estimable']}")
    by = f" by {rows['attribute'].iloc[0]}" if rows["attribute"].iloc[0] else ""
    what = f"the {words_of(gap)}{by}"
    told = f"Of {pairs} of a model and a test set, {what} {_joined(parts)}."
    return {
        "answer": _short(run, f"the gap{by}"),
        "told": told + _largest(run),
        "limit": _limit(run),
        "refits": _refits(run),
    }


def _merge(small: Sequence[str]) -> str:
    """What would help an attribute that cannot be estimated."""
    if not small:
        return "Merge groups (`values:` of the attribute) or add rows."
    more = f" and {len(small) - LISTED} more" if len(small) > LISTED else ""
    return (
        f"Groups with fewer than {SMALL} rows of a class in a test set: "
        f"{', '.join(small[:LISTED])}{more}; merge them (`values:` of the attribute) or add rows."
    )


def _other_question(rows: pd.DataFrame, results: Results, gap: str) -> dict[str, str]:
    """What is known of the trained models where the answer is about methods, and the reverse."""
    if rows["seeds"].max() < FEWEST_REFITS:
        return {"other": ""}
    of_methods = (rows["question"].dropna() == METHOD_QUESTION).all()
    question = MODEL_QUESTION if of_methods else METHOD_QUESTION
    matrix = matrices(results, question=question)[gap]
    same = (matrix["data"] == rows["data"].iloc[0]) & (
        matrix["attribute"] == rows["attribute"].iloc[0]
    )
    other = answer(matrix[same], gap)
    who = "The trained models (first seed)" if of_methods else "The methods, trained again"
    limit = "" if of_methods else other["limit"]
    return {"other": f"{who}: {other['answer']}. {other['told']} {limit}".strip()}


def _short(run: pd.DataFrame, what: str) -> str:
    """The answer in one sentence of at most 15 words, from a closed list.

    Unknown is never worded as good news: "Yes" means that every pair held within the margin, or
    shrank.

    Args:
        run: rows of a matrix that are neither missing nor trivial.
        what: the gap in a few words, such as ``the gap by sex``.
    """
    pairs, states = len(run), run["state"]
    worse = run[states.isin(["grew", "reversed"])]
    changed, fine = run[states == "changed"], run[states.isin(["held", "shrank"])]
    unknown = run[states.isin(["inconclusive", "not estimable"])]
    if len(worse):
        names = list(dict.fromkeys(map(test_set_name, *(worse[name] for name in PLACE))))
        few = " and ".join(names) if len(names) <= MOST_NAMED else f"{len(names)} test sets"
        return f"No: {what} grew in {few}, by up to {points(worse['change'].abs().max())} points"
    if len(changed):
        return (
            f"Partly: {what} changed in {_of(len(changed), pairs)}, in which direction is unknown"
        )
    if not len(unknown):
        return f"Yes: {what} held within {margins(run)} points in {_of(len(fine), pairs)}"
    if (unknown["state"] == "not estimable").all() and not len(fine):
        return f"Unknown: {what} cannot be estimated"
    most = unknown["bound"].max()
    possible = (
        f"changes up to {points(most)} points are possible" if np.isfinite(most) else "unknown"
    )
    if len(fine):
        return f"Partly: {what} held in {_of(len(fine), pairs)}; elsewhere {possible}"
    return f"Unknown: {possible} for {what}"


def _of(number: int, pairs: int) -> str:
    return (
        f"all {pairs} pairs" if number == pairs > 1 else f"{number} of {counted({'pairs': pairs})}"
    )


def _joined(parts: Sequence[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _largest(run: pd.DataFrame) -> str:
    """The pairs with significant changes, the largest ones by name."""
    changed = run[run["state"].isin(CHANGED)]
    if changed.empty:
        return ""
    order = changed["change"].abs().sort_values(ascending=False, kind="stable").index
    several = run["trained_on"].nunique() > 1
    named = [pair_in_words(row, several) for row in changed.loc[order[:LISTED]].to_dict("records")]
    more = f" and {len(order) - LISTED} more" if len(order) > LISTED else ""
    return f" Changed, in points: {'; '.join(named)}{more}."


def pair_in_words(row: Mapping[Any, Any], several: bool) -> str:
    """A pair with its gaps and its change in points, and the interval of the change.

    Such as ``erm trained in HI, tested in NE: gap 15, at home 4, change +11 (+6 to +16 at 95%)``.
    """
    trained = f" trained in {row['trained_on']}, tested" if several else ""
    place = test_set_name(row["shift"], row["severity"], row["domain"])
    gaps = f"gap {points(row['elsewhere'])}, at home {points(row['at_home'])}"
    interval = f"{signed(row['low'])} to {signed(row['high'])} at {1 - LEVEL:.0%}"
    change = f"change {signed(row['change'])} ({interval})"
    where = "in" if row["domain"] else "under"
    return f"{row['method']}{trained} {where} {place}: {gaps}, {change}"


def _limit(run: pd.DataFrame) -> str:
    """What limits what is not known, and how much of it would show a change of the margin."""
    rest = run[run["state"].isin(["inconclusive", "not estimable"])]
    if rest.empty:
        return ""
    commonest = rest["limit"].mode().iloc[0]
    part = rest[rest["limit"] == commonest]
    if commonest == "refits":
        need = part["needed"].median()
        more = f"; about {need:,.0f} would show it" if np.isfinite(need) else ""
        return f"What limits it: {part['seeds'].median():.0f} refits{more}."
    if part["have"].isna().all():
        return f"This gap has no rates by group: {FEWEST_REFITS} seeds would answer for the method."
    typical = part.loc[part["have"].sort_values().index[len(part) // 2]]
    place = (
        f" in {test_set_name(typical['shift'], typical['severity'], typical['domain'])}"
        if commonest == "rows elsewhere"
        else " at home"
    )
    have = f"{typical['have']:,.0f} rows for the {typical['rate']}{place}"
    factor = typical["needed_factor"]
    more = ""
    if np.isfinite(typical["needed"]):
        more = f"; {typical['needed']:,.0f} would show a change of {margins(part)} points"
    elif np.isfinite(factor):
        more = f"; {factor:.1f} times as many rows everywhere would show {margins(part)} points"
    return f"What limits it in most of them: {commonest}, for example {have}{more}."


def _refits(run: pd.DataFrame) -> str:
    """Which question is answered, and how far refitting moves a gap."""
    spread, moved = run["refit_spread"].median(), run["change"].abs().median()
    question = run["question"].mode().iloc[0]
    asked = (
        "This answers for the method, trained again"
        if question == METHOD_QUESTION
        else "This answers for the trained model (the first seed)"
    )
    if pd.isna(spread):
        return f"{asked}; how far another seed moves a gap is not known from one."
    return (
        f"{asked}. Another seed moves a gap by {points(spread)} points (standard deviation), "
        f"another test set by {points(moved)} (median)."
    )


def margins(rows: pd.DataFrame) -> str:
    """The margins in percentage points, the smallest first."""
    return " or ".join(f"{100 * margin:g}" for margin in sorted(set(rows["margin"].dropna())))


def _matrix(rows: pd.DataFrame, data: str, attribute: str, gap: str) -> dict[str, Any]:
    """The table of a dataset and an attribute: models down, test sets across."""
    sizes = rows.groupby(PLACE, sort=False)["n"].min()
    columns = {key: test_set_name(*key) for key in sizes.index}
    other = other_networks(rows, "data").groupby(rows["method"]).all()
    by_model = rows.groupby("method", sort=False)
    lines = [_line(str(name), part, columns, bool(other[name])) for name, part in by_model]
    return {
        "data": data,
        "attribute": attribute,
        "words": words_of(gap),
        "sources": int(rows.groupby(["method", *PLACE])["dataset"].nunique().max()),
        "columns": [
            {"name": name, "rows": "–" if pd.isna(n) else f"{n:,.0f}"}
            for name, n in zip(columns.values(), sizes, strict=True)
        ],
        "roomy": sum(max(len(name), LEAST) for name in columns.values()) <= ROOMY,
        "lines": sorted(lines, key=lambda line: line["place"]),
        "trivial": [line["name"] for line in lines if line["trivial"]],
    }


def _line(name: str, rows: pd.DataFrame, columns: Mapping[Any, str], other: bool) -> dict[str, Any]:
    """A row of the table, and its place in it.

    Plain training comes first, then methods by the number of growths, other networks, and methods
    whose predictions are trivial on all test sets.
    """
    run = rows[rows["state"] != "missing"]
    homes = run.drop_duplicates("dataset")
    states = run["state"].tolist()
    only_trivial = set(states) == {"trivial"}
    by_set = dict(list(rows.groupby(PLACE, sort=False)))
    worst = run.sort_values("accuracy_change").iloc[:1]
    return {
        "name": name,
        "note": OTHER_NETWORK if other else "",
        "place": (only_trivial, other, not bool(is_plain(rows).all()), states.count("grew"),
                  -homes["accuracy"].mean()),
        "trivial": "trivial" in states,
        "last": only_trivial,
        "at_home": points(homes["at_home"].mean()),
        "accuracy": points(homes["accuracy"].mean()),
        "worst": "" if worst.empty else _accuracy(worst.iloc[0]),
        "cells": [
            _cell(by_set[key], column) if key in by_set else _absent(column)
            for key, column in columns.items()
        ],
        "pairs": [_pair(row) for row in run.sort_values("p", kind="stable").to_dict("records")],
    }  # fmt: skip


def _absent(test_set: str) -> dict[str, Any]:
    return {"style": "missing", "number": "", "mark": SYMBOLS["missing"], "words": "not run",
            "test_set": test_set}  # fmt: skip


def _cell(rows: pd.DataFrame, test_set: str) -> dict[str, Any]:
    """A cell of one pair, or of all sources of a test set."""
    counts = rows["state"].value_counts()
    change = rows["change"].mean()
    first = next(state for state in STATES if counts.get(state))
    certain = first in CHANGED
    number = "" if first in ("trivial", "missing", "not estimable") else signed(change)
    marks = [
        f"{counts[state]}{SYMBOLS[state]}" if len(rows) > 1 else SYMBOLS[state]
        for state in (*CHANGED, "held")
        if counts.get(state)
    ]
    words = ", ".join(f"{count} {state}" for state, count in counts.items())
    reason = rows["reason"].iloc[0]
    return {
        "style": f"c{np.digitize(change, EDGES)}" if certain else first.replace(" ", "-"),
        "number": number,
        "mark": " ".join(marks) or SYMBOLS[first],
        "words": f"{number} points: {words}{f' ({reason})' if reason else ''}",
        "test_set": test_set,
    }


def _pair(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A pair in detail."""
    state = f"missing: {row['reason']}" if row["state"] == "missing" else row["state"]
    return {
        "trained_on": row["trained_on"],
        "test_set": test_set_name(row["shift"], row["severity"], row["domain"]),
        "at_home": points(row["at_home"]),
        "elsewhere": points(row["elsewhere"]),
        "change": signed(row["change"]),
        "state": f"{SYMBOLS[row['state']]} {state}",
        "interval": f"{signed(row['low'])} to {signed(row['high'])}",
        "bound": points(row["bound"]),
        "limit": f"{row['limit']}, {row['rate']}: {row['have']:,.0f}" if row["rate"] else
        str(row["limit"]),
        "accuracy": _accuracy(row),
        "ends": _ends(row["low"], row["change"], row["high"]),
    }  # fmt: skip


def trade_off(rows: pd.DataFrame, results: Results, gap: str) -> list[dict[str, Any]]:
    """Models by accuracy elsewhere and the bound of their largest gap there, the best first.

    A model is marked if no other is at least as good in both and better in one. It is no choice
    by test rows and no recommendation.
    """
    run = rows[rows["upper"].notna() & rows["accuracy"].notna() & (rows["state"] != "trivial")]
    run = run[run["domain"] != ""] if (run["domain"] != "").any() else run
    if run.empty:
        return []
    run = run.assign(elsewhere_accuracy=run["accuracy"] + run["accuracy_change"])
    models = run.groupby("method", sort=False).agg(
        accuracy=("accuracy", "mean"), elsewhere=("elsewhere_accuracy", "mean"),
        at_home=("at_home", "mean"), largest=("elsewhere", "max"), upper=("upper", "max"),
    )  # fmt: skip
    front = pareto_front(models["elsewhere"].to_numpy(), models["upper"].to_numpy())
    against = home_against_plain(results, gap, rows["data"].iloc[0], rows["attribute"].iloc[0])
    models = models.assign(dominated=~front).join(against)
    models = models.sort_values(["dominated", "elsewhere"], ascending=[True, False])
    return [
        {
            "name": name,
            "undominated": not row["dominated"],
            "accuracy": f"{100 * row['accuracy']:.1f}",
            "elsewhere": f"{100 * row['elsewhere']:.1f}",
            "at_home": points(row["at_home"]),
            "largest": f"{100 * row['largest']:.1f}",
            "upper": f"{100 * min(row['upper'], 2.0):.1f}",
            "against": "" if pd.isna(row["against"]) else signed(row["against"])
            + ("●" if row["p_against"] < LEVEL else ""),
        }
        for name, row in models.iterrows()
    ]  # fmt: skip


def _accuracy(row: Mapping[str, Any] | pd.Series) -> str:
    """The change of accuracy, marked if it is significant."""
    return signed(row["accuracy_change"]) + ("●" if row["accuracy_changed"] else "")


def _ends(*values: float) -> list[int]:
    """Places of an interval on its axis in pixels; none where it is not known."""
    if np.isnan(values).any():
        return []
    inside = np.clip(values, -WIDEST, WIDEST)
    return [round(AXIS * (0.5 + value / (2 * WIDEST))) for value in inside]


def points(value: float) -> str:
    """A fraction in percentage points."""
    return "–" if pd.isna(value) else f"{100 * value:.0f}"


def signed(value: float) -> str:
    """A change of a fraction in percentage points, with its sign; 0 has none."""
    text = f"{100 * value:+.0f}".replace("-", "−")
    return "–" if pd.isna(value) else "0" if text in ("+0", "−0") else text
