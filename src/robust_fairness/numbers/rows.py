"""Rows as a source of quantities: what metrics are computed of that are no function of counts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from robust_fairness.numbers.groups import Groups, everyone, subgroups
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
