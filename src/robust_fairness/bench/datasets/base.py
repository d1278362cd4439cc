"""The contract of datasets."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
import pandas as pd
from pydantic import AfterValidator, BaseModel, Field

from robust_fairness.auditing.read.columns import require_two_values
from robust_fairness.bench.samples.splits import (
    SplitParameters,
    random_splits,
    require_every_class,
    unit_splits,
)
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.core.registry import Plugin
from robust_fairness.core.samples import Samples

MISSING = "missing"  # category of a missing cell, and mark of the indicators of missing numbers

DataKind = Literal["table", "image", "question", "generated"]


class Dataset(Plugin, ABC):
    """A source of samples, made of its parameters.

    Features are left as they are in the files, categories one-hot: preprocessing is fitted later,
    on the training rows of each replica.

    Attributes:
        data_kind: kind of its samples; shifts and networks say which kinds they apply to.
        raw_files: the raw files, folders and zip files that every load reads.
    """

    data_kind: DataKind
    raw_files: ClassVar[tuple[str, ...]] = ()
    parameters: Any

    def __init__(self, parameters: BaseModel | None = None) -> None:
        self.parameters = self.Parameters() if parameters is None else parameters

    def required_files(self) -> tuple[str, ...]:
        """Raw files that ``load`` reads with these parameters, by their paths below the root."""
        return self.raw_files

    def missing_files(self, files: Files) -> list[str]:
        """The required files that are not available."""
        return [name for name in self.required_files() if not files.available(name)]

    @abstractmethod
    def load(self, files: Files, splits: int) -> Samples:
        """The samples.

        Args:
            files: where raw files are found; their checksums become ``Samples.sources``.
            splits: number of named splits.

        Raises:
            InputError: a file is missing, damaged or does not fit its schema, or a part of a
                split lacks rows or a class.
        """


class TableParameters(SplitParameters):
    """Parameters that all tables have.

    Attributes:
        sensitive: attributes that methods mitigate.
        drop_sensitive: leave the columns of the sensitive attributes out of the features.
    """

    sensitive: tuple[str, ...]
    drop_sensitive: bool = False


@dataclass(frozen=True)
class TypedTable:
    """Typed columns of a table.

    Attributes:
        features: numbers and categories; their index is the row number in the files, from 0.
        target: categories, the classes in order, or numbers.
        attributes: categories or numbers, by name.
        splits: named splits; random ones of ``SplitParameters``, over units or rows, if None.
        id: names of the rows; the index of ``features`` if None.
        conditioning, domain: see ``Samples``.
        units: what the rows of which are in one part of a split; every row on its own if None.
    """

    features: pd.DataFrame
    target: pd.Series
    attributes: dict[str, pd.Series]
    splits: pd.DataFrame | None = None
    id: np.ndarray | None = None
    conditioning: str = ""
    domain: str = ""
    units: pd.Series | None = None

    def named_splits(self, count: int, parameters: SplitParameters) -> pd.DataFrame:
        """Its own splits, or ``count`` random ones over units or rows; all have every class."""
        if self.splits is not None:
            splits = self.splits
        elif self.units is not None:
            splits = unit_splits(self.units, count, parameters)
        else:
            splits = random_splits(len(self.target), count, parameters)
        if isinstance(self.target.dtype, pd.CategoricalDtype):
            require_every_class(splits, self.target)
        return splits


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} is listed twice")
    return names


LEAST_DIGITS = 1e-3  # of a column's standard deviation that its features keep
Name = TypeVar("Name", bound=str)
Listed = Annotated[tuple[Name, ...], AfterValidator(_each_once), Field(min_length=1)]  # each once


class TableDataset(Dataset):
    """A table: float32 features ``[n, d]``, numbers first, then categories one-hot encoded.

    ``feature_columns`` has, by attribute, the columns of the features that reveal it; by default
    the column of the same name.
    """

    data_kind = "table"
    feature_columns: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @abstractmethod
    def read(self, files: Files, splits: int) -> TypedTable:
        """The typed table; arguments and errors as of ``load``."""

    def load(self, files: Files, splits: int) -> Samples:
        table = self.read(files, splits)
        for name, values in {"target": table.target, **table.attributes}.items():
            require_two_values(values, f"{', '.join(files.sources)}: {name}")
        dropped: set[str] = set()
        for name in self.parameters.sensitive if self.parameters.drop_sensitive else ():
            dropped.update(self.feature_columns.get(name, (name,)))
        kept = table.features[[name for name in table.features if name not in dropped]]
        for column, values in kept.select_dtypes("number").items():
            numbers = values.to_numpy(np.float64, na_value=np.nan)
            require_float32(numbers, f"{', '.join(files.sources)}: {column}")
        features, categories = one_hot(kept), kept.select_dtypes("category")
        made_of = [str(name) for name in kept if name not in categories]
        for column, values in categories.items():
            made_of += [str(column)] * len(values.cat.categories)
        return labelled(
            # a copy: a table of one type may return its own read-only numbers
            features.to_numpy(np.float32, copy=True),
            table.target,
            table.attributes,
            table.named_splits(splits, self.parameters),
            self.parameters.sensitive,
            files,
            id=table.features.index.to_numpy(np.int64) if table.id is None else table.id,
            features=tuple(features.columns),
            columns=tuple(made_of),
            conditioning=table.conditioning,
            domain=table.domain,
            units=table.units,
        )


def labelled(
    x: np.ndarray,
    target: pd.Series,
    attributes: Mapping[str, Any] | pd.DataFrame,
    splits: pd.DataFrame,
    sensitive: Iterable[str],
    files: Files,
    units: pd.Series | None = None,
    **others: Any,
) -> Samples:
    """Samples of a categorical target, whose categories are the classes, or a numeric one.

    ``units`` are numbered from 0. ``others`` are further fields of ``Samples``; ``id`` is the
    number of the row by default.
    """
    classes: tuple[str, ...] = ()
    if isinstance(target.dtype, pd.CategoricalDtype):
        classes, target = tuple(map(str, target.cat.categories)), target.cat.codes.astype(np.int64)
    return Samples(
        x=x,
        y=target.to_numpy(np.int64 if classes else np.float32, copy=True),  # writable
        attributes=pd.DataFrame(attributes).reset_index(drop=True),
        splits=splits,
        classes=classes,
        sensitive=tuple(sensitive),
        sources=dict(files.sources),
        units=None if units is None else pd.factorize(units)[0].astype(np.int64),
        **{"id": np.arange(len(target)), **others},
    )


def require_float32(values: np.ndarray, place: str) -> None:
    """Check that float32, which features are, keeps three digits of a column's deviation.

    Raises:
        InputError: it does not, as of seconds since 1970 that lie within an hour.
    """
    deviation = np.nanstd(values) if np.isfinite(values).any() else 0.0
    with np.errstate(over="ignore"):
        lost = np.fmax.reduce(np.abs(values - values.astype(np.float32)), initial=0)
    if lost > deviation * LEAST_DIGITS > 0:
        raise InputError(
            f"{place}: {np.nanmin(values):.15g} to {np.nanmax(values):.15g}, as float32 features "
            f"changed by up to {lost:.3g}; allowed: numbers nearer to 0, such as differences from "
            "the smallest"
        )


def one_hot(columns: pd.DataFrame) -> pd.DataFrame:
    """Numeric columns, then one 0/1 column ``name=category`` for every category.

    A category without rows has its column, too, so that the features do not depend on the rows.
    """
    return pd.get_dummies(columns, prefix_sep="=", dtype="uint8")


class ImageDataset(Dataset):
    """Images: uint8 ``[n, c, h, w]``."""

    data_kind = "image"


class DerivedDataset(ImageDataset):
    """Images that are made, or whose attributes are measured, in a second step: a node of its own.

    Attributes:
        derivation: name of the second step.
        derived_if: name of the parameter that asks for it; always without one.
    """

    derivation: ClassVar[str]
    derived_if: ClassVar[str] = ""

    @abstractmethod
    def originals(self, files: Files, splits: int) -> Samples:
        """What the second step starts from, with ``sources`` and splits; errors as of ``load``."""

    @abstractmethod
    def derive(self, originals: Samples) -> Samples:
        """The samples, of the same rows."""

    def load(self, files: Files, splits: int) -> Samples:
        return self.derive(self.originals(files, splits))


class QuestionDataset(Dataset):
    """Questions on images, see ``core.questions``."""

    data_kind = "question"
