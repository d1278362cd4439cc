"""What is scored of a table of predictions, and the predictions as metrics take them."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.auditing.read.cleaning import Decimals
from robust_fairness.auditing.read.columns import Bins, Kind
from robust_fairness.core.samples import Samples
from robust_fairness.numbers.counts import Counts, Rows
from robust_fairness.numbers.groups import Groups, groups_of, shown
from robust_fairness.numbers.partly import partly_labelled
from robust_fairness.numbers.quantities import WEIGHTS

THRESHOLD = 0.5  # of a probability
WORDS = ("rows", "positive", "negative", "predicted")
SMALL = 30  # rows below which a group is flagged: a share has a standard error of up to 9 points

PredictionKind = Literal["auto", "class", "probability", "score", "number"]


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
            ``read.columns`` decide otherwise or cannot decide.
        bins: bins of numeric attributes: increasing edges, or a number of quantile bins; of dates
            ``decade``, ``year``, ``quarter``, ``month`` or ``day``.
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
        missing: texts of missing values, besides null, empty and blank cells.
        decimal: the decimal separator of numbers in text; found out for each column if None.
        positive_prediction: the prediction that is the positive class, where predictions are two
            decisions in other words than the target.
        words: how the page names things, by ``WORDS``: ``rows`` (applicants), ``positive`` and
            ``negative`` (who repay, who do not repay), ``predicted`` (approved).
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
    missing: Sequence[str] = ()
    decimal: Decimals | None = None
    positive_prediction: str | None = None
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def predicted(self) -> Sequence[str]:
        """The columns of the predictions."""
        return [self.y_pred] if isinstance(self.y_pred, str) else self.y_pred

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
    categories. ``notes`` say what columns and cells were taken for. With ``intersections`` the
    groups of all categorical attributes together are groups, too.
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
    notes: tuple[str, ...] = ()
    intersections: bool = False

    def take(self, rows: np.ndarray) -> "Predictions":
        """The predictions of some rows, by number; groups without any of them are gone."""
        samples = self.samples.take(rows)
        present = {
            name: samples.attributes[name].cat.remove_unused_categories()
            for name in self.categorical
        }
        attributes = samples.attributes.assign(**present)
        units = None if self.units is None else np.unique(self.units[rows], return_inverse=True)[1]
        by_row = ("replicates", "known", "label_probability")
        given = {name: array for name in by_row if (array := getattr(self, name)) is not None}
        return replace(
            self,
            samples=replace(samples, attributes=attributes),
            prediction=self.prediction[rows],
            score=self.score[rows] if len(self.score) else self.score,
            features=self.features.iloc[rows] if len(self.features.columns) else self.features,
            control=self.control.iloc[rows] if len(self.control.columns) else self.control,
            units=units,
            membership={k: (names, p[rows]) for k, (names, p) in self.membership.items()},
            **{name: array[rows] for name, array in given.items()},
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

    @cached_property
    def counts(self) -> dict[str, Counts]:
        """Counts by name of an attribute or the intersection; none of a continuous target."""
        if not self.samples.classes:
            return {}
        by_attribute = {name: self.counts_of(groups) for name, groups in self.groups.items()}
        for name, (names, share) in self.membership.items():
            known = np.isfinite(share).all(1)
            parts = [*enumerate(np.where(known[:, None], share, 0.0).T), (-1, 1.0 - known)]
            sums = [
                self.counts_of(Groups.named(np.full(len(known), code), names), of)
                for code, of in parts
            ]
            by_attribute[name] = sum(sums[1:], sums[0])
        return by_attribute

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

    def source_of(self, groups: Groups) -> Counts | Rows:
        """Counts of groups of the rows, or of a continuous target the rows."""
        if self.samples.classes:
            return self.counts_of(groups)
        weight = {} if self.weight is None else {WEIGHTS: self.weight}
        arrays = {"y_true": self.samples.y, "y_pred": self.prediction, **weight}
        return Rows(arrays, groups, independent=self.units is None and self.replicates is None)

    @property
    def weight(self) -> np.ndarray | None:
        """Weights of the rows ``[n]``."""
        return self.samples.sample_weight

    @property
    def categorical(self) -> list[str]:
        """The attributes that define groups."""
        return [str(name) for name in self.samples.attributes.select_dtypes("category")]

    @cached_property
    def columns_of(self) -> dict[str, tuple[str, ...]]:
        """Columns by name of an attribute or the intersection, which no column has."""
        names, existing = self.categorical, self.samples.attributes
        alone = [(name,) for name in names]
        together = [tuple(names)] if self.intersections and len(names) > 1 else []
        return {attribute_name(columns, existing): columns for columns in [*alone, *together]}

    @property
    def groups_by_column(self) -> dict[str, list[str]]:
        """Names of the groups of every categorical attribute and control feature."""
        columns = pd.concat([self.samples.attributes, self.control], axis=1)
        categories = columns.select_dtypes("category").items()
        return {str(name): [*map(str, values.cat.categories)] for name, values in categories}

    @cached_property
    def groups(self) -> dict[str, Groups]:
        """Groups by name of the attribute or the intersection."""
        attributes = self.samples.attributes
        return {name: groups_of(attributes, columns) for name, columns in self.columns_of.items()}


def attribute_name(columns: Sequence[str], existing: Container[str]) -> str:
    """The name of an attribute, or of an intersection, which no column has."""
    name = shown(columns)
    return f"({name})" if len(columns) > 1 and name in existing else name
