r"""Means of row values within groups and their variances, from sums over blocks of rows.

With weights w the mean is :math:`m = \sum w x / \sum w` and its linearised variance

.. math:: \frac{n}{n - 1} \frac{\sum w^2 (x - m)^2}{(\sum w)^2}

which is :math:`s^2 / n` for equal weights.
"""

from dataclasses import dataclass

import numpy as np

from robust_fairness.inference.estimate import Array


@dataclass(frozen=True)
class Moments:
    """Sums of groups, float64 ``[groups]``, that can be added over blocks of rows.

    Attributes:
        n: numbers of rows, int64.
        weight: sums of weights.
        total: sums of weighted values.
        around: values that the following sums are around, so that they lose no digits.
        first: sums of squared weights times values around it.
        second: sums of squared weights times squared values around it.
        squares: sums of squared weights.
    """

    n: Array
    weight: Array
    total: Array
    around: Array
    first: Array
    second: Array
    squares: Array

    @classmethod
    def of(
        cls, values: Array, group: Array, groups: int, sample_weight: Array | None = None
    ) -> "Moments":
        """Sums of the values ``[n]`` of each group, of rows without a group (-1) none."""
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
        mean = np.divide(total, weight, out=np.zeros(groups), where=weight > 0)
        away = values - mean[group]
        square = 1.0 if sample_weight is None else np.square(sample_weight)
        first, second = summed(square * away), summed(square * away**2)
        squares = weight if sample_weight is None else summed(np.square(sample_weight))
        return cls(n, weight, total, mean, first, second, squares)

    def __add__(self, other: "Moments") -> "Moments":
        """Those of both blocks together."""
        weight, total = self.weight + other.weight, self.total + other.total
        around = np.divide(total, weight, out=np.zeros(len(total)), where=weight > 0)
        one, two = self._moved(around), other._moved(around)
        first, second = (a + b for a, b in zip(one, two, strict=True))
        squares = self.squares + other.squares
        return Moments(self.n + other.n, weight, total, around, first, second, squares)

    def _moved(self, to: Array) -> tuple[Array, Array]:
        by = self.around - to
        first = self.first + by * self.squares
        return first, self.second + 2 * by * self.first + by**2 * self.squares

    @property
    def mean(self) -> Array:
        """Means ``[groups]``; NaN without weight."""
        nothing = np.full(len(self.total), np.nan)
        return np.divide(self.total, self.weight, out=nothing, where=self.weight > 0)

    @property
    def variance(self) -> Array:
        """Variances of the means ``[groups]``; NaN for fewer than two rows."""
        known = (self.n > 1) & (self.weight > 0)
        divided = np.where(known, self.weight**2 * (self.n - 1), np.nan)
        return np.asarray(self.second * self.n / divided)


def covariance_of_copies(first: Array, second: Array, group: Array, groups: int) -> Array:
    """Covariances of the means of two values of the same rows, of each group ``[groups]``.

    Args:
        first: values ``[n]``; NaN for rows that its mean is not taken among.
        second: the other ones, likewise.
        group: group of every row ``[n]``.
        groups: number of groups.
    """
    influence = np.ones(len(group))
    for values in (first, second):
        known = np.isfinite(values)
        n = np.bincount(group[known], minlength=groups)
        sums = np.bincount(group[known], values[known], groups)
        with np.errstate(divide="ignore", invalid="ignore"):
            influence *= np.where(known, (values - (sums / n)[group]) / n[group], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(
            np.bincount(group, influence, groups) * np.where(n > 1, n / (n - 1), np.nan)
        )
