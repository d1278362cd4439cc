"""Views across the papers: what shift does to fairness, and whether the measures rank alike.

Each paper has its own measure of a method that is fair under shift: Delta-ER (Equalized
Robustness), FairCOCCO, and accuracy at other shares of the groups (the study of bias mitigation).
Here every method of a run is ranked by all of them, and by how it fares under its shifts.
"""

from collections.abc import Sequence
from functools import partial
from itertools import combinations, product

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.core.rendering.figures import Panel, Trace, in_panel, panelled
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.estimate import over_refits
from robust_fairness.numbers.verdicts import concluded
from robust_fairness.report.ranks import FEWEST, compared, comparison_of
from robust_fairness.report.results import UNSHIFTED, Results, computed_once, where
from robust_fairness.report.statistics import kendall_tau, mean_tau, rank_agreement

PLAIN = "erm"
UNFAIRNESS = ("delta_eo", "faircocco_eo", "worst_group_accuracy")  # followed under shift
COMPARED = ("accuracy", *UNFAIRNESS)
PROPOSED = ("delta_er", "faircocco_eo", "mean_accuracy_at(alpha=0)")  # one per paper
MEASURES = (
    "accuracy",
    "worst_group_accuracy",
    "delta_eo",
    *PROPOSED,
    "mean_accuracy_at(alpha=-1)",
    "mean_accuracy_at(alpha=1)",
)
PLACE = ["dataset", "shift", "severity"]  # a test set
SEEDS_HALVED = 6
WITH_PLAIN, WITH_UNSHIFTED = "with erm", "with itself, unshifted"  # comparisons


@computed_once
def by_seed(results: Results, measure: str) -> pd.DataFrame:
    """Values of the methods, one column each, by dataset, shift, severity and seed.

    Higher is better: values of a metric that is better when lower change their sign. A method that
    lacks a seed of another one is missing from that test set.
    """
    sign = 1 if find_metric(measure).better == "higher" else -1
    rows = compared(results.metrics, measure)
    means = rows.groupby([*PLACE, "seed", "method"], sort=False)["value"].mean()
    values = sign * means.unstack("method")[list(dict.fromkeys(rows["method"]))]
    whole = values.notna().groupby(level=PLACE, sort=False).transform("all")
    return values.where(whole)


def tables_of(results: Results, measures: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Frames of datasets and seeds by methods, by measure: unshifted, and under shift.

    Under shift is the mean over shifts, each at its largest severity.
    """
    result = {}
    for measure in measures:
        result[measure], shifted = _parted(by_seed(results, measure))
        severity = shifted.index.to_frame()["severity"]
        largest = severity.groupby(level=["dataset", "shift"], sort=False).transform("max")
        means = shifted[severity == largest].groupby(level=["dataset", "seed"], sort=False)
        result[f"{measure} under shift"] = means.agg(partial(pd.Series.mean, skipna=False))
    return {name: frame for name, frame in result.items() if len(frame)}


def _parted(values: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of ``by_seed`` by dataset and seed without a shift, and those under shift."""
    shifted = values.index.get_level_values("shift") != UNSHIFTED
    return values[~shifted].droplevel(["shift", "severity"]), values[shifted]


def kendall_over_datasets(results: Results) -> pd.DataFrame:
    """Kendall's tau between the orders in which two measures rank the methods, over datasets.

    Returns:
        Columns first, second, tau, low, high, n: the mean over the n datasets that have both of at
        least ``FEWEST`` methods, with Student's interval, cut off at -1 and 1.
    """
    rows = []
    every = tables_of(results, MEASURES)
    tables = {name: frame for name, frame in every.items() if frame.shape[1] >= FEWEST}
    for (first, a), (second, b) in combinations(tables.items(), 2):
        means = [frame.groupby(level="dataset", sort=False).mean() for frame in _common(a, b)]
        enough = means[0].notna().sum(axis=1) >= FEWEST
        taus = kendall_tau(*(frame[enough].to_numpy() for frame in means))
        result = mean_tau(taus)
        rows += [{"first": first, "second": second, **result}] if result["n"] else []
    return pd.DataFrame(rows, columns=["first", "second", "tau", "low", "high", "n"])


def kendall_of_proposed(results: Results) -> pd.DataFrame:
    """Kendall's tau between the papers' own measures, dataset by dataset.

    Returns:
        Columns first, second, dataset, tau, low, high, n; the interval is a bootstrap over seeds,
        n the number of methods.
    """
    tables = tables_of(results, PROPOSED)
    rows = []
    for first, second in combinations([name for name in PROPOSED if name in tables], 2):
        a, b = _common(tables[first], tables[second])
        for dataset in a.index.unique("dataset"):
            ab = [frame.loc[dataset].dropna(axis=1).to_numpy() for frame in (a, b)]
            place = {"first": first, "second": second, "dataset": dataset}
            rows += [place | rank_agreement(*ab)]
    result = pd.DataFrame(rows, columns=["first", "second", "dataset", "tau", "low", "high", "n"])
    return result[result["n"] >= FEWEST]


def _common(first: pd.DataFrame, other: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What both frames have: their common rows and columns, missing where either is missing."""
    first, other = first.align(other, join="inner")
    known = first.notna() & other.notna()
    return first.where(known), other.where(known)


def draw_kendall(rows: pd.DataFrame) -> go.Figure:
    """A square of mean taus, measures by measures."""
    names = list(dict.fromkeys([*rows["first"], *rows["second"]]))
    square = pd.DataFrame(np.eye(len(names)), names, names)
    for row in rows.to_dict("records"):
        for item, other in ((row["first"], row["second"]), (row["second"], row["first"])):
            square.loc[item, other] = row["tau"]
    trace: Trace = {
        "type": "heatmap", "x": names, "y": names, "z": square.to_numpy().tolist(),
        "zmin": -1, "zmax": 1, "colorscale": "RdBu", "texttemplate": "%{z:.2f}",
        "hovertemplate": "%{x}, %{y}: %{z:.2f}<extra></extra>",
        "colorbar": {"title": {"text": "tau"}},
    }  # fmt: skip
    height = 150 + 30 * len(names)  # what the slanted names leave
    figure = panelled("Kendall's tau", [Panel("", "", "")], [in_panel(trace, 0)], row=height)
    return figure.update_xaxes(tickangle=45).update_yaxes(autorange="reversed")


def survival(results: Results) -> pd.DataFrame:
    """The effect of every shift on every measure of fairness.

    Returns:
        A row per metric, dataset, shift and severity: the number of methods; Kendall's tau between
        their order without and with the shift, the mean over methods of the change for the worse,
        and how many methods are worse and how many better than without (``tests``).
    """
    rows = where(tests(results), compared=WITH_UNSHIFTED, metric=UNFAIRNESS)
    result = rows.groupby(["metric", *PLACE], sort=False).agg(
        methods=("method", "size"),
        change=("value", "mean"),
        worse=("worse", "sum"),
        better=("better", "sum"),
    )
    taus = []
    for metric in UNFAIRNESS:
        with_shift, without = (
            frame.groupby(level=PLACE, sort=False).mean()
            for frame in _with_and_without(by_seed(results, metric))
        )
        tau = kendall_tau(with_shift.to_numpy(), without.to_numpy())
        taus.append(pd.Series(tau, with_shift.index))
    result["tau"] = pd.concat(taus, keys=UNFAIRNESS, names=["metric"]).reindex(result.index)
    result["change for the worse"] = -result.pop("change")
    columns = ["metric", *PLACE, "methods", "tau", "change for the worse", "worse", "better"]
    return result.reset_index()[columns]


def _with_and_without(values: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Shifted rows of ``by_seed``, and for each the unshifted one of its dataset and seed."""
    unshifted, shifted = _parted(values)
    same = unshifted.reindex(shifted.droplevel(["shift", "severity"]).index)
    return _common(shifted, same.set_axis(shifted.index))


@computed_once
def tests(results: Results) -> pd.DataFrame:
    """Tests of every method on every test set: with plain training, and with itself unshifted.

    Differences are paired over seeds; where splits share rows, with the variance of Nadeau and
    Bengio. A family is all tests of a metric and a comparison.

    Returns:
        Columns metric, compared (``WITH_PLAIN`` or ``WITH_UNSHIFTED``), ``PLACE``, method, those of
        ``numbers.verdicts.concluded`` (a positive value is better), tested (unshifted or under
        shift), better and worse (significant).
    """
    ratio = results.sizes_of_splits["ratio"]
    parts = []
    for metric in COMPARED:
        values = by_seed(results, metric)
        with_shift, without = _with_and_without(values)
        # no test is made of missing differences: there are none without plain training
        plain = values.get(PLAIN, pd.Series(np.nan, values.index))
        to_plain = values.drop(columns=PLAIN, errors="ignore").sub(plain, axis=0)
        differences = {WITH_PLAIN: to_plain, WITH_UNSHIFTED: with_shift - without}
        for compared_with, difference in differences.items():
            wide = difference.rename_axis(columns="method").stack().dropna()  # noqa: PD013
            wide = wide.unstack("seed")  # noqa: PD010
            place = wide.index.to_frame(index=False)
            seeds = wide.to_numpy(float)
            shares = place["dataset"].map(ratio).fillna(0.0).to_numpy(float)
            result = concluded(over_refits(seeds, shares), np.isfinite(seeds).sum(-1))
            tested = np.where(place["shift"] == UNSHIFTED, "unshifted", "under shift")
            better, worse = result["sign"] > 0, result["sign"] < 0
            result = pd.concat([place, result], axis=1).assign(tested=tested)
            result = result.assign(better=better, worse=worse)
            parts.append(result.assign(metric=metric, compared=compared_with))
    return pd.concat(parts, ignore_index=True)


def significant(results: Results) -> pd.DataFrame:
    """The number of tests of every metric and comparison, how many are better and worse, where."""
    key, rows = ["metric", "compared", "tested"], tests(results)
    counts = rows.groupby(key, sort=False).agg(
        tests=("sign", "size"), better=("better", "sum"), worse=("worse", "sum")
    )
    better = rows[rows["better"]].groupby(key, sort=False)["dataset"]
    names = better.agg(lambda names: ", ".join(dict.fromkeys(names))).rename("better on")
    return counts.join(names).fillna({"better on": ""}).reset_index()


def kept(results: Results) -> pd.DataFrame:
    """How much a shift leaves of the fairness that methods gain over plain training.

    Returns:
        A row per metric, shift and severity, over all datasets: the methods (counted by dataset)
        that are fairer than plain training without the shift, how many of these still are with it,
        how many are worse than plain training, and the share that is left of their mean advantage.
    """
    rows = where(tests(results), compared=WITH_PLAIN)
    place, without = ["metric", "dataset", "method"], rows["shift"] == UNSHIFTED
    fairer = rows[without & rows["better"] & rows["metric"].isin(UNFAIRNESS)]
    pairs = rows[~without].merge(fairer, on=place, suffixes=("", " without"))
    result = pairs.groupby(["metric", "shift", "severity"], sort=False).agg(
        **{
            "fairer without": ("sign", "size"),
            "fairer with": ("better", "sum"),
            "worse with": ("worse", "sum"),
            "with": ("value", "mean"),
            "without": ("value without", "mean"),
        }
    )
    result["share left"] = result.pop("with") / result.pop("without")
    return result.reset_index()


def ceilings(results: Results) -> pd.DataFrame:
    """Tau of the rankings by ``delta_eo`` with and without shift, on the same seeds and others.

    Of datasets with at least ``SEEDS_HALVED`` seeds. Disjoint seeds are a half without the shift
    and the other half with it, averaged over all halves; without any shift tau is the ceiling.
    """
    values = by_seed(results, "delta_eo").dropna(axis=1, how="all")
    rows = []
    for (dataset, shift, severity), shifted in values.groupby(level=PLACE, sort=False):
        plain = pd.DataFrame(values.xs((dataset, UNSHIFTED, 0), level=PLACE))
        with_shift = shifted.droplevel([*PLACE])
        seeds = sorted(with_shift.index)
        if len(seeds) < SEEDS_HALVED:
            continue
        halves = [
            _tau(plain[plain.index.isin(half)], with_shift.drop(index=list(half)))
            for half in combinations(seeds, len(seeds) // 2)
        ]
        same = _tau(plain, with_shift)
        rows.append((shift, severity, dataset, same, np.mean(halves)))
    columns = ["shift", "severity", "datasets", "same seeds", "disjoint seeds"]
    result = pd.DataFrame(rows, columns=columns).groupby(columns[:2], as_index=False, sort=False)
    return result.agg({"datasets": "size", "same seeds": "mean", "disjoint seeds": "mean"})


def average_ranks(results: Results) -> pd.DataFrame:
    """Average ranks of the methods by every measure, unshifted and under shift, with their tests.

    Returns:
        Columns metric, tested, method, rank (1 is best), datasets, p (Friedman's) and
        critical_difference (Nemenyi's).
    """
    parts = []
    for metric, shifted in product(COMPARED, (False, True)):
        result = comparison_of(results.metrics, metric, shifted)
        if result.test:
            ranks = result.ranks.rename_axis("method").reset_index(name="rank")
            tested = "under shift" if shifted else "unshifted"
            datasets, p = len(result.datasets), result.test.p
            ranks = ranks.assign(metric=metric, tested=tested, datasets=datasets, p=p)
            parts.append(ranks.assign(critical_difference=result.critical_difference))
    columns = ["metric", "tested", "method", "rank", "datasets", "p", "critical_difference"]
    return pd.concat(parts)[columns] if parts else pd.DataFrame(columns=columns)


def _tau(first: pd.DataFrame, second: pd.DataFrame) -> float:
    """Kendall's tau of the means of methods over seeds."""
    return float(kendall_tau(first.mean().to_numpy(), second.mean().to_numpy()))
