"""Images of many classes, split within each: what CARS196, CUB200 and LFW have in common."""

import logging

import numpy as np
import pandas as pd
from pydantic import PositiveInt

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.images._image_files import ImageFileParameters, Source, decode
from robust_fairness.samples import Samples
from robust_fairness.samples.splits import ClassSplitParameters, class_splits

CLASS = "class"

logger = logging.getLogger(__name__)


class ClassImageParameters(ClassSplitParameters, ImageFileParameters):
    """Parameters of images of many classes.

    Attributes:
        min_images: a class with fewer images is left out; one with a single image trains only.
    """

    min_images: PositiveInt = 1


def samples_of(
    table: pd.DataFrame,
    sensitive: tuple[str, ...],
    source: Source,
    where: str,
    files: Files,
    parameters: ClassImageParameters,
    splits: int,
) -> Samples:
    """Decoded images with their class, their attributes and splits within each class.

    Groups are the values that occur; one that has a single image is told in the log.
    """
    table = _large_classes(table, parameters.min_images)
    labels = pd.Series(table[CLASS].cat.remove_unused_categories().array)
    attributes = pd.DataFrame(
        {name: table[name].cat.remove_unused_categories().array for name in sensitive}
    )
    _tell_of_single_images(attributes.drop(columns=CLASS, errors="ignore"))
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


def _large_classes(table: pd.DataFrame, min_images: int) -> pd.DataFrame:
    """The rows of classes with images enough."""
    counts = table[CLASS].value_counts()
    large = counts.index[counts >= min_images]
    filled = counts[counts > 0].sort_values(ascending=False)
    if len(filled) < 2:
        raise InputError(
            f"{CLASS}: images of {len(filled)} class only, {filled.index[0]}, allowed: of two "
            "or more"
        )
    if len(large) < 2:
        raise InputError(
            f"min_images: {min_images} leaves {len(large)} of {len(filled)} classes, "
            f"allowed: what leaves two or more, here up to {filled.iloc[1]}"
        )
    kept = table[CLASS].isin(large)
    if not kept.all():
        logger.info(
            "min_images: %d of %d images are left out, of %d classes",
            (~kept).sum(),
            len(table),
            len(filled) - len(large),
        )
    return table[kept]


def _tell_of_single_images(attributes: pd.DataFrame) -> None:
    """Warn of groups of one image, which are in one part only."""
    for name, column in attributes.items():
        counts = column.value_counts()
        for value in counts.index[counts == 1]:
            logger.warning("%s: only one image of %s", name, value)
