"""What a metric is: a quantity, which aggregations take of groups, or a named measure.

A *quantity* is a number of a set of rows, declared by ``@quantity``: a pure function with
scikit-learn's signature that returns a number, or ``RowValues`` whose mean it is. From row values
follow the value of all rows and of every group in one pass, ``sample_weight``, ``n`` and the
variance. Every aggregation (``robust_fairness.metrics.aggregations``) applies to every
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
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Literal, TypeVar, get_type_hints

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.inference.moments import Moments
from robust_fairness.samples import Groups

NO_ROWS = "no rows"
NO_WEIGHT = "a value is not finite, or no row has weight"
WEIGHTS, GROUPED = "sample_weight", "sensitive_features"
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
        value: the value; None where it is not defined, also if NaN is given.
        n: number of rows that it rests on.
        note: why the value is missing, or what it leaves out.
        applies: whether the metric can have a value for such data.
        variance: sampling variance of the value by its rows; None where it is not known.
    """

    value: float | None
    n: int
    note: str = ""
    applies: bool = True
    variance: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.value is not None and np.isnan(self.value):  # no worst group passes it over
            object.__setattr__(self, "value", None)
            object.__setattr__(self, "note", self.note or NO_WEIGHT)


@dataclass(frozen=True)
class RowValues:
    """Values of rows whose mean is a quantity.

    Attributes:
        values: one per row ``[n]``.
        among: the rows that the mean is taken among, bool ``[n]``; all rows if None.
        none: why there is no mean without any such row, such as ``no rows of class {1}``, with the
            places of the names of classes.
    """

    values: Array
    among: Array | None = None
    none: str = NO_ROWS


class Undefined(InputError):
    """A metric is not defined for these rows; the text says why."""

    def score(self, n: int = 0) -> Score:
        """The missing value, of ``n`` rows."""
        return Score(None, n, str(self))


class NotApplicable(Undefined):
    """A metric does not apply to such data; the text says why."""

    def score(self, n: int = 0) -> Score:
        return Score(None, n, f"not applicable: {self}", applies=False)


def everyone(rows: int) -> Groups:
    """All rows in one group without a name."""
    return Groups.named(np.zeros(rows, dtype=np.int64), [""])


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
    def words(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

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
            result = self.function(**{need: arrays[need] for need in self.needs}, **options)
        except Undefined as reason:
            result = reason.score()
        except ModuleNotFoundError as error:
            result = _needs_extra(error).score()
        return result if isinstance(result, dict) else {"": result}


@dataclass(frozen=True, kw_only=True)
class Quantity(Definition):
    """A quantity, whose function returns a number or a ``Score``.

    Attributes:
        rows: from the same arrays to the row values whose mean it is, where it is a mean.
        by_groups: from the same arrays and ``sensitive_features`` to a score per group, where that
            depends on the other rows too.
    """

    rows: Callable[..., RowValues] | None = None
    by_groups: Callable[..., dict[str, Score]] | None = None

    def scores(self, arrays: Arrays, options: Options) -> dict[str, Score]:
        """The score of all rows."""
        if self.rows is not None:
            return self.by_group(arrays, everyone(len(arrays[self.needs[0]])), options)
        return {"": self._score({need: arrays[need] for need in self.needs}, options)}

    def _score(self, rows: Arrays, options: Options) -> Score:
        """The score of some rows by the function."""
        count = len(rows[self.needs[0]])
        if not count:
            return Score(None, 0, NO_ROWS)
        if WEIGHTS in rows and not rows[WEIGHTS].any():
            return Score(None, count, NO_WEIGHT)
        try:
            result = self.function(**rows, **options)
        except Undefined as reason:
            return reason.score(count)
        except ModuleNotFoundError as error:
            return _needs_extra(error).score(count)
        return as_score(result, count)

    def by_group(self, arrays: Arrays, groups: Groups, options: Options) -> dict[str, Score]:
        """The score of every group, also of those without rows."""
        needed = {need: arrays[need] for need in self.needs}
        if self.rows is not None:
            return self._of_means(needed, groups, options)
        if self.by_groups is not None:
            return self.by_groups(**needed, sensitive_features=groups, **options)
        order = np.argsort(groups.index, kind="stable")
        rows_by_group = np.split(order, np.cumsum(groups.counts))[:-1]
        return {
            name: self._score({key: array[rows] for key, array in needed.items()}, options)
            for name, rows in zip(groups.names, rows_by_group, strict=True)
        }

    def _of_means(self, arrays: Arrays, groups: Groups, options: Options) -> dict[str, Score]:
        """The mean of row values in every group, in one pass."""
        assert self.rows is not None
        unweighted = {name: array for name, array in arrays.items() if name != WEIGHTS}
        try:
            result = self.rows(**unweighted, **options)
        except Undefined as reason:
            counts = zip(groups.names, groups.counts.tolist(), strict=True)
            return {name: reason.score(n) if n else Score(None, 0, NO_ROWS) for name, n in counts}
        return mean_scores(result, groups, arrays.get(WEIGHTS))


def mean_scores(rows: RowValues, groups: Groups, sample_weight: Weights = None) -> dict[str, Score]:
    """Mean of the row values of every group, missing where it has no row among them."""
    values, index = rows.values, groups.index
    if rows.among is not None:
        values, index = values[rows.among], index[rows.among]
        sample_weight = None if sample_weight is None else sample_weight[rows.among]
    sums = Moments.of(values, index, len(groups.names), sample_weight)
    scores = {}
    for name, mean, variance, n, count in zip(
        groups.names, sums.mean, sums.variance, sums.n.tolist(), groups.counts.tolist(), strict=True
    ):
        if np.isfinite(mean):
            known = None if np.isnan(variance) else float(variance)
            scores[name] = Score(float(mean), n, variance=known)
        else:
            scores[name] = Score(None, count, _no_mean(rows, n, count))
    return scores


def _no_mean(rows: RowValues, n: int, count: int) -> str:
    if n:
        return NO_WEIGHT
    return rows.none.format("0", "1") if count else NO_ROWS


def as_score(result: Any, n: int) -> Score:
    """What a quantity returned of n rows as a score."""
    return result if isinstance(result, Score) else Score(float(result), n)


DEFINITIONS: dict[str, Definition] = {}


def quantity(**facts: Any) -> Callable[[Function], Callable[..., Any]]:
    """Register a function as a quantity under its own name, with these fields of ``Quantity``.

    A function that is declared to return ``RowValues`` becomes one that returns their mean and
    takes ``sample_weight``.
    """

    def made(declared: Function) -> Callable[..., Any]:
        name: str = declared.__name__
        if get_type_hints(declared).get("return") is not RowValues:
            return registered(Quantity(name=name, function=declared, **facts))
        function = _mean_function(declared)
        return registered(Quantity(name=name, function=function, rows=declared, **facts))

    return made


def _mean_function(declared: Callable[..., RowValues]) -> Callable[..., float]:
    """The function of the same arrays, with ``sample_weight``, that returns the mean."""

    @wraps(declared)
    def mean(*arrays: Array, sample_weight: Weights = None, **options: Any) -> float:
        rows = declared(*arrays, **options)
        score = mean_scores(rows, everyone(len(rows.values)), sample_weight)[""]
        if score.value is None:
            raise Undefined(score.note)
        return score.value

    declared_parameters = signature(declared)
    weight = Parameter(WEIGHTS, Parameter.KEYWORD_ONLY, default=None, annotation=Weights)
    parameters = [*declared_parameters.parameters.values(), weight]
    mean.__signature__ = declared_parameters.replace(  # type: ignore[attr-defined]
        parameters=parameters, return_annotation=float
    )
    mean.__annotations__ = {**declared.__annotations__, WEIGHTS: Weights, "return": float}
    return mean


def measure(**facts: Any) -> Callable[[Function], Function]:
    """Register a function as a named measure, with these fields of ``Measure``."""
    return lambda item: registered(Measure(name=item.__name__, function=item, **facts))


def registered(definition: Definition) -> Any:
    """The function of a definition, which metrics are found by from now on."""
    known = DEFINITIONS.get(definition.name)
    if known and known.function.__module__ != definition.function.__module__:
        places = f"{known.function.__module__}, {definition.function.__module__}"
        raise InputError(f"metric {definition.name!r}: two metrics have this name ({places})")
    DEFINITIONS[definition.name] = definition
    return definition.function
