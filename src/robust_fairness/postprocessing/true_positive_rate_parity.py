"""Equal opportunity by thresholds of groups."""

from collections.abc import Sequence

import numpy as np

from robust_fairness.postprocessing._group_thresholds import Curve, GroupThresholds


class TruePositiveRateParity(GroupThresholds):
    """True positive rates of two groups differ by the tolerance at most."""

    def rates(self, curve: Curve) -> Sequence[np.ndarray]:
        return (curve.tpr,)
