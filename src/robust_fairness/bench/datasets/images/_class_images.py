"""Images of many classes, split within each: what CARS196, CUB200 and LFW have in common."""

import logging

import numpy as np
import pandas as pd
from pydantic import PositiveInt

from robust_fairness.bench.datasets.base import labelled
from robust_fairness.bench.datasets.images._image_files import (
    ImageFileParameters,
    ImageSource,
    Look,
    decode,
)
from robust_fairness.bench.samples.splits import ClassSplitParameters, class_splits
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.core.samples import Samples

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
    source: ImageSource,
    files: Files,
    parameters: ClassImageParameters,
    splits: int,
    look: Look | None = None,
) -> Samples:
    """Decoded images with their class, their attributes and splits within each class.

    ``table`` has one row per image, by its name: the categorical column ``class``, whose
    categories are in the order of the dataset, and the categorical attributes ``sensitive``, of
    which ``class`` may be one. Groups are the values that occur; ``look`` as of ``decode``.
    """
    table = large_classes(table, parameters.min_images)
    occurring = {name: table[name].cat.remove_unused_categories() for name in (CLASS, *sensitive)}
    labels = occurring[CLASS].reset_index(drop=True)
    columns = {name: occurring[name].array for name in sensitive}
    attributes = pd.DataFrame(columns, index=range(len(table)))
    for name, column in attributes.drop(columns=CLASS, errors="ignore").items():
        counts = column.value_counts()
        for value in counts.index[counts == 1]:
            logger.warning("%s: only one image of %s, which is in one part only", name, value)
    frame = class_splits(labels, splits, parameters)
    x = decode(source, list(table.index), parameters, files, look)
    names = table.index.to_numpy(dtype=np.str_)
    return labelled(x, labels, attributes, frame, sensitive, files, id=names)


def large_classes(table: pd.DataFrame, min_images: int) -> pd.DataFrame:
    """The rows of classes that have at least ``min_images`` images."""
    counts = table[CLASS].value_counts()
    large = counts.index[counts >= min_images]
    filled = counts[counts > 0].sort_values(ascending=False)
    if len(filled) < 2:
        raise InputError(
            f"{CLASS}: images of a single class, {filled.index[0]}; at least two are needed"
        )
    if len(large) < 2:
        raise InputError(
            f"min_images: {min_images} leaves {len(large)} of {len(filled)} classes; two are "
            f"needed, so at most {filled.iloc[1]}"
        )
    kept = table[CLASS].isin(large)
    if not kept.all():
        left_out = ((~kept).sum(), len(table), len(filled) - len(large))
        logger.info("min_images: excludes %d of %d images, of %d classes", *left_out)
    return table[kept]
