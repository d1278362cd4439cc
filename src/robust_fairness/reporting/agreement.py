"""Views across the papers: what shift does to fairness, and whether the measures rank alike.

Each paper has its own measure of a method that is fair under shift: Delta-ER (Equalized
Robustness), FairCOCCO, and accuracy at other shares of the groups (the study of bias mitigation).
Here every method of a run is ranked by all of them, and by how it fares under its shifts.
"""

from collections.abc import Hashable
from dataclasses import replace
from itertools import combinations
from typing import Any, cast

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.metrics import find_metric
from robust_fairness.metrics.permutation import holm
from robust_fairness.reporting import claims as claimed
from robust_fairness.reporting.figures import AXIS, TEMPLATE
from robust_fairness.reporting.ranks import FEWEST, LEVEL, compared
from robust_fairness.reporting.statistics import (
    TESTED,
    Interval,
    kendall_tau,
    mean_interval,
    paired_tests,
    rank_agreement,
)
from robust_fairness.reporting.views import View

TITLE = "Across the papers"
PLAIN = "erm"
UNFAIRNESS = ("delta_eo", "faircocco_eo", "worst_group_accuracy")  # followed under shift
PROPOSED = ("delta_er", "faircocco_eo", "mean_accuracy_at(alpha=0)")  # one a paper
MEASURES = (
    "accuracy",
    "worst_group_accuracy",
    "delta_eo",
    *PROPOSED,
    "mean_accuracy_at(alpha=-1)",
    "mean_accuracy_at(alpha=1)",
)
SHIFTED = " under shift"
UNSHIFTED = ("none", 0.0)
TestSet = tuple[str, float]  # shift and severity


def by_seed(metrics: pd.DataFrame, measure: str) -> dict[str, dict[TestSet, pd.DataFrame]]:
    """Values by dataset, then by shift and severity: a frame of seeds by methods.

    Higher is better: values of a metric that is better when lower change their sign. A method that
    lacks a seed which another one has is left out of that test set.

    Args:
        metrics: rows of the tidy table.
        measure: name of a metric.
    """
    sign = 1 if find_metric(measure).better == "higher" else -1
    rows = compared(metrics, measure)
    place: list[Hashable] = ["dataset", "shift", "severity"]
    means = rows.groupby([*place, "seed", "method"], sort=False)["value"].mean()
    values = sign * means.unstack("method")[list(dict.fromkeys(rows["method"]))]
    found: dict[str, dict[TestSet, pd.DataFrame]] = {}
    for where, own in values.groupby(level=place, sort=False):
        dataset, shift, severity = cast(tuple[str, str, float], where)
        found.setdefault(dataset, {})[shift, severity] = own.droplevel(place).dropna(axis=1)
    return found


def tables_of(metrics: pd.DataFrame) -> dict[str, dict[str, pd.DataFrame]]:
    """Frames of seeds by methods, by measure and dataset: unshifted, and under shift.

    Under shift is the mean over shifts, each at its strongest. Only what has at least ``FEWEST``
    methods is there.

    Args:
        metrics: rows of the tidy table.
    """
    found: dict[str, dict[str, pd.DataFrame]] = {}
    for measure in MEASURES:
        for dataset, sets in by_seed(metrics, measure).items():
            strongest = {shift: max(s for name, s in sets if name == shift) for shift, _ in sets}
            shifted = [sets[one] for one in strongest.items() if one != UNSHIFTED]
            named = {measure: sets.get(UNSHIFTED), measure + SHIFTED: _mean(shifted)}
            for name, frame in named.items():
                if frame is not None and frame.shape[1] >= FEWEST:
                    found.setdefault(name, {})[dataset] = frame
    return found


def _mean(frames: list[pd.DataFrame]) -> pd.DataFrame | None:
    """Mean of frames by seed and method."""
    return sum(frames).dropna(axis=1) / len(frames) if frames else None  # type: ignore[union-attr]


def kendall_over_datasets(metrics: pd.DataFrame) -> pd.DataFrame:
    """Kendall's tau between the orders in which two measures put the methods, over datasets.

    Args:
        metrics: rows of the tidy table.

    Returns:
        Columns first, second, tau, low, high, n: the mean over the n datasets that have both, with
        Student's interval, cut off at -1 and 1.
    """
    rows = []
    for (first, second), pairs in _paired(tables_of(metrics)).items():
        taus = [kendall_tau(a.mean(0), b.mean(0)) for a, b in pairs.values()]
        mean = mean_interval(np.array(taus))
        found = replace(mean, low=max(mean.low, -1.0), high=min(mean.high, 1.0))
        rows += [{"first": first, "second": second, **_told("tau", found)}] if found.n else []
    return pd.DataFrame(rows, columns=["first", "second", "tau", "low", "high", "n"])


def kendall_of_proposed(metrics: pd.DataFrame) -> pd.DataFrame:
    """Kendall's tau between the papers' own measures, dataset by dataset.

    Args:
        metrics: rows of the tidy table.

    Returns:
        Columns first, second, dataset, tau, low, high, n; the interval is a bootstrap over seeds,
        n the number of methods.
    """
    tables = {name: one for name, one in tables_of(metrics).items() if name in PROPOSED}
    rows = [
        {"first": first, "second": second, "dataset": dataset, **_told("tau", rank_agreement(*ab))}
        for (first, second), pairs in _paired(tables).items()
        for dataset, ab in pairs.items()
    ]
    return pd.DataFrame(rows, columns=["first", "second", "dataset", "tau", "low", "high", "n"])


def _paired(
    tables: dict[str, dict[str, pd.DataFrame]],
) -> dict[tuple[str, str], dict[str, tuple[np.ndarray, np.ndarray]]]:
    """By two measures and dataset: their values ``[seeds, methods]`` of what both have."""
    found: dict[tuple[str, str], dict[str, tuple[np.ndarray, np.ndarray]]] = {}
    for pair in combinations(tables, 2):
        one, other = (tables[name] for name in pair)
        for dataset in [name for name in one if name in other]:
            a, b = one[dataset].align(other[dataset], join="inner")
            if a.shape[1] >= FEWEST:
                found.setdefault(pair, {})[dataset] = a.to_numpy(), b.to_numpy()
    return found


def _told(name: str, interval: Interval) -> dict[str, Any]:
    """An interval as columns."""
    return {name: interval.mean, "low": interval.low, "high": interval.high, "n": interval.n}


def draw_kendall(rows: pd.DataFrame) -> go.Figure:
    """A square of mean taus, measures by measures."""
    names = list(dict.fromkeys([*rows["first"], *rows["second"]]))
    square = pd.DataFrame(np.eye(len(names)), names, names)
    for row in rows.to_dict("records"):
        for one, other in ((row["first"], row["second"]), (row["second"], row["first"])):
            square.loc[one, other] = row["tau"]
    figure = go.Figure(
        go.Heatmap(
            z=square,
            x=names,
            y=names,
            zmin=-1,
            zmax=1,
            colorscale="RdBu",
            texttemplate="%{z:.2f}",
            colorbar={"title": {"text": "tau"}},
        )
    )
    height = 160 + 34 * len(names)
    figure.update_layout(
        template=TEMPLATE,
        height=height,
        xaxis=AXIS | {"tickangle": 45},
        yaxis=AXIS | {"autorange": "reversed"},
    )
    return figure


def survival(metrics: pd.DataFrame) -> pd.DataFrame:
    """What every shift does to every measure of fairness.

    Args:
        metrics: rows of the tidy table.

    Returns:
        A row a metric, dataset, shift and severity: the number of methods; Kendall's tau between
        their order without and with the shift, the mean over methods of the change for the worse,
        and how many methods are worse and how many better than without (paired over seeds, 5 %
        level, Holm over all methods and test sets of the metric).
    """
    rows: list[dict[str, Any]] = []
    for metric in UNFAIRNESS:
        changes = _changes(metrics, metric)
        if not changes:
            continue
        tests = pd.concat(changes, ignore_index=True)
        tests["p"] = _adjusted(tests["p"])
        for where, own in tests.groupby(["dataset", "shift", "severity"], sort=False):
            certain = own["p"] < LEVEL
            rows.append(
                {
                    "metric": metric,
                    **dict(zip(["dataset", "shift", "severity"], where, strict=True)),
                    "methods": len(own),
                    "tau": float(kendall_tau(own["without"].to_numpy(), own["with"].to_numpy())),
                    "change for the worse": (own["without"] - own["with"]).mean(),
                    "worse": int((certain & (own["with"] < own["without"])).sum()),
                    "better": int((certain & (own["with"] > own["without"])).sum()),
                }
            )
    columns = ["metric", "dataset", "shift", "severity", "methods", "tau"]
    return pd.DataFrame(rows, columns=[*columns, "change for the worse", "worse", "better"])


def _changes(metrics: pd.DataFrame, metric: str) -> list[pd.DataFrame]:
    """Every method with and without every shift."""
    found = []
    for dataset, sets in by_seed(metrics, metric).items():
        plain = sets.pop(UNSHIFTED, pd.DataFrame())
        for (shift, severity), shifted in sets.items():
            without, with_shift = plain.align(shifted, join="inner")
            tests = paired_tests(with_shift, without)
            tests = tests.assign(without=without.mean(), **{"with": with_shift.mean()})
            found.append(tests.assign(dataset=dataset, shift=shift, severity=severity))
    return found


def _adjusted(p_values: pd.Series) -> pd.Series:
    """Holm's adjustment of those that are there."""
    known = p_values.dropna()
    return pd.Series(holm(known.tolist()), known.index).reindex(p_values.index)


def against_plain(metrics: pd.DataFrame) -> pd.DataFrame:
    """Every method against plain training on every test set.

    Args:
        metrics: rows of the tidy table.

    Returns:
        A row a metric, dataset, shift, severity and method: the difference to ``erm`` (positive is
        better) with its interval paired over seeds, the p-value adjusted over all rows of the
        metric (Holm), and what it says at the 5 % level: "better", "worse" or "not resolved".
    """
    found = []
    for metric in ("accuracy", *UNFAIRNESS):
        differences = _differences(metrics, metric)
        if not differences:
            continue
        tests = pd.concat(differences, ignore_index=True)
        tests["p"] = _adjusted(tests["p"])
        verdicts = np.where(tests["difference"] > 0, "better", "worse")
        tests["verdict"] = np.where(tests["p"] < LEVEL, verdicts, "not resolved")
        found.append(tests.assign(metric=metric))
    columns = ["metric", "dataset", "shift", "severity", "method", *TESTED, "verdict"]
    return pd.concat(found)[columns] if found else pd.DataFrame(columns=columns)


def _differences(metrics: pd.DataFrame, metric: str) -> list[pd.DataFrame]:
    """Every method less plain training, by dataset and test set."""
    return [
        paired_tests(values.drop(columns=PLAIN), values[PLAIN])
        .reset_index(names="method")
        .assign(dataset=dataset, shift=shift, severity=severity)
        for dataset, sets in by_seed(metrics, metric).items()
        for (shift, severity), values in sets.items()
        if PLAIN in values
    ]


def winners(metrics: pd.DataFrame) -> pd.DataFrame:
    """On how many test sets each method is better and worse than plain training, and where.

    Args:
        metrics: rows of the tidy table.
    """
    rows = against_plain(metrics).reset_index(drop=True)
    rows["tested"] = np.where(rows["shift"] == UNSHIFTED[0], "unshifted", "under shift")
    for verdict in ("better", "worse"):
        rows[verdict] = rows["verdict"] == verdict
    key = ["metric", "tested", "method"]
    counts = rows.groupby(key, sort=False).agg(
        sets=("verdict", "size"), better=("better", "sum"), worse=("worse", "sum")
    )
    where = rows[rows["better"]].groupby(key, sort=False)["dataset"]
    names = where.agg(lambda names: ", ".join(dict.fromkeys(names))).rename("better on")
    return counts.join(names).fillna({"better on": ""}).reset_index()


def kept(metrics: pd.DataFrame) -> pd.DataFrame:
    """What a shift leaves of the fairness that methods gain over plain training.

    Args:
        metrics: rows of the tidy table.

    Returns:
        A row a metric, shift and severity, over all datasets: the methods (counted by dataset) that
        are fairer than plain training without the shift, how many of these still are with it, how
        many are worse than plain training, and the share that is left of their mean advantage.
    """
    rows = against_plain(metrics)
    place, without = ["metric", "dataset", "method"], rows["shift"] == UNSHIFTED[0]
    fairer = rows[without & (rows["verdict"] == "better") & rows["metric"].isin(UNFAIRNESS)]
    pairs = rows[~without].merge(fairer, on=place, suffixes=("", " without"))
    found = pairs.groupby(["metric", "shift", "severity"], sort=False).agg(
        **{
            "fairer without": ("verdict", "size"),
            "fairer with": ("verdict", lambda verdicts: int((verdicts == "better").sum())),
            "worse with": ("verdict", lambda verdicts: int((verdicts == "worse").sum())),
            "with": ("difference", "mean"),
            "without": ("difference without", "mean"),
        }
    )
    found["share left"] = found.pop("with") / found.pop("without")
    return found.reset_index()


VIEWS = [
    View(
        "agreement",
        "Do the measures rank methods alike? Mean of Kendall's tau over datasets",
        kendall_over_datasets,
        draw_kendall,
        note="1 is the same order, 0 none in common, -1 the reverse; each measure in its better "
        "direction. Intervals are Student's over datasets. Delta-ER is of unshifted rows.",
    ),
    View(
        "agreement_of_proposed",
        "The papers' own measures, dataset by dataset",
        kendall_of_proposed,
        note="Intervals are bootstraps over seeds of the given methods.",
    ),
    View(
        "survival",
        "Does fairness survive each shift?",
        survival,
        note="tau compares the order of methods without and with the shift. Worse and better count "
        "methods that change, paired over seeds, at the 5 % level after Holm's adjustment over all "
        "methods and test sets of a metric; few seeds resolve nothing.",
    ),
    View(
        "kept",
        "Do methods that are fair without shift stay so under it?",
        kept,
        note="Methods, counted by dataset, that are fairer than erm without shift, and what is "
        "left of that: paired over seeds, at the 5 % level after Holm's adjustment over all "
        "methods, datasets and test sets of a metric.",
    ),
    View(
        "winners",
        "Which method wins where: against plain training",
        winners,
        note="Sets are datasets, or under shift their shifted test sets, and better and worse "
        "those on which a method differs from erm, paired over seeds, at the 5 % level after "
        "Holm's adjustment over all methods, datasets and test sets of a metric.",
    ),
]


def claims(metrics: pd.DataFrame) -> pd.DataFrame:
    """None: these are questions that no single paper asks."""
    return claimed.table([])
