"""Sources of quantities: rows, and counts, from which rates, gaps and tests follow.

Counts are sums over rows by group, class and decision. Rows are what metrics are computed of that
are no function of these.

Runs store them beside their scores, audits are made of them, monitors keep nothing else. A group is
a number; its name stands beside the counts, to be shown.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from robust_fairness.numbers.estimate import by_replicates, independent_rows
from robust_fairness.numbers.groups import Groups, everyone, shown, subgroups
from robust_fairness.numbers.quantities import (
    GROUPED,
    NO_ROWS,
    NO_WEIGHT,
    WEIGHTS,
    Array,
    Arrays,
    Means,
    Measure,
    Options,
    Quantity,
    Score,
    Undefined,
    called,
    means_of,
)


@dataclass(frozen=True, eq=False)
class Rows:
    """Arrays of rows and their groups.

    Attributes:
        arrays: by name, see ``quantities``; with ``sample_weight`` where rows have weights.
        groups: of the rows; all rows in one group if None.
        stands_for: how many rows each row stands for ``[n]``; one if None.
        independent: whether rows are; otherwise no variance is known.
    """

    arrays: Arrays
    groups: Groups | None = None
    stands_for: Array | None = None
    independent: bool = True
    made: dict[Any, Means] = field(default_factory=dict, repr=False)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the groups."""
        return ("",) if self.groups is None else self.groups.names

    @property
    def classes(self) -> Sequence[str]:
        """Names of the classes; none of numbers or where they are not known."""
        return tuple(self.arrays.get("classes", ()))

    @property
    def everyone(self) -> "Rows":
        """All rows as one group."""
        return self if self.groups is None else replace(self, groups=None, made={})

    def values(self, quantity: Quantity, options: Options | None = None) -> Means:
        """The values of a quantity by group, computed once."""
        given = {**quantity.options, **(options or {})}
        key = (quantity.name, *given.items())
        if key in self.made:
            return self.made[key]
        needed = {need: self.arrays[need] for need in quantity.needs}
        weight = self.arrays.get(WEIGHTS)
        groups = everyone(len(needed[quantity.needs[0]])) if self.groups is None else self.groups
        if quantity.rows is not None:
            try:
                means = means_of(quantity.rows(**needed, **given), groups, weight)
            except Undefined as reason:
                means = Means.missing(reason, groups.counts)
        else:
            needed |= {} if weight is None else {WEIGHTS: weight}
            if quantity.by_groups is not None:
                means = quantity.by_groups(**needed, sensitive_features=groups, **given)
            else:
                means = Means.of_scores([*self._of_groups(quantity, needed, groups, given)])
        if not self.independent:
            unknown = np.full(len(means.value), np.nan)
            means = means._replace(variance=unknown, effective=unknown)
        self.made[key] = means
        return means

    def _of_groups(
        self, quantity: Quantity, arrays: Arrays, groups: Groups, options: Options
    ) -> Iterator[Score]:
        """The score of the rows of every group by the function of a quantity."""
        rows_of_groups: Sequence[Any] = [slice(None)]
        if self.groups is not None:
            order = np.argsort(groups.index, kind="stable")[int((groups.codes < 0).sum()) :]
            rows_of_groups = np.split(order, np.cumsum(groups.counts))[:-1]
        for rows in rows_of_groups:
            of_rows = {name: array[rows] for name, array in arrays.items()}
            n = len(next(iter(of_rows.values())))
            if not n:
                yield Score(None, 0, NO_ROWS)
                continue
            if WEIGHTS in of_rows and not of_rows[WEIGHTS].any():
                yield Score(None, n, NO_WEIGHT)
                continue
            if self.stands_for is not None:
                n = int(self.stands_for[rows].sum())
            result = called(quantity.function, of_rows, n, options)
            yield result if isinstance(result, Score) else Score(float(result), n)

    def measured(self, measure: Measure, options: Options) -> Score | dict[str, Score]:
        """What a named measure says of the rows."""
        needed = {
            need: self.groups if need == GROUPED else self.arrays[need] for need in measure.needs
        }
        if WEIGHTS in self.arrays:
            needed[WEIGHTS] = self.arrays[WEIGHTS]
        return called(measure.function, needed, 0, options)

    def merged(self, index: Array, names: Sequence[str]) -> "Rows":
        """Groups joined: the group g becomes part of ``index[g]``."""
        assert self.groups is not None
        codes = np.append(index, -1)[self.groups.codes]
        return replace(self, groups=Groups.named(codes, names), made={})

    def subgroups(self, trained: bool = False) -> "Rows":
        """Groups and classes that occur as groups, in training too where ``trained``."""
        groups, y = self.groups, self.arrays["y_true"]
        assert groups is not None
        there, y_there = Groups(np.empty(0, np.int64), groups.values), np.empty(0, np.int64)
        if trained:
            there, y_there = self.arrays["sensitive_features_train"], self.arrays["y_train"]
        keys, codes, _ = subgroups(y, groups.index, y_there, there.index)
        values = tuple(
            (*groups.values[group], self.arrays["classes"][label]) for group, label in keys.tolist()
        )
        return replace(self, groups=Groups(codes, values), made={})


TWO = 2


@dataclass(frozen=True, eq=False)
class Counts:
    """Sums over rows by group, class and decision, ``[..., groups + 1, classes, classes]``.

    The last group are the rows without one. Leading axes are test sets, periods or refits. The
    counts of two blocks of rows can be added.

    Attributes:
        groups: names of the groups.
        classes: names of the classes.
        n: numbers of rows; float64 where rows belong to groups with probabilities, else int64.
        weight: sums of weights, float64; ``n`` without weights.
        squares: sums of squared weights, likewise.
        replicates: sums of replicate weights ``[replicates, groups + 1, ...]``.
        units: sums of weights by unit, such as households, sparse ``[units, cells]``.

    >>> sex = Groups.named(np.array([0, 0, 1, 1]), ["f", "m"])
    >>> y_true, y_pred = np.array([1, 1, 1, 0]), np.array([1, 0, 1, 0])
    >>> counts = Counts.of(sex, y_true, y_pred, ("no", "yes"))
    >>> counts.means(counts.grid()[1] == 1).value
    array([0.5, 0.5])
    """

    groups: tuple[str, ...]
    classes: tuple[str, ...]
    n: Array
    weight: Array
    squares: Array
    replicates: Array | None = None
    units: sparse.csr_array | None = None
    made: dict[Any, Means] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(
        cls,
        groups: Groups,
        y: Array,
        decision: Array,
        classes: tuple[str, ...],
        sample_weight: Array | None = None,
        replicate_weights: Array | None = None,
        share: Array | None = None,
        unit: Array | None = None,
    ) -> "Counts":
        """Those of rows ``[n]``; replicate weights are ``[n, replicates]``, units numbers from 0.

        Where a row belongs to its group with a probability only, ``share`` is that, and counts as
        so much of a row; the weights contain it.
        """
        shape = (len(groups.values) + 1, len(classes), len(classes))
        index = np.remainder(groups.codes, shape[0], dtype=np.int64)
        for size, numbers in zip(shape[1:], (y, decision), strict=True):
            index *= size
            index += numbers

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

    @classmethod
    def of_rows(cls, n: Array, groups: Sequence[str] = (), classes: Sequence[str] = ()) -> "Counts":
        """Those of numbers of rows ``[..., groups, classes, classes]`` without weights.

        Groups and classes are numbered where they have no names.
        """
        nobody = np.zeros_like(n[..., :1, :, :])
        every = np.concatenate([n, nobody], axis=-3)
        weight = every.astype(np.float64)
        numbers = [tuple(map(str, range(size))) for size in n.shape[-3:-1]]
        return cls(tuple(groups) or numbers[0], tuple(classes) or numbers[1], every, weight, weight)

    def __add__(self, other: "Counts") -> "Counts":
        """Those of both blocks of rows, of the same groups and classes."""
        replicates = None
        if self.replicates is not None and other.replicates is not None:
            replicates = self.replicates + other.replicates
        units = None
        if self.units is not None and other.units is not None:
            units = self.units + other.units
        return Counts(
            self.groups, self.classes, self.n + other.n, self.weight + other.weight,
            self.squares + other.squares, replicates, units,
        )  # fmt: skip

    def sum(self) -> "Counts":
        """Those of all entries of the first axis together, without weights."""
        return Counts.of_rows(self.n[..., :-1, :, :].sum(0), self.groups, self.classes)

    def before(self, other: "Counts") -> "Counts":
        """With the entries of other counts after these, or after this single one, as first axis."""
        n = np.concatenate([self.n.reshape(-1, *other.n.shape[1:]), other.n])[..., :-1, :, :]
        return Counts.of_rows(n, self.groups, self.classes)

    def __getitem__(self, entries: Any) -> "Counts":
        """Some entries of the first axis, without weights."""
        return Counts.of_rows(self.n[entries][..., :-1, :, :], self.groups, self.classes)

    def of_groups(self, names: Sequence[str]) -> "Counts":
        """Those of groups in another order; 0 of groups that are not here."""
        known = {name: number for number, name in enumerate(self.groups)}
        rows = np.zeros((*self.n.shape[:-3], len(names), *self.n.shape[-2:]), self.n.dtype)
        for place, name in enumerate(names):
            if name in known:
                rows[..., place, :, :] = self.n[..., known[name], :, :]
        return Counts.of_rows(rows, names, self.classes)

    def merged(self, index: Array, names: Sequence[str]) -> "Counts":
        """Groups joined: the known group g becomes part of ``index[g]``; none is unknown.

        Sums by unit are left out.
        """

        def joined(sums: Array) -> Array:
            made = np.zeros((*sums.shape[:-3], len(names) + 1, *sums.shape[-2:]), sums.dtype)
            for number in range(len(names)):
                made[..., number, :, :] = sums[..., :-1, :, :][..., index == number, :, :].sum(-3)
            return made

        return self._mapped(joined, tuple(names))

    def take(self, kept: Array) -> "Counts":
        """Those of some groups, by bool ``[groups]``, and of the rows without a group."""
        index = np.append(np.flatnonzero(kept), len(self.groups))
        names = tuple(self.groups[place] for place in index[:-1])
        units = None
        if self.units is not None:
            cells = np.arange(self.n.size).reshape(self.n.shape)[index].ravel()
            units = self.units[:, cells]
        return self._mapped(lambda sums: sums[..., index, :, :], names, units)

    def _mapped(
        self,
        change: Callable[[Array], Array],
        groups: tuple[str, ...],
        units: sparse.csr_array | None = None,
    ) -> "Counts":
        """Those of other groups, by a function of the sums ``[..., groups + 1, ...]``."""
        replicates = None if self.replicates is None else change(self.replicates)
        n, weight, squares = (change(sums) for sums in (self.n, self.weight, self.squares))
        return Counts(groups, self.classes, n, weight, squares, replicates, units)

    @cached_property
    def everyone(self) -> "Counts":
        """All rows as one group."""
        units = None
        if self.units is not None:
            size = len(self.classes) ** 2
            into = sparse.vstack([sparse.eye_array(size, TWO * size)] * (len(self.groups) + 1))
            units = sparse.csr_array(self.units @ into)
        return self._mapped(
            lambda sums: np.insert(sums.sum(-3, keepdims=True), 1, 0, axis=-3), ("",), units
        )

    def others(self) -> "Counts":
        """Those of all rows that are not in a group, for every group; units are left out."""

        def rest(sums: Array) -> Array:
            made = sums.sum(-3, keepdims=True) - sums
            made[..., -1, :, :] = 0
            return made

        return self._mapped(rest, self.groups)

    def known(self) -> Array:
        """Rows of every group, int64 ``[..., groups]``."""
        return np.asarray(self.n[..., :-1, :, :].sum((-2, -1)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups."""
        return self.groups

    def values(self, quantity: Quantity, options: Options | None = None) -> Means:
        """The values of a quantity by group, computed once."""
        given = {**quantity.options, **(options or {})}
        key = (quantity.name, *given.items())
        if key in self.made:
            return self.made[key]
        if quantity.of_counts is not None:
            n, none = self.known().astype(np.int64), NO_ROWS
            value = quantity.of_counts(self.weight[..., :-1, :, :])
            means = Means(value, np.full(n.shape, np.nan), n, n, n)
        elif quantity.rows is None:
            return self.cells.values(quantity, options)
        else:
            try:
                rows = quantity.rows(*self.grid(), **given)
            except Undefined as reason:
                self.made[key] = Means.missing(reason, self.known())
                return self.made[key]
            means = self.means(np.asarray(rows.values, np.float64), rows.among)
            none = rows.none
        if means.value.ndim == 1:
            means = means.of_groups_with(self.known(), none, self.classes)
        self.made[key] = means
        return means

    def row_values(self, quantity: Quantity) -> tuple[Array, Array | None]:
        """Row values of a mean by class and decision, and the rows that it is taken among."""
        assert quantity.rows is not None
        rows = quantity.rows(*self.grid(), **quantity.options)
        return np.asarray(rows.values, np.float64), rows.among

    def measured(self, measure: Measure, options: Options) -> Score | dict[str, Score]:
        """What a named measure says of the rows."""
        return self.cells.measured(measure, options)

    @cached_property
    def cells(self) -> Rows:
        """A weighted row for each group, class and decision that occurs."""
        group, y, decision = place = np.nonzero(self.n[:-1])
        arrays = {"y_true": y, "y_pred": decision, "classes": self.classes}
        arrays[WEIGHTS] = self.weight[place]
        return Rows(arrays, Groups.named(group, self.groups), self.n[place])

    def subgroups(self, trained: bool = False) -> "Counts":
        """Groups and classes that occur as groups."""
        size = len(self.classes)

        def apart(sums: Array) -> Array:
            made = np.zeros((*sums.shape[:-3], len(self.groups) * size + 1, size, size), sums.dtype)
            for label in range(size):
                made[..., label:-1:size, label, :] = sums[..., :-1, label, :]
            return made

        names = [shown((name, label)) for name in self.groups for label in self.classes]
        whole = self._mapped(apart, tuple(names))
        return whole.take(whole.known() > 0)

    def grid(self) -> tuple[Array, Array]:
        """Class and decision of the sums of a group, ``[classes, classes]`` each."""
        y, decision = np.indices(self.n.shape[-2:])
        return np.asarray(y), np.asarray(decision)

    def means(self, values: Array, among: Array | None = None) -> Means:
        r"""Means of values ``[classes, classes]`` over the rows ``among`` of every group.

        With weights w the variance of the mean m is linearised,
        :math:`n / (n - 1) \sum w^2 (x - m)^2 / (\sum w)^2`, by units where there are any, and at
        least that of :math:`(\sum w)^2 / \sum w^2` rows of equal weight (Kish), since few rows that
        differ have a sum of squares that is often too small. Or it comes from replicate weights.
        """
        of = np.ones(values.shape) if among is None else np.asarray(among, np.float64)
        sums = [part[..., :-1, :, :] for part in (self.n, self.weight, self.squares)]
        n, weight, squares = ((part * of).sum((-2, -1)) for part in sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = (sums[1] * of * values).sum((-2, -1)) / weight
            distance = of * (values - value[..., None, None]) ** 2
            variance = (sums[2] * distance).sum((-2, -1)) * n / (n - 1) / weight**2
            deviations, rows = None, np.where(weight > 0, weight**2 / squares, 0.0)
            if self.replicates is not None:
                parts = self.replicates[:, :-1] * of
                deviations = by_replicates((parts * values).sum((2, 3)) / parts.sum((2, 3)), value)
            elif self.units is not None:
                influence = of * (values - value[:, None, None]) / weight[:, None, None]
                deviations = self._by_unit(np.nan_to_num(influence))
            if deviations is not None:
                variance = np.square(deviations).sum(0)
            if self.replicates is None:
                spread = (sums[1] * distance).sum((-2, -1)) / weight
                variance = np.fmax(variance, spread / (rows - 1))
        bounded = bool(np.isin(values[of > 0], (0, 1)).all())
        effective = independent_rows(value, variance, rows) if bounded else rows
        counted = rows if deviations is None else np.minimum(effective, rows)
        return Means(
            value, variance, n, effective, counted, deviations, weight=weight, bounded=bounded
        )

    def _by_unit(self, influence: Array) -> Array:
        """Deviations ``[units, groups]`` from the influence of cells ``[groups, ...]``.

        The influence of a unit is the sum over its rows, of H units with the factor H / (H - 1).
        """
        assert self.units is not None
        groups = len(self.groups)
        each = np.zeros((*self.n.shape, groups))
        each[range(groups), ..., range(groups)] = influence
        number = self.units.shape[0]
        factor = np.sqrt(number / max(1, number - 1))
        return np.asarray(self.units @ each.reshape(-1, groups) * factor)

    def shares(self) -> Means:
        """Shares of the groups in the rows whose group is known; ``n`` are their rows."""
        n, weight, squares = (sums[:-1].sum((1, 2)) for sums in (self.n, self.weight, self.squares))
        total, n_total = weight.sum(), n.sum()
        share, rows = weight / total, np.full(len(n), total**2 / squares.sum())
        away = squares * (1 - share) ** 2 + (squares.sum() - squares) * share**2
        deviations = None
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = away * n_total / (n_total - 1) / total**2
            if self.replicates is not None:
                drawn = self.replicates[:, :-1].sum((2, 3))
                deviations = by_replicates(drawn / drawn.sum(1, keepdims=True), share)
            elif self.units is not None:
                of = np.repeat(np.eye(len(share)), self.n[0].size, axis=0)
                known = np.asarray(self.units[:, : len(of)] @ (of - share)) / total
                deviations = known * np.sqrt(len(known) / max(1, len(known) - 1))
            if deviations is not None:
                variance = np.square(deviations).sum(0)
            if self.replicates is None:
                variance = np.fmax(variance, share * (1 - share) / (rows - 1))
        return Means(share, variance, n, independent_rows(share, variance, rows), rows, deviations)


Source = Rows | Counts  # what quantities are computed of
