"""Views across the papers: what shift does to fairness, and whether the measures rank alike.

Each paper has its own measure of a method that is fair under shift: Delta-ER (Equalized
Robustness), FairCOCCO, and accuracy at other shares of the groups (the study of bias mitigation).
Here every method of a run is ranked by all of them, and by how it fares under its shifts.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.core.intervals import Interval, mean_interval
from robust_fairness.metrics import find_metric
from robust_fairness.metrics.permutation import holm
from robust_fairness.rendering.figures import AXIS, TEMPLATE
from robust_fairness.reporting import claims as claimed
from robust_fairness.reporting.ranks import FEWEST, LEVEL, compared
from robust_fairness.reporting.statistics import TESTED, kendall_tau, paired_tests, rank_agreement
from robust_fairness.reporting.views import View

TITLE = "Across the papers"
PLAIN = "erm"
UNFAIRNESS = ("delta_eo", "faircocco_eo", "worst_group_accuracy")  # followed under shift
COMPARED = ("accuracy", *UNFAIRNESS)
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
UNSHIFTED = "none"
PLACE = ["dataset", "shift", "severity"]  # a test set
HOW_TESTED = (
    "paired over seeds, at the 5 % level after Holm's adjustment over all methods, datasets and "
    "test sets of a metric. Seeds that split the same rows anew are not independent of each "
    "other: what is left of it then stands below."
)


def by_seed(metrics: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Values of the methods, one column each, by dataset, shift, severity and seed.

    Higher is better: values of a metric that is better when lower change their sign. A method that
    lacks a seed which another one has is missing from that test set.

    Args:
        metrics: rows of the tidy table.
        measure: name of a metric.
    """
    sign = 1 if find_metric(measure).better == "higher" else -1
    rows = compared(metrics, measure)
    means = rows.groupby([*PLACE, "seed", "method"], sort=False)["value"].mean()
    values = sign * means.unstack("method")[list(dict.fromkeys(rows["method"]))]
    whole = values.notna().groupby(level=PLACE, sort=False).transform("all")
    return values.where(whole)


def tables_of(metrics: pd.DataFrame, measures: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Frames of datasets and seeds by methods, by measure: unshifted, and under shift.

    Under shift is the mean over shifts, each at its strongest.

    Args:
        metrics: rows of the tidy table.
        measures: names of metrics.
    """
    found = {}
    for measure in measures:
        values = by_seed(metrics, measure)
        shifted = _strongest(values[_is_shifted(values)])
        found[measure] = values[~_is_shifted(values)].droplevel(["shift", "severity"])
        means = shifted.groupby(level=["dataset", "seed"], sort=False)
        found[measure + SHIFTED] = means.mean(skipna=False)
    return {name: frame for name, frame in found.items() if len(frame)}


def _is_shifted(values: pd.DataFrame) -> np.ndarray:
    """Which rows of ``by_seed`` are of shifted test sets."""
    return values.index.get_level_values("shift") != UNSHIFTED


def _strongest(values: pd.DataFrame) -> pd.DataFrame:
    """The rows of every dataset's shifts at their largest severity."""
    severity = values.index.to_frame()["severity"]
    largest = severity.groupby(level=["dataset", "shift"], sort=False).transform("max")
    return values[severity == largest]


def kendall_over_datasets(metrics: pd.DataFrame) -> pd.DataFrame:
    """Kendall's tau between the orders in which two measures put the methods, over datasets.

    Args:
        metrics: rows of the tidy table.

    Returns:
        Columns first, second, tau, low, high, n: the mean over the n datasets that have both of at
        least ``FEWEST`` methods, with Student's interval, cut off at -1 and 1.
    """
    rows = []
    for (first, a), (second, b) in combinations(tables_of(metrics, MEASURES).items(), 2):
        means = [frame.groupby(level="dataset", sort=False).mean() for frame in _common(a, b)]
        enough = means[0].notna().sum(axis=1) >= FEWEST
        taus = kendall_tau(*(frame[enough].to_numpy() for frame in means))
        mean = mean_interval(taus)
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
    tables = tables_of(metrics, PROPOSED)
    rows = []
    for first, second in combinations([name for name in PROPOSED if name in tables], 2):
        a, b = _common(tables[first], tables[second])
        for dataset in a.index.unique("dataset"):
            ab = [frame.loc[dataset].dropna(axis=1).to_numpy() for frame in (a, b)]
            tau = _told("tau", rank_agreement(*ab))
            rows += [{"first": first, "second": second, "dataset": dataset, **tau}]
    found = pd.DataFrame(rows, columns=["first", "second", "dataset", "tau", "low", "high", "n"])
    return found[found["n"] >= FEWEST]


def _common(one: pd.DataFrame, other: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What both frames have: their common rows and columns, missing where either is missing."""
    one, other = one.align(other, join="inner")
    known = one.notna() & other.notna()
    return one.where(known), other.where(known)


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
    height = 300 + 30 * len(names)  # what the slanted names leave
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
    found = [_survival_of(metrics, metric).assign(metric=metric) for metric in UNFAIRNESS]
    columns = ["metric", *PLACE, "methods", "tau", "change for the worse", "worse", "better"]
    return pd.concat(found)[columns]


def _with_and_without(values: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Shifted rows of ``by_seed``, and for each the unshifted one of its dataset and seed."""
    shifted = values[_is_shifted(values)]
    unshifted = values[~_is_shifted(values)].droplevel(["shift", "severity"])
    same = unshifted.reindex(shifted.droplevel(["shift", "severity"]).index)
    return _common(shifted, same.set_axis(shifted.index))


def _survival_of(metrics: pd.DataFrame, metric: str) -> pd.DataFrame:
    """What every shift does to one measure of fairness."""
    with_shift, without = _with_and_without(by_seed(metrics, metric))
    tests = _tested(with_shift - without)
    tests["worse"] = tests["verdict"] == "worse"
    tests["better"] = tests["verdict"] == "better"
    by_set = tests.groupby(PLACE, sort=False)
    found = by_set.agg(
        methods=("method", "size"),
        change=("difference", "mean"),
        worse=("worse", "sum"),
        better=("better", "sum"),
    )
    orders = [frame.groupby(level=PLACE, sort=False).mean() for frame in (without, with_shift)]
    found["tau"] = kendall_tau(*(order.loc[found.index].to_numpy() for order in orders))
    found["change for the worse"] = -found.pop("change")
    return found.reset_index()


def _tested(differences: pd.DataFrame, ratio: pd.Series | None = None) -> pd.DataFrame:
    """Tests of every method on every test set, by Holm over all of them, and what they say.

    Args:
        differences: positive is better; rows as in ``by_seed``.
        ratio: as of ``paired_tests``, by dataset.
    """
    tests = paired_tests(differences, PLACE, ratio)
    known = tests["p"].notna()
    tests.loc[known, "p"] = holm(tests.loc[known, "p"].tolist())
    verdicts = np.where(tests["difference"] > 0, "better", "worse")
    tests["verdict"] = np.where(tests["p"] < LEVEL, verdicts, "not resolved")
    return tests


def against_plain(metrics: pd.DataFrame) -> pd.DataFrame:
    """Every method against plain training on every test set.

    Args:
        metrics: rows of the tidy table.

    Returns:
        A row a metric, dataset, shift, severity and method: the difference to ``erm`` (positive is
        better) with its interval paired over seeds, the p-value adjusted over all rows of the
        metric (Holm), and what it says at the 5 % level: "better", "worse" or "not resolved".
    """
    found = [
        _tested(_to_plain(by_seed(metrics, metric))).assign(metric=metric) for metric in COMPARED
    ]
    columns = ["metric", *PLACE, "method", *TESTED, "verdict"]
    return pd.concat(found)[columns]


def _to_plain(values: pd.DataFrame) -> pd.DataFrame:
    """What methods have over plain training, rows as in ``by_seed``; none without the latter."""
    if PLAIN not in values:
        return values.iloc[:, :0]
    return values.drop(columns=PLAIN).sub(values[PLAIN], axis=0)


def winners(metrics: pd.DataFrame) -> pd.DataFrame:
    """On how many test sets each method is better and worse than plain training, and where.

    Args:
        metrics: rows of the tidy table.
    """
    return _counted(against_plain(metrics), ["metric", "tested", "method"]).reset_index()


def _counted(tests: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """How many tests there are, how many say "better" and "worse", and where the former.

    Args:
        tests: as of ``against_plain``.
        key: columns to count by; ``tested`` tells unshifted test sets from the others.
    """
    rows = tests.reset_index(drop=True)
    rows["tested"] = np.where(rows["shift"] == UNSHIFTED, "unshifted", "under shift")
    for verdict in ("better", "worse"):
        rows[verdict] = rows["verdict"] == verdict
    counts = rows.groupby(key, sort=False).agg(
        tests=("verdict", "size"), better=("better", "sum"), worse=("worse", "sum")
    )
    where = rows[rows["better"]].groupby(key, sort=False)["dataset"]
    names = where.agg(lambda names: ", ".join(dict.fromkeys(names))).rename("better on")
    return counts.join(names).fillna({"better on": ""})


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
    place, without = ["metric", "dataset", "method"], rows["shift"] == UNSHIFTED
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


def sizes_of_splits(metrics: pd.DataFrame, splits: pd.DataFrame) -> pd.DataFrame:
    """Rows trained on and tested, and the ratio of them that tests take where splits overlap.

    Args:
        metrics: rows of the tidy table.
        splits: ``tables.SPLITS``.

    Returns:
        A row a dataset: number of splits, mean rows of a split trained on and tested, the share of
        the latter that another split trains on, and tested by trained on, or 0 where nothing is
        shared.
    """
    found = splits.groupby("dataset", sort=False).agg(
        **{
            "splits": ("split", "size"),
            "trained on": ("train_rows", "mean"),
            "tested": ("test_rows", "mean"),
            "reused": ("reused", "mean"),
        }
    )
    found["ratio"] = (found["tested"] / found["trained on"]).where(found["reused"] > 0, 0.0)
    return found.reset_index()


def certainty(metrics: pd.DataFrame, splits: pd.DataFrame) -> pd.DataFrame:
    """What stays certain where it is taken into account that seeds share rows.

    Args:
        metrics: rows of the tidy table.
        splits: ``tables.SPLITS``.

    Returns:
        A row a metric and comparison (with ``erm``, without and under shift; under shift with the
        same method without): the number of tests, how many say "better" and "worse" where seeds
        are independent, how many still do with the ``ratio`` of ``paired_tests``, and where. None
        where no splits overlap.
    """
    ratio = sizes_of_splits(metrics, splits).set_index("dataset")["ratio"]
    if not (ratio > 0).any():
        return pd.DataFrame()
    by_metric = {metric: by_seed(metrics, metric) for metric in COMPARED}
    independent, dependent = (
        pd.concat([_all_tests(metric, values, used) for metric, values in by_metric.items()])
        for used in (None, ratio)
    )
    key = ["metric", "compared", "tested"]
    counts = _counted(independent, key).drop(columns="better on")
    still = _counted(dependent, key).drop(columns="tests")
    still.columns = ["better still", "worse still", "better still on"]
    return counts.join(still).reset_index()


def _all_tests(metric: str, values: pd.DataFrame, ratio: pd.Series | None) -> pd.DataFrame:
    """Tests of a metric against plain training, and of every shift against none."""
    with_shift, without = _with_and_without(values)
    compared_to = {"with erm": _to_plain(values), "with itself, unshifted": with_shift - without}
    found = [
        _tested(differences, ratio).assign(metric=metric, compared=name)
        for name, differences in compared_to.items()
    ]
    return pd.concat(found)


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
        f"methods that change, {HOW_TESTED} Few seeds resolve nothing.",
    ),
    View(
        "kept",
        "Do methods that are fair without shift stay so under it?",
        kept,
        note="Methods, counted by dataset, that are fairer than erm without shift, and what is "
        f"left of that: {HOW_TESTED}",
    ),
    View(
        "winners",
        "Which method wins where: against plain training",
        winners,
        note="Tests are of datasets, or under shift of their shifted test sets; better and worse "
        f"are those in which a method differs from erm, {HOW_TESTED}",
    ),
    View(
        "sizes_of_splits",
        "How seeds split the rows",
        sizes_of_splits,
        needs=("splits",),
        note="Means over splits; reused is the share of the tested rows that another split trains "
        "on. Where it is above 0, results of two seeds depend on each other.",
    ),
    View(
        "certainty",
        "What stays certain where seeds share rows",
        certainty,
        needs=("splits",),
        note="Counts of tests as above, and with the variance of the mean that Nadeau and Bengio "
        "(Machine Learning 52, 2003) give for overlapping splits: 1/n + tested/trained on, in the "
        "place of 1/n for n seeds. They made it for splits that test fewer rows than they "
        "train on; where more are tested it is too strict.",
    ),
]


def claims(metrics: pd.DataFrame) -> pd.DataFrame:
    """None: these are questions that no single paper asks."""
    return claimed.table([])
