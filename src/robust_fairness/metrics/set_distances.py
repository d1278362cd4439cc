"""How far the test sets of a dataset are from its training set: rows of ``tables.DISTANCES``."""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.metrics.nearest_neighbours import nearest_distances

UNSHIFTED = ("none", 0.0)
PIXELS, FEATURES = "pixels", "features"


def set_distances(
    dataset: str,
    training: np.ndarray,
    test_sets: Mapping[tuple[str, float], np.ndarray],
    features: Callable[[np.ndarray], np.ndarray] | None = None,
    device: str = "cpu",
) -> pd.DataFrame:
    """1-NN distance (Control+Shift, Eq. 3) of every test set to the training set.

    The distance of the unshifted test set is the origin: it is that of new rows of the training
    distribution.

    Args:
        dataset: name of the dataset.
        training: training images, uint8 ``[n, channels, height, width]``.
        test_sets: images by shift and severity; the unshifted ones are ``("none", 0.0)``.
        features: from images to features ``[n, ...]``, for distances in their space too.
        device: torch device that computes.
    """
    if UNSHIFTED not in test_sets:
        raise InputError(
            f"distances of {dataset}: no unshifted test set, allowed: one of shift 'none' and "
            "severity 0"
        )
    if any(images.dtype != np.uint8 for images in (training, *test_sets.values())):
        raise InputError(f"distances of {dataset}: images that are not uint8")
    spaces: dict[str, Callable[[np.ndarray], np.ndarray]] = {PIXELS: lambda images: images}
    if features is not None:
        spaces[FEATURES] = features
    rows = []
    for space, seen in spaces.items():
        origin = seen(training)
        for (shift, severity), images in test_sets.items():
            found = nearest_distances(seen(images), origin, device)
            rows.append((dataset, shift, severity, space, float(found.mean()), len(found)))
    return pd.DataFrame(rows, columns=list(tables.DISTANCES)).astype(dict(tables.DISTANCES))
