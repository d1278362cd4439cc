"""Rows of a table as counts by group, class and predicted class: all that rates and gaps need."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from robust_fairness.inference import Rates
from robust_fairness.metrics import Undefined
from robust_fairness.metrics.base import GROUPED, NO_ROWS, WEIGHTS, Quantity, Score
from robust_fairness.metrics.find import Metric, is_mean
from robust_fairness.metrics.gaps import Gap
from robust_fairness.samples import Groups

NEEDS = frozenset(("y_true", "y_pred", "classes", "sensitive_features"))

Array = np.ndarray
TWO = 2


class Means(NamedTuple):
    """Means of row values within groups, float64 ``[groups]`` each.

    ``n`` are rows, ``effective`` the number of independent rows of equal weight that would have
    the variance; the covariance of the groups is the sum of products of ``deviations`` ``[m,
    groups]``, one per set of replicate weights or per unit, where there are any.
    """

    value: Array
    variance: Array
    n: Array
    effective: Array
    deviations: Array | None = None


@dataclass(frozen=True)
class Cells:
    """Sums over the rows of every group, class and predicted class ``[groups + 1, ...]``.

    The last group are the rows without one. The cells of two blocks of rows can be added.

    Attributes:
        groups: names of the groups.
        classes: names of the classes.
        n: numbers of rows; float64 where rows belong to groups with probabilities, else int64.
        weight: sums of weights, float64.
        squares: sums of squared weights.
        replicates: sums of replicate weights ``[replicates, groups + 1, ...]``.
        units: sums of weights by unit, such as households, sparse ``[units, cells]``.
    """

    groups: tuple[str, ...]
    classes: tuple[str, ...]
    n: Array
    weight: Array
    squares: Array
    replicates: Array | None = None
    units: sparse.csr_array | None = None

    @classmethod
    def of(
        cls,
        groups: Groups,
        y: Array,
        prediction: Array,
        classes: tuple[str, ...],
        sample_weight: Array | None = None,
        replicate_weights: Array | None = None,
        share: Array | None = None,
        unit: Array | None = None,
    ) -> "Cells":
        """Those of rows ``[n]``; replicate weights are ``[n, replicates]``, units numbers from 0.

        Where a row belongs to its group with a probability only, ``share`` is that, and counts as
        so much of a row; the weights contain it.
        """
        shape = (len(groups.names) + 1, len(classes), len(classes))
        index = np.remainder(groups.codes, shape[0], dtype=np.int64)
        for size, codes in zip(shape[1:], (y, prediction), strict=True):
            index *= size
            index += codes

        def summed(weight: Array | None) -> Array:
            return np.bincount(index, weight, int(np.prod(shape))).reshape(shape)

        n, units, replicates = summed(share), None, None
        if unit is not None:
            each = np.ones(len(y)) if sample_weight is None else sample_weight
            cells = (int(unit.max(initial=-1)) + 1, n.size)
            units = sparse.coo_array((each, (unit, index)), shape=cells).tocsr()
        weight = squares = n.astype(np.float64)
        if sample_weight is not None:
            weight, squares = summed(sample_weight), summed(sample_weight**2)
        if replicate_weights is not None:
            replicates = np.stack([summed(weight) for weight in replicate_weights.T])
        return cls(groups.names, classes, n, weight, squares, replicates, units)

    def __add__(self, other: "Cells") -> "Cells":
        """Those of both blocks of rows, of the same groups and classes."""
        replicates = None
        if self.replicates is not None and other.replicates is not None:
            replicates = self.replicates + other.replicates
        units = None
        if self.units is not None and other.units is not None:
            units = self.units + other.units
        return Cells(
            self.groups, self.classes, self.n + other.n, self.weight + other.weight,
            self.squares + other.squares, replicates, units,
        )  # fmt: skip

    def merged(self, index: Array, names: tuple[str, ...]) -> "Cells":
        """Groups joined: the known group g becomes part of ``index[g]``; none is unknown.

        Sums by unit are left out.
        """

        def joined(sums: Array) -> Array:
            made = np.zeros((*sums.shape[:-3], len(names) + 1, *sums.shape[-2:]), sums.dtype)
            for number in range(len(names)):
                made[..., number, :, :] = sums[..., :-1, :, :][..., index == number, :, :].sum(-3)
            return made

        return self._mapped(joined, names)

    def take(self, kept: Array) -> "Cells":
        """Those of some groups, bool ``[groups]``, and of the rows without a group."""
        index = np.append(np.flatnonzero(kept), len(self.groups))
        cells = np.arange(self.n.size).reshape(self.n.shape)[index].ravel()
        names = tuple(name for name, keep in zip(self.groups, kept, strict=True) if keep)
        units = None if self.units is None else self.units[:, cells]
        return self._mapped(lambda sums: sums[..., index, :, :], names, units)

    def _mapped(
        self,
        change: Callable[[Array], Array],
        groups: tuple[str, ...],
        units: sparse.csr_array | None = None,
    ) -> "Cells":
        """Those of other groups, by a function of the sums ``[..., groups + 1, ...]``."""
        replicates = None if self.replicates is None else change(self.replicates)
        n, weight, squares = (change(sums) for sums in (self.n, self.weight, self.squares))
        return Cells(groups, self.classes, n, weight, squares, replicates, units)

    @cached_property
    def everyone(self) -> "Cells":
        """All rows as one group."""

        def total(sums: Array) -> Array:
            whole = sums.sum(-3, keepdims=True)
            return np.concatenate([whole, np.zeros_like(whole)], axis=-3)

        units = None
        if self.units is not None:
            size = len(self.classes) ** 2
            into = sparse.vstack([sparse.eye_array(size, TWO * size)] * (len(self.groups) + 1))
            units = sparse.csr_array(self.units @ into)
        return self._mapped(total, ("",), units)

    def known(self) -> Array:
        """Rows of every group, int64 ``[groups]``."""
        return np.asarray(self.n[:-1].sum((1, 2)))

    def grid(self) -> tuple[Array, Array]:
        """Class and predicted class of the cells of a group, ``[classes, classes]`` each."""
        y, prediction = np.indices(self.n.shape[1:])
        return np.asarray(y), np.asarray(prediction)

    def means(self, values: Array, among: Array | None = None) -> Means:
        """Means of values ``[classes, classes]`` over the rows ``among`` of every group.

        With weights the variance is linearised (``inference.moments``), by units where there are
        any, or comes from the replicate weights.
        """
        of = np.ones(values.shape) if among is None else np.asarray(among, np.float64)
        n, weight, squares = (
            (sums[:-1] * of).sum((1, 2)) for sums in (self.n, self.weight, self.squares)
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            value = (self.weight[:-1] * of * values).sum((1, 2)) / weight
            away = (self.squares[:-1] * of * (values - value[:, None, None]) ** 2).sum((1, 2))
            variance = np.where(n > 1, away * n / (n - 1) / weight**2, np.nan)
            deviations = None
            if self.replicates is not None:
                parts = self.replicates[:, :-1] * of
                deviations = by_replicates((parts * values).sum((2, 3)) / parts.sum((2, 3)), value)
            elif self.units is not None:
                influence = of * (values - value[:, None, None]) / weight[:, None, None]
                deviations = self._by_unit(np.nan_to_num(influence))
            return self._means(value, variance, n, weight**2 / squares, deviations)

    def _means(
        self, value: Array, variance: Array, n: Array, rows: Array, deviations: Array | None
    ) -> Means:
        """Means with their variances and effective numbers of rows, ``rows`` where it is 0."""
        if deviations is not None:
            variance = np.square(deviations).sum(0)
        share = value * (1 - value)
        known = (variance > 0) & (share > 0)
        effective = np.where(known, share / np.where(known, variance, 1) + 1, rows)
        if deviations is None and self.weight is self.squares:
            effective = n
        return Means(value, variance, n, effective, deviations)

    def _by_unit(self, influence: Array) -> Array:
        """Deviations ``[units, groups]`` from the influence of cells ``[groups, ...]``.

        The influence of a unit is the sum over its rows, of H units with the factor H / (H - 1).
        """
        assert self.units is not None
        groups = len(self.groups)
        each = np.zeros((*self.n.shape, groups))
        each[range(groups), ..., range(groups)] = influence
        number = self.units.shape[0]
        return np.asarray(
            self.units @ each.reshape(-1, groups) * np.sqrt(number / max(1, number - 1))
        )

    def rates(self, parts: Sequence[Means], present: Array) -> Rates:
        """The rates of groups that are present, in the order rate, group, for ``inference``."""
        value, variance, effective = (
            np.concatenate([np.asarray(part[place])[present] for part in parts])[None]
            for place in (0, 1, 3)
        )
        covariance = None
        if all(part.deviations is not None for part in parts):
            drawn = np.concatenate([part.deviations[:, present] for part in parts], axis=1)  # type: ignore[index]
            covariance = (drawn.T @ drawn)[None]
        return Rates(value[..., None], variance, effective, covariance=covariance)

    def shares(self) -> Means:
        """Shares of the groups in the rows whose group is known; ``n`` are their rows."""
        n, weight, squares = (sums[:-1].sum((1, 2)) for sums in (self.n, self.weight, self.squares))
        share, rows = weight / weight.sum(), n.sum()
        away = squares * (1 - share) ** 2 + (squares.sum() - squares) * share**2
        deviations = None
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = away * rows / (rows - 1) / weight.sum() ** 2
            if self.replicates is not None:
                drawn = self.replicates[:, :-1].sum((2, 3))
                deviations = by_replicates(drawn / drawn.sum(1, keepdims=True), share)
            elif self.units is not None:
                of = np.repeat(np.eye(len(share)), self.n[0].size, axis=0)
                known = np.asarray(self.units[:, : len(of)] @ (of - share)) / weight.sum()
                deviations = known * np.sqrt(len(known) / max(1, len(known) - 1))
            rows_of_all = np.full(len(n), rows)
            made = self._means(share, variance, n, rows_of_all, deviations)
        return made._replace(effective=rows_of_all) if made.effective is n else made


def by_replicates(replicates: Array, estimates: Array) -> Array:
    """Deviations ``[replicates, groups]`` by successive differences, as the Census Bureau's."""
    return np.asarray(TWO / np.sqrt(len(replicates)) * (replicates - estimates))


def in_cells(metric: Metric) -> bool:
    """Whether a metric is a function of cells."""
    known = NEEDS.issuperset(metric.needs) and metric.task != "regression"
    return known and (is_mean(metric.definition) or metric.definition.takes_weights)


@dataclass(frozen=True, kw_only=True)
class CellQuantity(Quantity):
    """A quantity of cells, which aggregations take of groups."""

    cells: Cells

    def by_group(
        self, arrays: Mapping[str, Any], groups: Groups, options: Mapping[str, float]
    ) -> dict[str, Score]:
        """The score of every group; ``groups.index`` are those that the cells' belong to."""
        return self._scores(self.cells.merged(groups.index, groups.names), options)

    def scores(self, arrays: Mapping[str, Any], options: Mapping[str, float]) -> dict[str, Score]:
        """The score of all rows."""
        return self._scores(self.cells.everyone, options)

    def _scores(self, cells: Cells, options: Mapping[str, float]) -> dict[str, Score]:
        counts = cells.known()
        if self.rows is None:
            return {
                name: _called(self, cells, number, options) if count else _none(0)
                for number, (name, count) in enumerate(zip(cells.groups, counts, strict=True))
            }
        try:
            rows = self.rows(*cells.grid(), **options)
        except Undefined as reason:
            return {
                name: reason.score(int(count)) if count else _none(0)
                for name, count in zip(cells.groups, counts, strict=True)
            }
        means = cells.means(np.asarray(rows.values, np.float64), rows.among)
        return {
            name: Score(
                float(value), int(n), variance=None if np.isnan(variance) else float(variance)
            )
            if np.isfinite(value)
            else _none(int(count), rows.none if count else NO_ROWS)
            for name, value, variance, n, count in zip(
                cells.groups, means.value, means.variance, means.n, counts, strict=True
            )
        }


def _none(n: int, note: str = NO_ROWS) -> Score:
    return Score(None, n, note)


def _called(definition: Quantity, cells: Cells, group: int, options: Mapping[str, float]) -> Score:
    """A quantity that is no mean, of the rows of a group."""
    y, prediction = np.nonzero(cells.n[group])
    weights = {WEIGHTS: cells.weight[group][y, prediction]}
    n = int(cells.n[group].sum())
    try:
        score = definition.function(y, prediction, **weights, **options)
    except Undefined as reason:
        return reason.score(n)
    return score if isinstance(score, Score) else Score(float(score), n)


def scores_of(metric: Metric, cells: Cells) -> dict[str, Score]:
    """Scores of a metric ``in_cells`` by group; ``""`` is one of all groups."""
    definition = metric.definition
    arrays: dict[str, Any] = {GROUPED: Groups(np.arange(len(cells.groups)), cells.groups)}
    if isinstance(definition, Quantity):
        counted = CellQuantity(**vars(definition), cells=cells)
        return metric.how.function(counted, arrays, metric.options)
    if isinstance(definition, Gap):
        of = tuple(CellQuantity(**vars(quantity), cells=cells) for quantity in definition.of)
        return replace(definition, of=of).scores(arrays, metric.options)
    group, y, prediction = np.nonzero(cells.n[:-1])
    arrays = {
        "y_true": y, "y_pred": prediction, "sensitive_features": Groups(group, cells.groups),
        "classes": cells.classes, WEIGHTS: cells.weight[:-1][group, y, prediction],
    }  # fmt: skip
    return metric.weighted().scores(arrays)
