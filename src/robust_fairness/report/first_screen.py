"""The first screen of the report: the answer, its plot, what limits it, the matrix."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.core.numbers import counted
from robust_fairness.core.rendering.html import rendered
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.answers import also, answer, fairer, in_points, limit, worst_first
from robust_fairness.numbers.estimate import FEWEST_REFITS, LEVEL, over_refits
from robust_fairness.report.matrix import (
    PAIR,
    PLACE,
    SMALL,
    homes,
    is_plain,
    matrices,
    matrix,
    noun_of,
    undefined,
    words_of,
)
from robust_fairness.report.matrix_shown import plot, table_of, trade_off
from robust_fairness.report.pairs import METHOD_QUESTION, MODEL_QUESTION, test_set_name
from robust_fairness.report.results import UNSHIFTED, Results, where

ALL = "all datasets"
LISTED = 5  # names that are listed
TRIVIALITY = {"constant_accuracy", "selection_rate_by_group"}  # metrics that find trivial models

MODELS = ["data", "dataset", "attribute", "network"]  # that methods are compared among
DECLINED = ("trivial", "missing")  # states of a model whose gap says nothing


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
    shown = []
    for gap, rows in by_gap.items():
        better = advantages(of_methods[gap], gap, results)
        names = dict.fromkeys([*rows["data"], *(data for data, _ in undefined(results, gap))])
        whole = [ALL] if len(names) > 1 else []
        for data in [*whole, *map(str, names)]:
            of_data, methods = (
                part if data == ALL else part[part["data"] == data] for part in (rows, better)
            )
            content = panel(of_data, gap, data, results)
            shown.append(content | {"unknown": unknown, "fairer": fairer(methods)})
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


def panel(rows: pd.DataFrame, gap: str, data: str, results: Results) -> dict[str, Any]:
    """Answer, plots and matrices of some rows of a matrix; of all datasets the worst lines."""
    rows = _compared(rows)
    parts = [] if data == ALL else _by_attribute(rows)
    pairs, told = _pairs(rows, gap, data, results), _answers(rows, gap, data, results)
    noun = noun_of(gap)
    overall = answer(pairs, gap=noun)
    looks = {name: look for look, name in enumerate(rows["method"].unique())}
    at_home = where(homes(results, gap), dataset=rows["dataset"].unique())
    scores = where(results.selected, metric=gap, group="").dropna(subset="value")
    value = 1 - scores["value"] if find_metric(gap).better == "higher" else scores["value"]
    refits = value.groupby([scores[name] for name in PAIR]).agg(list).to_dict()
    plots = []
    for _, name, part in parts or [("", "", rows)]:
        said = [f"By {name}."] if name else []
        if len(parts) > 1:
            said.append(f"{answer(part.assign(attribute=''), gap=noun)}.")
        alone = part["dataset"].unique()  # several sets of domains of home are not drawn
        place = {"dataset": alone, "attribute": part["attribute"].unique()[:1]}
        domains = where(at_home, **place) if len(alone) == 1 else at_home.iloc[:0]
        plots.append(plot(part, " ".join(said), looks, domains, refits))
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
        "plots": [drawn for drawn in plots if drawn],
        "limit": limit(pairs) if overall.startswith("Unknown") else "",
        "again": _again(rows, results, gap),
        "matrices": [table_of(part, place, name, gap) for place, name, part in parts],
        "margin": " or ".join(f"{100 * size:g}" for size in sorted({*rows["margin"].dropna()})),
        "trade_off": [
            drawn for _, name, part in parts if (drawn := trade_off(part, name, looks, noun))
        ],
        "tests": counted({"tests": int(rows["p"].count())}),
        "level": f"{100 * LEVEL:g} %",
    }


def advantages(rows: pd.DataFrame, gap: str, results: Results) -> pd.DataFrame:
    """By how much methods have a smaller gap than plain training, in every other test set.

    Differences are paired over seeds, of which there are at least ``FEWEST_REFITS``; the bounds of
    all methods, datasets and attributes hold together (Bonferroni), since the least of those of
    several test sets is taken. A method that predicts trivially in some test set is left out.

    Args:
        rows: the matrix of the gap, ``matrix.matrices``.
        gap: its name.
        results: the tables of the run.

    Returns:
        Columns data, attribute, method, least (lower 95 % bound in the test set where it is
        smallest; missing with too few seeds) and accuracy (mean over test sets minus that of plain
        training), a row for each method that has plain training with the same network beside it.
    """
    plain = is_plain(rows)
    rows = rows.assign(there=rows["accuracy"] + rows["accuracy_change"])
    compared = []
    for key, part in rows.groupby(MODELS, sort=False):
        names = rows.loc[part.index[plain[part.index]], "method"].unique()
        for method, of_method in part[~plain[part.index]].groupby("method", sort=False):
            if len(names) and not of_method["state"].isin(DECLINED).any():
                of_plain = part[part["method"] == names[0]]
                accuracy = float(of_method["there"].mean()) - float(of_plain["there"].mean())
                compared.append((*key, names[0], method, accuracy))
    table = pd.DataFrame(compared, columns=[*MODELS, "plain", "method", "accuracy"])
    scores = where(results.selected, metric=gap, group="")
    if find_metric(gap).better == "higher":
        scores = scores.assign(value=1 - scores["value"])
    keys = ["dataset", "attribute", "method", *PLACE]
    by_seed = scores.pivot_table("value", keys, "seed")
    methods = table[["dataset", "attribute", "method", "plain"]].reset_index(names="of")
    pairs = methods.merge(rows[keys], on=keys[:3])
    of_plain, of_method = (
        by_seed.reindex(pd.MultiIndex.from_frame(pairs.assign(method=pairs[name])[keys]))
        for name in ("plain", "method")
    )
    difference = of_plain.to_numpy(np.float64) - of_method.to_numpy(np.float64)
    # seeds that have all test sets
    whole = pd.DataFrame(np.isfinite(difference)).groupby(pairs["of"]).transform("all").to_numpy()
    enough = whole.sum(1) >= FEWEST_REFITS
    ratio = results.sizes_of_splits["ratio"].reindex(pairs["dataset"]).fillna(0.0).to_numpy()
    estimate = over_refits(np.where(whole, difference, np.nan), ratio)
    level = LEVEL / max(pairs["of"][enough].nunique(), 1)
    bound = np.where(enough, estimate.value - estimate.critical(level), np.nan)
    least = pd.Series(bound).groupby(pairs["of"]).agg(partial(pd.Series.min, skipna=False))
    table["least"] = least.reindex(table.index).to_numpy()
    return table[["data", "attribute", "method", "least", "accuracy"]]


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
    answered: Collection[tuple[str, str]], gap: str, data: str, results: Results
) -> dict[tuple[str, str], str]:
    """Why nothing can be said of a dataset and an attribute that are not among those answered."""
    said = {}
    for key, (why, small) in undefined(results, gap).items():
        if data in (ALL, key[0]) and key not in answered:
            more = f" and {len(small) - LISTED} more" if len(small) > LISTED else ""
            merge = (
                f"; groups with fewer than {SMALL} rows of a class: {', '.join(small[:LISTED])}"
                f"{more}; merge them with `values:` of the attribute"
            )
            reason = f"{why}{merge if small else ''}"
            said[key] = f"Unknown: the {noun_of(gap)} cannot be estimated; {reason}"
    return said


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
    of_methods = matrix(results, gap, METHOD_QUESTION)
    pairs = _compared(where(of_methods, data=rows["data"].unique()))
    said = answer(pairs, gap=noun_of(gap))
    helps = f". {limit(pairs)}" if said.startswith("Unknown") and limit(pairs) else ""
    return f"{about} ({seeds} trainings of each): {said}{helps}"
