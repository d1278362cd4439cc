"""A referee: a classifier of real images, to which generated ones are shown."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from robust_fairness.core import tables
from robust_fairness.experiment.experiment import Cell
from robust_fairness.metrics.set_distances import UNSHIFTED, set_distances
from robust_fairness.samples import Samples
from robust_fairness.training.data import device_of
from robust_fairness.training.inputs import rows_at_once
from robust_fairness.training.prediction import FittedStack
from robust_fairness.training.records import Fitted


class Referee:
    """What a network that was trained on real images makes of others.

    Args:
        fitted: the trained network, one replica.
        real: the dataset that it was trained on.
        cell: how it was trained.
    """

    def __init__(self, fitted: Fitted, real: Samples, cell: Cell) -> None:
        self.stack = FittedStack([fitted], real, device_of(cell.protocol))
        self.name = fitted.network["name"]
        test = real.rows(fitted.split, "test")
        self.rows = len(test)
        self.accuracy = float((self.classes(real.arrays["x"][test]) == real.y[test]).mean())

    @torch.no_grad()
    def features(self, images: np.ndarray) -> np.ndarray:
        """What the classifier's head sees of images, uint8 ``[n, channels, height, width]``.

        Returns:
            float32 ``[n, features]``.
        """
        model = self.stack.model
        found = [model.features(block)[0].flatten(1) for block in self._inputs(images)]
        return torch.cat(found).float().cpu().numpy()

    @torch.no_grad()
    def classes(self, images: np.ndarray) -> np.ndarray:
        """The class that each image is taken for, int64 ``[n]``."""
        found = [self.stack.model(block)[0].argmax(-1) for block in self._inputs(images)]
        return torch.cat(found).cpu().numpy()

    def _inputs(self, images: np.ndarray) -> Iterator[Tensor]:
        """Preprocessed images ``[1, m, channels, height, width]``, block by block."""
        for block in torch.from_numpy(images).split(rows_at_once(images.shape[1:])):
            yield self.stack.preprocessing(block[None].to(self.stack.device, self.stack.dtype))


def quality(generator: str, samples: Samples, referee: Referee) -> pd.DataFrame:
    """How well the referee knows the classes of generated images.

    Args:
        generator: its name.
        samples: what it has made; the unshifted test rows are shown.
        referee: the classifier.

    Returns:
        One row of ``tables.GENERATOR_QUALITY``.
    """
    test = samples.rows(samples.split_names[0], "test")
    known = referee.classes(samples.arrays["x"][test]) == samples.y[test]
    row = {
        "generator": generator,
        "classifier": referee.name,
        "rows": len(test),
        "accuracy": float(known.mean()),
        "real_rows": referee.rows,
        "real_accuracy": referee.accuracy,
    }
    return tables.table(tables.GENERATOR_QUALITY, [row])


def distances(
    dataset: str,
    samples: Samples,
    shifted: Mapping[tuple[str, float], Samples],
    referee: Referee | None,
) -> pd.DataFrame:
    """1-NN distance of every test set to the training images, also between their features.

    Args:
        dataset: its name.
        samples: the unshifted dataset.
        shifted: shifted test sets by shift and severity.
        referee: whose features are compared; pixels only without one.

    Returns:
        ``tables.DISTANCES``.
    """
    split = samples.split_names[0]
    images = {UNSHIFTED: samples.arrays["x"][samples.rows(split, "test")]}
    images |= {
        test_set: one.arrays["x"][one.rows(split, "test")] for test_set, one in shifted.items()
    }
    training = samples.arrays["x"][samples.rows(split, "train")]
    return set_distances(dataset, training, images, referee.features if referee else None)
