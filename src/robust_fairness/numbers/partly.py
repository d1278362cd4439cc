r"""Counts of rows of which only some have a label: means use the scores of all rows.

Prediction-powered inference (Angelopoulos et al. 2023), tuned as in PPI++ (Angelopoulos, Duchi and
Zrnic 2023): a rate of a group is a ratio of means of row values, with the influence :math:`\psi` of
a labelled row and its expectation :math:`\varphi` under the score. With rows weighted by w, and
labelled ones by :math:`v = w / \pi` for their probability :math:`\pi` to be labelled,

.. math:: \hat\theta = \bar\psi_v + \lambda (\bar\varphi_w - \bar\varphi_v)

is right whatever the scores are worth, since both means of :math:`\varphi` estimate the same.
:math:`\lambda`, of every group and rate, minimises the variance within 0 to 1. Values and variances
are functions of the first and second moments of weights and weighted scores by group, class and
decision, which add over blocks of rows as all counts do: in the formulas a few rows with the same
second moments stand for all rows of a cell.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from robust_fairness.numbers.counts import TWO, Counts, Means
from robust_fairness.numbers.estimate import FEWEST_ROWS, Array, independent_rows, student_factor
from robust_fairness.numbers.groups import Groups

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
            tops, bottoms = self._means_of(top), self._means_of(bottom)
            weight, squares = (
                (part[:-1] * bottom).sum((1, 2)) for part in (self.weight, self.squares)
            )
            rows = weight**2 / squares
            lost = rows / (rows - PARAMETERS) * student_factor(rows - PARAMETERS)
            value = alone.value
            for _ in range(TWO):  # at the value of the labelled rows, then at the tuned one
                psi, phi, phi_of_all = influence = self._influence(top, bottom, value)
                less = phi_of_all - phi
                spread = (less * less).sum(0)
                tuned = np.clip(-(psi * less).sum(0) / spread, 0, 1)
                tuned = np.where((spread > 0) & (rows >= FEWEST_ROWS), tuned, 0.0)
                scale = _powered(bottoms, tuned)
                value = _powered(tops, tuned) / scale
            variance = (_powered(influence, tuned) ** 2).sum(0) / scale**2 * lost
            better = (tuned > 0) & (scale > 0) & (variance < alone.variance)
            value = np.where(better, value.clip(values.min(), values.max()), alone.value)
            tuned = np.where(better, tuned, 0.0)
            factor = np.sqrt(np.where(better, lost, alone.n / (alone.n - 1)))
            factor = np.where(rows >= FEWEST_ROWS, factor / _powered(bottoms, tuned), 0.0)
            of_group = _powered(self._influence(top, bottom, value), tuned) * factor
            deviations = (of_group[..., None] * np.eye(len(rows))).reshape(-1, len(rows))
            variance = np.where(better, np.square(deviations).sum(0), alone.variance)
            effective = independent_rows(value, variance, alone.effective)
            variance, effective = np.where(rows >= FEWEST_ROWS, (variance, effective), np.nan)
        return Means(
            value, variance, alone.n, effective, rows, deviations, weight=weight, bounded=True
        )

    def _means_of(self, table: Array) -> Array:
        """Means of labelled rows, of their scores and of all scores ``[3, groups]``."""
        first = self.first[..., :-1, :, :, None]
        return np.asarray(_sums(table, first).sum(1) / self._total)

    @cached_property
    def _total(self) -> Array:
        """Weight of labelled rows, twice, and of all rows, ``[3, groups]``."""
        total = _sums(np.ones(self.n[:-1].shape), self.first[..., :-1, :, :, None]).sum(1)
        return np.asarray(total[[0, 0, 2]])

    def _influence(self, top: Array, bottom: Array, value: Array) -> Array:
        """Influence of rows on the three means of ``top - value * bottom``, ``[3, m, groups]``."""
        table = top - np.nan_to_num(value)[:, None, None] * bottom
        ones = np.ones(table.shape)
        away = _sums(table, self._rows) - self._means_of(table)[:, None] * _sums(ones, self._rows)
        return np.nan_to_num(away / self._total[:, None])

    @cached_property
    def _rows(self) -> Array:
        """Rows that have the second moments ``[1 + 2 classes, groups, classes, classes, k]``."""
        size, vectors = np.linalg.eigh(np.moveaxis(self.second[..., :-1, :, :], (0, 1), (-2, -1)))
        return np.asarray(np.moveaxis(np.sqrt(size.clip(0))[..., None, :] * vectors, -2, 0))


def _powered(parts: Array, tuned: Array) -> Array:
    """What labelled rows say, and lambda times what all scores say beyond those of these rows."""
    labelled, scored, scored_of_all = parts
    return np.asarray(labelled + tuned * (scored_of_all - scored))


def _sums(table: Array, columns: Array) -> Array:
    """Values times v, their expectation under the scores times v and times w, ``[3, m, groups]``.

    The columns are those of ``first`` for every one of k rows ``[1 + 2 classes, groups, y, d, k]``.
    """
    value = np.broadcast_to(table, columns.shape[1:-1])[..., None]
    of_class = value.swapaxes(0, 1)[:, :, None]
    v, scored, scored_of_all = np.split(columns, [1, 1 + len(of_class)])
    sums = [v[0] * value, *((part * of_class).sum(0) for part in (scored, scored_of_all))]
    return np.stack(sums).reshape(len(sums), len(value), -1).swapaxes(1, 2)


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
