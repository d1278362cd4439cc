"""Contact sheets: images of every class, or the same latents at every severity."""

from collections.abc import Mapping, Sequence

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from robust_fairness.numbers.groups import groups_of

GAP = 2  # pixels between images
IMAGE_AXES = 4  # row, channel, height, width
HEIGHT = 96  # smaller images are enlarged to about this
COLOURS = 3


def contact_sheet(samples: Samples, columns: int = 10) -> np.ndarray:
    """The first training rows of every class, one row per class (Figure A10 of the study).

    The images, uint8 ``[n, 1 or 3, height, width]``, are of the training rows of the first split.
    Small images are enlarged by an integer factor. The sheet is uint8 ``[height, width, 3]``.
    """
    return _first_rows(samples, samples.y, len(samples.classes), columns)


def attribute_sheet(samples: Samples, attribute: str, columns: int = 10) -> np.ndarray:
    """``contact_sheet`` with a row per value of a categorical attribute of the first split."""
    groups = groups_of(samples.of_split(samples.split_names[0]).attributes, [attribute])
    return _first_rows(samples, groups.index, len(groups.names), columns)


def _first_rows(samples: Samples, labels: np.ndarray, count: int, columns: int) -> np.ndarray:
    """A sheet of the first training rows of each of ``count`` labels."""
    x = samples.arrays.get("x")
    if x is None or not _are_images(x):
        raise InputError("contact_sheet: the samples are not images, allowed: uint8 (n, 3, h, w)")
    training = samples.rows(samples.split_names[0], "train")
    rows = [x[training[labels[training] == label][:columns]] for label in range(count)]
    return sheet(rows, columns)


def family_sheet(images: Mapping[float, np.ndarray], rows: int = 10) -> np.ndarray:
    """The same draws z at every severity, up to ``rows``: a row per draw, a column per severity.

    Source: Friedman and Chowers, "Control+Shift", Figures 2 and 7 to 9.
    """
    columns = list(images.values())
    if not columns or not all(map(_are_images, columns)):
        raise InputError("family_sheet: no images, allowed: uint8 (n, 1 or 3, h, w) per severity")
    shapes = {column.shape for column in columns}
    if len(shapes) > 1:
        raise InputError(f"family_sheet: images of {sorted(shapes)}, allowed: one shape")
    return sheet(np.stack([column[:rows] for column in columns], axis=1), len(columns))


def _are_images(x: np.ndarray) -> bool:
    return x.ndim == IMAGE_AXES and x.dtype == np.uint8 and x.shape[1] in (1, COLOURS)


def sheet(rows: Sequence[np.ndarray] | np.ndarray, columns: int) -> np.ndarray:
    """Rows of images, each uint8 ``[up to columns, channels, h, w]``, on white."""
    if not len(rows):
        raise InputError("contact sheet: at least one row of images is needed")
    size = rows[0].shape[2:]
    scale = max(1, HEIGHT // size[0])
    height, width = (GAP + scale * side for side in size)
    whole = np.full((GAP + height * len(rows), GAP + width * columns, COLOURS), 255, np.uint8)
    for row, images in enumerate(rows):
        for column, image in enumerate(images):
            tile = image.transpose(1, 2, 0).repeat(scale, axis=0).repeat(scale, axis=1)
            top, left = GAP + row * height, GAP + column * width
            whole[top : top + height - GAP, left : left + width - GAP] = tile
    return whole
