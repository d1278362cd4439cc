"""CelebA as a data set of people: which face is whose, and skin tone as the attribute.

"Is Fairness Only Metric Deep?" (ICLR 2022), 3.3 and D.1: the people of training and test are the
same, split within each of them. Pictures are decoded once.
"""

import logging
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, PositiveInt, field_validator, model_validator

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.base import ImageDataset
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.images._celeba import (
    IDENTITIES,
    PICTURES,
    Colours,
    landmarks_of,
    skin_tone_attributes,
    whole_numbers,
)
from robust_fairness.datasets.images._pictures import decode, opened, with_pictures
from robust_fairness.datasets.images._skin_tone import SkinToneParameters
from robust_fairness.samples import Samples
from robust_fairness.samples.splits import ClassSplitParameters, class_splits

FEWEST_PEOPLE = 2

logger = logging.getLogger(__name__)


class Parameters(ClassSplitParameters, extra="forbid", frozen=True):
    """Parameters of the people of CelebA.

    Attributes:
        sensitive: attributes that methods mitigate: ``skin_tone`` (I to VI), ``light_or_dark`` (I
            to III, IV to VI) or ``ita`` (degrees, continuous).
        pictures: folder of the aligned JPEG files below the data root, or a zip file of that
            name.
        only_present: use the people of the pictures that are there; otherwise a missing picture
            is an error.
        min_pictures: people with fewer pictures, of those that are there, are left out; with four
            a person has two in training and two in the test.
        crop: what is cut out around the centre of a picture: its largest square, a height and a
            width in pixels, or None for all of it. Skin tone is measured on the whole picture.
        size: height and width that it is resized to; a single number is both.
        skin_tone: how skin tone is measured.
    """

    sensitive: Annotated[
        tuple[Literal["skin_tone", "light_or_dark", "ita"], ...], Field(min_length=1)
    ] = ("skin_tone",)
    pictures: str = PICTURES
    only_present: bool = False
    min_pictures: PositiveInt = 4
    crop: Literal["square"] | tuple[PositiveInt, PositiveInt] | None = "square"
    size: tuple[PositiveInt, PositiveInt] = (128, 128)
    skin_tone: SkinToneParameters = SkinToneParameters()

    @field_validator("size", mode="before")
    @classmethod
    def _of_a_square(cls, size: Any) -> Any:
        return (size, size) if isinstance(size, int) else size

    @model_validator(mode="after")
    def _attributes_differ(self) -> "Parameters":
        if len(set(self.sensitive)) < len(self.sensitive):
            raise ValueError("sensitive: an attribute is given twice, allowed: each once")
        return self


def load(parameters: Parameters, files: Files, splits: int) -> Samples:
    """Faces with the person they show, their skin tone, and splits within each person.

    People are called by their number in the official file, and stand in its order.

    Args:
        parameters: people, size, skin tone and splits.
        files: the files of people and landmarks, and the pictures.
        splits: number of named splits.

    Raises:
        InputError: a file is missing or damaged, people and pictures do not match, less than two
            people have enough pictures, or a part of a split would be empty.
    """
    where = parameters.pictures
    table = whole_numbers(files, IDENTITIES).to_frame("person")
    with opened(files.root, where) as source:
        table = with_pictures(table, source, where, IDENTITIES, parameters.only_present)
        table = _with_enough(table, parameters.min_pictures)
        labels = _people(table["person"])
        frame = class_splits(labels, splits, parameters)
        colours = Colours(*landmarks_of(files, table.index, parameters.skin_tone))
        x, files.sources[where] = decode(
            source, list(table.index), parameters.size, parameters.crop, colours
        )
    return Samples(
        x=x,
        y=labels.cat.codes.to_numpy().astype(np.int64),
        attributes=skin_tone_attributes(colours, parameters.skin_tone),
        id=table.index.to_numpy(dtype=np.str_),
        splits=frame,
        classes=tuple(map(str, labels.cat.categories)),
        sensitive=parameters.sensitive,
        sources=files.sources,
    )


def _with_enough(table: pd.DataFrame, least: int) -> pd.DataFrame:
    """The rows of people with so many pictures."""
    counts = table["person"].map(table["person"].value_counts())
    kept: pd.DataFrame = table[counts >= least]
    people = kept["person"].nunique()
    if people < FEWEST_PEOPLE:
        raise InputError(
            f"min_pictures: {least} leaves {people} of {table['person'].nunique()} people of "
            f"{len(table)} pictures, allowed: what leaves {FEWEST_PEOPLE} or more"
        )
    if len(kept) < len(table):
        logger.info(
            "min_pictures: %d of %d pictures are left out", len(table) - len(kept), len(table)
        )
    return kept


def _people(numbers: pd.Series) -> pd.Series:
    """The person of every row, categorical, in the order of their numbers."""
    found, codes = np.unique(numbers.to_numpy(), return_inverse=True)
    names = pd.Index([str(number) for number in found], dtype=object)
    return pd.Series(pd.Categorical.from_codes(codes, names))


class CelebaIdentity(ImageDataset):
    """``load`` with parameters."""

    Parameters = Parameters

    def load(self, files: Files, splits: int) -> Samples:
        """The samples."""
        return load(self.parameters, files, splits)
