"""Truth and prediction of every row: classes by name, probabilities, scores or numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from robust_fairness.auditing.checked import Checked
from robust_fairness.auditing.naming import option
from robust_fairness.auditing.predictions import THRESHOLD, PredictionKind, Predictions
from robust_fairness.auditing.read.cleaning import (
    MOST_CODES,
    is_placeholder,
)
from robust_fairness.auditing.read.columns import (
    as_categories,
    as_numbers,
    canonical,
    has_at_most,
    require_one_spelling,
    require_two_values,
    row_of,
    two_classes,
    typed_as_number,
)
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.numbers import exact
from robust_fairness.numbers.counts import TWO

PERCENT = 100
ROUNDED = 0.01  # by which probabilities may miss their sum of 1
ROUNDING = 1e-6  # by which a probability that was computed may be below 0 or above 1
# Canonical names of the positive class of two if none is declared, and of the other one.
PAIRS = (("1", "0"), ("1", "-1"), ("true", "false"), ("yes", "no"))

Codes = Mapping[str, int]  # class by canonical name of a value


@dataclass(frozen=True)
class Outcome:
    """Truth and prediction of every row, as ``Predictions`` has them."""

    kind: PredictionKind
    y: np.ndarray
    prediction: np.ndarray
    classes: tuple[str, ...] = ()
    score: np.ndarray = field(default_factory=lambda: np.empty(0))
    threshold: float = THRESHOLD


def outcome_of(checked: Checked, like: Predictions | None) -> Outcome:
    """Truth and prediction; ``like`` are predictions of the same classes and kind."""
    options = checked.options
    if options.y_true is None:
        return _selections(checked, like)
    if options.continuous:
        return _continuous(checked)
    y, classes, codes = _classes(checked, options.y_true)
    kind = _kind(checked, codes, classes)
    predicted, score, threshold = _predicted(checked, kind, codes, classes)
    y = np.where(checked.table[options.y_true].notna(), y, predicted)
    return Outcome(kind, y, predicted, classes, score, threshold)


def _selections(checked: Checked, like: Predictions | None) -> Outcome:
    """Predictions without labels."""
    options = checked.options
    if options.continuous or not isinstance(options.y_pred, str):
        raise InputError(
            "without labels: predictions are one column of classes, probabilities or scores"
        )
    kind, cells = options.prediction_is, checked.table[options.y_pred]
    classes: tuple[str, ...] = ("0", "1")
    if like is not None:
        kind, classes = like.kind, like.samples.classes
    elif kind == "auto":
        kind = "class" if cells.nunique() <= TWO else "probability"
    if kind == "class":
        y, classes, _ = _classes(checked, options.y_pred)
        if len(classes) != TWO:
            raise InputError(
                f"{checked.place(options.y_pred)}: {len(classes)} classes; declare which is "
                f"positive ({option('pos_label')})"
            )
        return Outcome(kind, y, y, classes)
    y, score, threshold = _predicted(checked, kind, {}, classes)
    return Outcome(kind, y, y, classes, score, threshold)


def _continuous(checked: Checked) -> Outcome:
    """Target and prediction of a continuous target."""
    options = checked.options
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
    place = checked.place(options.y_true)
    y = require_two_values(as_numbers(checked.table[options.y_true], place), place)
    return Outcome("number", y.to_numpy(), checked.numbers(options.y_pred))


def _classes(checked: Checked, column: str) -> tuple[np.ndarray, tuple[str, ...], Codes]:
    """Class of every row int64 ``[n]``, names of the classes, and class by value."""
    cells, options, place = checked.table[column], checked.options, checked.place(column)
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


def _kind(checked: Checked, codes: Codes, classes: tuple[str, ...]) -> PredictionKind:
    """Kind of the predictions of classes."""
    options, declared = checked.options, checked.options.prediction_is
    if not isinstance(options.y_pred, str):
        if declared not in ("auto", "probability") or options.threshold is not None:
            raise InputError(
                "predictions in one column per class are probabilities, without a threshold: "
                "the class with the largest is predicted"
            )
        return "probability"
    cells, place = checked.table[options.y_pred], checked.place(options.y_pred)
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
        if values <= _codes_of(checked, named, codes).keys():
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
    checked: Checked, kind: PredictionKind, codes: Codes, classes: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Class of every row int64 ``[n]``, scores as they are in the table, their threshold."""
    options, place = checked.options, checked.place(checked.options.predicted[0])
    threshold = options.threshold
    if not isinstance(options.y_pred, str):
        score = _probabilities(checked, options.y_pred, classes)
        return score.argmax(1), score, THRESHOLD
    cells = checked.table[options.y_pred]
    if kind == "class":
        if threshold is not None:
            raise InputError("threshold: only allowed if predictions are probabilities or scores")
        return _predicted_classes(checked, cells, codes, place), np.empty(0), THRESHOLD
    values = checked.numbers(options.y_pred)
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
    checked: Checked, columns: Sequence[str], classes: tuple[str, ...]
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
                f"{checked.name}: columns of predictions {', '.join(columns)}; class {label!r} "
                f"has {len(known)}, allowed: one per class, named after it, as {label} or "
                f"p_{label}"
            )
        order += known
    if len(order) < len(columns):
        raise InputError(
            f"{checked.name}: {len(columns)} columns of predictions for the classes "
            f"{', '.join(classes)}, allowed: one per class"
        )
    score = np.stack([checked.numbers(column) for column in order], 1)
    wrong = (score < -ROUNDING).any(1) | (abs(score.sum(1) - 1) > ROUNDED)
    if wrong.any():
        raise InputError(
            f"{checked.name}, columns {', '.join(columns)}, row {row_of(wrong)}: allowed: "
            "probabilities from 0 to 1 whose sum is 1"
        )
    return score.clip(0, 1)


def _predicted_classes(checked: Checked, cells: pd.Series, codes: Codes, place: str) -> np.ndarray:
    """Predicted classes int64 ``[n]``."""
    named = as_categories(cells, place)
    code_of = _codes_of(checked, named, codes)
    for value in named.cat.categories:
        if canonical(str(value)) not in code_of:
            row = row_of((named == value).to_numpy())
            raise unknown_name("class", value, code_of, f"{place}, row {row}")
    places = np.array([code_of[canonical(str(value))] for value in named.cat.categories], np.int64)
    return places[named.cat.codes.to_numpy()]


def _codes_of(checked: Checked, named: pd.Series, codes: Codes) -> Codes:
    """Class by value of a prediction.

    Of two classes 0 and 1, or -1 and 1, also as truth values, or as two decisions of which the
    positive one is declared.
    """
    names = {canonical(str(value)): str(value) for value in named.cat.categories}
    if (decision := checked.options.positive_prediction) is not None:
        place = checked.place(checked.options.predicted[0])
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
