r"""Means of row values within groups and their variances.

With weights w the mean is :math:`m = \sum w x / \sum w` and its linearised variance

.. math:: \frac{n}{n - 1} \frac{\sum w^2 (x - m)^2}{(\sum w)^2}

which is :math:`s^2 / n` for equal weights.
"""

from typing import NamedTuple

import numpy as np

from robust_fairness.inference.estimate import Array


class Moments(NamedTuple):
    """Numbers of rows, means and their variances, ``[groups]`` each.

    A mean without weight is NaN, as is the variance of a mean of fewer than two rows.
    """

    n: Array
    mean: Array
    variance: Array

    @classmethod
    def of(
        cls, values: Array, group: Array, groups: int, sample_weight: Array | None = None
    ) -> "Moments":
        """Those of the values ``[n]`` of each group, of rows without a group (-1) none."""
        known = group >= 0
        if not known.all():
            values, group = values[known], group[known]
            sample_weight = None if sample_weight is None else sample_weight[known]
        values = np.asarray(values, np.float64)

        def summed(weights: Array) -> Array:
            return np.bincount(group, weights, groups)

        n = np.bincount(group, minlength=groups)
        weight = n.astype(np.float64) if sample_weight is None else summed(sample_weight)
        total = summed(values if sample_weight is None else values * sample_weight)
        mean = np.divide(total, weight, out=np.full(groups, np.nan), where=weight > 0)
        square = 1.0 if sample_weight is None else np.square(sample_weight)
        away = summed(square * (values - np.nan_to_num(mean)[group]) ** 2)
        divided = np.where((n > 1) & (weight > 0), weight**2 * (n - 1), np.nan)
        return cls(n, mean, away * n / divided)
