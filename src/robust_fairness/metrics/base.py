"""What a metric is: a quantity, which aggregations take of groups, or a named measure.

A *quantity* is a number of a set of rows: a pure function with scikit-learn's signature, declared
by ``@quantity``. Every aggregation (``robust_fairness.metrics.aggregations``) applies to every
quantity. A *named measure* is a function of its own, declared by ``@measure``.

Both say by ``needs`` which arrays they are called with, by keyword. ``n`` is the number of rows:

- ``y_true`` and ``y_pred`` (class or outcome), ``y_score`` (probability of class 1), ``outputs``
  (logits ``[n, classes]`` or outcomes ``[n, 1]``), ``classes`` (their names);
- ``sensitive_features`` (``Groups``): the metric is computed for every categorical attribute;
- ``sensitive_columns`` and ``conditioning_columns`` (``[rows]`` of them are numbers
  ``[rows, columns]``): every attribute, continuous ones too, and the outcome, or the dataset's
  conditioning variable;
- ``y_train``, ``sensitive_features_train``: of the training rows;
- ``attributes``, ``attributes_train``: all of them, as frames;
- any further array of rows that predictions keep, such as ``embedding`` or ``curvature``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.samples import Groups

NOT_APPLICABLE = "not applicable: "
NO_ROWS = "no rows"

Better = Literal["higher", "lower"]
Task = Literal["classification", "regression", "any"]
Arrays = Mapping[str, Any]
Options = Mapping[str, float]
Function = TypeVar("Function", bound=Callable[..., Any])

NO_OPTIONS: Options = MappingProxyType({})


@dataclass(frozen=True)
class Score:
    """A metric's value.

    Attributes:
        value: the value; None where it is not defined.
        n: number of rows that it rests on.
        note: why the value is missing, or what it leaves out.
    """

    value: float | None
    n: int
    note: str = ""


class Undefined(InputError):
    """A metric is not defined for these rows; the text says why."""


@dataclass(frozen=True)
class Definition:
    """A quantity or a named measure, with what selection and evaluation must know of it.

    Attributes:
        name: name of the function.
        function: the function.
        better: whether higher or lower values are better.
        task: the task that it is defined for.
        needs: names of the arrays that it is called with.
        options: further keyword arguments, numbers, with their defaults.
        binary: whether it is defined for two classes only.
        unshifted_only: whether it is computed on the test set as it is only, not on shifted ones.
    """

    name: str
    function: Callable[..., Any]
    better: Better
    task: Task
    needs: tuple[str, ...]
    options: Options
    binary: bool
    unshifted_only: bool

    def scores(self, arrays: Arrays, options: Options) -> dict[str, Score]:
        """Scores by group; that of all rows has the name ``""``."""
        raise NotImplementedError


@dataclass(frozen=True)
class Measure(Definition):
    """A named measure, whose function returns a ``Score`` or one per group."""

    def scores(self, arrays: Arrays, options: Options) -> dict[str, Score]:
        """Scores by group."""
        try:
            found = self.function(**{need: arrays[need] for need in self.needs}, **options)
        except Undefined as reason:
            found = Score(None, 0, str(reason))
        return found if isinstance(found, dict) else {"": found}


@dataclass(frozen=True)
class Quantity(Definition):
    """A quantity, whose function returns a number or a ``Score``.

    Attributes:
        among: from the same arrays to the rows that the value rests on, bool ``[n]``; all rows
            unless given.
        of_groups: from the same arrays and ``sensitive_features`` to a score per group, where that
            is faster than group by group or depends on the other rows too.
    """

    among: Callable[..., np.ndarray] | None = None
    of_groups: Callable[..., dict[str, Score]] | None = None

    def scores(self, arrays: Arrays, options: Options) -> dict[str, Score]:
        """The score of all rows."""
        return {"": self.score({need: arrays[need] for need in self.needs}, options)}

    def score(self, rows: Arrays, options: Options) -> Score:
        """The score of some rows."""
        count = len(rows[self.needs[0]])
        if not count:
            return Score(None, 0, NO_ROWS)
        try:
            found = self.function(**rows, **options)
        except Undefined as reason:
            return Score(None, count, str(reason))
        if isinstance(found, Score):
            return found
        if self.among is None:
            return Score(float(found), count)
        used = self.among(**{need: rows[need] for need in self.needs})
        return Score(float(found), int(np.count_nonzero(used)))

    def by_group(self, arrays: Arrays, groups: Groups, options: Options) -> dict[str, Score]:
        """The score of every group, also of those without rows."""
        own = {need: arrays[need] for need in self.needs}
        if self.of_groups is not None:
            return self.of_groups(**own, sensitive_features=groups, **options)
        return {
            name: self.score({need: array[rows] for need, array in own.items()}, options)
            for name, rows in rows_by_group(groups).items()
        }


DEFINITIONS: dict[str, Definition] = {}


def quantity(
    better: Better,
    task: Task = "classification",
    needs: Sequence[str] = ("y_true", "y_pred"),
    options: Options = NO_OPTIONS,
    binary: bool = False,
    unshifted_only: bool = False,
    among: Callable[..., np.ndarray] | None = None,
    of_groups: Callable[..., dict[str, Score]] | None = None,
) -> Callable[[Function], Function]:
    """Register a function as a quantity under its own name; see ``Quantity``."""

    def register(function: Function) -> Function:
        facts = (better, task, tuple(needs), options, binary, unshifted_only)
        return _register(Quantity(function.__name__, function, *facts, among, of_groups))

    return register


def measure(
    better: Better,
    task: Task = "classification",
    needs: Sequence[str] = ("y_true", "y_pred", "sensitive_features"),
    options: Options = NO_OPTIONS,
    binary: bool = False,
    unshifted_only: bool = False,
) -> Callable[[Function], Function]:
    """Register a function as a named measure under its own name; see ``Measure``."""

    def register(function: Function) -> Function:
        facts = (better, task, tuple(needs), options, binary, unshifted_only)
        return _register(Measure(function.__name__, function, *facts))

    return register


def _register(one: Definition) -> Any:
    known = DEFINITIONS.get(one.name)
    if known and known.function.__module__ != one.function.__module__:
        places = f"{known.function.__module__}, {one.function.__module__}"
        raise InputError(f"metric {one.name!r}: two metrics have this name ({places})")
    DEFINITIONS[one.name] = one
    return one.function


def rows_by_group(groups: Groups) -> dict[str, np.ndarray]:
    """Row numbers of every group, in order."""
    order = np.argsort(groups.index, kind="stable")
    ends = np.cumsum(groups.counts)
    return dict(zip(groups.names, np.split(order, ends)[:-1], strict=True))
