"""What a metric is: a quantity, which aggregations take of groups, or a named measure.

A *quantity* is a number of a set of rows, declared by ``@quantity``: a pure function with
scikit-learn's signature that returns a number, or ``RowValues`` whose mean it is. From row values
follow the value of all rows and of every group in one pass, ``sample_weight``, ``n`` and the
variance. Every form (``robust_fairness.numbers.gaps``) applies to every
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
from dataclasses import dataclass, field
from functools import wraps
from inspect import Parameter, signature
from typing import Any, Literal, NamedTuple, TypeVar, get_type_hints

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.numbers.estimate import independent_rows
from robust_fairness.numbers.groups import Groups, everyone

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
        variance: sampling variance of the value by its rows; None where it is not known, also if
            NaN is given.
        rows: of a share, rows of equal weight that have to be enough for an interval; else NaN.
        low: lower bound of its 95 % interval; NaN without one.
        high: upper bound.
        interval: name of its construction.
    """

    value: float | None
    n: int
    note: str = ""
    applies: bool = True
    variance: float | None = field(default=None, compare=False)
    rows: float = field(default=np.nan, compare=False)
    low: float = field(default=np.nan, compare=False)
    high: float = field(default=np.nan, compare=False)
    interval: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.variance is not None and np.isnan(self.variance):
            object.__setattr__(self, "variance", None)
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


NOTHING = np.empty(0)


class Means(NamedTuple):
    """Values of a quantity within groups, float64 ``[..., groups]`` each, NaN where missing.

    Attributes:
        value: the values.
        variance: their sampling variances by rows, NaN where they are not known.
        n: rows that they rest on.
        effective: numbers of independent rows of equal weight that would have the variance.
        counted: rows that have to be enough for an interval: labelled rows, Kish's number of them
            where they are weighted.
        deviations: ``[m, groups]``, one per set of replicate weights or per unit where there are
            any; the sum of their products is the covariance of the groups.
        shown: rows of the value, or all rows of a group without one, ``[groups]``.
        notes: of every group, why its value is missing, or what it leaves out.
        applies: whether the quantity can have a value there, bool ``[groups]``.
        weight: sums of weights of the rows that they rest on.
        bounded: whether they are shares of rows, from 0 to 1, of known numbers of rows.
    """

    value: Array
    variance: Array
    n: Array
    effective: Array
    counted: Array
    deviations: Array | None = None
    shown: Array = NOTHING
    notes: Sequence[str] = ()
    applies: Array | bool = True
    weight: Array = NOTHING
    bounded: bool = False

    @classmethod
    def of_scores(cls, scores: Sequence[Score]) -> "Means":
        """Those of a score per group."""
        value, variance = (
            np.array([np.nan if each is None else each for each in part], np.float64)
            for part in ([item.value for item in scores], [item.variance for item in scores])
        )
        n = np.array([item.n for item in scores], np.int64)
        notes, applies = [item.note for item in scores], [item.applies for item in scores]
        made = cls(value, variance, n, n, n, None, n, notes, np.array(applies, bool))
        rows = np.array([item.rows for item in scores], np.float64)
        if np.isnan(rows).all():
            return made
        effective = independent_rows(value, variance, rows)
        return made._replace(effective=effective, counted=rows, bounded=True)

    @classmethod
    def missing(cls, reason: Undefined, rows: Array) -> "Means":
        """No value of any group, for a reason."""
        return cls.of_scores([reason.score(n) if n else Score(None, 0, NO_ROWS) for n in rows])

    def of_groups_with(self, rows: Array, none: str, classes: Sequence[str]) -> "Means":
        """With the rows of every group, and why one has no mean, see ``RowValues.none``."""
        notes = [""] * len(rows)
        for place in np.flatnonzero(~np.isfinite(self.value)):
            no_mean = NO_WEIGHT if self.n[place] else none.format(*classes)
            notes[place] = no_mean if rows[place] else NO_ROWS
        shown = np.where(np.isfinite(self.value), self.n, rows)
        return self._replace(shown=shown, notes=notes)

    def scores(
        self, names: Sequence[str], low: Any = np.nan, high: Any = np.nan, interval: str = ""
    ) -> dict[str, Score]:
        """A score per group, by name, within bounds by a construction where there are any."""
        columns = np.broadcast_arrays(
            self.value, self.shown, self.applies, self.variance, low, high
        )  # fmt: skip
        scores = {}
        for name, note, *cells in zip(names, self.notes, *columns, strict=True):
            value, n, applies, variance, least, most = cells
            is_bounded = not (np.isnan(value) or np.isnan(least))
            bounds = (float(least), float(most), interval) if is_bounded else ()
            spread = float(variance), np.nan
            scores[name] = Score(float(value), int(n), note, bool(applies), *spread, *bounds)
        return scores


def means_of_rows(codes: Array, values: Array, groups: int, weight: Weights = None) -> Means:
    r"""Means of row values ``[n]`` of groups with codes ``[n]``, -1 of none, and their variances.

    With weights w the mean is :math:`m = \sum w x / \sum w` and its linearised variance

    .. math:: \frac{n}{n - 1} \frac{\sum w^2 (x - m)^2}{(\sum w)^2}

    which is :math:`s^2 / n` for equal weights, NaN of fewer than two rows, and at least that of
    :math:`(\sum w)^2 / \sum w^2` rows of equal weight.

    >>> means_of_rows(np.array([0, 0, 1]), np.array([1.0, 3.0, 5.0]), 2).value
    array([2., 5.])
    """
    if len(codes) and codes.min() < 0:
        known = codes >= 0
        codes, values = codes[known], values[known]
        weight = None if weight is None else weight[known]
    values = np.asarray(values, np.float64)
    n = np.bincount(codes, minlength=groups)
    total = n.astype(np.float64) if weight is None else np.bincount(codes, weight, groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = np.bincount(codes, values if weight is None else weight * values, groups)
        value = sums / total
        squares = (values - value[codes]) ** 2
        spread = np.bincount(codes, squares if weight is None else squares * weight**2, groups)
        variance, rows = np.where(n > 1, spread * n / (n - 1) / total**2, np.nan), total
        if weight is not None:
            rows = total**2 / np.bincount(codes, weight**2, groups)
            least = np.bincount(codes, squares * weight, groups) / total / (rows - 1)
            variance = np.fmax(variance, least)
    return Means(value, variance, n, rows, rows, weight=total)


def means_of(rows: RowValues, groups: Groups, weight: Weights = None) -> Means:
    """Means of the row values of every group, with the reason where it has no row among them."""
    codes, values = groups.codes, rows.values
    if rows.among is not None:
        codes, values = codes[rows.among], values[rows.among]
        weight = None if weight is None else weight[rows.among]
    means = means_of_rows(codes, values, len(groups.values), weight)
    value = np.where(np.isfinite(means.value), means.value, np.nan)
    return means._replace(value=value).of_groups_with(groups.counts, rows.none, ("0", "1"))


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

    @property
    def words(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    @property
    def takes_weights(self) -> bool:
        """Whether rows can have weights."""
        return WEIGHTS in self.function.__annotations__


@dataclass(frozen=True, kw_only=True)
class Measure(Definition):
    """A named measure, whose function returns a ``Score`` or one per group.

    ``of_counts`` is the same of ``Counts``, where it is a function of these.
    """

    needs: tuple[str, ...] = ("y_true", "y_pred", "sensitive_features")
    of_counts: Callable[..., Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Quantity(Definition):
    """A quantity, whose function returns a number or a ``Score``.

    Attributes:
        rows: from the same arrays to the row values whose mean it is, where it is a mean.
        by_groups: from the same arrays and ``sensitive_features`` to the values of groups, where
            those depend on the other rows too.
        of_counts: from weights of rows ``[..., groups, classes, decisions]`` to the values of
            groups, where they are a function of these, see ``gaps.quantity_of_counts``.
        signed: whether values may be on either side of 0, of which neither end is better.
    """

    rows: Callable[..., RowValues] | None = None
    by_groups: Callable[..., Means] | None = None
    of_counts: Callable[[Array], Array] | None = None
    signed: bool = False


def called(function: Callable[..., Any], arrays: Arrays, n: int, options: Options) -> Any:
    """What a function returns of n rows, or the missing score that it or its rows are."""
    try:
        return function(**arrays, **options)
    except Undefined as reason:
        return reason.score(n)
    except ModuleNotFoundError as error:
        if error.name not in OF_TRAIN:
            raise
        needed = f'needs {error.name}: pip install "robust-fairness[train]"'
        return NotApplicable(needed).score(n)


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
        means = means_of(rows, everyone(len(rows.values)), sample_weight)
        if means.notes[0]:
            raise Undefined(means.notes[0])
        return float(means.value[0])

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
