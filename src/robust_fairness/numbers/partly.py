r"""Counts of rows of which only some have a label: means use the scores of all rows.

Prediction-powered inference (Angelopoulos et al. 2023), tuned as in PPI++ (Angelopoulos, Duchi and
Zrnic 2023): a rate of a group is a ratio of means of row values, with the influence :math:`\psi` of
a labelled row and its expectation :math:`\varphi` under the score. With rows weighted by w, and
labelled ones by :math:`v = w / \pi` for their probability :math:`\pi` to be labelled,

.. math:: \hat\theta = \bar\psi_v + \lambda (\bar\varphi_w - \bar\varphi_v)

is right whatever the scores are worth, since both means of :math:`\varphi` estimate the same.
:math:`\lambda`, of every group and rate, minimises the variance within 0 to 1. Values and variances
are functions of the first and second moments of weights and weighted scores by group, class and
decision, which add over blocks of rows as all counts do.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from robust_fairness.numbers.counts import TWO, Counts, Means
from robust_fairness.numbers.estimate import Array
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.variance import FEWEST_ROWS, student_factor

PARAMETERS = 2  # estimated from the labelled rows: the mean and lambda


@dataclass(frozen=True, eq=False)
class PartlyLabelled(Counts):
    """Counts of the labelled rows, weighted by v, whose means are prediction-powered.

    Attributes:
        every: counts of all rows; where no label is needed, they have the means.
        first: sums of v, of v times the score of every class and of w times it
            ``[1 + 2 classes, groups + 1, classes, classes]``.
        second: sums of their products ``[1 + 2 classes, 1 + 2 classes, groups + 1, ...]``.

    >>> rng = np.random.default_rng(0)
    >>> y, known = rng.integers(0, 2, 1000), rng.random(1000) < 0.1
    >>> counts = partly_labelled(
    ...     Groups.named(np.zeros(1000, int), ["all"]), y, y, ("no", "yes"), known, np.eye(2)[y]
    ... )
    >>> share = counts.means(counts.grid()[0] == 1).value  # the scores are the classes
    >>> bool(abs(share[0] - y.mean()) < 0.005)
    True
    """

    every: Counts = field(default_factory=lambda: Counts.of_rows(np.zeros((0, 1, 1))))
    first: Array = field(default_factory=lambda: np.empty(0))
    second: Array = field(default_factory=lambda: np.empty(0))

    def __add__(self, other: Counts) -> "PartlyLabelled":
        """Those of both blocks of rows, of the same groups and classes."""
        assert isinstance(other, PartlyLabelled)
        return _with_moments(
            super().__add__(other), self.every + other.every, self.first + other.first,
            self.second + other.second,
        )  # fmt: skip

    def known(self) -> Array:
        """Rows of every group, labelled or not, int64 ``[groups]``."""
        return self.every.known()

    def shares(self) -> Means:
        """Shares of the groups in all rows whose group is known."""
        return self.every.shares()

    def _mapped(
        self, change: Callable[[Array], Array], groups: tuple[str, ...], units: Any = None
    ) -> "PartlyLabelled":
        plain, every = super()._mapped(change, groups), self.every._mapped(change, groups)
        return _with_moments(plain, every, change(self.first), change(self.second))

    def means(self, values: Array, among: Array | None = None) -> Means:
        """Prediction-powered means; ``n`` are labelled rows, or all where no label is needed.

        Variances are widened from the normal distribution to Student's. Where that of the labelled
        rows alone is smaller, or these are fewer than ``FEWEST_ROWS``, their mean is taken.
        """
        bottom = np.ones(values.shape) if among is None else np.asarray(among, np.float64)
        top = bottom * values
        if (np.ptp(top, 0) == 0).all() and (np.ptp(bottom, 0) == 0).all():
            return self.every.means(values, among)
        alone = super().means(values, among)
        with np.errstate(divide="ignore", invalid="ignore"):
            (tops, _), (bottoms, _) = self._parts(top), self._parts(bottom)
            weight, squares = (
                (part[:-1] * bottom).sum((1, 2)) for part in (self.weight, self.squares)
            )
            rows = weight**2 / squares
            lost = rows / (rows - PARAMETERS) * student_factor(rows - PARAMETERS)
            value = alone.value
            for _ in range(TWO):  # at the value of the labelled rows, then at the tuned one
                by_labels, less = self._influence(top, bottom, value)
                spread = self._products(less, less)
                tuned = np.clip(-self._products(by_labels, less) / spread, 0, 1)
                tuned = np.where((spread > 0) & (rows >= FEWEST_ROWS), tuned, 0.0)
                scale = bottoms[0] + tuned * (bottoms[2] - bottoms[1])
                value = (tops[0] + tuned * (tops[2] - tops[1])) / scale
            influence = by_labels + tuned[:, None, None] * less
            variance = self._products(influence, influence) / scale**2 * lost
            better = (tuned > 0) & (scale > 0) & (variance < alone.variance)
            value = np.where(better, value.clip(values.min(), values.max()), alone.value)
            tuned = np.where(better, tuned, 0.0)
            by_labels, less = self._influence(top, bottom, value)
            scale = bottoms[0] + tuned * (bottoms[2] - bottoms[1])
            factor = np.sqrt(np.where(better, lost, alone.n / (alone.n - 1))) / scale
            factor = np.where(rows >= FEWEST_ROWS, factor, 0.0)  # unknown
            influence = (by_labels + tuned[:, None, None] * less) * factor[:, None, None]
            least = np.minimum(alone.effective, alone.n)
            made = self._means(value, variance, alone.n, least, self._deviations(influence))
            variance = np.where(rows >= FEWEST_ROWS, made.variance, np.nan)
            return made._replace(variance=variance, counted=rows, weight=weight, bounded=True)

    def _parts(self, table: Array) -> tuple[Array, Array]:
        """Means of values by class and decision ``[..., classes, classes]``, and their influence.

        Means are those of labelled rows, of their scores and of all scores ``[3, groups]``. The
        influence of weights and weighted scores ``[1 + 2 classes, groups, classes, classes]`` is
        that on the first mean and on the third less the second.
        """
        first, classes = self.first[..., :-1, :, :], len(self.classes)
        blocks = np.repeat([0, 1, 2], [1, classes, classes])
        each = np.broadcast_to(table, first.shape[1:])
        scored = np.repeat(each.swapaxes(0, 1)[:, :, None], classes, 2)
        values = np.concatenate([each[None], scored, scored])
        sums, total = (
            np.stack([part[blocks == block].sum((0, 2, 3)) for block in range(3)])
            for part in (first * values, first)
        )
        total[1] = total[0]
        means = sums / total
        sign = np.array([1.0, -1.0, 1.0])[blocks]
        away = (values - means[blocks][..., None, None]) / total[blocks][..., None, None]
        return means, np.nan_to_num(away * sign[:, None, None, None])

    def _influence(self, top: Array, bottom: Array, value: Array) -> tuple[Array, Array]:
        """That of the labelled rows and that of scores, of the ratio of two means at a value."""
        _, parts = self._parts(top - np.nan_to_num(value)[:, None, None] * bottom)
        by_labels = np.zeros_like(parts)
        by_labels[0], parts[0] = parts[0], 0.0
        return by_labels, parts

    def _products(self, first: Array, second: Array) -> Array:
        """Sums over rows of the products of two influences, by group."""
        moments = self.second[..., :-1, :, :]
        return np.asarray(np.einsum("igyd,ijgyd,jgyd->g", first, moments, second))

    def _deviations(self, influence: Array) -> Array:
        """Deviations ``[m, groups]`` whose products are those of the influences of the rows."""
        groups = len(self.groups)
        each = np.einsum("gydki,igyd->gydk", self._factor, influence).reshape(groups, -1)
        spread = np.zeros((groups, each.shape[1], groups))
        spread[range(groups), :, range(groups)] = each
        return spread.reshape(-1, groups)

    @cached_property
    def _factor(self) -> Array:
        """A square root of the second moments, ``[groups, classes, classes, k, 1 + 2 classes]``."""
        size, vectors = np.linalg.eigh(np.moveaxis(self.second[..., :-1, :, :], (0, 1), (-2, -1)))
        return np.asarray(np.sqrt(size.clip(0))[..., None] * vectors.swapaxes(-1, -2))


def partly_labelled(
    groups: Groups,
    y: Array,
    decision: Array,
    classes: tuple[str, ...],
    labelled: Array,
    score: Array,
    weight: Array | None = None,
    probability: Array | None = None,
) -> PartlyLabelled:
    """Counts of rows ``[n]`` of which some are labelled.

    Args:
        groups: their groups.
        y: class; of rows without a label any.
        decision: class that is decided.
        classes: names of the classes.
        labelled: bool.
        score: probabilities of the classes ``[n, classes]``, right or not.
        weight: weights of the rows.
        probability: of being labelled, up to a factor, of labelled rows; equal ones if None.
    """
    there = np.flatnonzero(labelled)
    every = Counts.of(groups, decision, decision, classes, weight)
    w = np.ones(len(y)) if weight is None else weight
    inverse = w[there] / (1.0 if probability is None else probability[there])
    weighted = None if weight is None and probability is None else inverse
    plain = Counts.of(groups.take(there), y[there], decision[there], classes, weighted)
    y = np.where(labelled, y, decision)
    v = np.zeros(len(y))
    v[there] = inverse
    columns = [v, *(v[:, None] * score).T, *(w[:, None] * score).T]
    shape = (len(groups.values) + 1, len(classes), len(classes))
    index = (np.remainder(groups.codes, shape[0]) * shape[1] + y) * shape[2] + decision

    def summed(part: Array) -> Array:
        return np.bincount(index, part, int(np.prod(shape))).reshape(shape)

    second = np.zeros((len(columns), len(columns), *shape))
    for row, first_ in enumerate(columns):
        for column in range(row + 1):
            second[row, column] = second[column, row] = summed(first_ * columns[column])
    return _with_moments(plain, every, np.stack([summed(part) for part in columns]), second)


def _with_moments(plain: Counts, every: Counts, first: Array, second: Array) -> PartlyLabelled:
    return PartlyLabelled(
        plain.groups, plain.classes, plain.n, plain.weight, plain.squares, every=every,
        first=first, second=second,
    )  # fmt: skip
