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

    The unshifted test set's own distance is the origin: new rows of the training distribution are
    no closer than that.

    Args:
        dataset: name of the dataset.
        training: training pictures, uint8 ``[n, channels, height, width]``.
        test_sets: pictures by shift and severity; the unshifted ones are ``("none", 0.0)``.
        features: pictures to features ``[n, ...]``, for distances in their space too; it is
            called once a set.
        device: torch device that computes.

    Returns:
        Columns of ``tables.DISTANCES``: one row a test set and space.

    Raises:
        InputError: there is no unshifted test set, or pictures or features do not fit (see
            ``nearest_distances``).
    """
    if UNSHIFTED not in test_sets:
        raise InputError(
            f"distances of {dataset}: no unshifted test set, allowed: one of shift 'none' and "
            "severity 0"
        )
    if any(pictures.dtype != np.uint8 for pictures in (training, *test_sets.values())):
        raise InputError(f"distances of {dataset}: pictures that are not uint8")
    spaces: dict[str, Callable[[np.ndarray], np.ndarray]] = {PIXELS: lambda pictures: pictures}
    if features is not None:
        spaces[FEATURES] = features
    rows = []
    for space, seen in spaces.items():
        origin = seen(training)
        for (shift, severity), pictures in test_sets.items():
            found = nearest_distances(seen(pictures), origin, device)
            rows.append(
                {
                    "dataset": dataset,
                    "shift": shift,
                    "severity": severity,
                    "space": space,
                    "value": float(found.mean()),
                    "n": len(found),
                }
            )
    return tables.table(tables.DISTANCES, rows)
