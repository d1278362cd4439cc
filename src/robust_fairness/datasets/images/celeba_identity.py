"""CelebA as a data set of people: which face is whose, and skin tone as the attribute.

"Is Fairness Only Metric Deep?" (ICLR 2022), 3.3 and D.1: the people of training and test are the
same, split within each of them. Images are decoded once.
"""

import logging
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field, PositiveInt, model_validator

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.base import ImageDataset
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.images._celeba import (
    IDENTITIES,
    IMAGES,
    Colours,
    landmarks_of,
    skin_tone_attributes,
    whole_numbers,
)
from robust_fairness.datasets.images._image_files import (
    ImageFileParameters,
    decode,
    opened,
    with_images,
)
from robust_fairness.datasets.images._skin_tone import SkinToneParameters
from robust_fairness.samples import Samples
from robust_fairness.samples.splits import ClassSplitParameters, class_splits

FEWEST_PEOPLE = 2

logger = logging.getLogger(__name__)


class CelebaIdentity(ImageDataset):
    """Faces with the person they show, their skin tone, and splits within each person.

    People are called by their number in the official file, and stand in its order.
    """

    class Parameters(ClassSplitParameters, ImageFileParameters):
        """Parameters of the people of CelebA.

        Attributes:
            sensitive: attributes that methods mitigate: ``skin_tone`` (I to VI), ``light_or_dark``
                (I to III, IV to VI) or ``ita`` (degrees, continuous).
            images: folder of the aligned JPEG files below the data root, or a zip file of that
                name.
            min_images: people with fewer images, of those that are there, are left out; with four
                a person has two in training and two in the test.
            crop: skin tone is measured on the whole image, whatever is cut out.
            skin_tone: how skin tone is measured.
        """

        sensitive: Annotated[
            tuple[Literal["skin_tone", "light_or_dark", "ita"], ...], Field(min_length=1)
        ] = ("skin_tone",)
        images: str = IMAGES
        min_images: PositiveInt = 4
        skin_tone: SkinToneParameters = SkinToneParameters()

        @model_validator(mode="after")
        def _attributes_differ(self) -> "CelebaIdentity.Parameters":
            if len(set(self.sensitive)) < len(self.sensitive):
                raise ValueError("sensitive: an attribute is given twice, allowed: each once")
            return self

    def required_files(self) -> tuple[str, ...]:
        return (self.parameters.images, IDENTITIES)

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters
        where = parameters.images
        table = whole_numbers(files, IDENTITIES).to_frame("person")
        with opened(files.root, where) as source:
            table = with_images(table, source, where, IDENTITIES, parameters.only_present)
            table = _with_enough(table, parameters.min_images)
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
    """The rows of people with so many images."""
    counts = table["person"].map(table["person"].value_counts())
    kept: pd.DataFrame = table[counts >= least]
    people = kept["person"].nunique()
    if people < FEWEST_PEOPLE:
        raise InputError(
            f"min_images: {least} leaves {people} of {table['person'].nunique()} people of "
            f"{len(table)} images, allowed: what leaves {FEWEST_PEOPLE} or more"
        )
    if len(kept) < len(table):
        logger.info("min_images: %d of %d images are left out", len(table) - len(kept), len(table))
    return kept


def _people(numbers: pd.Series) -> pd.Series:
    """The person of every row, categorical, in the order of their numbers."""
    found, codes = np.unique(numbers.to_numpy(), return_inverse=True)
    names = pd.Index([str(number) for number in found], dtype=object)
    return pd.Series(pd.Categorical.from_codes(codes, names))
