"""Rows to shift."""

from dataclasses import fields

import numpy as np
import pandas as pd

from robust_fairness.core.samples import Samples


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


def changed_fields(before: Samples, after: Samples) -> set[str]:
    """Names of the fields that are another object after a shift."""
    names = [field.name for field in fields(Samples)]
    return {name for name in names if getattr(after, name) is not getattr(before, name)}
