"""Which methods are fairer than plain training under shift: the second line of the first screen."""

from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.metrics import find_metric
from robust_fairness.numbers.estimate import LEVEL, REFITS, Estimate
from robust_fairness.numbers.variance import FEWEST_REFITS, between_refits
from robust_fairness.report.matrix import PLACE, is_plain
from robust_fairness.report.results import Results, where

PAIR = ["data", "dataset", "attribute", "network"]
DECLINED = ("trivial", "missing")  # states of a model whose gap says nothing
COLUMNS = ["data", "attribute", "method", "least", "accuracy"]


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
    compared = []
    for key, part in rows.groupby(PAIR, sort=False):
        names = rows.loc[part.index[plain[part.index]], "method"].unique()
        for method, of_method in part[~plain[part.index]].groupby("method", sort=False):
            if len(names) and not of_method["state"].isin(DECLINED).any():
                of_plain = part[part["method"] == names[0]]
                compared.append((*key, names[0], method, _away(of_method) - _away(of_plain)))
    table = pd.DataFrame(compared, columns=[*PAIR, "plain", "method", "accuracy"])
    scores = where(results.selected, metric=gap, group="")
    if find_metric(gap).better == "higher":
        scores = scores.assign(value=1 - scores["value"])
    estimates = [_improvements(scores, rows, row, results) for row in table.itertuples()]
    tests = sum(estimate is not None for estimate in estimates)
    table["least"] = [
        np.nan
        if estimate is None
        else float((estimate.value - estimate.critical(LEVEL / tests)).min())
        for estimate in estimates
    ]
    return table[COLUMNS]


def _away(rows: pd.DataFrame) -> float:
    """Accuracy in the other test sets, their mean."""
    return float((rows["accuracy"] + rows["accuracy_change"]).mean())


def _improvements(
    scores: pd.DataFrame, matrix: pd.DataFrame, row: Any, results: Results
) -> Estimate | None:
    """The gap of plain training minus that of a method, by test set; None with too few seeds."""
    scores = where(scores, dataset=row.dataset, attribute=row.attribute)
    places = where(matrix, dataset=row.dataset, attribute=row.attribute, method=row.method)[PLACE]
    keys = pd.MultiIndex.from_frame(places)
    first, second = (
        where(scores, method=name).pivot_table("value", PLACE, "seed").reindex(keys)
        for name in (row.plain, row.method)
    )
    difference = (first - second).dropna(axis=1)
    if difference.shape[1] < FEWEST_REFITS:
        return None
    values = difference.to_numpy(np.float64)
    ratio = results.sizes_of_splits["ratio"].reindex([row.dataset]).fillna(0.0).item()
    return Estimate(values.mean(1), {REFITS: between_refits(values, ratio)})
