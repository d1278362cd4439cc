"""Pictures that a user brings, a folder beside a table, made a dataset by parameters alone."""

from typing import Any, Literal

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from pydantic import PositiveInt, field_validator, model_validator

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.base import ImageDataset
from robust_fairness.datasets.files import Files, below_the_root
from robust_fairness.datasets.images._pictures import COMMON, Source, decode, opened
from robust_fairness.datasets.raw.labels import RawTableParameters, complete_rows, labels_of
from robust_fairness.samples import Samples


class Parameters(RawTableParameters, extra="forbid", frozen=True):
    """Parameters of pictures with a table of their attributes.

    Attributes:
        pictures: folder of JPEG and PNG files below the data root, or a zip file of that name;
            files in it that the table does not name are left alone.
        picture: column of the table that names the file of each row.
        only_present: leave out rows whose picture is not there; otherwise that is an error.
        crop: what is cut out around the centre of a picture: its largest square, a height and a
            width in pixels, or None for all of it.
        size: height and width that it is resized to; a single number is both.
    """

    pictures: str
    picture: str
    only_present: bool = False
    crop: Literal["square"] | tuple[PositiveInt, PositiveInt] | None = "square"
    size: tuple[PositiveInt, PositiveInt] = (128, 128)

    @field_validator("pictures")
    @classmethod
    def _folder_below_the_root(cls, folder: str) -> str:
        return below_the_root(folder)

    @field_validator("size", mode="before")
    @classmethod
    def _of_a_square(cls, size: Any) -> Any:
        return (size, size) if isinstance(size, int) else size

    @model_validator(mode="after")
    def _picture_is_its_own_column(self) -> "Parameters":
        if self.picture in (self.target, *self.sensitive, self.split):
            raise ValueError(f"picture: {self.picture} is given twice, allowed: a column of names")
        return self


def load(parameters: Parameters, files: Files, splits: int) -> Samples:
    """Pictures with labels and splits; class 1 of a binary target is the positive one.

    ``id`` is the name of the picture unless a column is given.

    Args:
        parameters: what the columns of the table are, and how pictures are cut and resized.
        files: where table and pictures are found.
        splits: number of named splits; one where a column gives it.

    Raises:
        InputError: table or folder are missing or damaged, a picture is missing, named twice,
            damaged or too small, a column does not exist, is constant where it may not be, or has a
            cell that does not fit, or a part of a split lacks rows or a class.
    """
    parameters.require_typed(parameters.columns)
    wanted = tuple(dict.fromkeys((*parameters.columns, parameters.picture)))
    table = parameters.read(files, wanted, [parameters.picture])
    needed = [name for name in wanted if name not in parameters.sensitive]
    rows = complete_rows(table, needed, parameters)
    _require_names(rows[parameters.picture], parameters)
    with opened(files.root, parameters.pictures, COMMON) as source:
        rows = _with_pictures(rows, source, parameters)
        labels = labels_of(rows, parameters, splits)
        names = [str(name) for name in rows[parameters.picture]]
        x, files.sources[parameters.pictures] = decode(
            source, names, parameters.size, parameters.crop
        )
    classes: tuple[str, ...] = ()
    if isinstance(labels.target.dtype, pd.CategoricalDtype):
        classes = tuple(labels.target.cat.categories)
        y = labels.target.cat.codes.to_numpy().astype(np.int64)
    else:
        y = labels.target.to_numpy(np.float32)
    return Samples(
        x=x,
        y=y,
        attributes=labels.attributes,
        id=np.array(names, dtype=np.str_) if parameters.id is None else labels.id,
        splits=labels.splits,
        classes=classes,
        sensitive=parameters.sensitive,
        sources=files.sources,
    )


def _require_names(names: pd.Series, parameters: Parameters) -> None:
    """File names are text, each once."""
    place = f"{parameters.file}, column {parameters.picture}"
    if is_numeric_dtype(names.dtype):
        raise InputError(f"{place}: numbers, allowed: names of files")
    twice = names[names.duplicated()]
    if len(twice):
        raise InputError(f"{place}: two rows of {twice.iloc[0]}, allowed: one")


def _with_pictures(rows: pd.DataFrame, source: Source, parameters: Parameters) -> pd.DataFrame:
    """The rows whose picture is there; all must be unless only these are wanted."""
    present = rows[parameters.picture].isin(list(source.names)).to_numpy()
    missing = rows[parameters.picture][~present]
    if len(missing) and not parameters.only_present:
        raise InputError(
            f"{parameters.pictures}: {len(missing)} pictures that {parameters.file} names are "
            f"missing, first {missing.iloc[0]}; only_present: true uses the others, allowed: names "
            f"of files {', '.join(COMMON)} in that folder"
        )
    if not present.any():
        raise InputError(f"{parameters.pictures}: none of the pictures is there")
    return rows[present]


class ImageFolder(ImageDataset):
    """``load`` with parameters."""

    Parameters = Parameters

    def load(self, files: Files, splits: int) -> Samples:
        """The samples."""
        return load(self.parameters, files, splits)
