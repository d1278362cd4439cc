"""The first screen of the report: the answer, its plot, what limits it, the matrix."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from robust_fairness.core.numbers import counted
from robust_fairness.core.rendering.forest import Mark, forest, scatter
from robust_fairness.core.rendering.html import rendered
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.answers import (
    SYMBOLS,
    also,
    answer,
    fairer,
    in_points,
    limit,
    points,
    signed,
    worst_first,
)
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.variance import FEWEST_REFITS
from robust_fairness.report.fairer import advantages
from robust_fairness.report.matrix import (
    CHANGED,
    METHOD_QUESTION,
    MODEL_QUESTION,
    PAIR,
    PLACE,
    SMALL,
    STATES,
    homes,
    is_plain,
    matrices,
    noun_of,
    other_networks,
    test_set_name,
    undefined,
    words_of,
)
from robust_fairness.report.results import UNSHIFTED, Results, computed_once, where

ALL = "all datasets"
EDGES = (-0.10, -0.05, -0.02, 0.02, 0.05, 0.10)  # of the colours of changes
ROOMY = 90  # letters of all test sets up to which their names are written horizontally
LEAST = 8  # letters that a column takes at least
LISTED = 5  # names that are listed
MOST_LINES, LEAST_LINES, MOST_MARKS = 12, 3, 36  # of a plot
MOST_MODELS = 6  # of a plot
OTHER_NETWORK = "another network"  # of a model, in words
TRIVIALITY = {"constant_accuracy", "selection_rate_by_group"}  # metrics that find trivial models
# Columns that a line of a plot is made of.
MARKED = [
    *PAIR, "data", "state", "change", "bound", "limit", "have", "away", "away_low", "away_high",
    "at_home", "home_low", "home_high",
]  # fmt: skip
HEADINGS = ("test set", "model", "change")


def panels(
    results: Results, failed: Mapping[tuple[str, str], str] | None = None
) -> list[dict[str, Any]]:
    """A panel per gap and dataset, and one of all datasets first where there are several.

    Args:
        results: the tables of the run.
        failed: reasons of failed cells by dataset and method.
    """
    unknown = TRIVIALITY.isdisjoint(results.metrics["metric"])
    by_gap = matrices(results, failed)
    several = max((rows["seeds"].max() for rows in by_gap.values()), default=0) >= FEWEST_REFITS
    of_methods = matrices(results, question=METHOD_QUESTION) if several else by_gap
    better = {gap: advantages(of_methods[gap], gap, results) for gap in by_gap}
    shown = [
        panel(rows, gap, data, results) | {"unknown": unknown, "fairer": _fairer(better[gap], data)}
        for gap, data, rows in _parts(by_gap, results)
    ]
    if shown:
        shown[0] |= _headline(by_gap, results)
    return [content | {"id": f"panel-{number}"} for number, content in enumerate(shown)]


def _headline(by_gap: Mapping[str, pd.DataFrame], results: Results) -> dict[str, Any]:
    """The answer of all gaps together: the first one leads, unless another one surely grew."""
    pairs = {gap: _pairs(_compared(rows), gap, ALL, results) for gap, rows in by_gap.items()}
    said = {gap: answer(part) for gap, part in pairs.items()}
    first = next(iter(said))
    leading = next((gap for gap, text in said.items() if text.startswith("No")), first)
    names = {gap: noun_of(gap) if gap == leading == first else words_of(gap) for gap in said}
    further = [also({names[gap]: part for gap, part in pairs.items()}, names[leading])]
    if leading != first:
        further.append(f"The {names[first]} alone: {said[first]}")
    if said[leading].startswith("Yes"):
        unknown = [names[gap] for gap, text in said.items() if text.startswith("Unknown")]
        further.append(f"Unknown of the {_listed(unknown, 'other gaps')}" if unknown else "")
    return {
        "answer": answer(pairs[leading], gap=names[leading]),
        "further": [text for text in further if text],
        "limit": limit(pairs[leading]) if said[leading].startswith("Unknown") else "",
    }


def _fairer(methods: pd.DataFrame, data: str) -> str:
    """The answer about methods, of all datasets or of one."""
    return fairer(methods if data == ALL else methods[methods["data"] == data])


def answers(results: Results) -> list[str]:
    """The answer to all gaps, what is said beside it, and a line for each of several parts.

    Returns:
        Sentences of ``numbers.answers``, the last ones about the first gap by dataset and
        attribute; none if the run has no gap.
    """
    by_gap = matrices(results)
    if not by_gap:
        return []
    gap, rows = next(iter(by_gap.items()))
    rows = _compared(rows)
    head, told = _headline(by_gap, results), _answers(rows, gap, ALL, results)
    lines = [head["answer"], *head["further"], head["limit"], _again(rows, results, gap)]
    parts = [f"{name}: {said}" for name, said in told] if len(told) > 1 else []
    return [*(line for line in lines if line), *parts]


def comparison(first: Results, second: Results, names: tuple[str, str]) -> str:
    """The page that sets the first screens of two runs below each other."""
    both = [
        shown | {"id": f"{name}-{shown['id']}", "run": name}
        for name, run in zip(names, (first, second), strict=True)
        for shown in panels(run)[:1]
    ]
    return rendered("robust_fairness.report", "comparison.html", panels=both, names=names)


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
    """Answer, plots and matrices of some rows of a matrix; of all datasets the worst lines."""
    rows = _compared(rows)
    parts = [] if data == ALL else _by_attribute(rows)
    pairs, told = _pairs(rows, gap, data, results), _answers(rows, gap, data, results)
    noun = noun_of(gap)
    overall = answer(pairs, gap=noun)
    looks = {name: look for look, name in enumerate(rows["method"].unique())}
    titled = [(_title(name, part, len(parts) == 1, noun), part) for _, name, part in parts]
    at_home = where(homes(results, gap), dataset=rows["dataset"].unique())
    refits = _refits(results, gap)
    drawings = [
        plot(part, title, looks, _in_home(at_home, part), refits)
        for title, part in titled or [("", rows)]
    ]
    return {
        "gap": gap,
        "words": words_of(gap),
        "noun": noun,
        "data": data,
        "answer": overall,
        "further": [],
        "warnings": _warnings(rows, at_home, noun) if len(at_home) else [],
        "homes": _listed([*at_home["domain"].unique()], "domains") if len(at_home) else "",
        "answers": told if data == ALL or len(told) > len(parts) else [],
        "about": _about(rows, data, results),
        "plots": [drawn for drawn in drawings if drawn],
        "limit": limit(pairs) if overall.startswith("Unknown") else "",
        "again": _again(rows, results, gap),
        "matrices": [_matrix(part, place, name, gap) for place, name, part in parts],
        "margin": margins(rows),
        "trade_off": [
            drawn for _, name, part in parts if (drawn := trade_off(part, name, looks, noun))
        ],
        "tests": counted({"tests": int(rows["p"].count())}),
        "level": f"{100 * LEVEL:g} %",
    }


def _by_attribute(rows: pd.DataFrame) -> list[tuple[str, str, pd.DataFrame]]:
    """Rows by dataset and attribute, the worst attribute of a dataset first."""
    parts = dict(list(rows.groupby(["data", "attribute"], sort=False)))
    order = [*worst_first(rows)[["data", "attribute"]].drop_duplicates().itertuples(index=False)]
    names = dict.fromkeys([*map(tuple, order), *parts])
    by_data = sorted(names, key=lambda key: list(rows["data"].unique()).index(key[0]))
    return [(str(data), str(attribute), parts[data, attribute]) for data, attribute in by_data]


def _compared(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of a matrix as ``numbers.answers`` takes them: with the name of the test set."""
    names = [test_set_name(*key) for key in zip(*(rows[name] for name in PLACE), strict=True)]
    return rows.assign(place=np.array(names, dtype=object))


def _lacking(
    told: Collection[tuple[str, str]], gap: str, data: str, results: Results
) -> dict[tuple[str, str], str]:
    """Why nothing can be said of a dataset and an attribute that are not among those told of."""
    return {
        key: f"Unknown: the {noun_of(gap)} cannot be estimated; {why}{_merge(small)}"
        for key, (why, small) in undefined(results, gap).items()
        if data in (ALL, key[0]) and key not in told
    }


def _pairs(rows: pd.DataFrame, gap: str, data: str, results: Results) -> pd.DataFrame:
    """Comparisons as ``numbers.answers`` takes them, with what cannot be estimated."""
    estimated = set(zip(rows["data"], rows["attribute"], strict=True))
    absent = [
        {"data": place, "attribute": name, "place": "", "state": "not estimable"}
        for place, name in _lacking(estimated, gap, data, results)
    ]
    return pd.concat([rows, pd.DataFrame(absent)], ignore_index=True) if absent else rows


def _answers(rows: pd.DataFrame, gap: str, data: str, results: Results) -> list[tuple[str, str]]:
    """The answers of each dataset and attribute, also where nothing can be estimated."""
    by_key = {
        (place, name): answer(part, gap=noun_of(gap)) for place, name, part in _by_attribute(rows)
    }
    by_key |= _lacking(by_key, gap, data, results)
    return [(", ".join(filter(None, key)), said) for key, said in by_key.items()]


def _in_home(at_home: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The domains of home of some rows of a matrix; none where several sets of domains are."""
    if rows["dataset"].nunique() != 1:
        return at_home.iloc[:0]
    return where(at_home, dataset=rows["dataset"].iloc[0], attribute=rows["attribute"].iloc[0])


def _warnings(rows: pd.DataFrame, at_home: pd.DataFrame, noun: str) -> list[str]:
    """Where domains of home have another gap than all of them together, or one like that away."""
    differ = (rows["pooled"] < rows["home_low"]) | (rows["pooled"] > rows["home_high"])
    apart = rows[differ & (rows["domain"] != "")]
    apart = apart.assign(by=(apart["pooled"] - apart["at_home"]).abs()).sort_values("by")
    said = []
    for row in apart.drop_duplicates(["data", "attribute"], keep="last").to_dict("records"):
        of_cell = where(at_home, dataset=row["dataset"], attribute=row["attribute"])
        names = _listed([*of_cell["domain"].unique()], "domains")
        said.append(
            f"Warning: with {names} taken together, the {noun} by {row['attribute']} where the "
            f"models were trained is {in_points(row['pooled'])}, within them it is "
            f"{in_points(row['at_home'])} ({row['method']}). Changes are measured within them."
        )
    grew = worst_first(rows[rows["state"] == "grew"])
    for row in grew.drop_duplicates(["data", "attribute"]).to_dict("records"):
        of_model = where(
            at_home, **{name: row[name] for name in ("dataset", "method", "attribute")}
        )
        alike = of_model[of_model["away_high"] > row["away_low"]]
        if len(alike):
            said.append(
                f"Warning: the {noun} by {row['attribute']} may be as large in "
                f"{_listed([*alike['domain']], 'domains')}, where the models were trained, as in "
                f"{row['place']} ({row['method']}). It grew against all domains of training "
                "together."
            )
    return said


@computed_once
def _refits(results: Results, gap: str) -> Mapping[Any, list[float]]:
    """The gap of every training, by cell, test set and attribute."""
    scores = where(results.selected, metric=gap, group="").dropna(subset="value")
    value = 1 - scores["value"] if find_metric(gap).better == "higher" else scores["value"]
    return value.groupby([scores[name] for name in PAIR]).agg(list).to_dict()


def _merge(small: Sequence[str]) -> str:
    """Which groups are too small, of an attribute that cannot be estimated."""
    if not small:
        return ""
    more = f" and {len(small) - LISTED} more" if len(small) > LISTED else ""
    return (
        f"; groups with fewer than {SMALL} rows of a class: {', '.join(small[:LISTED])}{more}; "
        "merge them with `values:` of the attribute"
    )


def _about(rows: pd.DataFrame, data: str, results: Results) -> str:
    """Where the models of a dataset were trained and tested, on how many rows, how often."""
    if rows.empty:
        return ""
    first = f" (the first training of {times})" if (times := rows["seeds"].max()) > 1 else ""
    asked = (
        f"the methods, trained again ({times:.0f} trainings)"
        if (rows["question"].dropna() == METHOD_QUESTION).all()
        else f"the trained models{first}"
    )
    if data == ALL:
        sets = rows[["data", *PLACE]].drop_duplicates()
        size = counted({"datasets": rows["data"].nunique(), "test sets": len(sets)})
        return f"{size}. The answer is about {asked}."
    names = rows["dataset"].unique()
    alone = where(results.by_domain, dataset=names, shift=UNSHIFTED)["domain"].unique()
    sources = [name for name in rows["trained_on"].unique() if name not in names]
    trained = where(results.splits, dataset=names)["train_rows"]
    tested = where(results.selected, dataset=names, metric="accuracy", group="")
    is_home = (tested["shift"] == UNSHIFTED) & (tested["domain"] == "")
    at_home, away = tested[is_home]["n"], tested[tested["shift"] != UNSHIFTED]
    places = list(rows["place"].unique())
    home = _listed(list(alone) or sources, "domains") or data
    times = f"{len(sources)} times, each time in other domains of " if len(sources) > 1 else "in "
    times = "in each of " if len(sources) > 1 and {*sources} <= {*alone, *places} else times
    return (
        f"Trained {times}{home}{_rows(trained)}; tested there{_rows(at_home)} and in "
        f"{_listed(places, 'test sets')}{_rows(away['n'])}. The answer is about {asked}."
    )


def _rows(sizes: pd.Series) -> str:
    """Numbers of rows in brackets; "" where they are not known."""
    low, high = (sizes.min(), sizes.max()) if len(sizes) else (0, 0)
    if not high:
        return ""
    return f" ({counted({'rows': low})})" if low == high else f" ({low:,} to {high:,} rows)"


def _listed(names: Sequence[str], what: str) -> str:
    """Names in a sentence; of many their number."""
    if len(names) > LISTED:
        return f"{len(names)} {what}"
    *first, last = [*names] or [""]
    return f"{', '.join(first)} and {last}" if first else str(last)


def _again(rows: pd.DataFrame, results: Results, gap: str) -> str:
    """The answer about methods, trained again, where that about the trained models is shown."""
    if rows.empty or not rows["question"].eq(MODEL_QUESTION).any():
        return ""
    seeds, about = int(rows["seeds"].max()), "If the methods were trained again"
    if seeds < FEWEST_REFITS:
        return f"{about}: unknown; it takes {FEWEST_REFITS} trainings of each, here {seeds}"
    of_methods = matrices(results, question=METHOD_QUESTION)[gap]
    pairs = _compared(where(of_methods, data=rows["data"].unique()))
    said = answer(pairs, gap=noun_of(gap))
    helps = f". {limit(pairs)}" if said.startswith("Unknown") and limit(pairs) else ""
    return f"{about} ({seeds} trainings of each): {said}{helps}"


def margins(rows: pd.DataFrame) -> str:
    """The margins in percentage points, the smallest first."""
    return " or ".join(f"{100 * margin:g}" for margin in sorted(set(rows["margin"].dropna())))


def _title(attribute: str, rows: pd.DataFrame, alone: bool, noun: str) -> str:
    """Heading of a plot: the attribute, and its answer where there are several."""
    if alone:
        return f"By {attribute}." if attribute else ""
    said = answer(rows.assign(attribute=""), gap=noun)
    return f"By {attribute}. {said}." if attribute else f"{said}."


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


def _matrix(rows: pd.DataFrame, data: str, attribute: str, gap: str) -> dict[str, Any]:
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
