"""The door of tables of predictions: every mistake in them is found here, and nowhere behind it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

import numpy as np
import pandas as pd

from robust_fairness.auditing.copies import copied
from robust_fairness.auditing.naming import as_category, bins_of, option
from robust_fairness.auditing.predictions import THRESHOLD, Options, PredictionKind, Predictions
from robust_fairness.auditing.read.cleaning import (
    MOST_CODES,
    READ_AS,
    WRITTEN,
    Cleaning,
    date_names,
    date_unit,
    dates_of,
    is_placeholder,
    require_one_decimal,
    texts_of,
)
from robust_fairness.auditing.read.columns import (
    Kind,
    alike,
    as_categories,
    as_groups,
    as_numbers,
    canonical,
    has_at_most,
    quantile_edges,
    require_one_spelling,
    require_two_values,
    row_of,
    two_classes,
    typed,
    typed_as_number,
)
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.numbers import counted, exact
from robust_fairness.core.samples import Samples
from robust_fairness.numbers.counts import TWO

PERCENT = 100
MOST_CLASSES = 10  # of a table with some labels
ROUNDED = 0.01  # by which probabilities may miss their sum of 1
ROUNDING = 1e-6  # by which a probability that was computed may be below 0 or above 1
# Canonical names of the positive class of two if none is declared, and of the other one.
PAIRS = (("1", "0"), ("1", "-1"), ("true", "false"), ("yes", "no"))

Codes = Mapping[str, int]  # class by canonical name of a value


@dataclass(frozen=True)
class _Outcome:
    """Truth and prediction of every row, as ``Predictions`` has them."""

    kind: PredictionKind
    y: np.ndarray
    prediction: np.ndarray
    classes: tuple[str, ...] = ()
    score: np.ndarray = field(default_factory=lambda: np.empty(0))
    threshold: float = THRESHOLD


def check(
    table: pd.DataFrame, options: Options, name: str = "table", like: Predictions | None = None
) -> Predictions:
    """The predictions of a table with a row per prediction.

    Null, empty and blank cells are missing, numbers may have decimal commas and percent signs, and
    whole numbers have one spelling. Rows of weight 0 are left out. ``Predictions.notes`` says what
    was taken for what. Without labels y is the predicted class: no measure that needs labels can
    be made of it.

    Args:
        table: with the columns of the options.
        options: its columns.
        name: of the table, for messages.
        like: of a table without labels, others of the same classes and kind.

    Raises:
        InputError: a column does not exist, is constant or has cells that do not fit, or a row
            lacks target or prediction.
    """
    door = _Door(table, options, name)
    dropped = door.leave_out_incomplete()
    outcome = door.outcome(like)
    weight, replicates = door.weights()
    rows = pd.RangeIndex(len(outcome.y))
    attributes = pd.DataFrame(
        {column: door.attribute(column) for column in options.sensitive_features}, rows
    )
    control = pd.DataFrame({column: door.stratum(column) for column in options.control_features})
    features = {
        column: typed(door.table[column], door.place(column), options.types.get(column))
        for column in options.features
    }
    some = options.labels == "some"
    known, probability = door.labelled(len(outcome.classes)) if some else (None, None)
    samples = Samples(
        x=np.empty((len(rows), 0), np.float32),
        y=outcome.y,
        attributes=attributes,
        id=np.broadcast_to(np.int64(0), len(rows)),
        splits=pd.DataFrame(index=rows),
        classes=outcome.classes,
        sensitive=tuple(map(str, attributes)),
        sample_weight=weight,
    )
    used = door.weighted(weight, replicates)
    predictions = Predictions(
        samples=samples,
        prediction=outcome.prediction,
        kind=outcome.kind,
        score=outcome.score,
        threshold=outcome.threshold,
        replicates=replicates,
        membership=door.membership(),
        dropped=dropped,
        units=None if options.unit is None else door.units(),
        labelled=options.y_true is not None and known is None,
        features=pd.DataFrame(features).reset_index(drop=True),
        control=control.reset_index(drop=True),
        known=known,
        label_probability=probability,
        intersections=options.intersections,
        notes=(*door.notes, *door.hints(attributes, outcome)),
    )
    return predictions if used is None else predictions.take(used)


def with_bins_of(options: Options, table: pd.DataFrame, name: str) -> Options:
    """The options with bins of a table's quantiles and dates, so that other tables have the same.

    Args:
        options: the options.
        table: the earlier table.
        name: of the table, for messages.
    """
    door, bins = _Door(table, options, name), dict(options.bins)
    for column in (*options.sensitive_features, *options.control_features):
        chosen, place = bins.get(column), door.place(column)
        if isinstance(chosen, int):
            bins[column] = quantile_edges(as_numbers(door.table[column], place), place, chosen)
        elif (dates := door.dates(column)) is not None and chosen is None:
            bins[column] = date_unit(dates)
    return replace(options, bins=bins)


class _Door:
    """A table whose columns are known to exist, with cleaned cells.

    Attributes:
        table: the columns of the options.
        notes: how numbers and dates were read.
    """

    def __init__(self, table: pd.DataFrame, options: Options, name: str) -> None:
        self.options, self.name = options, name
        self.notes: list[str] = [*table.attrs.get(READ_AS, ())]
        self._require_columns(table)
        cleaning, cleaned = Cleaning(options.missing, options.decimal), {}
        for column in options.columns:
            cells, place = table[column], self.place(column)
            cleaned[column], how = cleaning.cleaned(cells, place, self._names(column))
            self.notes += [how] if how else []
        if self.notes and options.decimal is None:
            numbers = [column for column in options.columns if not self._names(column)]
            written = {column: table.attrs.get(WRITTEN, {}).get(column) or texts_of(table[column])
                       for column in numbers}  # fmt: skip
            require_one_decimal({self.place(column): of for column, of in written.items()})
        self.table = pd.DataFrame(cleaned, copy=False).reset_index(drop=True)

    def place(self, column: str | None) -> str:
        """Where a column is, for messages."""
        return f"{self.name}, column {column}"

    def numbers(self, column: str) -> np.ndarray:
        """The numbers of a column, float64 ``[n]``."""
        return as_numbers(self.table[column], self.place(column)).to_numpy()

    def _names(self, column: str) -> float:
        """Up to how many distinct texts such as 0,5 or 50 % in a column are names of groups."""
        options = self.options
        declared = options.types.get(column)
        if column == options.unit or declared == "category":
            return np.inf
        groups = column in (*options.sensitive_features, *options.control_features)
        return MOST_CODES if groups and declared is None and column not in options.bins else 0

    def _require_columns(self, table: pd.DataFrame) -> None:
        """Check that there are rows and that each column exists and has one role."""
        options, name = self.options, self.name
        if options.labels == "some":
            self._require_for_some_labels()
        elif options.label_probability is not None:
            raise InputError(f"label probability: only with {option('labels', repr('some'))}")
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
        for column, kind in options.types.items():
            if kind not in get_args(Kind):
                raise InputError(
                    f"types: {column} is {kind!r}, allowed: {' or '.join(get_args(Kind))}"
                )

    def _require_for_some_labels(self) -> None:
        """Check that what is asked for can be estimated from a few labels."""
        options = self.options
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

    def leave_out_incomplete(self) -> int:
        """Leave out rows without target or prediction, an error unless allowed; their number."""
        options, table, name = self.options, self.table, self.name
        lacking, some = np.zeros(len(table), bool), option("labels", "'some'")
        target = [] if options.y_true is None else [("target", options.y_true)]
        for role, column in (
            *target,
            *(("prediction", predicted) for predicted in options.predicted),
        ):
            missing = table[column].isna().to_numpy()
            if role == "target" and options.labels == "some":
                if missing.all():
                    raise InputError(
                        f"{self.place(column)}: no row has a label; without: {without_labels()}"
                    )
                continue
            if missing.any() and not options.drop_unlabelled:
                raise InputError(
                    f"{self.place(column)}, row {row_of(missing)}: no {role}; {missing.sum()} "
                    "rows lack one, but every row needs a value; "
                    f"{option('drop_unlabelled', 'True')} leaves them out"
                    + (f", {some} uses their scores" if role == "target" else "")
                )
            lacking |= missing
        if lacking.all():
            raise InputError(
                f"{name}: no row has a target and a prediction; without labels: {without_labels()}"
            )
        if lacking.any():
            self.table = table[~lacking].reset_index(drop=True)
        return int(lacking.sum())

    def outcome(self, like: Predictions | None) -> _Outcome:
        """Truth and prediction; ``like`` are predictions of the same classes and kind."""
        options = self.options
        if options.y_true is None:
            return self._selections(like)
        if options.continuous:
            return self._continuous()
        y, classes, codes = self._classes(options.y_true)
        kind = self._kind(codes, classes)
        predicted, score, threshold = self._predicted(kind, codes, classes)
        y = np.where(self.table[options.y_true].notna(), y, predicted)
        return _Outcome(kind, y, predicted, classes, score, threshold)

    def _selections(self, like: Predictions | None) -> _Outcome:
        """Predictions without labels."""
        options = self.options
        if options.continuous or not isinstance(options.y_pred, str):
            raise InputError(
                "without labels: predictions are one column of classes, probabilities or scores"
            )
        kind, cells = options.prediction_is, self.table[options.y_pred]
        classes: tuple[str, ...] = ("0", "1")
        if like is not None:
            kind, classes = like.kind, like.samples.classes
        elif kind == "auto":
            kind = "class" if cells.nunique() <= TWO else "probability"
        if kind == "class":
            y, classes, _ = self._classes(options.y_pred)
            if len(classes) != TWO:
                raise InputError(
                    f"{self.place(options.y_pred)}: {len(classes)} classes; declare which is "
                    f"positive ({option('pos_label')})"
                )
            return _Outcome(kind, y, y, classes)
        y, score, threshold = self._predicted(kind, {}, classes)
        return _Outcome(kind, y, y, classes, score, threshold)

    def _continuous(self) -> _Outcome:
        """Target and prediction of a continuous target."""
        options = self.options
        if not isinstance(options.y_pred, str):
            raise InputError("predictions of a continuous target are one column")
        if (
            options.prediction_is not in ("auto", "number")
            or options.pos_label
            or options.threshold is not None
        ):
            raise InputError(
                "predictions of a continuous target must be numbers, without a positive value or a "
                "threshold"
            )
        place = self.place(options.y_true)
        y = require_two_values(as_numbers(self.table[options.y_true], place), place)
        return _Outcome("number", y.to_numpy(), self.numbers(options.y_pred))

    def _classes(self, column: str) -> tuple[np.ndarray, tuple[str, ...], Codes]:
        """Class of every row int64 ``[n]``, names of the classes, and class by value."""
        cells, options, place = self.table[column], self.options, self.place(column)
        positive = options.pos_label
        if options.y_true is None and options.positive_prediction is not None:
            positive = options.positive_prediction
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

    def _kind(self, codes: Codes, classes: tuple[str, ...]) -> PredictionKind:
        """Kind of the predictions of classes."""
        options, declared = self.options, self.options.prediction_is
        if not isinstance(options.y_pred, str):
            if declared not in ("auto", "probability") or options.threshold is not None:
                raise InputError(
                    "predictions in one column per class are probabilities, without a threshold: "
                    "the class with the largest is predicted"
                )
            return "probability"
        cells, place = self.table[options.y_pred], self.place(options.y_pred)
        allowed = ("class", "probability", "score") if len(classes) == TWO else ("class",)
        if declared != "auto":
            if declared not in allowed:
                raise InputError(
                    f"{place}: predictions of kind {declared} with {len(classes)} classes, "
                    f"allowed: {', '.join(allowed)}; probabilities of several classes are one "
                    "column per class"
                )
            return declared
        if options.positive_prediction is not None:
            return "class"
        if has_at_most(cells, len(codes)):
            named = as_categories(cells, place)
            values = {canonical(str(value)) for value in named.cat.categories}
            if values <= self._codes_of(named, codes).keys():
                return "class"
            if (
                len(classes) == TWO
                and not typed_as_number(cells)
                and not any(map(is_placeholder, named.cat.categories))
            ):
                raise InputError(
                    f"{place}: values {' and '.join(map(str, named.cat.categories))}, the target "
                    f"has {' and '.join(classes)}; declare which of them is the positive "
                    f"prediction ({option('positive_prediction')})"
                )
        return "probability" if len(classes) == TWO else "class"

    def _predicted(
        self, kind: PredictionKind, codes: Codes, classes: tuple[str, ...]
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Class of every row int64 ``[n]``, scores as they are in the table, their threshold."""
        options, place = self.options, self.place(self.options.predicted[0])
        threshold = options.threshold
        if not isinstance(options.y_pred, str):
            score = self._probabilities(options.y_pred, classes)
            return score.argmax(1), score, THRESHOLD
        cells = self.table[options.y_pred]
        if kind == "class":
            if threshold is not None:
                raise InputError(
                    "threshold: only allowed if predictions are probabilities or scores"
                )
            return self._predicted_classes(cells, codes, place), np.empty(0), THRESHOLD
        values = self.numbers(options.y_pred)
        if kind == "score" and threshold is None:
            raise InputError(
                f"{place}: a score needs a threshold of the positive class ({option('threshold')})"
            )
        threshold = THRESHOLD if threshold is None else threshold
        if kind != "score":
            _require_probabilities(values, threshold, place)
            values = values.clip(0, 1)
        return (values >= threshold).astype(np.int64), values, threshold

    def _probabilities(self, columns: Sequence[str], classes: tuple[str, ...]) -> np.ndarray:
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
                    f"{self.name}: columns of predictions {', '.join(columns)}; class {label!r} "
                    f"has {len(known)}, allowed: one per class, named after it, as {label} or "
                    f"p_{label}"
                )
            order += known
        if len(order) < len(columns):
            raise InputError(
                f"{self.name}: {len(columns)} columns of predictions for the classes "
                f"{', '.join(classes)}, allowed: one per class"
            )
        score = np.stack([self.numbers(column) for column in order], 1)
        wrong = (score < -ROUNDING).any(1) | (abs(score.sum(1) - 1) > ROUNDED)
        if wrong.any():
            raise InputError(
                f"{self.name}, columns {', '.join(columns)}, row {row_of(wrong)}: allowed: "
                "probabilities from 0 to 1 whose sum is 1"
            )
        return score.clip(0, 1)

    def _predicted_classes(self, cells: pd.Series, codes: Codes, place: str) -> np.ndarray:
        """Predicted classes int64 ``[n]``."""
        named = as_categories(cells, place)
        code_of = self._codes_of(named, codes)
        for value in named.cat.categories:
            if canonical(str(value)) not in code_of:
                row = row_of((named == value).to_numpy())
                raise unknown_name("class", value, code_of, f"{place}, row {row}")
        places = np.array(
            [code_of[canonical(str(value))] for value in named.cat.categories], np.int64
        )
        return places[named.cat.codes.to_numpy()]

    def _codes_of(self, named: pd.Series, codes: Codes) -> Codes:
        """Class by value of a prediction.

        Of two classes 0 and 1, or -1 and 1, also as truth values, or as two decisions of which the
        positive one is declared.
        """
        names = {canonical(str(value)): str(value) for value in named.cat.categories}
        if (decision := self.options.positive_prediction) is not None:
            place = self.place(self.options.predicted[0])
            if canonical(decision) not in names:
                raise unknown_name("positive prediction", decision, names.values(), place)
            if len(names) > TWO:
                raise InputError(
                    f"{place}: decisions {', '.join(names.values())}, allowed: two, of which "
                    f"{decision} is positive"
                )
            return {name: int(name == canonical(decision)) for name in names}
        for positive, *negative in PAIRS[:2]:
            if {positive, *negative} == {*codes} and {*names} <= {"true", "false"}:
                return {"true": codes[positive], "false": codes[negative[0]]}
        return codes

    def weights(self) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The weights, of which none is negative and not all are 0, and the replicate weights."""
        options, columns = self.options, self.options.replicate_weights
        if columns and options.continuous:
            raise InputError("replicate weights: only for classes")
        if options.sample_weight is None:
            if columns:
                raise InputError(
                    f"replicate weights: need the weights themselves ({option('sample_weight')})"
                )
            return None, None
        weight = self.numbers(options.sample_weight)
        wrong = ~(weight >= 0)
        if wrong.any() or not weight.any():
            row = row_of(wrong) if wrong.any() else 1
            raise InputError(
                f"{self.place(options.sample_weight)}, row {row}: {exact(weight[row - 1])}, "
                "allowed: weights above 0, or 0"
            )
        if not columns:
            return weight, None
        replicates = np.stack([self.numbers(column) for column in columns], 1)
        missing = np.argwhere(~np.isfinite(replicates))
        if len(missing):
            row, column = missing[0]
            raise InputError(
                f"{self.place(columns[column])}, row {row + 1}: no replicate weight, allowed: a "
                "number; leave out the columns in which some are missing, or these rows"
            )
        return weight, replicates

    def weighted(
        self, weight: np.ndarray | None, replicates: np.ndarray | None
    ) -> np.ndarray | None:
        """Numbers of the rows that have weight; None where every row has."""
        if weight is None or weight.all():
            return None
        zero = weight == 0
        if replicates is not None:
            zero &= (replicates == 0).all(1)
        place = self.place(self.options.sample_weight)
        self.notes.append(f"{place}: {counted({'rows': zero.sum()})} of weight 0 left out")
        return np.flatnonzero(~zero)

    def labelled(self, classes: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Which rows have a label, and their probabilities ``[n]``; None where every row has one.

        ``classes`` is their number.
        """
        options = self.options
        known = self.table[options.y_true].notna().to_numpy()
        if known.all():
            return None, None
        if classes > MOST_CLASSES:
            raise InputError(f"labels some: {classes} classes, allowed: at most {MOST_CLASSES}")
        if options.label_probability is None:
            return known, None
        probability = self.numbers(options.label_probability)
        wrong = known & ~((probability > 0) & (probability <= 1))
        if wrong.any():
            row = row_of(wrong)
            raise InputError(
                f"{self.place(options.label_probability)}, row {row}: "
                f"{exact(probability[row - 1])}, allowed: probabilities above 0, at most 1, of "
                "every row with a label"
            )
        return known, probability

    def units(self) -> np.ndarray:
        """Numbers of the units ``[n]``, of which every row has one."""
        options = self.options
        codes, units = pd.factorize(self.table[options.unit])
        place = self.place(options.unit)
        if (codes < 0).any():
            raise InputError(f"{place}, row {row_of(codes < 0)}: no unit; every row needs one")
        if len(units) < TWO:
            raise InputError(f"{place}: {len(units)} unit, allowed: two or more")
        if options.continuous or options.replicate_weights:
            raise InputError("unit: only for classes, and without replicate weights")
        return codes

    def membership(self) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        """Probabilities of the groups of attributes; their columns are named after the groups."""
        known = {}
        for attribute, columns in self.options.membership.items():
            share = np.stack([self.numbers(column) for column in columns], 1)
            wrong = np.isfinite(share).any(1) & ~(
                (share >= 0).all(1) & (abs(share.sum(1) - 1) < ROUNDED)
            )
            if len(columns) < TWO or wrong.any():
                row = row_of(wrong) if wrong.any() else 1
                raise InputError(
                    f"{self.name}, columns {', '.join(columns)}, row {row}: allowed: a probability "
                    "per group from 0 to 1, two columns or more, whose sum is 1, or all missing"
                )
            known[attribute] = (tuple(column.removeprefix("p_") for column in columns), share)
        return known

    def dates(self, column: str) -> pd.Series | None:
        """The dates of a column of them with more values than are groups as they are."""
        cells, declared = self.table[column], column in self.options.types
        if declared or (is_text := cells.dtype == "category") and has_at_most(cells, MOST_CODES):
            return None
        return dates_of(cells) if is_text or cells.dtype.kind == "M" else None

    def attribute(self, column: str) -> pd.Series:
        """An attribute: categories, or numbers, which have no groups."""
        options, place = self.options, self.place(column)
        bins, dates = options.bins.get(column), self.dates(column)
        if isinstance(bins, str) and dates is None:
            dates = dates_of(self.table[column])
            if dates is None:
                raise InputError(f"{place}: bins {bins!r} need a column of dates")
        if dates is not None:
            if not isinstance(bins, str | None):
                raise InputError(f"{place}: dates, allowed bins: decade, year, quarter, month, day")
            unit = bins or date_unit(dates)
            if bins is None:
                self.notes.append(
                    f"{place}: dates, divided into groups by {unit} "
                    f"({bins_of(column, unit)}; allowed: decade, year, quarter, month, day)"
                )
            return require_two_values(date_names(dates, unit), place)
        edges = None if isinstance(bins, str) else bins
        values = as_groups(self.table[column], place, options.types.get(column), edges)
        if values.dtype != "category" and column not in options.types:
            self.notes.append(
                f"{column} is taken for a number, with {values.nunique()} values, and has no "
                f"groups; allowed: {as_category(column)}, "
                f"{bins_of(column, '30,60')} (edges) or {bins_of(column, '4')} (quantiles)"
            )
        return values

    def stratum(self, column: str) -> pd.Series:
        """A control feature as categories."""
        values = self.attribute(column)
        if values.dtype != "category":
            raise InputError(
                f"{self.place(column)}: a continuous control feature, allowed: categories, or bins "
                f"of it ({option('bins')})"
            )
        return values

    def hints(self, attributes: pd.DataFrame, outcome: _Outcome) -> Iterator[str]:
        """Lines on texts that may mean a missing value, groups of several spellings, and copies."""
        for column, values in attributes.select_dtypes("category").items():
            counts = values.value_counts()
            for name in filter(is_placeholder, counts.index[counts > 0]):
                yield (
                    f"{column}: {name!r} is a group of {counted({'rows': counts[name]})}; if it "
                    f"means a missing value: {option('missing', repr(name))}"
                )
            for name in counts.index[counts > 0]:
                if len(lines := str(name).splitlines()) > 1:
                    yield (
                        f"{column}: a group of {counted({'rows': counts[name]})} has "
                        f"{len(lines)} lines, the first {lines[0]!r}; in a CSV file a quotation "
                        "mark may lack its end"
                    )
            for names in alike(values):
                rows = ", ".join(
                    f"{ascii(name)} ({counted({'rows': counts[name]})})" for name in names
                )
                yield f"{column}: {rows} are groups of their own; if they are one, write one name"
        for name in filter(is_placeholder, outcome.classes):
            yield (
                f"target: {name!r} is a class; if it means a missing value: "
                f"{option('missing', repr(name))}"
            )
        options = self.options
        judged = options.y_true is not None and options.labels == "all" and options.unit is None
        if judged and outcome.score.ndim == 1 and copied(outcome.score, outcome.y):
            yield (
                f"{options.y_pred}: rows with the same score have the same target far more often "
                "than rows with similar scores; if rows were copied, leave out the copies, and if "
                f"they belong together, name what they share: {option('unit', repr('COLUMN'))}"
            )


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
