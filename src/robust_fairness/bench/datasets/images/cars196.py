"""CARS196: photographs of 196 models of cars (Krause et al. 2013), the Stanford Cars."""

from contextlib import ExitStack
from io import BytesIO
from pathlib import PurePosixPath
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, field_validator, model_validator

from robust_fairness.auditing.read.columns import require_distinct
from robust_fairness.auditing.read.reading import read_cells
from robust_fairness.bench.datasets.base import ImageDataset
from robust_fairness.bench.datasets.images._class_images import (
    CLASS,
    ClassImageParameters,
    samples_of,
)
from robust_fairness.bench.datasets.images._image_files import joined, opened, with_images
from robust_fairness.core.raw_files import Files, RawPath, as_official
from robust_fairness.core.samples import Samples

NAME, NUMBER = "fname", "class"  # fields of an annotation


class Cars196(ImageDataset):
    """Photographs of cars; the class is the model, ``id`` folder and file name."""

    class Parameters(ClassImageParameters):
        """Parameters of CARS196.

        Attributes:
            images: folders of JPEG files, or zip files of these names. The official training and
                test images are one set, split anew within each class.
            annotations: a file of classes for each folder: ``.mat`` of the official development
                kit, or ``.csv`` with the columns ``fname`` and ``class`` (1 for the first class).
            classes: the file of the names of the classes, ``.mat`` of the development kit.
        """

        images: tuple[RawPath, ...] = Field(
            ("cars196/cars_train", "cars196/cars_test"), min_length=1
        )
        annotations: tuple[RawPath, ...] = (
            "cars196/cars_train_annos.mat",
            "cars196/cars_test_annos_withlabels.mat",
        )
        classes: str = "cars196/cars_meta.mat"
        sensitive: tuple[Literal["class"]] = ("class",)

        @field_validator("images", "annotations", mode="before")
        @classmethod
        def _as_list(cls, names: object) -> object:
            return (names,) if isinstance(names, str) else names

        @model_validator(mode="after")
        def _one_file_a_folder(self) -> "Cars196.Parameters":
            if len(self.annotations) != len(self.images):
                raise ValueError(
                    f"annotations: {len(self.annotations)} files for {len(self.images)} folders of "
                    "images; one per folder is needed, in the same order"
                )
            places = [_place(folder) for folder in self.images]
            if len(set(places)) < len(places):
                raise ValueError(
                    f"images: the last parts of {', '.join(places)} are equal; they must differ, "
                    "since they become part of the images' names"
                )
            return self

    def required_files(self) -> tuple[str, ...]:
        return (*self.parameters.images, *self.parameters.annotations, self.parameters.classes)

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters
        names = _class_names(files, parameters.classes)
        tables, sources = [], {}
        with ExitStack() as stack:
            for folder, file in zip(parameters.images, parameters.annotations, strict=True):
                source = stack.enter_context(opened(files, folder))
                table = with_images(_annotations(files, file, names), source, file, parameters)
                tables.append(table.set_axis(f"{_place(folder)}/" + table.index))
                sources[_place(folder)] = source
            table = pd.concat(tables).sort_index()
            return samples_of(
                table, parameters.sensitive, joined(sources), files, parameters, splits
            )


def _place(folder: str) -> str:
    """What the images of a folder are called by: its last part."""
    return PurePosixPath(folder).name


def _class_names(files: Files, name: str) -> list[str]:
    names = list(map(str, _matlab(files, name, "class_names")))
    require_distinct(pd.Index(names), f"{name}, class_names")
    return names


def _annotations(files: Files, name: str, names: list[str]) -> pd.DataFrame:
    """Class of every image, by file name, with all classes as categories."""
    table: Any
    if name.endswith(".csv"):
        table = read_cells(files.blocks(name), name, (NAME, NUMBER)).astype(object)
    else:
        table = _matlab(files, name, "annotations")
    with as_official(name):
        codes = pd.to_numeric(pd.Series(list(table[NUMBER]))).astype("Int64") - 1
        codes = codes.where(codes >= 0, len(names))  # -1 would be a missing class
        classes = pd.Categorical.from_codes(codes, pd.Index(names, dtype=object))
        images = pd.Index(list(map(str, table[NAME])))
    require_distinct(images, name)
    return pd.DataFrame({CLASS: classes}, index=images)


def _matlab(files: Files, name: str, variable: str) -> np.ndarray:
    """A variable of a MATLAB file, in one dimension."""
    from scipy.io import loadmat

    content = files.content(name)
    with as_official(name):
        return np.atleast_1d(loadmat(BytesIO(content), squeeze_me=True)[variable])
