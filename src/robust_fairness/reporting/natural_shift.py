"""Views of natural shift: what changes where a model is used in domains it was not trained on."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.metrics import find_metric
from robust_fairness.metrics.permutation import holm
from robust_fairness.rendering.figures import GREY, Panel, Trace, in_panel, panelled, style
from robust_fairness.reporting.figures import FAIRNESS, QUALITY
from robust_fairness.reporting.ranks import compared
from robust_fairness.reporting.results import UNSHIFTED, Results
from robust_fairness.reporting.statistics import (
    detectable,
    mean_interval,
    over_domains,
    sign_flip_p,
)
from robust_fairness.reporting.views import Section, View

MEASURES = (
    *QUALITY, *FAIRNESS, "demographic_parity_difference", "equalized_odds_difference", "roc_auc",
    "balanced_accuracy",
)  # fmt: skip
KEYS = ["data", "attribute", "metric"]
LEVEL = 0.05
TRAINING = [*KEYS, "method", "trained_on"]


def matrix(results: Results) -> pd.DataFrame:
    """Every measure by the domains trained on and the domain tested on.

    Columns data, attribute, metric, method, trained_on, tested_on, ours (mean over seeds), std,
    seeds, n (test rows), at_home (mean on test rows of the domains trained on), change.
    """
    rows = _outside(results)
    if rows.empty:
        return rows
    found = rows.groupby([*TRAINING, "tested_on"], as_index=False, sort=False).agg(
        ours=("value", "mean"), std=("value", "std"), seeds=("value", "count"),
        n=("n", "median"), at_home=("at_home", "mean"), change=("change", "mean"),
    )  # fmt: skip
    return found


def changes(results: Results) -> pd.DataFrame:
    """How each measure changes between domains, by method: the answer, one line each.

    ``change`` is out of distribution minus in distribution, the mean over sources and targets,
    with an interval that resamples domains. ``p`` is that of a sign-flip test over the target
    domains, ``p_holm`` adjusted for all lines; ``smallest_p`` is the least that this number of
    domains can give, ``detectable`` the change that a paired t-test would find in 80 % of cases.
    """
    found, cells = [], matrix(results)
    if cells.empty:
        return cells
    for names, rows in cells.groupby([*KEYS, "method"], sort=False):
        table = rows.pivot_table(index="trained_on", columns="tested_on", values="change")
        interval = over_domains(table)
        targets = table.mean()
        worse = str((targets if better_higher(names[2]) else -targets).idxmin())
        found.append(
            {
                **dict(zip([*KEYS, "method"], names, strict=True)),
                "at_home": rows["at_home"].mean(),
                "elsewhere": rows["ours"].mean(),
                "change": interval.mean,
                "low": interval.low,
                "high": interval.high,
                "mean_absolute": float(np.nanmean(np.abs(table.to_numpy()))),
                "worst_domain": worse,
                "worst_change": targets[worse],
                "domains": interval.n,
                "p": sign_flip_p(targets.to_numpy()),
                "smallest_p": 2.0 ** (1 - interval.n),
                "detectable": detectable(targets.std(), interval.n) if interval.n > 1 else np.nan,
            }
        )
    answer = _concluded(pd.DataFrame(found), "change", ("falls", "rises"))
    first = [*KEYS, "method", "says", "change", "low", "high"]
    return answer[[*first, *answer.columns.difference(first, sort=False)]]


def against_erm(results: Results) -> pd.DataFrame:
    """Which methods keep a measure better than ``erm``: their changes, paired over domains.

    ``difference`` is the mean over target domains of a method's value minus that of ``erm``, on
    the same rows and seeds, with Student's interval over domains; best first.
    """
    rows, found = matrix(results), []
    keys = [*KEYS, "trained_on", "tested_on"]
    if rows.empty or not {"erm"} < set(rows["method"]):
        return pd.DataFrame()
    plain = rows[rows["method"] == "erm"][[*keys, "ours", "change"]]
    both = rows[rows["method"] != "erm"].merge(plain, on=keys, suffixes=("", "_erm"))
    both = both.assign(
        elsewhere=both["ours"] - both["ours_erm"], kept=both["change"] - both["change_erm"]
    )
    for names, part in both.groupby([*KEYS, "method"], sort=False):
        targets = part.groupby("tested_on", sort=False)[["elsewhere", "kept"]].mean()
        interval = mean_interval(targets["elsewhere"].to_numpy())
        found.append(
            {
                **dict(zip([*KEYS, "method"], names, strict=True)),
                "difference": interval.mean, "low": interval.low, "high": interval.high,
                "change_minus_erm": targets["kept"].mean(), "domains": interval.n,
                "p": sign_flip_p(targets["elsewhere"].to_numpy()),
            }
        )  # fmt: skip
    tests = pd.DataFrame(found)
    higher = tests["metric"].map(better_higher).to_numpy()
    order = tests["difference"].where(~higher, -tests["difference"])
    tests = _concluded(tests.assign(order=order), "difference", ("lower", "higher"))
    return tests.sort_values([*KEYS, "order"], kind="stable").drop(columns="order")


def diagnoses(results: Results) -> pd.DataFrame:
    """What the changes of the first seed are due to, in every domain, the largest change first."""
    rows = results.with_facets(results.diagnosis, ["data", "trained_on"], {"data": "dataset"})
    rows = rows.assign(change=rows["elsewhere"] - rows["at_home"])
    parts = ["due_to_x", "due_to_y_given_x", "due_to_mix"]
    shown = [
        "data", "trained_on", "domain", "method", "attribute", "metric", "at_home", "elsewhere",
        "change", *parts, "auc", "effective_home", "effective_away", "little_overlap",
    ]  # fmt: skip
    return rows.sort_values("change", key=abs, ascending=False, ignore_index=True)[shown]


def _outside(results: Results) -> pd.DataFrame:
    """Scores of rows of other domains with the one at home, of one trial and one attribute."""
    alone = results.by_domain
    if alone.empty:
        return pd.DataFrame()
    overall = results.metrics[results.metrics["dataset"].isin(alone["dataset"])]
    overall = overall[overall["shift"] == UNSHIFTED]
    other = alone[alone["shift"] != UNSHIFTED]
    keys = ["dataset", "method", "trial", "seed", "attribute", "metric"]
    found = []
    for name in MEASURES:
        home = compared(overall, name).rename(columns={"value": "at_home"})
        both = compared(other, name).merge(home[[*keys, "at_home"]], on=keys)
        found.append(both.assign(change=both["value"] - both["at_home"]))
    rows = pd.concat(found).rename(columns={"domain": "tested_on"})
    return results.with_facets(rows, ["data", "trained_on"], {"data": "dataset"})


def better_higher(metric: object) -> bool:
    """Whether higher values of a metric are better."""
    return find_metric(str(metric)).better == "higher"


def _concluded(tests: pd.DataFrame, effect: str, words: tuple[str, str]) -> pd.DataFrame:
    """Tests with p-values adjusted for their number (Holm), and what each one says."""
    known = tests["p"].dropna()
    adjusted = pd.Series(holm(known.tolist()), index=known.index).reindex(tests.index)
    direction = np.where(tests[effect] < 0, *words)
    return tests.assign(p_holm=adjusted, says=np.where(adjusted < LEVEL, direction, "cannot tell"))


def draw_matrix(rows: pd.DataFrame) -> go.Figure:
    """Heat maps of the change, by source and target, of the first method of each measure."""
    first = rows[rows["method"] == rows["method"].iloc[0]]
    panels, traces = [], []
    for place, ((data, attribute, metric), part) in enumerate(first.groupby(KEYS, sort=False)):
        table = part.pivot_table(
            index="trained_on", columns="tested_on", values="change", sort=False
        )
        largest = float(np.nanmax(np.abs(table.to_numpy()))) or 1.0
        higher = better_higher(metric)
        title = " ".join(filter(None, map(str, [data, metric, attribute])))
        panels.append(Panel(f"{title}: change", "tested on", "trained on"))
        trace: Trace = {
            "type": "heatmap",
            "x": list(table.columns),
            "y": list(table.index),
            "z": table.to_numpy().round(4).tolist(),
            "zmin": -largest,
            "zmax": largest,
            "colorscale": "RdBu",
            "reversescale": not higher,  # red is worse
            "showscale": False,
            "texttemplate": "%{z:+.2f}",
            "hovertemplate": "%{y} → %{x}: %{z:+.3f}<extra></extra>",
        }
        traces.append(in_panel(trace, place))
    title = f"Change in other domains, {rows['method'].iloc[0]}"
    return panelled(title, panels, traces, columns=1)  # names of several domains are long


def draw_scatter(rows: pd.DataFrame) -> go.Figure:
    """Out of distribution against in distribution, a point per training, domain and method."""
    panels, traces, methods = [], [], list(rows["method"].unique())
    for place, ((data, attribute, metric), part) in enumerate(rows.groupby(KEYS, sort=False)):
        title = " ".join(filter(None, map(str, [data, metric, attribute])))
        panels.append(Panel(title, "in distribution", "out of distribution"))
        ends = [part[["at_home", "ours"]].min().min(), part[["at_home", "ours"]].max().max()]
        equal: Trace = {
            "type": "scatter", "mode": "lines", "x": ends, "y": ends, "showlegend": False,
            "line": {"color": GREY, "dash": "dot"}, "hoverinfo": "skip",
        }  # fmt: skip
        traces.append(in_panel(equal, place))
        for number, method in enumerate(methods):
            own = part[part["method"] == method]
            points: Trace = {
                "type": "scatter", "mode": "markers", "name": method, "legendgroup": method,
                "showlegend": place == 0, "x": own["at_home"].round(4).tolist(),
                "y": own["ours"].round(4).tolist(),
                "text": (own["trained_on"] + " → " + own["tested_on"]).tolist(),
                "marker": style(number),
            }  # fmt: skip
            traces.append(in_panel(points, place))
    return panelled("In and out of distribution", panels, traces)


VIEWS = (
    View("natural_changes", changes),
    View("natural_against_erm", against_erm),
    View("natural_matrix", matrix, draw_matrix),
    View("natural_scatter", matrix, draw_scatter),
    View("natural_diagnosis", diagnoses, needs=("diagnosis",)),
)
SECTION = Section("Natural shift", VIEWS)
