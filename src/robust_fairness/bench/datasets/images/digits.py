"""Handwritten digits of 8 x 8 pixels (Alpaydin and Kaynak 1998), bundled with scikit-learn.

Works offline and without any download: real images that a small generator can learn.
"""

from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.bench.datasets.base import ImageDataset, labelled
from robust_fairness.bench.samples.splits import SplitParameters, random_splits, require_every_class
from robust_fairness.core.raw_files import Files
from robust_fairness.core.samples import Samples

SOURCE = "scikit-learn/digits"
LEVELS = 16  # a pixel counts the ink in 4 x 4 smaller ones
WHITE = 255


class Digits(ImageDataset):
    """1,797 digits as images of one channel; ``id`` is the place in the bundled file.

    The rows are the test file of the UCI Machine Learning Repository; writers are not recorded, so
    that the parts of a split may share them.
    """

    class Parameters(SplitParameters):
        """Parameters of the bundled digits; the class is the only attribute."""

        sensitive: tuple[Literal["class"], ...] = ("class",)

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters
        x, labels = bundled(files)
        frame = random_splits(len(labels), splits, parameters)
        require_every_class(frame, labels)
        attributes = {"class": labels}
        return labelled(x, labels, attributes, frame, parameters.sensitive, files)


def bundled(files: Files) -> tuple[np.ndarray, pd.Series]:
    """All digits in the order of the file, uint8 ``[1797, 1, 8, 8]``, and their classes."""
    inks, labels = bundled_counts(files)
    names = pd.Index([str(digit) for digit in range(10)])
    return brightness(inks)[:, None], pd.Series(pd.Categorical.from_codes(labels, names))


def bundled_counts(files: Files) -> tuple[np.ndarray, np.ndarray]:
    """Counts of ink of 0 to 16, uint8 ``[1797, 8, 8]``, and digits; records their checksum."""
    from sklearn.datasets import load_digits

    result = load_digits()
    counts = result.images.astype(np.uint8)
    files.note(SOURCE, counts.tobytes())
    return counts, result.target.astype(np.int64)


def brightness(counts: np.ndarray) -> np.ndarray:
    """Counts of 0 to 16 as bytes of 0 to 255, to the nearest one; no two share a byte."""
    return ((counts.astype(np.int64) * WHITE + LEVELS // 2) // LEVELS).astype(np.uint8)
