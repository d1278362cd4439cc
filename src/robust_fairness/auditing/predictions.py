"""A table of predictions, checked: every mistake in it is found here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.datasets.labels import two_classes
from robust_fairness.datasets.raw.columns import (
    MOST_CODES,
    Bins,
    Kind,
    as_categories,
    as_numbers,
    attribute,
    canonical,
    percentages,
    quantile_edges,
    require_one_spelling,
    require_two_values,
    row_of,
    typed_as_number,
)
from robust_fairness.samples import Samples

TWO = 2
THRESHOLD = 0.5  # of a probability
PERCENT = 100
# Canonical names of the positive class of two if none is declared, and of the other one.
PAIRS = (("1", "0"), ("1", "-1"), ("true", "false"), ("yes", "no"))

PredictionKind = Literal["auto", "class", "probability", "score", "number"]
Codes = Mapping[str, int]


@dataclass(frozen=True)
class Roles:
    """The columns of a table of predictions and what they mean; see ``audit``."""

    target: str
    prediction: str
    attributes: Sequence[str]
    positive: str | None = None
    continuous: bool = False
    prediction_is: PredictionKind = "auto"
    threshold: float | None = None
    types: Mapping[str, Kind] = field(default_factory=dict)
    bins: Mapping[str, Bins] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return [self.target, self.prediction, *self.attributes]

    def with_edges_of(self, table: pd.DataFrame, name: str) -> "Roles":
        """With a table's quantiles as bins, so that other tables have the same groups."""
        found: dict[str, Bins] = dict(self.bins)
        for one, bins in self.bins.items():
            if isinstance(bins, int) and one in table:
                cells = as_numbers(table[one], f"{name}, column {one}")
                found[one] = quantile_edges(cells, bins)
        return replace(self, bins=found)


@dataclass(frozen=True)
class Predictions:
    """Checked predictions of some kind, in the form that metrics take.

    The samples have no features. ``prediction`` ``[n]`` has class indices or numbers, ``outputs``
    log probabilities ``[n, classes]`` or numbers ``[n, 1]``, ``score`` ``[n]`` the probabilities or
    scores of the positive class as they are in the table, empty without any, with their threshold.
    """

    samples: Samples
    prediction: np.ndarray
    outputs: np.ndarray
    kind: PredictionKind
    score: np.ndarray = field(default_factory=lambda: np.empty(0))
    threshold: float = THRESHOLD

    def take(self, rows: np.ndarray) -> "Predictions":
        """The predictions of some rows, by number; groups without any of them are gone."""
        samples = self.samples.take(rows)
        attributes = pd.DataFrame({k: _present(one) for k, one in samples.attributes.items()})
        return replace(
            self,
            samples=replace(samples, attributes=attributes),
            prediction=self.prediction[rows],
            outputs=self.outputs[rows],
            score=self.score[rows] if len(self.score) else self.score,
        )


def _present(values: pd.Series) -> pd.Series:
    """The column without categories that no row has."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        return values.cat.remove_unused_categories()
    return values


def check(table: pd.DataFrame, roles: Roles, name: str = "table") -> Predictions:
    """The predictions of a table with a row per prediction.

    Raises:
        InputError: a column does not exist, is constant or has cells that do not fit, or a row
            lacks target or prediction.
    """
    _require_columns(table, roles, name, roles.columns)
    _require_values(table, roles, name)
    attributes = _attributes(table, roles, name)
    classes: tuple[str, ...] = ()
    if roles.continuous:
        y, predicted, outputs = _numbers(table, roles, name)
        kind: PredictionKind = "number"
    else:
        place = f"{name}, column {roles.prediction}"
        y, classes, codes = _classes(table[roles.target], roles, f"{name}, column {roles.target}")
        kind = _kind(table[roles.prediction], roles.prediction_is, codes, classes, place)
        predicted, outputs = _predicted(
            table[roles.prediction], kind, roles.threshold, codes, classes, place
        )
    found = Predictions(_samples(y, attributes, classes), predicted, outputs, kind)
    if kind not in ("probability", "score"):
        return found
    score = as_numbers(percentages(table[roles.prediction]), place).to_numpy()
    return replace(found, score=score, threshold=_threshold(roles.threshold))


def check_unlabelled(
    table: pd.DataFrame, roles: Roles, like: Predictions, name: str = "table"
) -> Predictions:
    """The predictions of a table without labels, of the classes and kind of others.

    Their y is the predicted class: no measure that needs labels can be made of them.
    """
    unlabelled = replace(roles, target=roles.prediction)
    _require_columns(table, roles, name, [roles.prediction, *roles.attributes])
    _require_values(table, unlabelled, name)
    place = f"{name}, column {roles.prediction}"
    classes = like.samples.classes
    predicted, outputs = _predicted(
        table[roles.prediction], like.kind, roles.threshold, {}, classes, place
    )
    return Predictions(
        _samples(predicted, _attributes(table, roles, name), classes), predicted, outputs, like.kind
    )


def _attributes(table: pd.DataFrame, roles: Roles, name: str) -> dict[str, pd.Series]:
    return {
        one: attribute(
            table[one], f"{name}, column {one}", roles.types.get(one), roles.bins.get(one)
        )
        for one in roles.attributes
    }


def _samples(
    y: np.ndarray, attributes: Mapping[str, pd.Series], classes: tuple[str, ...]
) -> Samples:
    """Samples without features."""
    return Samples(
        x=np.empty((len(y), 0), np.float32),
        y=y,
        attributes=pd.DataFrame(attributes).reset_index(drop=True),
        id=np.arange(len(y)),
        splits=pd.DataFrame(index=range(len(y))),
        classes=classes,
        sensitive=tuple(attributes),
    )


def _require_columns(table: pd.DataFrame, roles: Roles, name: str, columns: Sequence[str]) -> None:
    """Check that there are rows and that each column exists and has one role."""
    if table.empty:
        raise InputError(f"{name}: has no rows")
    if not roles.attributes:
        raise InputError("attributes: at least one column is needed")
    for one in columns:
        if one not in table:
            raise InputError(f"{name}: {unknown_name('column', one, map(str, table.columns))}")
        if roles.columns.count(one) > 1:
            raise InputError(
                f"column {one} has two roles; it can be only one of target, prediction and "
                "attribute"
            )
    for option, named in (("types", [*roles.types]), ("bins", [*roles.bins])):
        for one in named:
            if one not in roles.attributes:
                raise InputError(f"{option}: {unknown_name('attribute', one, roles.attributes)}")


def _require_values(table: pd.DataFrame, roles: Roles, name: str) -> None:
    """Check that every row has a target and a prediction."""
    for role, column in (("target", roles.target), ("prediction", roles.prediction)):
        missing = table[column].isna().to_numpy()
        if missing.any():
            raise InputError(
                f"{name}, column {column}, row {row_of(missing)}: no {role}; {missing.sum()} rows "
                "lack one, but every row needs a value"
            )


def _numbers(
    table: pd.DataFrame, roles: Roles, name: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Target, prediction and outputs of a continuous target."""
    if (
        roles.prediction_is not in ("auto", "number")
        or roles.positive
        or (roles.threshold is not None)
    ):
        raise InputError(
            "predictions of a continuous target must be numbers, without a positive value or a "
            "threshold"
        )
    place = f"{name}, column {roles.target}"
    y = require_two_values(as_numbers(table[roles.target], place), place)
    predicted = as_numbers(table[roles.prediction], f"{name}, column {roles.prediction}")
    return y.to_numpy(), predicted.to_numpy(), predicted.to_numpy()[:, None]


def _classes(
    cells: pd.Series, roles: Roles, place: str
) -> tuple[np.ndarray, tuple[str, ...], Codes]:
    """Class of every row int64 ``[n]``, names of the classes, and class by value."""
    positive = roles.positive
    if typed_as_number(cells) and cells.nunique() > MOST_CODES and not positive:
        raise InputError(
            f"{place}: {cells.nunique()} distinct numbers are not classes; declare the target "
            "continuous"
        )
    values = require_one_spelling(require_two_values(as_categories(cells, place), place), place)
    names = [str(one) for one in values.cat.categories]
    by_name = {canonical(one): one for one in names}
    if positive is None and len(names) > TWO:
        codes = {canonical(one): code for code, one in enumerate(names)}
        return values.cat.codes.to_numpy(np.int64), tuple(names), codes
    if positive is None:
        positive = next(
            (by_name[one] for one, *other in PAIRS if {one, *other} == {*by_name}), None
        )
    if positive is None:
        raise InputError(
            f"{place}: values {' and '.join(names)}; declare which is positive (--positive)"
        )
    positive = by_name.get(canonical(positive), positive)
    target = two_classes(values, (positive,), place).cat
    codes = {canonical(one): int(one == positive) for one in names}
    return target.codes.to_numpy(np.int64), tuple(target.categories), codes


def _kind(
    cells: pd.Series,
    declared: PredictionKind,
    codes: Codes,
    classes: tuple[str, ...],
    place: str,
) -> PredictionKind:
    """Kind of the predictions of classes."""
    allowed = ("class", "probability", "score") if len(classes) == TWO else ("class",)
    if declared != "auto":
        if declared not in allowed:
            raise InputError(
                f"{place}: predictions of kind {declared} with {len(classes)} classes, allowed: "
                f"{', '.join(allowed)}"
            )
        return declared
    if cells.nunique() <= len(codes) and codes.keys() >= {
        canonical(str(one)) for one in as_categories(cells, place).cat.categories
    }:
        return "class"
    return "probability" if len(classes) == TWO else "class"


def _predicted(
    cells: pd.Series,
    kind: PredictionKind,
    threshold: float | None,
    codes: Codes,
    classes: tuple[str, ...],
    place: str,
) -> tuple[np.ndarray, np.ndarray]:
    """Class of every row int64 ``[n]``, and log probabilities ``[n, classes]``."""
    if kind == "class":
        if threshold is not None:
            raise InputError("threshold: only allowed if predictions are probabilities or scores")
        return _predicted_classes(cells, codes, classes, place)
    values = as_numbers(percentages(cells), place).to_numpy()
    if kind == "score":
        if threshold is None:
            raise InputError(
                f"{place}: a score needs a threshold of the positive class (--threshold)"
            )
        # scaled to [0, 1]; FairCOCCO standardises its columns, which removes the scale again
        shares = (values - values.min()) / (np.ptp(values) or 1.0)
    else:
        threshold = _threshold(threshold)
        _require_probabilities(values, threshold, place)
        shares = values
    with np.errstate(divide="ignore"):  # log(0) is -inf
        outputs = np.log(np.stack([1 - shares, shares], axis=1))
    return (values >= threshold).astype(np.int64), outputs


def _threshold(declared: float | None) -> float:
    return THRESHOLD if declared is None else declared


def _require_probabilities(values: np.ndarray, threshold: float, place: str) -> None:
    wrong = (values < 0) | (values > 1)
    if wrong.any():
        row = row_of(wrong)
        raise InputError(
            f"{place}, row {row}: {values[row - 1]:g}, allowed: a class of the target or a "
            "probability from 0 to 1; of percentages and other numbers: --prediction-is score "
            f"--threshold {50 if 1 < values.max() <= PERCENT and values.min() >= 0 else 'X'}"
        )
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold: {threshold:g}, allowed: 0 to 1")


def _predicted_classes(
    cells: pd.Series, codes: Codes, classes: tuple[str, ...], place: str
) -> tuple[np.ndarray, np.ndarray]:
    """Predicted classes, each with probability 1."""
    named = as_categories(cells, place)
    for one in named.cat.categories:
        if canonical(str(one)) not in codes:
            row = row_of((named == one).to_numpy())
            raise InputError(f"{place}, row {row}: {unknown_name('class', one, codes)}")
    by_name = {one: codes[canonical(str(one))] for one in named.cat.categories}
    predicted = named.map(by_name).to_numpy(np.int64)
    outputs = np.where(np.arange(len(classes)) == predicted[:, None], 0.0, -np.inf)
    return predicted, outputs
