"""The variance of scores by their test rows."""

import numpy as np
import pandas as pd

from robust_fairness.numbers.estimate import of_rate, small_counts
from robust_fairness.report.results import UNSHIFTED, Results, where

MODEL = ["dataset", "method", "trial", "seed"]
ROW_KEY = [*MODEL, "shift", "severity", "domain", "attribute"]
QUALITY = ["accuracy", "constant_accuracy"]
SHARES = ("accuracy", "majority_accuracy", "minority_accuracy", "accuracy_by_subgroup")
GAPS = {"delta_eo": (0, 1), "delta_eopp": (1,)}  # classes of the rates whose differences are added


def with_row_variances(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Scores with their variance by the test rows, as ``variance``, where it can be known.

    Of accuracies from their number of rows, of sums of differences of rates from the counts. With
    ``edge``, by how much the model is more accurate without a shift than the most frequent class,
    where that was counted or stored.
    """
    known = rows["variance"] if "variance" in rows else pd.Series(np.nan, rows.index)
    share = rows["metric"].isin(SHARES) & rows["value"].notna()
    value, n = rows["value"].where(share).to_numpy(float), rows["n"].to_numpy(float)
    variance = known.astype(float).fillna(pd.Series(of_small(value, n), rows.index))
    of_counts = _of_counts(results)
    if len(of_counts):
        keys = [*ROW_KEY, "metric"]
        of_gaps = rows[keys].merge(of_counts, how="left", on=keys)["variance"].to_numpy()
        variance = variance.fillna(pd.Series(of_gaps, rows.index))
    edge = rows[MODEL].merge(_edges(results), how="left", on=MODEL)["edge"].to_numpy()
    return rows.assign(variance=variance, edge=edge)


def of_small(value: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Variance of shares of n rows, with a row added on either side."""
    return small_counts(value, of_rate(value, n), n)[1]


def _of_counts(results: Results) -> pd.DataFrame:
    """Variance of the gaps that counts give, by replica, test set and attribute."""
    counts = results.counts[results.counts["attribute"] != ""]
    if counts.empty:
        return pd.DataFrame()
    cell = [*ROW_KEY, "group", "label"]
    n = counts.groupby(cell)["n"].sum()
    positive = (
        counts[counts["decision"] == 1].groupby(cell)["n"].sum().reindex(n.index, fill_value=0)
    )
    variance = pd.Series(of_small((positive / n).to_numpy(), n.to_numpy()), n.index)
    frames = []
    for metric, labels in GAPS.items():
        some = variance[variance.index.get_level_values("label").isin(labels)]
        total = some.groupby(level=ROW_KEY).sum(min_count=2 * len(labels))
        frames.append(total.rename("variance").reset_index().assign(metric=metric))
    return pd.concat(frames, ignore_index=True)


def _edges(results: Results) -> pd.DataFrame:
    """Accuracy minus that of the most frequent class, without a shift: ``MODEL`` and ``edge``.

    Missing where all rows have the same class, as those of a regression are counted.
    """
    counts = where(results.counts, attribute="", shift=UNSHIFTED, domain="")
    labels = counts.groupby([*MODEL, "label"])["n"].sum().groupby(level=MODEL)
    right = counts[counts["decision"] == counts["label"]].groupby(MODEL)["n"].sum()
    n = labels.sum()
    of_counts = (right.reindex(n.index, fill_value=0) - labels.max()) / n
    of_counts = of_counts.where(labels.count() > 1)
    scores = where(results.unshifted, metric=[*QUALITY], attribute="", group="")
    wide = scores.pivot_table("value", MODEL, "metric").reindex(columns=QUALITY)
    stored = wide[QUALITY[0]] - wide[QUALITY[1]]
    return of_counts.combine_first(stored.dropna()).rename("edge").reset_index()
