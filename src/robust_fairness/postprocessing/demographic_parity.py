"""Demographic parity by thresholds of groups."""

from collections.abc import Sequence

import numpy as np

from robust_fairness.postprocessing._group_thresholds import Curve, GroupThresholds


class DemographicParity(GroupThresholds):
    """Selection rates of two groups differ by the tolerance at most."""

    def rates(self, curve: Curve) -> Sequence[np.ndarray]:
        return (curve.base_rate * curve.tpr + (1 - curve.base_rate) * curve.fpr,)
