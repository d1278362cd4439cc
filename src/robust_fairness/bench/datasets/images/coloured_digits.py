"""The bundled digits in colours of unequal frequency: class and attribute without any download.

Real handwriting, made-up colours. The stand-in for faces and birds whose attribute is in the
image and partly predicts the class.
"""

from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field, NonNegativeInt

from robust_fairness.bench.datasets.base import ImageDataset, Listed, labelled
from robust_fairness.bench.datasets.images import digits
from robust_fairness.bench.samples.splits import (
    ClassSplitParameters,
    class_splits,
    require_every_class,
)
from robust_fairness.core.draws import uniform_rows
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.core.samples import Samples

# Red, green, blue. The largest of each is 255, so that it shows all of the ink.
COLORS = {
    "red": (255, 0, 0),
    "orange": (255, 128, 0),
    "yellow": (255, 255, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "purple": (192, 0, 255),
}
OWN = (0, 0, 0, 1, 1, 2, 2, 3, 4, 5)  # color of each digit that correlation favours
DRAWS = 1  # stream of the seed, beside that of the splits

Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Colors(BaseModel, extra="forbid", frozen=True):
    """Which ink digits have.

    Attributes:
        frequencies: relative frequencies of the colors.
        correlation: probability that a digit has the color of its class, and not a drawn one; 0
            makes color and class independent, 1 makes the color a function of the class.
        color_seed: seed of the colors.
    """

    frequencies: Annotated[tuple[Weight, ...], Field(min_length=6, max_length=6)] = (
        0.35, 0.25, 0.18, 0.11, 0.07, 0.04,
    )  # fmt: skip
    correlation: Annotated[float, Field(ge=0, le=1)] = 0.3
    color_seed: NonNegativeInt = 0


class ColouredDigits(ImageDataset):
    """1,797 digits as images of three channels, split within each class.

    The color of a row depends on its place in the bundled file and on ``color_seed`` alone.
    """

    class Parameters(Colors, ClassSplitParameters):
        """Parameters of the digits in colours."""

        sensitive: Listed[Literal["color", "class"]] = ("color",)

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters
        grey, labels = digits.bundled(files)
        frame = class_splits(labels, splits, parameters)
        require_every_class(frame, labels)
        codes = drawn_colors(labels.cat.codes.to_numpy(np.int64), parameters)
        attributes = pd.DataFrame({"color": named_colors(codes), "class": labels})
        subset = attributes[list(parameters.sensitive)]
        return labelled(coloured(grey, codes), labels, subset, frame, parameters.sensitive, files)


def drawn_colors(classes: np.ndarray, parameters: Colors) -> np.ndarray:
    """Color of every row by its place in ``COLORS``, int64 ``[n]``."""
    seed = (parameters.color_seed, DRAWS)
    draws = uniform_rows(seed, np.arange(len(classes)), (2,)).astype(np.float64)
    shares = np.cumsum(parameters.frequencies) / np.sum(parameters.frequencies)
    free = np.searchsorted(shares[:-1], draws[:, 1], side="right")
    return np.where(draws[:, 0] < parameters.correlation, np.array(OWN)[classes], free)


def coloured(grey: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Ink of a color on black: uint8 ``[n, 1, height, width]`` to RGB ``[n, 3, height, width]``."""
    ink = np.array(list(COLORS.values()))[codes][:, :, None, None]
    return ((grey.astype(np.int64) * ink + digits.WHITE // 2) // digits.WHITE).astype(np.uint8)


def nearest_colors(images: np.ndarray) -> pd.Categorical:
    """The color nearest to the ink of each RGB image in hue and saturation.

    That is the one of which the sum of all pixels is at the smallest angle, whatever the
    brightness: the inverse of ``coloured``.
    """
    if images.shape[1] != len("rgb"):
        raise InputError(f"color: images of {images.shape[1]} channels, allowed: 3")
    inks = np.array(list(COLORS.values()), dtype=np.float64)
    sums = images.sum(axis=(2, 3), dtype=np.float64)
    return named_colors((sums @ (inks / np.linalg.norm(inks, axis=1, keepdims=True)).T).argmax(1))


def named_colors(codes: np.ndarray) -> pd.Categorical:
    """Numbers of colors as their names."""
    return pd.Categorical.from_codes(codes, pd.Index(list(COLORS), dtype=object))
