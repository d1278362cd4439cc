"""View of unprocessing: does post-processing of the best model contain every method, anywhere?"""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from robust_fairness.rendering.figures import drawn
from robust_fairness.reporting.results import Results

PLACE = ["dataset", "domain", "away"]
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
    rows = rows[(rows["domain"] == "") | rows["away"]]
    keys = [*PLACE, "method", "trial", "tolerance"]
    means = rows.groupby(keys, dropna=False, as_index=False, sort=False).agg(
        gap=("gap", "mean"),
        accuracy=("accuracy", "mean"),
        validation=("validation_accuracy", "mean"),
        seeds=("seed", "nunique"),
    )
    result = [_beside(part) for _, part in means.groupby("dataset", sort=False)]
    return pd.concat(result, ignore_index=True)


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
    keys = ["dataset", "away", "method", "trial", "tolerance"]
    points = rows.groupby(keys, dropna=False, as_index=False, sort=False)[POINT].mean()
    points = points.dropna(subset=POINT)  # of domains in which fewer than two groups have a class
    names = {True: "other domains", False: "in distribution"}
    series = points["method"].where(points["tolerance"].isna(), "frontier")
    points = points.assign(place=points["away"].map(names), series=series)
    return drawn(
        points.sort_values("gap"), "Every method beside the post-processed best model",
        x="gap", y="accuracy", colour="series", panel=["dataset", "place"], line_group="trial",
        hover_data=["trial", "tolerance"],
    )  # fmt: skip
