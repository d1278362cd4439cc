"""A user's images and the table of their attributes, described by parameters alone."""

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from pydantic import model_validator

from robust_fairness.auditing.read.columns import require_distinct
from robust_fairness.bench.datasets.base import ImageDataset, labelled
from robust_fairness.bench.datasets.images._image_files import (
    COMMON,
    ImageFileParameters,
    decode,
    opened,
    present,
)
from robust_fairness.bench.datasets.labels import RawTableParameters, complete_rows, typed_table
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files, RawPath
from robust_fairness.core.samples import Samples


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

        images: RawPath
        image: str

        @model_validator(mode="after")
        def _image_is_its_own_column(self) -> "ImageFolder.Parameters":
            if self.image in (self.target, *self.sensitive, self.split):
                raise ValueError(
                    f"image: {self.image} has another role; it must be the column of file names"
                )
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
        place = parameters.place(parameters.image)
        if is_numeric_dtype(rows[parameters.image].dtype):
            raise InputError(f"{place}: values are numbers; expected file names")
        require_distinct(rows[parameters.image], place)
        with opened(files, parameters.images, COMMON) as source:
            wanted = pd.Index(rows[parameters.image])
            rows = rows[present(wanted, source, parameters.file, parameters)]
            labels = typed_table(rows, rows[[]], parameters)
            parts = labels.named_splits(splits, parameters)
            names = rows[parameters.image].to_numpy(dtype=np.str_)
            x = decode(source, names.tolist(), parameters, files)
        return labelled(
            x,
            labels.target,
            labels.attributes,
            parts,
            parameters.sensitive,
            files,
            id=names if parameters.id is None else labels.id,
            domain=labels.domain,
            units=labels.units,
        )
