"""Questions on images: what all rows share, the shape of one row, and which answers are rare.

A row has the numbers of its words and of its image; the features of all images are in one
memory-mapped file.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from robust_fairness.core.errors import InputError

PADDING = 0  # the token that is no word
TOKENS, IMAGE = "tokens", "image"  # the arrays of ``Samples.x``
FEATURES_FILE, COUNTS_FILE = "features.npy", "counts.npy"


@dataclass(frozen=True)
class Boxes:
    """Features of the boxes of many images, memory-mapped arrays in a folder.

    ``features.npy`` is float16 ``[image, box, feature]`` with zeros after an image's last box,
    ``counts.npy`` int16 ``[image]`` the number of its boxes; ``shape`` is that of the features,
    ``sha256`` of both.
    """

    folder: str
    shape: tuple[int, int, int]
    sha256: str

    @cached_property
    def features(self) -> np.ndarray:
        """Features of all images, float16 ``[image, box, feature]``, mapped."""
        return self._mapped(FEATURES_FILE, self.shape)

    @cached_property
    def counts(self) -> np.ndarray:
        """Boxes of all images, int16 ``[image]``, mapped."""
        return self._mapped(COUNTS_FILE, self.shape[:1])

    def _mapped(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        path = Path(self.folder, name)
        try:
            result: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise InputError(
                f"{path}: cannot be read ({error}); run the ingestion of its dataset again"
            ) from error
        if result.shape != shape:
            raise InputError(f"{path}: shape {result.shape}, allowed: {shape}, as was ingested")
        return result


@dataclass(frozen=True)
class Questions:
    """What samples that are questions on images share.

    Their ``x`` holds ``tokens`` int32 ``[n, word]``, places in ``words``, and ``image`` int32
    ``[n]``, rows of the boxes.
    """

    words: tuple[str, ...]
    boxes: Boxes


class QuestionShape(NamedTuple):
    """The shape of one row that is a question on an image.

    Attributes:
        words: the vocabulary.
        tokens: number of words of a question.
        boxes: largest number of boxes of an image.
        features: width of the features of a box.
    """

    words: tuple[str, ...]
    tokens: int
    boxes: int
    features: int

    @property
    def numbers(self) -> int:
        """Width of a packed row."""
        return self.tokens + 1 + self.boxes * self.features


RowShape = tuple[int, ...] | QuestionShape


def in_tail(
    y: np.ndarray, group: np.ndarray, classes: int, beta: float, limit: bool = False
) -> np.ndarray:
    r"""Whether each row is of a tail class of its group, bool ``[n]``.

    .. math:: |a| < (1 + \beta) \mu(a)

    |a| counts the class in the group, mu is the mean count of the classes that occur there. A.1
    prints <= (``limit``), the published labels follow <. The comparison is exact: beta is the
    decimal number that was written, not the nearest binary one.
    """
    keys, index, counts = np.unique(group * classes + y, return_inverse=True, return_counts=True)
    _, group_of, present = np.unique(keys // classes, return_inverse=True, return_counts=True)
    totals = np.zeros(len(present), dtype=np.int64)
    np.add.at(totals, group_of, counts)
    factor = 1 + Fraction(str(beta))
    # Whole numbers of any size: |a| * present * denominator < numerator * total
    left = counts * present[group_of].astype(object) * factor.denominator
    right = totals[group_of].astype(object) * factor.numerator
    return (left <= right if limit else left < right).astype(bool)[index]
