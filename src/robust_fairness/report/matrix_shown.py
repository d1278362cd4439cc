"""What the page shows of a matrix: a forest of its gaps, accuracy against them, and a table."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from robust_fairness.core.rendering.forest import Mark, forest, scatter
from robust_fairness.numbers.answers import SYMBOLS, points, signed, worst_first
from robust_fairness.report.matrix import (
    CHANGED,
    PAIR,
    PLACE,
    STATES,
    is_plain,
    other_networks,
    words_of,
)
from robust_fairness.report.pairs import test_set_name

MOST_LINES, LEAST_LINES, MOST_MARKS = 12, 3, 36  # of a plot
MOST_MODELS = 6  # of a plot
# Columns that a line of a plot is made of.
MARKED = [
    *PAIR, "data", "state", "change", "bound", "limit", "have", "away", "away_low", "away_high",
    "at_home", "home_low", "home_high",
]  # fmt: skip
HEADINGS = ("test set", "model", "change")
EDGES = (-0.10, -0.05, -0.02, 0.02, 0.05, 0.10)  # of the colours of changes
ROOMY = 90  # letters of all test sets up to which their names are written horizontally
LEAST = 8  # letters that a column takes at least
OTHER_NETWORK = "another network"  # of a model, in words


def plot(
    rows: pd.DataFrame,
    title: str,
    looks: Mapping[str, int],
    at_home: pd.DataFrame,
    refits: Mapping[Any, list[float]],
) -> Markup | None:
    """A forest plot of the worst test sets, each with the gaps of its models and those at home.

    Args:
        rows: rows of a matrix.
        title: what the plot shows.
        looks: numbers of colours and markers by model.
        at_home: the gaps in the domains of home, ``matrix.homes``.
        refits: the gap of every training, by cell, test set and attribute.
    """
    worst = worst_first(rows)
    if worst.empty:
        return None
    several = [name for name in ("data", "attribute") if worst[name].nunique() > 1]
    sources = worst.groupby(["data", "attribute", "place"])["trained_on"].nunique()
    several += ["trained_on"] if sources.max() > 1 and "data" not in several else []
    plain = worst.loc[is_plain(worst), "method"]
    order = list(dict.fromkeys([*plain[:1], *worst["method"]]))
    models = order[:MOST_MODELS]
    most = int(np.clip(MOST_MARKS // len(models), LEAST_LINES, MOST_LINES))
    sets: dict[Any, list[Any]] = {}
    for row in worst[[*MARKED, "trained_on", "place"]].to_dict("records"):
        line = tuple(row[name] for name in ("data", "attribute", "trained_on", "dataset", *PLACE))
        sets.setdefault(line, []).append(row)
    domains: dict[str, list[Any]] = {}
    for row in at_home.assign(state="")[MARKED].to_dict("records"):
        domains.setdefault(f"{row['domain']} (trained here)", []).append(row)
    named = []  # by the test set, with what else differs between lines
    for marked in [*sets.values()][:most]:
        row = marked[0]
        what = ", ".join(str(row[name]) for name in ("data", "attribute") if name in several)
        trained = f"{row['trained_on']} → " if "trained_on" in several else ""
        named.append((f"{what}{': ' if what else ''}{trained}{row['place']}", marked))
    lines = []
    for name, marked in [*named, *[*domains.items()][:most]]:
        known = [row for row in marked if row["method"] in models]
        marks = [
            _mark(row, looks[row["method"]], refits)
            for row in sorted(known, key=lambda row: looks[row["method"]])
        ]
        lines += [(name, marks)] if marks else []
    pairs_of = "pairs of attribute and test set" if "attribute" in several else "test sets"
    left = [f"the {most} worst of {len(sets)} {pairs_of}"] if len(sets) > most else []
    if len(order) > len(models):
        left.append(f"the {len(models)} worst of {len(order)} models")
    return forest(lines, title, HEADINGS, points, f"Shown: {', '.join(left)}." if left else "")


def _mark(row: Mapping[Any, Any], look: int, refits: Mapping[Any, list[float]]) -> Mark:
    """The gap of a pair with its interval, beside that at home; of a domain of home alone."""
    trainings = tuple(refits.get(tuple(row[name] for name in PAIR), ()))
    trainings = trainings if len(trainings) > 1 else ()
    value = row["away"], row["away_low"], row["away_high"]
    if not row["state"]:
        return Mark(row["method"], value, (np.nan,) * 3, "", look=look, ticks=trainings)

    state = row["state"]
    enough = f"{SYMBOLS[state]} {signed(row['change'])}"
    words = f"{state}, {signed(row['change'])} points"
    if state == "inconclusive":
        few = "" if row["limit"] == "refits" or not row["have"] > 0 else f" ({row['have']:,.0f})"
        enough = f"? ±{points(row['bound'])}{few}"
        words = f"inconclusive, at most {points(row['bound'])} points"
    elif state == "not estimable":
        enough = f"∅ ({row['have']:,.0f})" if row["have"] > 0 else "∅"
        words = state
    before = row["at_home"], row["home_low"], row["home_high"]
    worse = state in ("grew", "reversed")
    return Mark(row["method"], value, before, enough, words, worse, look, trainings)


def trade_off(
    rows: pd.DataFrame, attribute: str, looks: Mapping[str, int], noun: str
) -> Markup | None:
    """Accuracy of the models in the other test sets against their largest gap there, drawn.

    Accuracy is the mean over test sets, with the mean of their intervals; the interval of the
    largest gap holds for all test sets together. None where either is unknown.
    """
    run = rows[rows["upper"].notna() & rows["accuracy_low"].notna() & (rows["state"] != "trivial")]
    run = run[run["domain"] != ""] if (run["domain"] != "").any() else run
    if run.empty:
        return None
    run = run.assign(there=run["accuracy"] + run["accuracy_change"])
    models = run.groupby("method", sort=False).agg(
        x=("there", "mean"), x_low=("accuracy_low", "mean"), x_high=("accuracy_high", "mean"),
        y=("away", "max"), y_low=("lower", "max"), y_high=("upper", "max"),
    )  # fmt: skip
    drawn = {
        str(name): (
            looks[str(name)],
            (row["x"], row["x_low"], row["x_high"]),
            (row["y"], row["y_low"], row["y_high"]),
        )
        for name, row in models.iterrows()
    }
    largest = f"largest {noun}{f' by {attribute}' if attribute else ''} (points)"
    return scatter(drawn, "accuracy (%)", largest, points)


def table_of(rows: pd.DataFrame, data: str, attribute: str, gap: str) -> dict[str, Any]:
    """The table of a dataset and an attribute: models down, test sets across."""
    sizes = rows.groupby(PLACE, sort=False)["n"].min()
    columns = {key: test_set_name(*key) for key in sizes.index}
    other = other_networks(rows, "data").groupby(rows["method"]).all()
    by_model: dict[str, list[Any]] = {}
    for row in rows.to_dict("records"):
        by_model.setdefault(row["method"], []).append(row)
    plain = is_plain(rows).groupby(rows["method"]).all()
    lines = [
        _line(name, part, columns, plain[name], other[name]) for name, part in by_model.items()
    ]
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


def _line(
    name: str, rows: Sequence[Any], columns: Mapping[Any, str], plain: bool, other: bool
) -> dict[str, Any]:
    """A row of the table, and its place in it.

    Plain training comes first, then methods by the number of growths, other networks, and methods
    whose predictions are trivial on all test sets.
    """
    run = [row for row in rows if row["state"] != "missing"]
    homes = {row["dataset"]: row for row in reversed(run)}.values()
    at_home, accuracy = (_mean(homes, name) for name in ("at_home", "accuracy"))
    states = [row["state"] for row in run]
    only_trivial = set(states) == {"trivial"}
    ordered = {  # those without the number come last
        name: sorted(run, key=lambda row: (pd.isna(row[name]), row[name]))
        for name in ("accuracy_change", "p")
    }
    by_set: dict[Any, list[Any]] = {}
    for row in rows:
        by_set.setdefault(tuple(row[name] for name in PLACE), []).append(row)
    return {
        "name": name,
        "note": OTHER_NETWORK if other else "",
        "place": (only_trivial, other, not plain, states.count("grew"), -accuracy),
        "trivial": "trivial" in states,
        "last": only_trivial,
        "at_home": points(at_home),
        "accuracy": points(accuracy),
        "worst": _accuracy(ordered["accuracy_change"][0]) if run else "",
        "cells": [
            _cell(by_set[key], column) if key in by_set else _absent(column)
            for key, column in columns.items()
        ],
        "pairs": [_pair(row) for row in ordered["p"]],
    }


def _mean(rows: Iterable[Any], name: str) -> float:
    """The mean of what is known."""
    return float(pd.Series([row[name] for row in rows], dtype=np.float64).mean())


def _absent(test_set: str) -> dict[str, Any]:
    return {"style": "missing", "number": "", "mark": SYMBOLS["missing"], "words": "not run",
            "test_set": test_set}  # fmt: skip


def _cell(rows: Sequence[Any], test_set: str) -> dict[str, Any]:
    """A cell of one pair, or of all sources of a test set."""
    counts = Counter(row["state"] for row in rows)
    change = _mean(rows, "change")
    first = next(state for state in STATES if counts[state])
    certain = first in CHANGED and first != "changed"  # whether the gap grew is not known
    number = "" if first in ("trivial", "missing", "not estimable") else signed(change)
    marks = [
        f"{counts[state]}{SYMBOLS[state]}" if len(rows) > 1 else SYMBOLS[state]
        for state in (*CHANGED, "held")
        if counts[state]
    ]
    words = ", ".join(f"{count} {state}" for state, count in counts.most_common())
    reason = rows[0]["reason"]
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
        "away": points(row["away"]),
        "change": signed(row["change"]),
        "state": f"{SYMBOLS[row['state']]} {state}",
        "interval": f"{signed(row['low'])} to {signed(row['high'])}",
        "bound": points(row["bound"]),
        "limit": f"{row['limit']}, {row['rate']}: {row['have']:,.0f}" if row["rate"] else
        str(row["limit"]),
        "accuracy": _accuracy(row),
    }  # fmt: skip


def _accuracy(row: Mapping[Any, Any]) -> str:
    """The change of accuracy, marked if it is significant."""
    return signed(row["accuracy_change"]) + ("●" if row["accuracy_changed"] else "")
