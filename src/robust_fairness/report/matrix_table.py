"""The matrix of a dataset and an attribute as a table: models down, test sets across."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.numbers.answers import SYMBOLS, points, signed
from robust_fairness.report.matrix import CHANGED, PLACE, STATES, is_plain, other_networks, words_of
from robust_fairness.report.rates import test_set_name

EDGES = (-0.10, -0.05, -0.02, 0.02, 0.05, 0.10)  # of the colours of changes
ROOMY = 90  # letters of all test sets up to which their names are written horizontally
LEAST = 8  # letters that a column takes at least
OTHER_NETWORK = "another network"  # of a model, in words


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
        "worst": _accuracy(_sorted(run, "accuracy_change")[0]) if run else "",
        "cells": [
            _cell(by_set[key], column) if key in by_set else _absent(column)
            for key, column in columns.items()
        ],
        "pairs": [_pair(row) for row in _sorted(run, "p")],
    }


def _mean(rows: Iterable[Any], name: str) -> float:
    """The mean of what is known."""
    return float(pd.Series([row[name] for row in rows], dtype=np.float64).mean())


def _sorted(rows: Iterable[Any], name: str) -> list[Any]:
    """Rows by a number; those without it come last."""
    return sorted(rows, key=lambda row: (pd.isna(row[name]), row[name]))


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
