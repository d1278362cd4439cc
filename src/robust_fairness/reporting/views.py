"""Views: one table of scores, seen as each paper's tables and figures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pandas as pd
import plotly.graph_objects as go

from robust_fairness.core.intervals import wilson_interval
from robust_fairness.core.tables import (
    CELLS,
    CHOICES,
    DISTANCES,
    GENERATOR_QUALITY,
    PLANES,
    SPLITS,
    TRIALS,
    table,
)
from robust_fairness.reporting.statistics import distinct

PUBLISHED = {
    "view": "str", "dataset": "str", "method": "str", "trial": "str", "shift": "str",
    "severity": "float64", "attribute": "str", "group": "str", "metric": "str",
    "value": "float64", "std": "float64", "note": "str", "notion": "str", "weight": "float64",
}  # fmt: skip
NUMBERS = [name for name, kind in PUBLISHED.items() if kind == "float64"]
# Tables beside the metrics, which few runs have.
FURTHER = {
    "cells": CELLS,
    "choices": CHOICES,
    "distances": DISTANCES,
    "generator_quality": GENERATOR_QUALITY,
    "planes": PLANES,
    "splits": SPLITS,
    "trials": TRIALS,
}
PLACE = ["dataset", "method", "trial", "shift", "severity", "attribute", "group", "metric"]


@dataclass(frozen=True)
class View:
    """A table or figure of a paper.

    Attributes:
        id: short name, for links.
        title: what the paper calls it and what it shows.
        make: metrics, and the further tables of ``needs`` by name, to the rows shown; none where
            nothing of it was run.
        draw: these rows to a figure, for what the paper shows as one.
        needs: names of further tables, of ``FURTHER``.
        note: what the paper says of it in words, and where.
    """

    id: str
    title: str
    make: Callable[..., pd.DataFrame]
    draw: Callable[[pd.DataFrame], go.Figure] | None = None
    needs: tuple[str, ...] = ()
    note: str = ""

    def rows(
        self, metrics: pd.DataFrame, further: Mapping[str, pd.DataFrame] | None = None
    ) -> pd.DataFrame:
        """The rows shown; a further table that is not there has no rows."""
        given = further or {}
        needed = {name: given.get(name, table(FURTHER[name], [])) for name in self.needs}
        return self.make(metrics, **needed)


@cache
def published(paper: str) -> pd.DataFrame:
    """The numbers that a paper printed, as fractions; columns of ``PUBLISHED``."""
    path = files("robust_fairness.reporting") / "published" / f"{paper}.csv"
    with path.open() as file:
        missing = {name: [""] for name in NUMBERS}
        return pd.read_csv(file, dtype=PUBLISHED, keep_default_na=False, na_values=missing)


def beside_published(paper: str, view: str, metrics: pd.DataFrame) -> pd.DataFrame:
    """The published numbers of a view with ours beside them: mean, deviation, number of seeds.

    Cells that were not run have 0 seeds. Nothing is shown where no cell of the view was run.
    """
    theirs = published(paper)
    return beside(theirs[theirs["view"] == view].drop(columns="view"), metrics)


def beside(theirs: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Published numbers, of any columns but ``view``, with ours as in ``beside_published``."""
    ours = over_seeds(metrics[metrics["metric"].isin(theirs["metric"])], PLACE)
    joined = theirs.merge(ours, on=PLACE, how="left")
    joined["seeds"] = joined["seeds"].fillna(0).astype(int)
    if not joined["seeds"].any():
        return joined.iloc[:0]
    return joined.rename(columns={"value": "published", "std": "published deviation"})[
        [*PLACE, "published", "published deviation", "ours", "deviation", "seeds", "note"]
    ]


def over_seeds(metrics: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Mean, deviation and number of seeds by ``keys``: columns ours, deviation, seeds."""
    return (
        distinct(metrics)
        .groupby(list(keys), as_index=False, sort=False)
        .agg(ours=("value", "mean"), deviation=("value", "std"), seeds=("value", "count"))
    )


def cells(metrics: pd.DataFrame, dataset: str, attribute: str) -> pd.DataFrame:
    """Accuracy and rows of every value and class of an attribute, with Wilson's interval.

    The interval is of the rows of a single replica, whose accuracy is the mean over seeds: with
    few rows it, not the spread over seeds, says how little is known.
    """
    rows = metrics[
        (metrics["dataset"] == dataset)
        & (metrics["attribute"] == attribute)
        & (metrics["metric"] == "accuracy_by_subgroup")
        & (metrics["trial"] == "default")
    ]
    keys = ["method", "shift", "severity", "group"]
    found = over_seeds(rows, keys).merge(
        rows.groupby(keys, as_index=False).agg(rows=("n", "min")), on=keys
    )
    low, high = wilson_interval(found["ours"].to_numpy(), found["rows"].to_numpy())
    return found.assign(low=low, high=high)
