"""Latents of another variance than the generator's prior."""

import math

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.generation.latents import Targets, check_dimension
from robust_fairness.shifts.base import LatentShift


class Truncation(LatentShift):
    r"""Draws of N(0, R^2 I): :math:`\tilde z = R z`, not on a sphere.

    The severity is R; 1 is the generator's prior, a training set has less.

    Source: Friedman and Chowers, "Control+Shift", appendix A.
    """

    def check(self, severity: float) -> None:
        if not (math.isfinite(severity) and severity > 0):
            raise InputError(
                f"truncation severity {severity}: the radius R that latents are multiplied by, "
                "allowed: finite numbers greater than 0"
            )

    def subset(self, z: np.ndarray, severity: float, targets: Targets) -> np.ndarray:
        self.check(severity)
        check_dimension(z.shape[1])
        return np.float32(severity) * z
