"""Equalised odds by thresholds of groups."""

from collections.abc import Sequence

import numpy as np

from robust_fairness.postprocessing._group_thresholds import Curve, GroupThresholds


class EqualizedOdds(GroupThresholds):
    """Neither true nor false positive rates of two groups differ by more than the tolerance."""

    def rates(self, curve: Curve) -> Sequence[np.ndarray]:
        return curve.tpr, curve.fpr
