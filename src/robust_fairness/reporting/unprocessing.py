"""View of unprocessing: does post-processing of the best model contain every method, anywhere?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.rendering.figures import GREY, Panel, Trace, in_panel, panelled, style
from robust_fairness.reporting.results import Results

PLACE = ["dataset", "domain", "elsewhere"]
POINT = ["gap", "accuracy"]
BEST = "frontier of"


def unprocessing(results: Results) -> pd.DataFrame:
    """Every trial as trained beside the frontier of the dataset, and the points of the frontier.

    The frontier is that of the trial with the highest accuracy on validation rows when it is
    unprocessed (mean over seeds), post-processed at every tolerance. ``difference`` is the accuracy
    of a trial minus that of the frontier at its gap, missing where the frontier has no gap as
    small.
    """
    rows = results.frontier
    rows = rows[(rows["domain"] == "") | rows["elsewhere"]]
    keys = [*PLACE, "method", "trial", "tolerance"]
    means = rows.groupby(keys, dropna=False, as_index=False, sort=False).agg(
        gap=("gap", "mean"),
        accuracy=("accuracy", "mean"),
        validation=("validation_accuracy", "mean"),
        seeds=("seed", "nunique"),
    )
    result = [_beside(part) for _, part in means.groupby("dataset", sort=False)]
    columns = [*PLACE[:2], "elsewhere", BEST, "method", "trial", "tolerance", *POINT]
    return pd.concat(result, ignore_index=True)[[*columns, "difference", "seeds"]]


def _beside(means: pd.DataFrame) -> pd.DataFrame:
    """The trials of a dataset as trained with their difference, and the frontier."""
    best = means.iloc[int(means["validation"].to_numpy().argmax())]
    is_best = (means["method"] == best["method"]) & (means["trial"] == best["trial"])
    frontier = means[is_best & means["tolerance"].notna()].dropna(subset=["gap"])
    plain = means[means["tolerance"].isna()].copy()
    plain["difference"] = np.nan
    for place, item in plain.groupby("domain", sort=False):
        curve = frontier[frontier["domain"] == place].sort_values(POINT)
        if len(curve):
            reached = np.interp(item["gap"], curve["gap"], curve["accuracy"].cummax(), left=np.nan)
            plain.loc[item.index, "difference"] = item["accuracy"] - reached
    both = pd.concat([plain, frontier], ignore_index=True)
    return both.assign(**{BEST: best["method"]})


def draw(rows: pd.DataFrame) -> go.Figure:
    """Accuracy against the gap in distribution and, on average, in the other domains."""
    keys = ["dataset", "elsewhere", "method", "trial", "tolerance"]
    points = rows.groupby(keys, dropna=False, as_index=False, sort=False)[POINT].mean()
    points = points.dropna(subset=POINT)  # of domains in which fewer than two groups have a class
    numbers = {name: number for number, name in enumerate(points["method"].unique())}
    panels, traces = [], []
    for place, ((dataset, elsewhere), part) in enumerate(
        points.groupby(["dataset", "elsewhere"], sort=False)
    ):
        where = "other domains" if elsewhere else "in distribution"
        panels.append(Panel(f"{dataset}: {where}", "equalised-odds difference", "accuracy"))
        curve = part[part["tolerance"].notna()].sort_values("gap")
        line: Trace = {"line": {"color": GREY}, "name": "frontier", "mode": "lines+markers"}
        line["text"] = [f"tolerance {item:g}" for item in curve["tolerance"]]
        traces.append(in_panel({"x": curve["gap"], "y": curve["accuracy"], **line}, place))
        for method, item in part[part["tolerance"].isna()].groupby("method", sort=False):
            marker: Trace = {"marker": {**style(numbers[method]), "size": 11}, "mode": "markers"}
            named = {"name": method, "legendgroup": method, "text": item["trial"]}
            traces.append(
                in_panel({"x": item["gap"], "y": item["accuracy"], **marker, **named}, place)
            )
    return panelled("Every method beside the post-processed best model", panels, traces)
