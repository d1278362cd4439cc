"""Images that a user brings, a folder beside a table, made a dataset by parameters alone."""

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from pydantic import field_validator, model_validator

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.base import ImageDataset
from robust_fairness.datasets.files import Files, below_the_root
from robust_fairness.datasets.images._image_files import (
    COMMON,
    ImageFileParameters,
    Source,
    decode,
    opened,
)
from robust_fairness.datasets.raw.labels import RawTableParameters, complete_rows, labels_of
from robust_fairness.samples import Samples


class ImageFolder(ImageDataset):
    """Images with labels and splits; class 1 of a binary target is the positive one.

    ``id`` is the name of the image unless a column is given.
    """

    class Parameters(RawTableParameters, ImageFileParameters):
        """Parameters of images with a table of their attributes.

        Attributes:
            images: folder of JPEG and PNG files below the data root, or a zip file of that name;
                files in it that the table does not name are left alone.
            image: column of the table that names the file of each row.
        """

        images: str
        image: str

        @field_validator("images")
        @classmethod
        def _folder_below_the_root(cls, folder: str) -> str:
            return below_the_root(folder)

        @model_validator(mode="after")
        def _image_is_its_own_column(self) -> "ImageFolder.Parameters":
            if self.image in (self.target, *self.sensitive, self.split):
                raise ValueError(f"image: {self.image} is given twice, allowed: a column of names")
            return self

    def required_files(self) -> tuple[str, ...]:
        return (self.parameters.file, self.parameters.images)

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters
        parameters.require_typed(parameters.columns)
        wanted = tuple(dict.fromkeys((*parameters.columns, parameters.image)))
        table = parameters.read(files, wanted, [parameters.image])
        needed = [name for name in wanted if name not in parameters.sensitive]
        rows = complete_rows(table, needed, parameters)
        _require_names(rows[parameters.image], parameters)
        with opened(files.root, parameters.images, COMMON) as source:
            rows = _with_images(rows, source, parameters)
            labels = labels_of(rows, parameters, splits)
            names = [str(name) for name in rows[parameters.image]]
            x, files.sources[parameters.images] = decode(
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


def _require_names(names: pd.Series, parameters: ImageFolder.Parameters) -> None:
    """File names are text, each once."""
    place = f"{parameters.file}, column {parameters.image}"
    if is_numeric_dtype(names.dtype):
        raise InputError(f"{place}: numbers, allowed: names of files")
    twice = names[names.duplicated()]
    if len(twice):
        raise InputError(f"{place}: two rows of {twice.iloc[0]}, allowed: one")


def _with_images(
    rows: pd.DataFrame, source: Source, parameters: ImageFolder.Parameters
) -> pd.DataFrame:
    """The rows whose image is there; all must be unless only these are wanted."""
    present = rows[parameters.image].isin(list(source.names)).to_numpy()
    missing = rows[parameters.image][~present]
    if len(missing) and not parameters.only_present:
        raise InputError(
            f"{parameters.images}: {len(missing)} images that {parameters.file} names are "
            f"missing, first {missing.iloc[0]}; only_present: true uses the others, allowed: names "
            f"of files {', '.join(COMMON)} in that folder"
        )
    if not present.any():
        raise InputError(f"{parameters.images}: none of the images is there")
    return rows[present]
