"""Any dataset with some of its classes, or values of an attribute, cut among the training rows.

The protocol of "Is Fairness Only Metric Deep?" (ICLR 2022), 3.3: random classes lose 90 % of their
training rows, and the others are given more, so that there are as many as in a balanced control.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import BaseModel, BeforeValidator, Field, NonNegativeInt, PositiveInt, model_validator

from robust_fairness.bench.datasets.base import Dataset
from robust_fairness.bench.experiment.plugins import Named, named
from robust_fairness.bench.samples.splits import ClassSplitParameters, class_splits, ranks
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.raw_files import Files
from robust_fairness.core.registry import find
from robust_fairness.core.samples import REQUIRED_PARTS, Samples
from robust_fairness.numbers.groups import require_categorical

BY_CLASS = "class"
CLASS_SIZE = "class_size"
SIZES = ("majority", "minority")
CUT = 0.9
EVENLY = 50  # per cent of the rows in either half of the control

logger = logging.getLogger(__name__)


def _source(value: object) -> object:
    """``{source: digits, ...}``, as datasets are written, is ``{name: digits, ...}``."""
    if isinstance(value, Mapping) and "source" in value and "name" not in value:
        return {"name": value["source"], **{key: value[key] for key in value if key != "source"}}
    return value


class Imbalanced(Dataset):
    """The dataset, with fewer training rows and the rows of its control as ``downstream``.

    Test and validation rows are those of the dataset, or of ``split``. Where the dataset has fewer
    named splits than are asked for, they are used again in turn, each time with other classes cut.
    The attribute ``class_size`` marks for each split the rows of what is cut; it is the
    same in the control. Rows whose attribute is missing stay in training, and belong to neither.
    """

    class Parameters(BaseModel, extra="forbid", frozen=True):
        """What is cut, and how far.

        Attributes:
            of: the dataset, by its source and fields: ``{source: cars196, size: 64}``.
            split: splits within each class, as the paper has them (``{}`` for its 50 - 50),
                instead of the dataset's own.
            by: ``class``, or a categorical attribute of the dataset.
            minority: how many classes or values are cut, drawn anew for every split; or their
                names.
            cut: fraction of its rows of the control that each of them loses, 0.9 unless it or
                ``percent`` is given; 0 is the control itself.
            percent: instead of ``cut``, the majority's rows in a hundred, counted by class: with
                80 a class of the majority has 80 rows where one of the minority has 20, and 50 is
                the control (Figures 3, 8 and 9).
            sensitive: ``class_size`` (majority or minority) or attributes of the dataset except
                ``class``, which is left out.
            seed: seed of the draws; split k depends on it, on k and on the dataset's own split.
        """

        of: Annotated[Named, named("dataset"), BeforeValidator(_source)]
        split: ClassSplitParameters | None = None
        by: str = BY_CLASS
        minority: PositiveInt | tuple[str, ...] = 50
        cut: Annotated[float, Field(ge=0, lt=1)] | None = None
        percent: Annotated[float, Field(ge=EVENLY, lt=100)] | None = None
        sensitive: Annotated[tuple[str, ...], Field(min_length=1)] = (CLASS_SIZE,)
        seed: NonNegativeInt = 0

        @model_validator(mode="after")
        def _cut_once(self) -> "Imbalanced.Parameters":
            if self.percent is not None and self.cut is not None:
                raise ValueError("cut and percent exclude each other")
            named_ones = self.minority if isinstance(self.minority, tuple) else ("one",)
            if not named_ones or len(set(named_ones)) < len(named_ones):
                raise ValueError("minority: must be a number or distinct names")
            return self

        @property
        def share(self) -> float:
            """Fraction that values of the minority lose, unless ``percent`` is given."""
            return CUT if self.cut is None else self.cut

        @property
        def is_control(self) -> bool:
            """Whether nothing is cut."""
            return self.share == 0 if self.percent is None else self.percent == EVENLY

    def __init__(self, parameters: BaseModel | None = None) -> None:
        super().__init__(parameters)
        of = self.parameters.of
        self.source: Dataset = find("dataset", of.name)(of.parameters)
        self.data_kind = self.source.data_kind

    def required_files(self) -> tuple[str, ...]:
        return self.source.required_files()

    def missing_files(self, files: Files) -> list[str]:
        """The missing files of the dataset that is cut."""
        return self.source.missing_files(files)

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters
        source = parameters.of
        samples = self.source.load(files, splits)
        if samples.split_attributes:
            raise InputError(
                f"of: attributes of {source.name} differ by split; choose a dataset whose "
                "attributes do not"
            )
        if CLASS_SIZE in samples.attributes:
            raise InputError(f"of: {source.name} already has an attribute {CLASS_SIZE}")
        values = _values(samples, parameters.by)
        if parameters.split is not None:
            labels = _values(samples, BY_CLASS)
            samples = replace(samples, splits=class_splits(labels, splits, parameters.split))
        codes = values.cat.codes.to_numpy().astype(np.int64)
        attributes, parts, downstream = {}, {}, {}
        for k in range(splits):
            name, split = f"split_{k}", samples.split_names[k % len(samples.split_names)]
            rows = samples.rows(split, "train")
            trained, control, minority = _of_split(rows, values, k, parameters)
            parts[name] = _with_training(samples.splits[split], trained)
            downstream[name] = control
            kind = np.append(minority.astype(np.int64), -1)[codes]  # the last is of missing values
            sizes = pd.Categorical.from_codes(kind, pd.Index(SIZES, dtype=object))
            attributes[name] = pd.DataFrame({CLASS_SIZE: sizes})
        # groups of a single class would only repeat what is asked of class sizes
        return replace(
            samples,
            attributes=samples.attributes.drop(columns=[BY_CLASS], errors="ignore"),
            split_attributes=attributes,
            splits=pd.DataFrame(parts),
            sensitive=parameters.sensitive,
            downstream=pd.DataFrame(downstream),
        )


def _values(samples: Samples, by: str) -> pd.Series:
    """The classes of the rows, or the values of an attribute: categorical ``[n]``."""
    if by != BY_CLASS:
        require_categorical(samples.attributes, [by])
        return samples.attributes[by]
    if not samples.classes:
        raise InputError(
            "by and split: not defined by class for a continuous outcome; set by to an attribute, "
            "and do not split within classes"
        )
    return samples.labels


def _with_training(parts: pd.Series, trained: np.ndarray) -> pd.Categorical:
    """A split whose training rows are others, bool ``[n]``; its further ones have no part."""
    names = parts.astype(object).where(parts != "train", None)
    names[trained] = "train"
    further = [part for part in parts.cat.categories if part not in REQUIRED_PARTS]
    return pd.Categorical(names, [*REQUIRED_PARTS, *further])


def _of_split(
    rows: np.ndarray, values: pd.Series, k: int, parameters: Imbalanced.Parameters
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training rows and those of the control, bool ``[n]``, and values cut, bool ``[values]``.

    The rows of a value are in one random order, and every part takes the first ones: what is
    left of the minority belongs to the control, and the majority has all of its control.
    """
    generator = np.random.default_rng([parameters.seed, k])
    codes = values.cat.codes.to_numpy().astype(np.int64)[rows]
    names = [str(name) for name in values.cat.categories]
    available = np.bincount(codes[codes >= 0], minlength=len(names))
    minority = _minority(available, names, generator, parameters)
    sizes = _sizes(available, minority, parameters)
    kept = (sizes[0] == sizes[1])[minority].sum()
    if kept and not parameters.is_control:
        counts = (f"split_{k}", kept, minority.sum(), parameters.by)
        logger.warning("%s: %d of %d values of %s have too few rows to be reduced", *counts)
    rank = ranks(codes, generator)
    result = []
    for size in sizes:
        limit = np.append(size, len(rows))[codes]
        chosen = np.zeros(len(values), dtype=bool)
        chosen[rows[rank < limit]] = True
        result.append(chosen)
    return result[0], result[1], minority


def _minority(
    available: np.ndarray,
    names: list[str],
    generator: np.random.Generator,
    parameters: Imbalanced.Parameters,
) -> np.ndarray:
    """Which values are cut, bool ``[values]``: random ones that have two training rows or more."""
    can_be_cut = np.flatnonzero(available > 1)
    if isinstance(parameters.minority, tuple):
        for name in parameters.minority:
            if name not in names:
                raise unknown_name(parameters.by, name, names)
        cut = np.array([names.index(name) for name in parameters.minority])
        if not np.delete(available, cut).any():
            raise InputError(
                f"minority: contains all values of {parameters.by} with training rows; at least "
                "one must not be reduced"
            )
    else:
        most = min(len(can_be_cut), (available > 0).sum() - 1)
        if parameters.minority > most:
            raise InputError(
                f"minority: {parameters.minority}, allowed: 1 to {most}, since {len(can_be_cut)} "
                f"of {len(names)} values of {parameters.by} have at least two training rows, and "
                "one must not be reduced"
            )
        cut = generator.choice(can_be_cut, parameters.minority, replace=False)
    minority = np.zeros(len(names), dtype=bool)
    minority[cut] = True
    return minority


def _sizes(
    available: np.ndarray, minority: np.ndarray, parameters: Imbalanced.Parameters
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the training part and of the control, int64 ``[values]``.

    The control has one row of each value, and of its others the share that the majority has of
    all of them. That is as many as can be refilled, for any cut down to one row, so that the
    control is the same whatever ``cut`` and ``percent`` are.
    """
    others = (available - 1).clip(min=0)
    free = int(others[~minority].sum())
    control = available.clip(max=1) + others * free // max(1, int(others.sum()))
    kept = np.rint((1 - _cut(control, minority, parameters)) * control).astype(np.int64)
    trained = np.where(minority, kept.clip(min=1), control).clip(max=control)
    removed = int((control - trained).sum())
    if not removed and not parameters.is_control:
        raise InputError(
            f"{parameters.by}: nothing to reduce: the control has {control[minority].sum()} rows "
            f"of the {minority.sum()} values of the minority; use more training rows, or a larger "
            "cut"
        )
    spare = np.where(minority, 0, available - control)
    return trained + _shared(removed, spare), control


def _cut(control: np.ndarray, minority: np.ndarray, parameters: Imbalanced.Parameters) -> float:
    """Fraction of its rows that the minority loses."""
    if parameters.percent is None:
        return parameters.share
    fewer, more = 100 - parameters.percent, parameters.percent
    rows = fewer * control[minority].sum() + more * control[~minority].sum()
    return float(1 - fewer * control.sum() / max(rows, 1))


def _shared(total: int, spare: np.ndarray) -> np.ndarray:
    """``total`` rows distributed in proportion to the spare ones, int64 ``[values]``.

    Whole rows by the largest remainders, the first of equal ones.
    """
    whole, remainder = np.divmod(total * spare, max(1, int(spare.sum())))
    left = total - int(whole.sum())
    whole[np.argsort(-remainder, kind="stable")[:left]] += 1
    return whole
