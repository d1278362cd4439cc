"""A cap of the latent sphere that is turned from t1 towards t2."""

from typing import Literal

import numpy as np
from pydantic import BaseModel

from robust_fairness.generation.latents import Targets, check_dimension, on_sphere, slerp
from robust_fairness.shifts.base import RIGHT_ANGLE, LatentShift, Severities

HALF = 0.5


class Overlap(LatentShift):
    r"""Points of the sphere half-way between z and the axis of the cap.

    .. math::
        \tilde z = \sqrt d \; \text{slerp}\left(\frac{z}{\|z\|}, \tilde t; \frac 1 2\right)

    The severity is :math:`\theta` in degrees, 0 for the training set.

    Source: Friedman and Chowers, "Control+Shift", appendix A, Eq. 8 and 9; t2 is made orthogonal
    to t1 here (``second_target``), and the norm is sqrt(d).
    """

    severities = Severities("an angle in degrees", high=RIGHT_ANGLE)

    class Parameters(BaseModel, extra="forbid", frozen=True):
        """Parameters of the subset.

        Attributes:
            second_target: ``orthogonal`` turns towards the direction orthogonal to t1 that is
                nearest t2, so that the severity is the angle by which the cap is turned.
                ``as_drawn`` turns towards t2, as the paper does; in low dimension its angle to
                t1, and so all angles, differ much from the severity.
        """

        second_target: Literal["orthogonal", "as_drawn"] = "orthogonal"

    def axis(self, severity: float, targets: Targets) -> np.ndarray:
        r"""The axis :math:`\tilde t = \text{slerp}(t_1, t_2; 2 \theta / \pi)` (Eq. 8), ``[d]``."""
        self.check(severity)
        as_drawn = self.parameters.second_target == "as_drawn"
        second = targets.second if as_drawn else targets.orthogonal_second
        return slerp(targets.first, second, severity / RIGHT_ANGLE)

    def subset(self, z: np.ndarray, severity: float, targets: Targets) -> np.ndarray:
        check_dimension(z.shape[1])
        return on_sphere(slerp(z, self.axis(severity, targets), HALF))
