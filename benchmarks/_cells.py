"""Cells and samples of made-up data, as the grid would have them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.core.samples import Samples


def cell_of(
    method: str | Mapping[str, Any],
    network: str | Mapping[str, Any],
    seeds: int = 1,
    **protocol: Any,
) -> Cell:
    """A cell with the defaults of its method and network, long enough to be timed."""
    return Cell.model_validate(
        {
            "dataset": "made_up",
            "label": "timed",
            "method": method,
            "network": network,
            "protocol": {"epochs": 1000, **protocol},
            "seeds": list(range(seeds)),
        }
    )


def samples_of(
    x: np.ndarray, y: np.ndarray, classes: int, part: np.ndarray, **groups: np.ndarray
) -> Samples:
    """Samples with one split, its parts of the rows, and sensitive groups by their numbers."""
    attributes = {
        name: pd.Categorical.from_codes(codes, list(map(str, range(codes.max() + 1))))
        for name, codes in groups.items()
    }
    return Samples(
        x=x,
        y=y,
        attributes=pd.DataFrame(attributes, index=range(len(y))),
        id=np.arange(len(y)),
        splits=pd.DataFrame({"split_0": pd.Categorical(part, ["train", "val", "test"])}),
        classes=tuple(map(str, range(classes))),
        sensitive=tuple(groups),
    )
