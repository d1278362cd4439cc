"""Which methods are fairer than plain training under shift: the second line of the first screen."""

from functools import partial

import numpy as np
import pandas as pd

from robust_fairness.metrics import find_metric
from robust_fairness.numbers.estimate import FEWEST_REFITS, LEVEL, over_refits
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
    table = table.assign(least=_least(rows, gap, table, results))
    return table[COLUMNS]


def _away(rows: pd.DataFrame) -> float:
    """Accuracy in the other test sets, their mean."""
    return float((rows["accuracy"] + rows["accuracy_change"]).mean())


def _least(matrix: pd.DataFrame, gap: str, table: pd.DataFrame, results: Results) -> np.ndarray:
    """The least bound, over test sets, of the gap of plain training minus that of each method."""
    scores = where(results.selected, metric=gap, group="")
    if find_metric(gap).better == "higher":
        scores = scores.assign(value=1 - scores["value"])
    keys = ["dataset", "attribute", "method", *PLACE]
    by_seed = scores.pivot_table("value", keys, "seed")
    methods = table[["dataset", "attribute", "method", "plain"]].reset_index(names="of")
    pairs = methods.merge(matrix[keys], on=keys[:3])
    first, second = (
        by_seed.reindex(pd.MultiIndex.from_frame(pairs.assign(method=pairs[name])[keys]))
        for name in ("plain", "method")
    )
    difference = first.to_numpy(np.float64) - second.to_numpy(np.float64)
    # seeds that have all test sets
    whole = pd.DataFrame(np.isfinite(difference)).groupby(pairs["of"]).transform("all").to_numpy()
    enough = whole.sum(1) >= FEWEST_REFITS
    ratio = results.sizes_of_splits["ratio"].reindex(pairs["dataset"]).fillna(0.0).to_numpy()
    estimate = over_refits(np.where(whole, difference, np.nan), ratio)
    level = LEVEL / max(pairs["of"][enough].nunique(), 1)
    bound = np.where(enough, estimate.value - estimate.critical(level), np.nan)
    least = pd.Series(bound).groupby(pairs["of"]).agg(partial(pd.Series.min, skipna=False))
    return least.reindex(table.index).to_numpy()
