"""Handwritten digits of 8 x 8 pixels (Alpaydin and Kaynak 1998), bundled with scikit-learn.

Works offline and without any download: real images that a small generator can learn.
"""

import hashlib
from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.datasets.base import ImageDataset, labelled
from robust_fairness.datasets.files import Files
from robust_fairness.samples import Samples
from robust_fairness.samples.splits import SplitParameters, random_splits, require_every_class

SOURCE = "scikit-learn/digits"
LEVELS = 16  # a pixel counts the ink in 4 x 4 smaller ones
WHITE = 255


class Digits(ImageDataset):
    """1,797 digits as images of one channel; ``id`` is the place in the bundled file.

    The rows are the test file of the UCI Machine Learning Repository; who wrote a digit is not
    told, so that the parts of a split may share writers.
    """

    class Parameters(SplitParameters):
        """Parameters of the bundled digits.

        Attributes:
            sensitive: attributes that methods mitigate; the class is the only one there is.
        """

        sensitive: tuple[Literal["class"], ...] = ("class",)

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters
        x, labels = bundled(files)
        frame = random_splits(len(labels), splits, parameters)
        require_every_class(frame, labels)
        attributes = {"class": labels}
        return labelled(x, labels, attributes, frame, parameters.sensitive, files)


def bundled(files: Files) -> tuple[np.ndarray, pd.Series]:
    """All digits in the order of the file."""
    from sklearn.datasets import load_digits

    found = load_digits()
    counts = found.images.astype(np.uint8)
    files.sources[SOURCE] = hashlib.sha256(counts.tobytes()).hexdigest()
    names = pd.Index(list(map(str, found.target_names)))
    return brightness(counts)[:, None], pd.Series(pd.Categorical.from_codes(found.target, names))


def brightness(counts: np.ndarray) -> np.ndarray:
    """Counts of 0 to 16 as bytes of 0 to 255, to the nearest one; 8, a tie, is 128.

    No two counts share a byte, so that nothing is lost.
    """
    return ((counts.astype(np.int64) * WHITE + LEVELS // 2) // LEVELS).astype(np.uint8)
