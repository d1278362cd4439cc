"""MNIST: 70,000 handwritten digits (LeCun, Cortes and Burges 1998), also in colours."""

from typing import Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, NonNegativeInt, PositiveInt, model_validator

from robust_fairness.bench.datasets.base import ImageDataset, Listed, labelled
from robust_fairness.bench.datasets.images._biased_mnist_rendering import block_means
from robust_fairness.bench.datasets.images.biased_mnist import MNIST_FILES, read_mnist
from robust_fairness.bench.datasets.images.coloured_digits import (
    Colors,
    coloured,
    drawn_colors,
    named_colors,
)
from robust_fairness.bench.samples.splits import require_at_most, require_every_class
from robust_fairness.core.raw_files import Files
from robust_fairness.core.samples import REQUIRED_PARTS, Samples


class Mnist(ImageDataset):
    """Images of one channel, or of three in colours; the official test images are the test part.

    ``id`` is the place in the files, those of the training first. Split k has training and
    validation rows of its own among the official training images; the other ones are in no part.
    """

    raw_files = MNIST_FILES

    class Parameters(BaseModel, extra="forbid", frozen=True):
        """Parameters of MNIST.

        Attributes:
            size: height and width; 14 and 7 are means of squares of pixels.
            train_rows: training rows of a split.
            val_rows: validation rows of a split.
            test_rows: the first of the test images.
            colors: colours of the ink, ``{}`` for those of ``coloured_digits``; grey if None.
            sensitive: ``class``, or ``color`` where there are colours.
            seed: seed of the splits; split k depends on it and on k only.
        """

        size: Literal[28, 14, 7] = 28
        train_rows: PositiveInt = 50_000
        val_rows: PositiveInt = 10_000
        test_rows: PositiveInt = 10_000
        colors: Colors | None = None
        sensitive: Listed[Literal["class", "color"]] = ("class",)
        seed: NonNegativeInt = 0

        @model_validator(mode="after")
        def _coloured(self) -> "Mnist.Parameters":
            if "color" in self.sensitive and self.colors is None:
                raise ValueError("sensitive: color needs colors")
            return self

    def load(self, files: Files, splits: int) -> Samples:
        parameters = self.parameters
        (images, y), (tested, y_tested) = (read_mnist(files, name) for name in ("train", "t10k"))
        known = len(y)
        rows = known + require_at_most("test_rows", parameters.test_rows, len(y_tested))
        labels = np.concatenate([y, y_tested])[:rows]
        x = block_means(np.concatenate([images, tested])[:rows], parameters.size)[:, None]
        require_at_most(
            "train_rows and val_rows", parameters.train_rows + parameters.val_rows, known
        )
        frame = pd.DataFrame({f"split_{k}": self._split(known, rows, k) for k in range(splits)})
        target = pd.Series(pd.Categorical.from_codes(labels, pd.Index([*"0123456789"])))
        require_every_class(frame, target)
        attributes = {"class": target}
        if parameters.colors is not None:
            codes = drawn_colors(labels, parameters.colors)
            x, attributes["color"] = coloured(x, codes), pd.Series(named_colors(codes))
        kept = {name: attributes[name] for name in parameters.sensitive}
        return labelled(x, target, kept, frame, parameters.sensitive, files)

    def _split(self, known: int, rows: int, k: int) -> pd.Categorical:
        """Parts of a split; rows of none of them are missing."""
        validated, trained = self.parameters.val_rows, self.parameters.train_rows
        order = np.random.default_rng([self.parameters.seed, k]).permutation(known)
        parts = np.full(rows, "test", dtype=object)
        parts[:known] = None
        parts[order[:validated]] = "val"
        parts[order[validated : validated + trained]] = "train"
        return pd.Categorical(parts, list(REQUIRED_PARTS))
