"""Rows to shift."""

import numpy as np
import pandas as pd

from robust_fairness.samples import Samples


def samples_of(x: np.ndarray) -> Samples:
    """Test rows of two classes in turn and of one group."""
    rows = len(x)
    return Samples(
        x=x,
        y=np.arange(rows) % 2,
        attributes=pd.DataFrame({"sex": pd.Categorical(["f"] * rows)}),
        id=np.arange(rows),
        splits=pd.DataFrame({"split_0": pd.Categorical(["test"] * rows)}),
        classes=("no", "yes"),
    )
