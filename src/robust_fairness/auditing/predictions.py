"""A table of predictions, checked: every mistake in it is found here."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.auditing.naming import option
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.numbers import exact
from robust_fairness.datasets.labels import two_classes
from robust_fairness.datasets.raw.columns import (
    MOST_CODES,
    Bins,
    Kind,
    as_categories,
    as_numbers,
    attribute,
    canonical,
    has_at_most,
    percentages,
    quantile_edges,
    require_one_spelling,
    require_two_values,
    row_of,
    typed,
    typed_as_number,
)
from robust_fairness.inference.counts import TWO, Counts
from robust_fairness.inference.partly import partly_labelled
from robust_fairness.samples import Groups, Samples, groups_of, shown

THRESHOLD = 0.5  # of a probability
SMALL = 30  # rows below which a group is flagged: a share has a standard error of up to 9 points
PERCENT = 100
MOST_CLASSES = 10  # of a table with some labels
ROUNDED = 0.01  # by which probabilities may miss their sum of 1
ROUNDING = 1e-6  # by which a probability that was computed may be below 0 or above 1
# Canonical names of the positive class of two if none is declared, and of the other one.
PAIRS = (("1", "0"), ("1", "-1"), ("true", "false"), ("yes", "no"))

PredictionKind = Literal["auto", "class", "probability", "score", "number"]
Codes = Mapping[str, int]


@dataclass(frozen=True)
class Options:
    """The columns of a table of predictions, and what is scored of them.

    Attributes:
        y_true: column of the true values; without one, only what needs no labels is scored.
        y_pred: column of the predictions, or one per class with the probabilities of the classes,
            named after them (``p_good``, ``p_bad``).
        sensitive_features: columns of attributes; rows without a value belong to no group.
        sample_weight: column of weights.
        replicate_weights: columns of replicate weights for successive differences, as of the Census
            Bureau, from which the variances follow.
        unit: column of units whose rows are not independent, such as households or patients.
        membership: attributes of which only probabilities are known: columns, one per group.
        drop_unlabelled: leave out rows without target or prediction, which are an error otherwise.
        neg_labels: values of class 0, or ``rest``; needed if there are several beside
            ``pos_label``.
        pos_label: value of class 1 of a binary target; default: ``1``, ``True`` or ``yes``, beside
            ``0`` or ``-1``, ``False`` or ``no``.
        continuous: the target is continuous.
        prediction_is: ``class``: a value of the target; ``probability`` of the positive class, in
            [0, 1]; ``score``: any number, positive from ``threshold`` on; ``number``: an estimate
            of a continuous target. ``auto``: number if the target is continuous, class if all
            values are values of the target, otherwise probability.
        threshold: lowest probability (default 0.5) or score of the positive class.
        types: ``number`` or ``category`` by attribute, where the rules of
            ``datasets.raw.columns`` decide otherwise or cannot decide.
        bins: bins of numeric attributes: increasing edges, or a number of quantile bins.
        metrics: names of the metrics, see ``report.selected``.
        functions: further metrics by name, functions of ``y_true`` and ``y_pred`` (numbers of
            classes, the positive one of two is 1, or outcomes) and, if they take it,
            ``sample_weight``; see ``report.of_function``.
        intersections: also score the intersections of all categorical attributes.
        small: groups with fewer rows are flagged.
        suppress: groups with fewer rows are not shown; gaps between groups contain them.
        features: columns that the model predicts from, to tell why values changed.
        control_features: columns of strata, within which gaps are compared too.
        labels: ``some``: rows without a true value are used through their scores; ``none``: true
            values are not read.
        label_probability: column of the probabilities with which the labelled rows were chosen, up
            to a factor; equal ones if None.
        search: find the worst subgroup of up to three attributes, see ``search.searched``.
    """

    y_true: str | None
    y_pred: str | Sequence[str]
    sensitive_features: Sequence[str]
    pos_label: str | None = None
    continuous: bool = False
    prediction_is: PredictionKind = "auto"
    threshold: float | None = None
    types: Mapping[str, Kind] = field(default_factory=dict)
    bins: Mapping[str, Bins] = field(default_factory=dict)
    metrics: Sequence[str] = ("conventional",)
    functions: Mapping[str, Callable[..., float]] = field(default_factory=dict)
    intersections: bool = False
    small: int = SMALL
    suppress: int = 0
    sample_weight: str | None = None
    replicate_weights: Sequence[str] = ()
    membership: Mapping[str, Sequence[str]] = field(default_factory=dict)
    drop_unlabelled: bool = False
    neg_labels: Sequence[str] = ()
    unit: str | None = None
    features: Sequence[str] = ()
    control_features: Sequence[str] = ()
    labels: Literal["all", "some", "none"] = "all"
    label_probability: str | None = None
    search: bool = False

    @property
    def predicted(self) -> Sequence[str]:
        """The columns of the predictions."""
        return [self.y_pred] if isinstance(self.y_pred, str) else self.y_pred

    @property
    def prediction(self) -> str:
        """The column of the predictions, or the first of several."""
        return self.predicted[0]

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        named = (self.y_true, self.sample_weight, self.unit, self.label_probability)
        target, weight, unit, probability = ([] if name is None else [name] for name in named)
        groups = [column for columns in self.membership.values() for column in columns]
        named_before = {*self.sensitive_features, *self.control_features}
        features = [name for name in self.features if name not in named_before]
        return [
            *target, *self.predicted, *self.sensitive_features, *groups, *weight, *unit,
            *self.replicate_weights, *self.control_features, *features, *probability,
        ]  # fmt: skip

    def with_edges_of(self, table: pd.DataFrame, name: str) -> "Options":
        """With a table's quantiles as bins, so that other tables have the same groups."""
        edges: dict[str, Bins] = dict(self.bins)
        for column, bins in self.bins.items():
            if isinstance(bins, int) and column in table:
                cells = as_numbers(table[column], f"{name}, column {column}")
                edges[column] = quantile_edges(cells, f"{name}, column {column}", bins)
        return replace(self, bins=edges)


@dataclass(frozen=True)
class Predictions:
    """Checked predictions of some kind, in the form that metrics take.

    The samples have no features. ``prediction`` ``[n]`` has class indices or numbers, ``score`` the
    probabilities or scores of the positive class ``[n]`` or the probabilities of all classes
    ``[n, classes]`` as they are in the table, empty without any, with their threshold.
    ``replicates`` are replicate weights ``[n, replicates]``, ``membership`` the probabilities
    ``[n, groups]`` of the groups of attributes, NaN in rows without any, and ``dropped`` the number
    of rows that lacked target or prediction. ``units`` are numbers of units ``[n]``. Rows without
    a label have the predicted class as y: all, or, where ``known`` is not None, those that it does
    not mark; ``labelled`` says that none is. ``features`` are numbers and categories, ``control``
    categories.
    """

    samples: Samples
    prediction: np.ndarray
    kind: PredictionKind
    score: np.ndarray = field(default_factory=lambda: np.empty(0))
    threshold: float = THRESHOLD
    replicates: np.ndarray | None = None
    membership: Mapping[str, tuple[tuple[str, ...], np.ndarray]] = field(default_factory=dict)
    dropped: int = 0
    units: np.ndarray | None = None
    labelled: bool = True
    features: pd.DataFrame = field(default_factory=pd.DataFrame)
    control: pd.DataFrame = field(default_factory=pd.DataFrame)
    known: np.ndarray | None = None
    label_probability: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> "Predictions":
        """The predictions of some rows, by number; groups without any of them are gone."""
        samples = self.samples.take(rows)
        categories = samples.attributes.select_dtypes("category").items()
        present = {str(name): values.cat.remove_unused_categories() for name, values in categories}
        attributes = samples.attributes.assign(**present)
        return replace(
            self,
            samples=replace(samples, attributes=attributes),
            prediction=self.prediction[rows],
            score=self.score[rows] if len(self.score) else self.score,
            replicates=None if self.replicates is None else self.replicates[rows],
            features=self.features.iloc[rows] if len(self.features.columns) else self.features,
            control=self.control.iloc[rows] if len(self.control.columns) else self.control,
            units=None
            if self.units is None
            else np.unique(self.units[rows], return_inverse=True)[1],
            membership={k: (names, p[rows]) for k, (names, p) in self.membership.items()},
            known=None if self.known is None else self.known[rows],
            label_probability=None
            if self.label_probability is None
            else self.label_probability[rows],
        )

    @property
    def outputs(self) -> np.ndarray:
        """Log probabilities ``[n, classes]`` or numbers ``[n, 1]``."""
        if not self.samples.classes:
            return self.prediction[:, None]
        if not len(self.score):
            hit = np.arange(len(self.samples.classes)) == self.prediction[:, None]
            return np.where(hit, 0.0, -np.inf)
        shares = self.score
        if self.kind == "score":
            # scaled to [0, 1]; FairCOCCO standardises its columns, which removes the scale again
            shares = (shares - shares.min()) / (np.ptp(shares) or 1.0)
        with np.errstate(divide="ignore"):  # log(0) is -inf
            if shares.ndim == 1:
                return np.log(np.stack([1 - shares, shares], axis=1))
            return np.log(shares)

    def counts(self, intersections: bool) -> dict[str, Counts]:
        """Counts by categorical attribute, their intersections, and attributes of membership."""
        by_attribute = {}
        for name, groups in self.groups(intersections).items():
            by_attribute[name] = self.counts_of(groups)
        for name, (names, share) in self.membership.items():
            known = np.isfinite(share).all(1)
            parts = [*enumerate(np.where(known[:, None], share, 0.0).T), (-1, 1.0 - known)]
            sums = [
                self.counts_of(Groups.named(np.full(len(known), code), names), of)
                for code, of in parts
            ]
            by_attribute[name] = sum(sums[1:], sums[0])
        return by_attribute

    def everyone(self) -> Counts:
        """Counts of all rows as one group."""
        return self.counts_of(Groups.named(np.zeros(len(self.samples), np.int64), ("",)))

    def counts_of(self, groups: Groups, share: np.ndarray | None = None) -> Counts:
        """Counts of groups of the rows, to which they belong with probabilities ``share``."""
        if self.known is not None:
            return partly_labelled(
                groups, self.samples.y, self.prediction, self.samples.classes, self.known,
                np.exp(self.outputs), self.weight, self.label_probability,
            )  # fmt: skip
        weight, replicates = self.weight, self.replicates
        if share is not None:
            weight = share if weight is None else weight * share
            replicates = None if replicates is None else replicates * share[:, None]
        return Counts.of(
            groups, self.samples.y, self.prediction, self.samples.classes, weight, replicates,
            share, self.units,
        )  # fmt: skip

    @property
    def weight(self) -> np.ndarray | None:
        """Weights of the rows ``[n]``."""
        return self.samples.sample_weight

    def groupings(self, intersections: bool) -> list[tuple[str, ...]]:
        """Columns of every categorical attribute, and of the intersection of all of them."""
        alone = [(str(name),) for name in self.samples.attributes.select_dtypes("category")]
        together = [tuple(name for (name,) in alone)] if intersections and len(alone) > 1 else []
        return [*alone, *together]

    def groups(self, intersections: bool) -> dict[str, Groups]:
        """Groups by name of the attribute or the intersection."""
        attributes = self.samples.attributes
        return {
            attribute_name(columns, attributes): groups_of(attributes, columns)
            for columns in self.groupings(intersections)
        }


def attribute_name(columns: Sequence[str], existing: Container[str]) -> str:
    """The name of an attribute, or of an intersection, which no column has."""
    name = shown(columns)
    return f"({name})" if len(columns) > 1 and name in existing else name


def check(
    table: pd.DataFrame, options: Options, name: str = "table", like: Predictions | None = None
) -> Predictions:
    """The predictions of a table with a row per prediction.

    Without labels y is the predicted class: no measure that needs labels can be made of it.

    Args:
        table: with the columns of the options.
        options: its columns.
        name: of the table, for messages.
        like: of a table without labels, others of the same classes and kind.

    Raises:
        InputError: a column does not exist, is constant or has cells that do not fit, or a row
            lacks target or prediction.
    """
    _require_columns(table, options, name)
    table, dropped = _complete(table, options, name)
    classes: tuple[str, ...] = ()
    score, threshold = np.empty(0), THRESHOLD
    kind: PredictionKind
    if options.y_true is None:
        kind, y, classes, score, threshold = _selections(table, options, name, like)
        predicted = y
    elif options.continuous:
        y, predicted = _numbers(table, options, name)
        kind = "number"
    else:
        place = f"{name}, column {options.y_true}"
        y, classes, codes = _classes(table[options.y_true], options, place)
        kind = _kind(table, options, codes, classes, name)
        predicted, score, threshold = _predicted(table, kind, options, codes, classes, name)
        y = np.where(table[options.y_true].notna(), y, predicted)
    weight, replicates = _weights(table, options, name)
    samples = replace(_samples(table, options, name, y, classes), sample_weight=weight)
    known, probability = _labelled(table, options, len(classes), name)
    features = {
        column: typed(table[column], f"{name}, column {column}", options.types.get(column))
        for column in options.features
    }
    return Predictions(
        samples, predicted, kind, score, threshold, replicates, _membership(table, options, name),
        dropped, _units(table, options, name), options.y_true is not None and known is None,
        pd.DataFrame(features).reset_index(drop=True), _control(table, options, name), known,
        probability,
    )  # fmt: skip


def _labelled(
    table: pd.DataFrame, options: Options, number: int, name: str
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Which rows have a label, and their probabilities ``[n]``; None where every row has one.

    ``number`` is that of the classes.
    """
    if options.labels != "some":
        return None, None
    known = table[options.y_true].notna().to_numpy()
    if known.all():
        return None, None
    if number > MOST_CLASSES:
        raise InputError(f"labels some: {number} classes, allowed: at most {MOST_CLASSES}")
    if options.label_probability is None:
        return known, None
    place = f"{name}, column {options.label_probability}"
    probability = as_numbers(table[options.label_probability], place).to_numpy()
    wrong = known & ~((probability > 0) & (probability <= 1))
    if wrong.any():
        row = row_of(wrong)
        raise InputError(
            f"{place}, row {row}: {exact(probability[row - 1])}, allowed: probabilities above 0, "
            "at most 1, of every row with a label"
        )
    return known, probability


def _control(table: pd.DataFrame, options: Options, name: str) -> pd.DataFrame:
    """The control features as categories."""
    columns = {
        column: attribute(
            table[column], f"{name}, column {column}", options.types.get(column),
            options.bins.get(column), by_values=False,
        )
        for column in options.control_features
    }  # fmt: skip
    for column, values in columns.items():
        if not isinstance(values.dtype, pd.CategoricalDtype):
            raise InputError(
                f"{name}, column {column}: a continuous control feature, allowed: categories, or "
                f"bins of it ({option('bins')})"
            )
    return pd.DataFrame(columns).reset_index(drop=True)


def _selections(
    table: pd.DataFrame, options: Options, name: str, like: Predictions | None
) -> tuple[PredictionKind, np.ndarray, tuple[str, ...], np.ndarray, float]:
    """Kind, predicted class ``[n]``, classes, scores and threshold, without labels."""
    if options.continuous or not isinstance(options.y_pred, str):
        raise InputError(
            "without labels: predictions are one column of classes, probabilities or scores"
        )
    kind, cells = options.prediction_is, table[options.y_pred]
    classes: tuple[str, ...] = ("0", "1")
    if like is not None:
        kind, classes = like.kind, like.samples.classes
    elif kind == "auto":
        kind = "class" if cells.nunique() <= TWO else "probability"
    if kind == "class":
        place = f"{name}, column {options.y_pred}"
        y, classes, _ = _classes(cells, options, place)
        if len(classes) != TWO:
            raise InputError(
                f"{place}: {len(classes)} classes; declare which is positive "
                f"({option('pos_label')})"
            )
        return kind, y, classes, np.empty(0), THRESHOLD
    y, score, threshold = _predicted(table, kind, options, {}, classes, name)
    return kind, y, classes, score, threshold


def _units(table: pd.DataFrame, options: Options, name: str) -> np.ndarray | None:
    """Numbers of the units ``[n]``, of which every row has one."""
    if options.unit is None:
        return None
    codes, units = pd.factorize(table[options.unit])
    place = f"{name}, column {options.unit}"
    if (codes < 0).any():
        raise InputError(f"{place}, row {row_of(codes < 0)}: no unit; every row needs one")
    if len(units) < TWO:
        raise InputError(f"{place}: {len(units)} unit, allowed: two or more")
    if options.continuous or options.replicate_weights:
        raise InputError("unit: only for classes, and without replicate weights")
    return codes


def _weights(
    table: pd.DataFrame, options: Options, name: str
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The weights, of which none is negative and not all are 0, and the replicate weights."""
    columns = options.replicate_weights
    if columns and options.continuous:
        raise InputError("replicate weights: only for classes")
    if options.sample_weight is None:
        if columns:
            raise InputError(
                f"replicate weights: need the weights themselves ({option('sample_weight')})"
            )
        return None, None
    place = f"{name}, column {options.sample_weight}"
    weight = as_numbers(table[options.sample_weight], place).to_numpy()
    wrong = ~(weight >= 0)
    if wrong.any() or not weight.any():
        row = row_of(wrong) if wrong.any() else 1
        raise InputError(
            f"{place}, row {row}: {exact(weight[row - 1])}, allowed: weights above 0, or 0"
        )
    return weight, _numeric(table, columns, name) if columns else None


def _numeric(table: pd.DataFrame, columns: Sequence[str], name: str) -> np.ndarray:
    """The numbers of some columns ``[n, columns]``."""
    return np.stack(
        [as_numbers(table[column], f"{name}, column {column}").to_numpy() for column in columns], 1
    )


def _membership(
    table: pd.DataFrame, options: Options, name: str
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Probabilities of the groups of attributes; their columns are named after the groups."""
    known = {}
    for attribute_, columns in options.membership.items():
        share = _numeric(table, columns, name)
        wrong = np.isfinite(share).any(1) & ~(
            (share >= 0).all(1) & (abs(share.sum(1) - 1) < ROUNDED)
        )
        if len(columns) < TWO or wrong.any():
            row = row_of(wrong) if wrong.any() else 1
            raise InputError(
                f"{name}, columns {', '.join(columns)}, row {row}: allowed: a probability per "
                "group from 0 to 1, two columns or more, whose sum is 1, or all missing"
            )
        known[attribute_] = (tuple(column.removeprefix("p_") for column in columns), share)
    return known


def _samples(
    table: pd.DataFrame, options: Options, name: str, y: np.ndarray, classes: tuple[str, ...]
) -> Samples:
    """Samples with attributes, without features."""
    attributes = {
        column: attribute(
            table[column], f"{name}, column {column}", options.types.get(column),
            options.bins.get(column), by_values=False,
        )
        for column in options.sensitive_features
    }  # fmt: skip
    rows = pd.RangeIndex(len(y))
    return Samples(
        x=np.empty((len(y), 0), np.float32),
        y=y,
        attributes=pd.DataFrame(attributes, None if attributes else rows).reset_index(drop=True),
        id=np.broadcast_to(np.int64(0), len(y)),
        splits=pd.DataFrame(index=rows),
        classes=classes,
        sensitive=tuple(attributes),
    )


def _require_columns(table: pd.DataFrame, options: Options, name: str) -> None:
    """Check that there are rows and that each column exists and has one role."""
    if options.labels == "some":
        _require_for_some_labels(options)
    elif options.label_probability is not None:
        only = option("labels", "'some'")
        raise InputError(f"label probability: only with {only}")
    if table.empty:
        raise InputError(f"{name}: has no rows")
    if not options.sensitive_features and not options.membership:
        raise InputError("attributes: at least one column is needed")
    for column in options.columns:
        if column not in table:
            raise unknown_name("column", column, map(str, table.columns), name)
        if options.columns.count(column) > 1:
            raise InputError(
                f"column {column} has two roles; it can be only one of target, prediction, "
                "attribute, weight, unit, control feature, feature and label probability"
            )
    attributes = [*options.sensitive_features, *options.control_features]
    typed_columns = [*attributes, *options.features]
    for place, named, allowed in (
        ("types", options.types, typed_columns), ("bins", options.bins, attributes)
    ):  # fmt: skip
        for column in named:
            if column not in allowed:
                raise unknown_name("attribute", column, allowed, place)


def _require_for_some_labels(options: Options) -> None:
    """Check that what is asked for can be estimated from a few labels."""
    others = {
        "unit": options.unit, "replicate_weights": options.replicate_weights,
        "membership": options.membership, "control_features": options.control_features,
        "features": options.features, "drop_unlabelled": options.drop_unlabelled,
        "continuous": options.continuous, "metrics as functions": options.functions,
    }  # fmt: skip
    if options.y_true is None:
        raise InputError(f"labels some: needs a target ({option('y_true')})")
    if wrong := [name for name, value in others.items() if value]:
        raise InputError(f"labels some: not with {option(wrong[0])}")


def _complete(table: pd.DataFrame, options: Options, name: str) -> tuple[pd.DataFrame, int]:
    """The rows that have target and prediction, and how many do not: an error unless allowed."""
    lacking, some = np.zeros(len(table), bool), option("labels", "'some'")
    target = [] if options.y_true is None else [("target", options.y_true)]
    for role, column in (
        *target,
        *(("prediction", predicted) for predicted in options.predicted),
    ):
        missing = table[column].isna().to_numpy()
        if role == "target" and options.labels == "some":
            if missing.all():
                place = f"{name}, column {column}"
                raise InputError(f"{place}: no row has a label; without: {without_labels()}")
            continue
        if missing.any() and not options.drop_unlabelled:
            raise InputError(
                f"{name}, column {column}, row {row_of(missing)}: no {role}; {missing.sum()} rows "
                "lack one, but every row needs a value; "
                f"{option('drop_unlabelled', 'True')} leaves them out"
                + (f", {some} uses their scores" if role == "target" else "")
            )
        lacking |= missing
    if lacking.all():
        raise InputError(
            f"{name}: no row has a target and a prediction; without labels: {without_labels()}"
        )
    if not lacking.any():
        return table, 0
    return table[~lacking].reset_index(drop=True), int(lacking.sum())


def _numbers(table: pd.DataFrame, options: Options, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Target and prediction of a continuous target."""
    if not isinstance(options.y_pred, str):
        raise InputError("predictions of a continuous target are one column")
    if (
        options.prediction_is not in ("auto", "number")
        or options.pos_label
        or (options.threshold is not None)
    ):
        raise InputError(
            "predictions of a continuous target must be numbers, without a positive value or a "
            "threshold"
        )
    place = f"{name}, column {options.y_true}"
    y = require_two_values(as_numbers(table[options.y_true], place), place)
    predicted = as_numbers(table[options.y_pred], f"{name}, column {options.y_pred}")
    return y.to_numpy(), predicted.to_numpy()


def _classes(
    cells: pd.Series, options: Options, place: str
) -> tuple[np.ndarray, tuple[str, ...], Codes]:
    """Class of every row int64 ``[n]``, names of the classes, and class by value."""
    positive = options.pos_label
    if typed_as_number(cells) and not has_at_most(cells, MOST_CODES) and not positive:
        raise InputError(
            f"{place}: {cells.nunique()} distinct numbers are not classes; declare the target "
            "continuous"
        )
    values = require_two_values(as_categories(cells, place), place)
    values = require_one_spelling(values, place, by_values=False)
    names = [str(category) for category in values.cat.categories]
    by_name = {canonical(name): name for name in names}
    if positive is None and len(names) > TWO:
        codes = {canonical(name): code for code, name in enumerate(names)}
        return values.cat.codes.to_numpy(np.int64), tuple(names), codes
    if positive is None:
        positive = next(
            (by_name[label] for label, *other in PAIRS if {label, *other} == {*by_name}), None
        )
    if positive is None:
        raise InputError(
            f"{place}: values {' and '.join(names)}; declare which is positive "
            f"({option('pos_label')})"
        )
    positive = by_name.get(canonical(positive), positive)
    negative = tuple(by_name.get(canonical(label), label) for label in options.neg_labels)
    rest = option("neg_labels", "'rest'")
    target = two_classes(values, (positive,), place, negative, rest).cat
    codes = {canonical(name): int(name == positive) for name in names}
    return target.codes.to_numpy(np.int64), tuple(target.categories), codes


def _kind(
    table: pd.DataFrame, options: Options, codes: Codes, classes: tuple[str, ...], name: str
) -> PredictionKind:
    """Kind of the predictions of classes."""
    declared = options.prediction_is
    if not isinstance(options.y_pred, str):
        if declared not in ("auto", "probability") or options.threshold is not None:
            raise InputError(
                "predictions in one column per class are probabilities, without a threshold: the "
                "class with the largest is predicted"
            )
        return "probability"
    cells, place = table[options.y_pred], f"{name}, column {options.y_pred}"
    allowed = ("class", "probability", "score") if len(classes) == TWO else ("class",)
    if declared != "auto":
        if declared not in allowed:
            raise InputError(
                f"{place}: predictions of kind {declared} with {len(classes)} classes, allowed: "
                f"{', '.join(allowed)}; probabilities of several classes are one column per class"
            )
        return declared
    if has_at_most(cells, len(codes)):
        named = as_categories(cells, place)
        values = {canonical(str(category)) for category in named.cat.categories}
        if values <= _codes_of(named, codes).keys():
            return "class"
    return "probability" if len(classes) == TWO else "class"


def _predicted(
    table: pd.DataFrame,
    kind: PredictionKind,
    options: Options,
    codes: Codes,
    classes: tuple[str, ...],
    name: str,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Class of every row int64 ``[n]``, scores as they are in the table, and their threshold."""
    place, threshold = f"{name}, column {options.prediction}", options.threshold
    if not isinstance(options.y_pred, str):
        score = _probabilities(table, options.y_pred, classes, name)
        return score.argmax(1), score, THRESHOLD
    cells = table[options.y_pred]
    if kind == "class":
        if threshold is not None:
            raise InputError("threshold: only allowed if predictions are probabilities or scores")
        return _predicted_classes(cells, codes, place), np.empty(0), THRESHOLD
    values = as_numbers(percentages(cells), place).to_numpy()
    if kind == "score" and threshold is None:
        raise InputError(
            f"{place}: a score needs a threshold of the positive class ({option('threshold')})"
        )
    threshold = THRESHOLD if threshold is None else threshold
    if kind != "score":
        _require_probabilities(values, threshold, place)
        values = values.clip(0, 1)
    return (values >= threshold).astype(np.int64), values, threshold


def _probabilities(
    table: pd.DataFrame, columns: Sequence[str], classes: tuple[str, ...], name: str
) -> np.ndarray:
    """Probabilities of the classes ``[n, classes]``, from columns named after them."""
    order = []
    for label in classes:
        known = [
            column
            for column in columns
            if canonical(label) in (canonical(column), canonical(column).partition("_")[2])
        ]
        if len(known) != 1:
            raise InputError(
                f"{name}: columns of predictions {', '.join(columns)}; class {label!r} has "
                f"{len(known)}, allowed: one per class, named after it, as {label} or p_{label}"
            )
        order += known
    if len(order) < len(columns):
        raise InputError(
            f"{name}: {len(columns)} columns of predictions for the classes {', '.join(classes)}, "
            "allowed: one per class"
        )
    score = _numeric(table, order, name)
    wrong = (score < -ROUNDING).any(1) | (abs(score.sum(1) - 1) > ROUNDED)
    if wrong.any():
        raise InputError(
            f"{name}, columns {', '.join(columns)}, row {row_of(wrong)}: allowed: probabilities "
            "from 0 to 1 whose sum is 1"
        )
    return score.clip(0, 1)


def _require_probabilities(values: np.ndarray, threshold: float, place: str) -> None:
    wrong = (values < -ROUNDING) | (values > 1 + ROUNDING)
    if wrong.any():
        row = row_of(wrong)
        score = option("prediction_is", "'score'")
        percent = "50" if 2 <= values.max() <= PERCENT and values.min() >= 0 else "X"  # noqa: PLR2004
        raise InputError(
            f"{place}, row {row}: {exact(values[row - 1])}, allowed: a class of the target or a "
            "probability from 0 to 1; of percentages and other numbers: "
            f"{score} {option('threshold', percent)}"
        )
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold: {exact(threshold)}, allowed: 0 to 1")


def without_labels() -> str:
    """How an audit without labels is asked for."""
    return option("labels", "none") if option("y_true") != "y_true" else "leave out y_true"


def _predicted_classes(cells: pd.Series, codes: Codes, place: str) -> np.ndarray:
    """Predicted classes int64 ``[n]``."""
    named = as_categories(cells, place)
    code_of = _codes_of(named, codes)
    for category in named.cat.categories:
        if canonical(str(category)) not in code_of:
            row = row_of((named == category).to_numpy())
            raise unknown_name("class", category, codes, f"{place}, row {row}")
    places = np.array(
        [code_of[canonical(str(category))] for category in named.cat.categories], np.int64
    )
    return places[named.cat.codes.to_numpy()]


def _codes_of(named: pd.Series, codes: Codes) -> Codes:
    """Class by value of a prediction; of two classes 0 and 1, or -1 and 1, also as truth values."""
    values = {canonical(str(category)) for category in named.cat.categories}
    for positive, *negative in PAIRS[:2]:
        if {positive, *negative} == {*codes} and values <= {"true", "false"}:
            return {"true": codes[positive], "false": codes[negative[0]]}
    return codes
