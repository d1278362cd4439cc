"""Scores of metrics by name, from arrays, and samples to score."""

import numpy as np
import pandas as pd

from robust_fairness.core.samples import Samples
from robust_fairness.metrics import Score, find_metric
from robust_fairness.numbers.groups import Groups


def score_of(name: str, **arrays) -> Score:
    """Score of a metric over all groups."""
    return find_metric(name).scores(arrays)[""]


def scores_of_groups(name: str, group, names: tuple[str, ...], **arrays) -> dict[str, Score]:
    """Scores of a metric by group."""
    return find_metric(name).scores({**arrays, "sensitive_features": Groups.named(group, names)})


def samples_of(y, classes: tuple[str, ...], sensitive: tuple[str, ...] = (), **attributes):
    """Test rows without inputs."""
    parts = pd.Categorical(["test"] * len(y), ["train", "val", "test"])
    return Samples(
        x=np.zeros((len(y), 0), np.float32),
        y=y,
        attributes=pd.DataFrame(attributes),
        id=np.arange(len(y)),
        splits=pd.DataFrame({"s": parts}),
        classes=classes,
        sensitive=sensitive,
    )
