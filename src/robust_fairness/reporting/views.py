"""Views: one table of scores, seen as each paper's tables and figures."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import pandas as pd

from robust_fairness.reporting.statistics import distinct

PUBLISHED = {
    "view": "str", "dataset": "str", "method": "str", "trial": "str", "shift": "str",
    "severity": "float64", "attribute": "str", "metric": "str", "value": "float64",
    "std": "float64", "note": "str",
}  # fmt: skip
PLACE = ["dataset", "method", "trial", "shift", "severity", "attribute", "metric"]


@dataclass(frozen=True)
class View:
    """A table or figure of a paper.

    Attributes:
        id: short name, for links.
        title: what the paper calls it and what it shows.
        make: metrics to the rows shown; none where nothing of it was run.
    """

    id: str
    title: str
    make: Callable[[pd.DataFrame], pd.DataFrame]


@cache
def published(paper: str) -> pd.DataFrame:
    """The numbers that a paper printed, as fractions, columns ``PUBLISHED``."""
    path = files("robust_fairness.reporting") / "published" / f"{paper}.csv"
    with path.open() as file:
        return pd.read_csv(
            file, dtype=PUBLISHED, keep_default_na=False, na_values={"value": [""], "std": [""]}
        )


def beside_published(paper: str, view: str, metrics: pd.DataFrame) -> pd.DataFrame:
    """The published numbers of a view with ours beside them: mean, deviation, number of seeds.

    Cells that were not run have 0 seeds. Nothing is shown where no cell of the view was run.
    """
    theirs = published(paper)
    theirs = theirs[theirs["view"] == view].drop(columns="view")
    ours = (
        distinct(metrics[metrics["group"] == ""])
        .groupby(PLACE, as_index=False)
        .agg(ours=("value", "mean"), deviation=("value", "std"), seeds=("value", "count"))
    )
    joined = theirs.merge(ours, on=PLACE, how="left")
    joined["seeds"] = joined["seeds"].fillna(0).astype(int)
    if not joined["seeds"].any():
        return joined.iloc[:0]
    return joined.rename(columns={"value": "published", "std": "published deviation"})[
        [*PLACE, "published", "published deviation", "ours", "deviation", "seeds", "note"]
    ]
