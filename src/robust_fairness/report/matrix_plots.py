"""Plots of a matrix: a forest of its gaps, and accuracy against them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from robust_fairness.core.rendering.forest import Mark, forest, scatter
from robust_fairness.numbers.answers import SYMBOLS, points, signed, worst_first
from robust_fairness.report.matrix import PAIR, PLACE, is_plain

MOST_LINES, LEAST_LINES, MOST_MARKS = 12, 3, 36  # of a plot
MOST_MODELS = 6  # of a plot
# Columns that a line of a plot is made of.
MARKED = [
    *PAIR, "data", "state", "change", "bound", "limit", "have", "away", "away_low", "away_high",
    "at_home", "home_low", "home_high",
]  # fmt: skip
HEADINGS = ("test set", "model", "change")


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
    named = [(_name(marked[0], several), marked) for marked in [*sets.values()][:most]]
    lines = [
        (
            name,
            [
                _mark(row, looks[row["method"]], refits)
                for row in sorted(marked, key=lambda row: looks[row["method"]])
                if row["method"] in models
            ],
        )
        for name, marked in [*named, *[*domains.items()][:most]]
    ]
    lines = [(name, marks) for name, marks in lines if marks]
    pairs_of = "pairs of attribute and test set" if "attribute" in several else "test sets"
    left = [
        f"the {shown} worst of {total} {what}"
        for shown, total, what in (
            (min(most, len(sets)), len(sets), pairs_of),
            (len(models), len(order), "models"),
        )
        if shown < total
    ]  # fmt: skip
    return forest(lines, title, HEADINGS, points, f"Shown: {', '.join(left)}." if left else "")


def _name(row: Mapping[Any, Any], several: Sequence[str]) -> str:
    """Name of a line: the test set, with what else differs between lines."""
    what = ", ".join(str(row[name]) for name in ("data", "attribute") if name in several)
    trained = f"{row['trained_on']} → " if "trained_on" in several else ""
    return f"{what}{': ' if what else ''}{trained}{row['place']}"


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
