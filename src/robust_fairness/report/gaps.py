"""Signed differences between groups, and gaps that the sizes of test sets do not bias."""

import numpy as np
import pandas as pd
from scipy import special

from robust_fairness.numbers.estimate import of_rate
from robust_fairness.report.ranks import compared

# Rates of single groups in the tidy table, and what their difference is called.
DIFFERENCES = {
    "accuracy_by_group": "accuracy_difference",
    "selection_rate_by_group": "selection_rate_difference",
    "true_positive_rate_by_group": "true_positive_rate_difference",
    "false_positive_rate_by_group": "false_positive_rate_difference",
}
KEYS = [
    "dataset", "method", "trial", "seed", "shift", "severity", "domain", "attribute", "metric",
]  # fmt: skip


def folded_mean(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """The mean of the absolute value of a normal variable, of the mean itself without deviation."""
    safe = np.where(deviation > 0, deviation, 1)
    ratio = mean / safe
    density = np.exp(-(ratio**2) / 2) / np.sqrt(2 * np.pi)
    folded = 2 * safe * density + mean * (1 - 2 * special.ndtr(-ratio))
    return np.where(deviation > 0, folded, np.abs(mean))


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
    largest = np.maximum(*variances)
    expected, expected_of_second = (
        folded_mean(difference, np.sqrt(largest - variance))
        for difference, variance in zip((first, second), variances, strict=True)
    )
    return expected, expected_of_second


def signed_differences(metrics: pd.DataFrame) -> pd.DataFrame:
    """Rates of each further group minus that of the first one: columns ``KEYS``, groups, value, ...

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
        rows = rows[rows["n"] > 1][[*KEYS, "of", "value", "n"]]
        rows = rows.assign(variance=of_rate(rows["value"], rows["n"]))
        first = rows.groupby("dataset", sort=False)["of"].transform("first")
        is_first = rows["of"] == first
        both = rows[~is_first].merge(rows[is_first], on=KEYS, suffixes=("", "_first"))
        result.append(
            both[KEYS].assign(
                groups=both["of"] + " minus " + both["of_first"],
                value=both["value"] - both["value_first"],
                variance=both["variance"] + both["variance_first"],
                n=both[["n", "n_first"]].min(axis=1),
            )
        )
    return pd.concat(result, ignore_index=True)
