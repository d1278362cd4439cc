"""Reference classifiers: trained on real images, and used to assess generated images."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from robust_fairness.bench.compute.process import device_named
from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.maths.nearest_neighbours import nearest_distances
from robust_fairness.bench.training.data import rows_at_once
from robust_fairness.bench.training.prediction import FittedStack
from robust_fairness.bench.training.records import Fitted
from robust_fairness.core import tables
from robust_fairness.core.samples import Samples

UNSHIFTED = ("none", 0.0)


class ReferenceClassifier:
    """A network trained on real images (one replica), applied to others."""

    def __init__(self, fitted: Fitted, real: Samples, cell: Cell) -> None:
        device = device_named(cell.protocol.device, "protocol.device")
        self.stack = FittedStack([fitted], real, device)
        self.name = fitted.network["name"]
        test = real.rows(fitted.split, "test")
        self.rows = len(test)
        self.accuracy = float((self.classes(real.arrays["x"][test]) == real.y[test]).mean())

    @torch.no_grad()
    def features(self, images: np.ndarray) -> np.ndarray:
        """Inputs of the head, float32 ``[n, features]``, of uint8 images."""
        model = self.stack.model
        result = [model.features(block)[0].flatten(1) for block in self._inputs(images)]
        return torch.cat(result).float().cpu().numpy()

    @torch.no_grad()
    def classes(self, images: np.ndarray) -> np.ndarray:
        result = [self.stack.model(block)[0].argmax(-1) for block in self._inputs(images)]
        return torch.cat(result).cpu().numpy()

    def _inputs(self, images: np.ndarray) -> Iterator[Tensor]:
        """Preprocessed images ``[1, m, channels, height, width]``, block by block."""
        for block in torch.from_numpy(images).split(rows_at_once(images.shape[1:])):
            yield self.stack.preprocessing(block[None].to(self.stack.device, self.stack.dtype))


def quality(
    generator: str,
    dataset: str,
    test_sets: Mapping[tuple[str, float], Samples],
    reference: ReferenceClassifier,
) -> pd.DataFrame:
    """Accuracy on the generated images of every test set, ``tables.GENERATOR_QUALITY``.

    What it loses under a shift the generator may have lost: images that do not show their class.
    ``test_sets`` are by shift and severity.
    """
    rows = []
    for (shift, severity), samples in test_sets.items():
        test = samples.rows(samples.split_names[0], "test")
        known = reference.classes(samples.arrays["x"][test]) == samples.y[test]
        rows.append(
            {
                "generator": generator,
                "dataset": dataset,
                "shift": shift,
                "severity": severity,
                "classifier": reference.name,
                "rows": len(test),
                "accuracy": float(known.mean()),
                "real_rows": reference.rows,
                "real_accuracy": reference.accuracy,
            }
        )
    return tables.table(tables.GENERATOR_QUALITY, rows)


def distances(
    dataset: str,
    samples: Samples,
    shifted: Mapping[tuple[str, float], Samples],
    reference: ReferenceClassifier | None,
) -> pd.DataFrame:
    """Mean 1-NN distance of every test set to the training images, ``tables.DISTANCES``.

    In pixels, and between features where there is a reference classifier. ``shifted`` are test sets
    by shift and severity; the distance of the unshifted one is that of new rows of the training
    distribution.
    """
    split = samples.split_names[0]
    training = samples.arrays["x"][samples.rows(split, "train")]
    spaces: dict[str, Callable[[np.ndarray], np.ndarray]] = {"pixels": lambda images: images}
    if reference is not None:
        spaces["features"] = reference.features
    rows = []
    for space, seen in spaces.items():
        origin = seen(training)
        for (shift, severity), item in {UNSHIFTED: samples, **shifted}.items():
            test = item.arrays["x"][item.rows(split, "test")]
            result = nearest_distances(seen(test), origin)
            rows.append((dataset, shift, severity, space, float(result.mean()), len(result)))
    return pd.DataFrame(rows, columns=list(tables.DISTANCES)).astype(dict(tables.DISTANCES))
