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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.samples import Groups

NO_ROWS = "no rows"
WEIGHTS = "sample_weight"
OF_TRAIN = ("torch", "sklearn")  # libraries that metrics import when they are computed

Better = Literal["higher", "lower"]
Task = Literal["classification", "regression", "any"]
Array = np.ndarray
Weights = np.ndarray | None  # of rows; equal ones if None
Arrays = Mapping[str, Any]
Options = Mapping[str, float]
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Score:
    """A metric's value.

    Attributes:
        value: the value; None where it is not defined.
        n: number of rows that it rests on.
        note: why the value is missing, or what it leaves out.
        applies: whether the metric can have a value for such data.
    """

    value: float | None
    n: int
    note: str = ""
    applies: bool = True


class Undefined(InputError):
    """A metric is not defined for these rows; the text says why."""

    def score(self, n: int = 0) -> Score:
        """The missing value, of ``n`` rows."""
        return Score(None, n, str(self))


class NotApplicable(Undefined):
    """A metric does not apply to such data; the text says why."""

    def score(self, n: int = 0) -> Score:
        return Score(None, n, f"not applicable: {self}", applies=False)


def _needs_extra(error: ModuleNotFoundError) -> NotApplicable:
    """Why a metric has no value without a library of the extra ``train``."""
    if error.name not in OF_TRAIN:
        raise error
    return NotApplicable(f'needs {error.name}: pip install "robust-fairness[train]"')


@dataclass(frozen=True, kw_only=True)
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
    task: Task = "classification"
    needs: tuple[str, ...] = ("y_true", "y_pred")
    options: Options = field(default_factory=dict)
    binary: bool = False
    unshifted_only: bool = False

    def scores(self, arrays: Arrays, options: Options) -> dict[str, Score]:
        """Scores by group; that of all rows has the name ``""``."""
        raise NotImplementedError

    @property
    def takes_weights(self) -> bool:
        """Whether rows can have weights."""
        return WEIGHTS in self.function.__annotations__

    def weighted(self) -> "Definition":
        """The same, which also needs the array ``sample_weight``.

        Raises:
            InputError: its function has no weights.
        """
        if not self.takes_weights:
            raise InputError(f"{self.name}: takes no sample_weight")
        return replace(self, needs=(*self.needs, WEIGHTS))


@dataclass(frozen=True, kw_only=True)
class Measure(Definition):
    """A named measure, whose function returns a ``Score`` or one per group."""

    needs: tuple[str, ...] = ("y_true", "y_pred", "sensitive_features")

    def scores(self, arrays: Arrays, options: Options) -> dict[str, Score]:
        """Scores by group."""
        try:
            found = self.function(**{need: arrays[need] for need in self.needs}, **options)
        except Undefined as reason:
            found = reason.score()
        except ModuleNotFoundError as error:
            found = _needs_extra(error).score()
        return found if isinstance(found, dict) else {"": found}


@dataclass(frozen=True, kw_only=True)
class Quantity(Definition):
    """A quantity, whose function returns a number or a ``Score``.

    Attributes:
        among: from the same arrays to the rows that the value rests on, bool ``[n]``; all rows
            unless given.
        of_groups: from the same arrays and ``sensitive_features`` to a score per group, where that
            is faster than group by group or depends on the other rows too.
    """

    among: Callable[..., Array] | None = None
    of_groups: Callable[..., dict[str, Score]] | None = None

    def scores(self, arrays: Arrays, options: Options) -> dict[str, Score]:
        """The score of all rows."""
        return {"": self.score({need: arrays[need] for need in self.needs}, options)}

    def weighted(self) -> "Quantity":
        counted = self.among
        among = None if counted is None else lambda sample_weight, **rows: counted(**rows)
        return replace(self, needs=super().weighted().needs, among=among, of_groups=None)

    def score(self, rows: Arrays, options: Options) -> Score:
        """The score of some rows."""
        count = len(rows[self.needs[0]])
        if not count:
            return Score(None, 0, NO_ROWS)
        try:
            found = self.function(**rows, **options)
        except Undefined as reason:
            return reason.score(count)
        except ModuleNotFoundError as error:
            return _needs_extra(error).score(count)
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
        return self.group_by_group(own, groups, options)

    def group_by_group(self, arrays: Arrays, groups: Groups, options: Options) -> dict[str, Score]:
        """The score of every group from the arrays of its rows."""
        order = np.argsort(groups.index, kind="stable")
        rows_by_group = np.split(order, np.cumsum(groups.counts))[:-1]
        return {
            name: self.score({key: array[rows] for key, array in arrays.items()}, options)
            for name, rows in zip(groups.names, rows_by_group, strict=True)
        }


DEFINITIONS: dict[str, Definition] = {}


def quantity(**facts: Any) -> Callable[[Function], Function]:
    """Register a function as a quantity under its own name, with these fields of ``Quantity``."""
    return lambda one: _registered(Quantity(name=one.__name__, function=one, **facts))


def measure(**facts: Any) -> Callable[[Function], Function]:
    """Register a function as a named measure, with these fields of ``Measure``."""
    return lambda one: _registered(Measure(name=one.__name__, function=one, **facts))


def _registered(one: Definition) -> Any:
    known = DEFINITIONS.get(one.name)
    if known and known.function.__module__ != one.function.__module__:
        places = f"{known.function.__module__}, {one.function.__module__}"
        raise InputError(f"metric {one.name!r}: two metrics have this name ({places})")
    DEFINITIONS[one.name] = one
    return one.function
