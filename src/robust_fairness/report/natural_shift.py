"""Views of natural shift: what changes where a model is used in domains it was not trained on.

Figures are drawn from the tables of views.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from scipy import special

from robust_fairness.core.rendering.figures import (
    GREY,
    WRAP,
    Panel,
    Trace,
    drawn,
    in_panel,
    panelled,
    style,
)
from robust_fairness.metrics import find_metric
from robust_fairness.numbers.answers import signed
from robust_fairness.numbers.estimate import LEVEL, of_rate, over_domains
from robust_fairness.numbers.verdicts import concluded, holm
from robust_fairness.report import methods
from robust_fairness.report.ranks import compared
from robust_fairness.report.results import FACET, UNSHIFTED, Results, computed_once
from robust_fairness.report.statistics import fitted_line, with_intervals, within
from robust_fairness.report.views import published

MEASURES = (*methods.MEASURES, "roc_auc", "balanced_accuracy")
KEYS = ["data", "attribute", "metric"]
TRAINING = [*KEYS, "method", "trained_on"]
FEWEST_METHODS = 3  # of a line that one of them is compared with
UNTIL = "trained_until"  # facet of designs with ordered domains: the last one trained on
COLUMNS = 3  # that are shown of every domain
UNKNOWN = "inconclusive"
POINTS = 20  # of a curve
DASHES = {"no change": "dot", "fitted line": "solid"}
END = 0.2  # of the colours of changes, the same in all panels and runs
WORSE_TO_BETTER = ["#b85a00", "#f0ac6c", "#f4f4f4", "#7fb2dc", "#1f66a8"]
# Rates of single groups in the tidy table, and what their difference is called.
DIFFERENCES = {
    "accuracy_by_group": "accuracy_difference",
    "selection_rate_by_group": "selection_rate_difference",
    "true_positive_rate_by_group": "true_positive_rate_difference",
    "false_positive_rate_by_group": "false_positive_rate_difference",
}
REPLICA = [
    "dataset", "method", "trial", "seed", "shift", "severity", "domain", "attribute", "metric",
]  # fmt: skip


@computed_once
def matrix(results: Results) -> pd.DataFrame:
    """Every measure by the domains trained on and the domain tested on.

    Columns data, attribute, metric, method, trained_on, tested_on, ours (mean over seeds), std,
    seeds, n (test rows), at_home (mean on test rows of the domains trained on), n_at_home, change.
    """
    alone = results.by_domain
    if alone.empty:
        return pd.DataFrame()
    overall = results.metrics[results.metrics["dataset"].isin(alone["dataset"])]
    overall = overall[overall["shift"] == UNSHIFTED]
    other = alone[alone["shift"] != UNSHIFTED]
    keys = ["dataset", "method", "trial", "seed", "attribute", "metric"]
    parts = []
    for name in MEASURES:
        home = compared(overall, name).rename(columns={"value": "at_home", "n": "n_at_home"})
        both = compared(other, name).merge(home[[*keys, "at_home", "n_at_home"]], on=keys)
        parts.append(both.assign(change=both["value"] - both["at_home"]))
    rows = pd.concat(parts).rename(columns={"domain": "tested_on"})
    rows = results.with_facets(rows, ["data", "trained_on"], {"data": "dataset"})
    if rows.empty:
        return rows
    return rows.groupby([*TRAINING, "tested_on"], as_index=False, sort=False).agg(
        ours=("value", "mean"), std=("value", "std"), seeds=("value", "count"),
        n=("n", "median"), at_home=("at_home", "mean"), n_at_home=("n_at_home", "median"),
        change=("change", "mean"),
    )  # fmt: skip


def diagnoses(results: Results) -> pd.DataFrame:
    """What the changes of the first seed are due to, in every domain, the largest change first."""
    rows = results.with_facets(results.diagnosis, ["data", "trained_on"], {"data": "dataset"})
    return rows.sort_values("change", key=abs, ascending=False, ignore_index=True)


def gaps(results: Results) -> pd.DataFrame:
    """Signed differences between groups and their change, and gaps at equal numbers of rows.

    ``change`` is that of the signed difference, second group minus first, which small test sets do
    not bias, tested by ``over_pairs``. ``gap_at_home``
    and ``gap_away`` are absolute values as test sets of the smaller size would give them, see
    ``at_equal_sizes``, ``gap_change`` their difference; ``plain_change`` is that of the
    absolute values as they are. ``n_at_home`` and ``n_away`` are the rows of the smaller group
    (of the class that the rate is of), the median over domains.
    """
    cells, by = _differences(results), [*KEYS, "method", "groups"]
    if cells.empty:
        return cells
    tests = over_pairs(cells, by, "change", ("falls", "rises"))
    means = cells.groupby(by, sort=False).agg(
        at_home=("value_home", "mean"), away=("value", "mean"),
        gap_at_home=("gap_at_home", "mean"), gap_away=("gap_away", "mean"),
        plain_change=("plain_change", "mean"), n_at_home=("n_home", "median"),
        n_away=("n", "median"),
    )  # fmt: skip
    grown = over_pairs(cells, by, "gap_change", ("falls", "rises"))
    grown = grown[[*by, "gap_change", "low", "high"]]
    table = tests.merge(grown, on=by, suffixes=("", "_gap")).merge(means.reset_index(), on=by)
    return table.rename(columns={"low_gap": "gap_low", "high_gap": "gap_high"})


def _differences(results: Results) -> pd.DataFrame:
    """Signed differences and gaps at home and in each other domain, means over seeds."""
    if results.by_domain.empty:
        return pd.DataFrame()
    rows = signed_differences(pd.concat([results.metrics, results.by_domain]))
    home = rows[(rows["shift"] == UNSHIFTED) & (rows["domain"] == "")]
    keys = ["dataset", "method", "trial", "seed", "attribute", "metric", "groups"]
    values = ["value", "variance", "n"]
    both = rows[rows["shift"] != UNSHIFTED].merge(
        home[[*keys, *values]], on=keys, suffixes=("", "_home")
    )
    if both.empty:
        return both
    variances = both["variance_home"].to_numpy(), both["variance"].to_numpy()
    first, second = at_equal_sizes(
        both["value_home"].to_numpy(), both["value"].to_numpy(), variances
    )
    both = both.assign(
        tested_on=both["domain"],
        change=both["value"] - both["value_home"],
        gap_at_home=first,
        gap_away=second,
        gap_change=second - first,
        plain_change=both["value"].abs() - both["value_home"].abs(),
    )
    both = results.with_facets(both, ["data", "trained_on"], {"data": "dataset"})
    numbers = [
        "value_home", "value", "n_home", "n", "change", "gap_at_home", "gap_away",
        "gap_change", "plain_change",
    ]  # fmt: skip
    keys = [*TRAINING, "groups", "tested_on"]
    return both.groupby(keys, as_index=False, sort=False)[numbers].mean()


def robustness(results: Results) -> pd.DataFrame:
    """Effective robustness: scores out of distribution minus what the other methods' line predicts.

    The line is fitted on all other methods, with one slope and an intercept for each pair of
    domains, on the probit scale for proportions and on the raw one for gaps; best first. Two other
    methods at least are needed.
    """
    rows, parts = matrix(results), []
    if rows.empty:
        return rows
    rows = rows.dropna(subset=["ours", "at_home"])
    for names, part in rows.groupby(KEYS, sort=False):
        probit = find_metric(str(names[2])).better == "higher"
        pairs = part.groupby(["trained_on", "tested_on"], sort=False).ngroup().to_numpy()
        x, y = part["at_home"].to_numpy(), part["ours"].to_numpy()
        if probit:
            x, y = within(x, part["n_at_home"].to_numpy()), within(y, part["n"].to_numpy())
        for method in part["method"].unique():
            its = (part["method"] == method).to_numpy()
            kept = its & np.isin(pairs, pairs[~its])
            if not kept.any() or part["method"][~its].nunique() < FEWEST_METHODS - 1:
                continue
            line = fitted_line(x[~its], y[~its], pairs[~its], probit)
            above = part["ours"][kept] - line.at(x[kept], pairs[kept])
            better = above if probit else -above
            parts.append(
                part[kept].assign(effective_robustness=above, better=better, slope=line.slope)
            )
    if not parts:
        return pd.DataFrame()
    cells, by = pd.concat(parts), [*KEYS, "method"]
    means = cells.groupby(by, sort=False).agg(
        slope=("slope", "first"), at_home=("at_home", "mean"), away=("ours", "mean"),
        better=("better", "mean"),
    )  # fmt: skip
    tests = over_pairs(cells, by, "effective_robustness", ("below", "above"))
    tests = tests.merge(means.reset_index(), on=by)
    ascending = [True] * len(KEYS) + [False]
    tests = tests.sort_values([*KEYS, "better"], ascending=ascending, kind="stable")
    return tests.drop(columns="better")


def curves(results: Results) -> pd.DataFrame:
    """Scores over ordered domains: the matrix with the distance from the last one trained on.

    ``trained_until`` is that domain, ``lag`` how many domains later the test rows are.
    """
    cells, column = results.cells, FACET + UNTIL
    rows = matrix(results)
    if rows.empty or column not in cells:
        return pd.DataFrame()
    ordered = cells[cells[column].notna() & (cells[column] != "")]
    starts = ordered.rename(
        columns={FACET + "data": "data", FACET + "trained_on": "trained_on", column: UNTIL}
    )[["data", "trained_on", UNTIL]].drop_duplicates()
    started = rows.merge(starts, on=["data", "trained_on"])
    if started.empty:
        return pd.DataFrame()
    parts = []
    for data, part in started.groupby("data", sort=False):
        # every domain but the last one is the end of a training
        names = dict.fromkeys([*starts[UNTIL][starts["data"] == data], *part["tested_on"]])
        place = {name: number for number, name in enumerate(names)}
        lag = part["tested_on"].map(place) - part[UNTIL].map(place)
        parts.append(part.assign(lag=lag))
    return pd.concat(parts).sort_values(
        [*KEYS, "method", UNTIL, "lag"], kind="stable", ignore_index=True
    )


def shares(results: Results) -> pd.DataFrame:
    """Label shift and group shift: the largest change of a share first, tested (Holm)."""
    rows = results.with_facets(results.shares, ["data", "trained_on"], {"data": "dataset"})
    p_holm = holm(rows["p"])
    words = np.where(rows["change"] < 0, "falls", "rises")
    rows = rows.assign(p_holm=p_holm, says=np.where(p_holm < LEVEL, words, UNKNOWN))
    return rows.sort_values("change", key=abs, ascending=False, ignore_index=True)


def domain_columns(results: Results) -> pd.DataFrame:
    """How far each domain differs in all columns, and the columns that tell it best."""
    # a domain is compared once for all methods, whose facets of domains are the same
    methods = results.cells.drop_duplicates("dataset").set_index("dataset")["method"]
    rows = results.domain_columns.assign(method=results.domain_columns["dataset"].map(methods))
    rows = results.with_facets(rows, ["data", "trained_on"], {"data": "dataset"})
    rows = rows.assign(column=rows["column"].replace("", "all columns"))
    place = rows.groupby(["dataset", "domain"], sort=False).cumcount()
    return rows[(place <= COLUMNS) | rows["names_domain"]].reset_index(drop=True)


def found_regions(results: Results) -> pd.DataFrame:
    """Where in the features a score, or a gap, changes: by the end of the interval nearer to 0."""
    rows = results.with_facets(results.regions, ["data", "trained_on"], {"data": "dataset"})
    known = (rows["low"] > 0) | (rows["high"] < 0)
    direction = np.where(rows["change"] < 0, "falls", "rises")
    rows = rows.assign(
        says=np.where(known, direction, UNKNOWN), least=rows[["low", "high"]].abs().min(axis=1)
    )
    rows["least"] = rows["least"].where(known, -rows["least"])
    return rows.sort_values("least", ascending=False, ignore_index=True)


def tableshift(results: Results) -> pd.DataFrame:
    """Accuracies that TableShift published beside ours, in and out of distribution.

    Datasets whose facet ``benchmark`` names the published ones are shown. Published intervals are
    those of Clopper and Pearson for one model, ours Student's over seeds.
    """
    theirs = published("tableshift")
    both = pd.concat([results.metrics[results.metrics["domain"] == ""], results.by_domain])
    both = both[(both["metric"] == "accuracy") & (both["group"] == "")]
    both = results.with_facets(
        both[both["shift"].isin(theirs["shift"])], ["benchmark", "algorithm"]
    )
    known = both["benchmark"].isin(theirs["dataset"])
    is_single = (both["shift"] == UNSHIFTED) & (both["domain"] != "")
    keys = ["benchmark", "dataset", "method", "algorithm", "shift"]
    ours = with_intervals(both[known & ~is_single].dropna(subset="value"), "value", keys)
    renamed = theirs.rename(
        columns={
            "dataset": "benchmark", "method": "algorithm", "field": "estimator",
            "value": "published", "low": "published low", "high": "published high",
        }
    )  # fmt: skip
    joined = ours.merge(renamed.drop(columns=["view", "metric", "note"]), on=keys[:1] + keys[3:])
    return joined.assign(
        overlap=(joined["low"] <= joined["published high"])
        & (joined["published low"] <= joined["high"])
    ).drop(columns=["benchmark", "algorithm"])


def over_pairs(
    cells: pd.DataFrame, by: Sequence[str], value: str, words: tuple[str, str]
) -> pd.DataFrame:
    """Means over sources and targets of a column, tested as one family; a row per group of ``by``.

    Returns:
        ``by``, says (one of the words for below and above 0, or ``UNKNOWN``), the column, and of
        ``numbers.verdicts.concluded`` low, high, domains (targets), p, p_holm and detectable.
    """
    place = ["trained_on", "tested_on"]
    wide = cells.pivot_table(index=list(by), columns=place, values=value, sort=False)
    values, (sources, targets) = wide.to_numpy(), map(wide.columns.get_level_values, (0, 1))
    domains = np.array([targets[np.isfinite(row)].nunique() for row in values])
    tests = concluded(over_domains(values, sources, targets), domains).set_index(wide.index)
    says = np.select([tests["sign"] < 0, tests["sign"] > 0], words, UNKNOWN)
    tests = tests.rename(columns={"value": value, "n": "domains"}).assign(says=says)
    shown = ["says", value, "low", "high", "domains", "p", "p_holm", "detectable"]
    return tests[shown].reset_index()


def at_equal_sizes(
    first: np.ndarray, second: np.ndarray, variances: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Absolute values of two differences of rates, as test sets of one size would give them.

    An absolute value of a noisy number is too large on average, the more so the noisier it is: a
    plug-in gap falls when it is computed from more rows. Here the difference of the larger test set
    gets the mean of its absolute value with as much noise added as the smaller one has more, which
    is what random subsets of the size of the smaller one would give on average. If the differences
    are equal in truth, both values have the same mean.

    Args:
        first: differences of two rates ``[n]``.
        second: the differences to compare them with ``[n]``.
        variances: sampling variances of both.
    """
    expected = []
    for mean, variance in zip((first, second), variances, strict=True):
        # the mean of the absolute value of a normal variable; without deviation that of its mean
        deviation = np.sqrt(np.maximum(*variances) - variance)
        safe = np.where(deviation > 0, deviation, 1)
        ratio = mean / safe
        density = np.exp(-(ratio**2) / 2) / np.sqrt(2 * np.pi)
        folded = 2 * safe * density + mean * (1 - 2 * special.ndtr(-ratio))
        expected.append(np.where(deviation > 0, folded, np.abs(mean)))
    return expected[0], expected[1]


def signed_differences(metrics: pd.DataFrame) -> pd.DataFrame:
    """Rates of each further group minus that of the first: columns ``REPLICA``, groups, value, ...

    ``value`` is the difference, ``variance`` its binomial sampling variance, ``n`` the rows of the
    smaller group. Rows are those that methods are compared by: of one trial and one attribute.

    Args:
        metrics: rows of the tidy table, with those of single groups.
    """
    result = []
    for metric, name in DIFFERENCES.items():
        rates = metrics[(metrics["metric"] == metric) & (metrics["group"] != "")]
        # the group as a column of its own: scores of all rows are compared
        rows = compared(rates.assign(of=rates["group"], group=""), metric).assign(metric=name)
        rows = rows[rows["n"] > 1][[*REPLICA, "of", "value", "n"]]
        rows = rows.assign(variance=of_rate(rows["value"], rows["n"]))
        first = rows.groupby("dataset", sort=False)["of"].transform("first")
        is_first = rows["of"] == first
        both = rows[~is_first].merge(rows[is_first], on=REPLICA, suffixes=("", "_first"))
        result.append(
            both[REPLICA].assign(
                groups=both["of"] + " minus " + both["of_first"],
                value=both["value"] - both["value_first"],
                variance=both["variance"] + both["variance_first"],
                n=both[["n", "n_first"]].min(axis=1),
            )
        )
    return pd.concat(result, ignore_index=True)


def _panels(rows: pd.DataFrame) -> Iterator[tuple[int, str, str, pd.DataFrame]]:
    """Number, title and rows of every measure of every dataset."""
    for place, (names, part) in enumerate(rows.groupby(KEYS, sort=False)):
        data, attribute, metric = map(str, names)
        yield place, metric, f"{data} {attribute}".rstrip() + f"<br>{metric}", part


def draw_matrix(rows: pd.DataFrame) -> go.Figure:
    """Heat maps of the change, by source and target, of the first method of each measure."""
    first = rows[rows["method"] == rows["method"].iloc[0]]
    panels, traces = [], []
    for place, metric, title, part in _panels(first):
        table = part.pivot_table(
            index="trained_on", columns="tested_on", values="change", sort=False
        )
        panels.append(Panel(title, "tested on", "trained on"))
        trace: Trace = {
            "type": "heatmap",
            "x": list(table.columns),
            "y": list(table.index),
            "z": table.to_numpy().round(4).tolist(),
            "zmin": -END,
            "zmax": END,
            "colorscale": [[k / 4, item] for k, item in enumerate(WORSE_TO_BETTER)],
            "reversescale": find_metric(metric).better != "higher",
            "showscale": False,
            "text": [[signed(item) for item in row] for row in table.to_numpy()],
            "texttemplate": "%{text}",
            "hovertemplate": "%{y} → %{x}: %{z:+.3f}<extra></extra>",
        }
        traces.append({**in_panel(trace, place), "showlegend": False})
    title = f"Change in other domains, percentage points, {rows['method'].iloc[0]}"
    return panelled(title, panels, traces, columns=1)  # names of several domains are long


def draw_scatter(rows: pd.DataFrame) -> go.Figure:
    """Out of distribution against in distribution, a point per training, domain and method.

    Dotted: no change; solid: the line through all points, on the probit scale for proportions.
    """
    panels, traces = [], []
    looks = {name: style(number) for number, name in enumerate(rows["method"].unique())}
    for place, metric, title, part in _panels(rows):
        panels.append(Panel(title, "in distribution", "out of distribution"))
        known = part[["at_home", "ours"]].to_numpy()
        ends = np.array([np.nanmin(known), np.nanmax(known)])
        lines = {"no change": (ends, ends)}
        both, probit = (
            part.dropna(subset=["at_home", "ours"]),
            find_metric(metric).better == "higher",
        )
        home, away = both["at_home"].to_numpy(), both["ours"].to_numpy()
        if probit:
            home = within(home, both["n_at_home"].to_numpy())
            away = within(away, both["n"].to_numpy())
        fit = fitted_line(home, away, np.zeros(len(both), np.int64), probit)
        if np.isfinite(fit.slope):  # scores at home vary
            x = np.linspace(home.min(), home.max(), POINTS)
            lines["fitted line"] = (x, fit.at(x, np.zeros(POINTS, np.int64)))
        for name, (x, y) in lines.items():
            line = {"color": GREY, "dash": DASHES[name]}
            traces.append((place, name, {"x": x, "y": y, "mode": "lines", "line": line}))
        for method, points in part.groupby("method", sort=False):
            where = points["trained_on"] + " → " + points["tested_on"]
            marks = {"x": points["at_home"], "y": points["ours"], "text": where, "mode": "markers"}
            traces.append((place, str(method), marks | {"marker": looks[method]}))
    named = [
        in_panel(trace | {"name": name, "legendgroup": name}, place)
        for place, name, trace in traces
    ]
    return panelled("In and out of distribution", panels, named, WRAP)


def draw_curves(rows: pd.DataFrame) -> go.Figure:
    """A curve per training and method, from its last domain trained on to those that follow."""
    ends = rows.drop_duplicates([*KEYS, "method", "trained_until"])
    ends = ends.assign(tested_on=ends["trained_until"], ours=ends["at_home"], lag=0)
    order = list(dict.fromkeys([*rows["trained_until"], *rows["tested_on"]]))
    figure = drawn(
        pd.concat([ends, rows]), "Over ordered domains", colour="method", panel=KEYS, sort="lag",
        x="tested_on", line_group="trained_until",
    )  # fmt: skip
    return figure.update_xaxes(type="category", categoryorder="array", categoryarray=order)
