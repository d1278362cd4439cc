"""The first screen of the report: verdicts, and the matrices that they are computed from."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd

from robust_fairness.rendering.html import counted, rendered
from robust_fairness.reporting.matrix import (
    TEST_SET,
    differences,
    in_words,
    is_plain,
    margins,
    matrices,
    other_networks,
    test_set_name,
    undefined,
    verdict,
)
from robust_fairness.reporting.results import Results
from robust_fairness.reporting.statistics import LEVEL

ALL = "all datasets"
EDGES = (-0.10, -0.05, -0.02, 0.02, 0.05, 0.10)  # of the colours of changes
WIDEST = 0.3  # end of the axis of intervals
ROOMY = 90  # letters of all test sets up to which their names are written horizontally
LEAST = 8  # letters that a column takes at least
SUBMITTED = "submission"  # algorithm of predictions that were made elsewhere
TRIVIALITY = {"constant_accuracy", "selection_rate_by_group"}  # metrics that tell trivial ones
AXIS = 180  # its width in pixels
SYMBOLS = {
    "grew": "", "shrank": "", "held": "=", "inconclusive": "?", "trivial": "T", "missing": "–",
}  # fmt: skip
WORDS = {
    "grew": "grew by {size} points, significant",
    "shrank": "shrank by {size} points, significant",
    "held": "held, changed by {change} points",
    "inconclusive": "inconclusive, {change} points",
    "trivial": "trivial predictor",
    "missing": "missing: {reason}",
}
ABSENT = {
    "state": "missing", "reason": "not run", "change": np.nan, "low": np.nan, "high": np.nan,
    "changed": False, "seeds": 0, "n": 0, "accuracy_change": np.nan, "accuracy_changed": False,
}  # fmt: skip
Cells = dict[tuple[Any, ...], dict[Any, Any]]


def panels(
    results: Results, failed: Mapping[tuple[str, str], str] | None = None
) -> list[dict[str, Any]]:
    """A panel per gap and dataset, and one of all datasets first where there are several.

    Args:
        results: the tables of the run.
        failed: reasons of failed cells by dataset and method.
    """
    unknown = TRIVIALITY.isdisjoint(results.metrics["metric"])
    changes = matrices(results, failed)
    without = {gap: undefined(results, gap) for gap in changes}
    found = [
        {
            **panel(rows, gap, data),
            "verdicts": [verdict(rows, gap).split(": ", 1)],
            "undefined": without[gap].get(data, []),
        }
        for gap, data, rows in _parts(changes)
    ]
    return [
        one | {"id": f"panel-{number}", "unknown": unknown, "where": "away from home"}
        for number, one in enumerate(found)
    ]


def compared_panels(
    first: Results, second: Results, names: tuple[str, str]
) -> list[dict[str, Any]]:
    """A panel per gap and dataset with the verdicts of two runs and how much their changes differ.

    Args:
        first: the tables of a run.
        second: the tables of another run.
        names: their ids.
    """
    both = [matrices(first), matrices(second)]
    where = f"away from home in run {names[1]}, less that in run {names[0]}"
    found = []
    for number, (gap, data, rows) in enumerate(_parts(differences(first, second))):
        own = [one[gap] if data == ALL else _of_data(one[gap], data) for one in both]
        told = [[f"Run {name}", verdict(one, gap)] for name, one in zip(names, own, strict=True)]
        more = {"verdicts": told, "id": f"panel-{number}", "unknown": False, "where": where}
        found.append(panel(rows, gap, data) | more)
    return found


def comparison(first: Results, second: Results, names: tuple[str, str]) -> str:
    """The page that sets two runs side by side, see ``compared_panels``."""
    panels = compared_panels(first, second, names)
    return rendered("robust_fairness.reporting", "comparison.html", panels=panels, names=names)


def _of_data(rows: pd.DataFrame, data: str) -> pd.DataFrame:
    return rows[rows["data"] == data]


def _parts(found: Mapping[str, pd.DataFrame]) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Gap, dataset and rows of every panel; tests are corrected over all datasets of a gap."""
    for gap, rows in found.items():
        names = rows["data"].unique()
        if len(names) > 1:
            yield gap, ALL, rows
        for name in names:
            yield gap, str(name), _of_data(rows, name)


def panel(rows: pd.DataFrame, gap: str, data: str) -> dict[str, Any]:
    """Table and notes of some rows of a matrix."""
    sizes = rows.groupby(TEST_SET, sort=False)["n"].min()
    columns = {key: test_set_name(*key[1:]) for key in sizes.index}
    other = other_networks(rows, "data").groupby(rows["method"]).all()
    lines = [_line(name, own, columns, bool(other[name])) for name, own in _by_method(rows).items()]
    spans = sizes.groupby(level="data", sort=False).size()
    return {
        "gap": gap,
        "words": in_words(rows, gap),
        "data": data,
        "groups": [{"name": name, "span": span} for name, span in spans.items()],
        "columns": [
            {"name": name, "rows": f"{n:,.0f}"}
            for name, n in zip(columns.values(), sizes, strict=True)
        ],
        "roomy": sum(max(len(name), LEAST) for name in columns.values()) <= ROOMY,
        "lines": sorted(lines, key=lambda line: line["place"]),
        "margin": margins(rows),
        "level": f"{100 * LEVEL:g} %",
        "tests": counted({"tests": int(rows["p_changed"].count())}),
        "trivial": [line["name"] for line in lines if line["trivial"]],
        "file": f"matrix-{gap}.csv",
        "csv": "data:text/csv;charset=utf-8," + quote(rows.to_csv(index=False)),
    }


def _by_method(rows: pd.DataFrame) -> dict[str, Cells]:
    """Rows of every method by test set."""
    found: dict[str, Cells] = {}
    for row in rows.to_dict("records"):
        key = tuple(row[name] for name in TEST_SET)
        found.setdefault(row["method"], {})[key] = dict(row)
    return found


def _line(name: str, own: Cells, columns: Mapping[Any, str], other: bool) -> dict[str, Any]:
    """A row of the table, and its place in it.

    Plain training comes first, then methods by the number of significant growths, other networks,
    and methods whose predictions are trivial on all test sets.
    """
    run = [row for row in own.values() if row["state"] != "missing"]
    homes = {row["data"]: row for row in run}.values()
    at_home, accuracy = (
        pd.Series([row[column] for row in homes], dtype=float).mean()
        for column in ("at_home", "accuracy")
    )
    states = [row["state"] for row in run]
    submitted = any(row["algorithm"] == SUBMITTED for row in run)
    plain = all(is_plain(row) for row in own.values())
    only_trivial = set(states) == {"trivial"}
    return {
        "name": name,
        "note": "another network" if other else "submitted" if submitted else "",
        "place": (only_trivial, other, not plain, states.count("grew"), -accuracy),
        "trivial": "trivial" in states,
        "last": only_trivial,
        "at_home": points(at_home),
        "accuracy": points(accuracy),
        "worst": _accuracy(min(run, key=lambda row: row["accuracy_change"], default=ABSENT)),
        "cells": [_cell(test_set, own.get(key, ABSENT)) for key, test_set in columns.items()],
    }


def _cell(test_set: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A cell: class of the style sheet, number, marks, the same in words, and its interval."""
    state, change = row["state"], signed(row["change"])
    coloured = f"c{np.digitize(row['change'], EDGES)}"
    return {
        "style": coloured if state in ("grew", "shrank") else state,
        "number": "" if state in ("trivial", "missing") else change,
        "mark": ("●" if row["changed"] else "") + SYMBOLS[state],
        "words": WORDS[state].format(
            change=change, size=points(abs(row["change"])), reason=row["reason"]
        ),
        "test_set": test_set,
        "interval": f"{signed(row['low'])} to {signed(row['high'])}",
        "seeds": row["seeds"],
        "rows": f"{row['n']:,.0f}",
        "accuracy": _accuracy(row),
        "ends": _ends(row["low"], row["change"], row["high"]),
    }


def _accuracy(row: Mapping[str, Any]) -> str:
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
