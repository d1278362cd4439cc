"""Pictures of many classes, split within each: what CARS196, CUB200 and LFW have in common."""

import logging
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import PositiveInt, field_validator

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.images._pictures import Source, decode
from robust_fairness.samples import Samples
from robust_fairness.samples.splits import ClassSplitParameters, class_splits

CLASS = "class"

logger = logging.getLogger(__name__)


class ClassPictureParameters(ClassSplitParameters, extra="forbid", frozen=True):
    """What the parameters of pictures of many classes have in common.

    Attributes:
        only_present: use the annotated pictures that are there; otherwise a missing one is an
            error.
        min_pictures: a class with fewer pictures is left out; one with a single picture trains
            only.
        crop: what is cut out around the centre of a picture: its largest square, a height and a
            width in pixels, or None for all of it.
        size: height and width that it is resized to; a single number is both. Pictures that are
            smaller are enlarged.
    """

    only_present: bool = False
    min_pictures: PositiveInt = 1
    crop: Literal["square"] | tuple[PositiveInt, PositiveInt] | None = "square"
    size: tuple[PositiveInt, PositiveInt] = (128, 128)

    @field_validator("size", mode="before")
    @classmethod
    def _of_a_square(cls, size: Any) -> Any:
        return (size, size) if isinstance(size, int) else size


def samples_of(
    table: pd.DataFrame,
    sensitive: tuple[str, ...],
    source: Source,
    where: str,
    files: Files,
    parameters: ClassPictureParameters,
    splits: int,
) -> Samples:
    """Decoded pictures with their class, their attributes and splits within each class.

    Groups are the values that occur; one that has a single picture is told in the log.

    Args:
        table: a row a picture, by its name: the categorical column ``class``, whose categories
            stand in the order of the dataset, and categorical attributes.
        sensitive: the columns that are sensitive attributes; ``class`` may be one.
        source: the pictures.
        where: what the place of the pictures is called.
        files: the checksums of what was read so far.
        parameters: sizes and splits.
        splits: number of named splits.

    Raises:
        InputError: less than two classes have pictures enough, a part of a split would be empty,
            or a picture is damaged or smaller than the crop.
    """
    table = _large_classes(table, parameters.min_pictures)
    labels = pd.Series(table[CLASS].cat.remove_unused_categories().array)
    attributes = pd.DataFrame(
        {name: table[name].cat.remove_unused_categories().array for name in sensitive}
    )
    _tell_of_single_pictures(attributes.drop(columns=CLASS, errors="ignore"))
    frame = class_splits(labels, splits, parameters)
    x, files.sources[where] = decode(source, list(table.index), parameters.size, parameters.crop)
    return Samples(
        x=x,
        y=labels.cat.codes.to_numpy().astype(np.int64),
        attributes=attributes,
        id=table.index.to_numpy(dtype=np.str_),
        splits=frame,
        classes=tuple(map(str, labels.cat.categories)),
        sensitive=sensitive,
        sources=files.sources,
    )


def _large_classes(table: pd.DataFrame, min_pictures: int) -> pd.DataFrame:
    """The rows of classes with pictures enough."""
    counts = table[CLASS].value_counts()
    large = counts.index[counts >= min_pictures]
    filled = counts[counts > 0].sort_values(ascending=False)
    if len(filled) < 2:
        raise InputError(
            f"{CLASS}: pictures of {len(filled)} class only, {filled.index[0]}, allowed: of two "
            "or more"
        )
    if len(large) < 2:
        raise InputError(
            f"min_pictures: {min_pictures} leaves {len(large)} of {len(filled)} classes, "
            f"allowed: what leaves two or more, here up to {filled.iloc[1]}"
        )
    kept = table[CLASS].isin(large)
    if not kept.all():
        logger.info(
            "min_pictures: %d of %d pictures are left out, of %d classes",
            (~kept).sum(),
            len(table),
            len(filled) - len(large),
        )
    return table[kept]


def _tell_of_single_pictures(attributes: pd.DataFrame) -> None:
    """Warn of groups of one picture, which are in one part only."""
    for name, column in attributes.items():
        counts = column.value_counts()
        for value in counts.index[counts == 1]:
            logger.warning("%s: only one picture of %s", name, value)
