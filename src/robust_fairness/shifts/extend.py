"""A cap of the latent sphere that grows from about t1."""

from typing import Literal

import numpy as np
from pydantic import BaseModel

from robust_fairness.generation.latents import Targets, check_dimension, on_sphere, slerp
from robust_fairness.shifts.base import RIGHT_ANGLE, LatentShift, Severities

STRAIGHT_ANGLE = 180.0  # degrees


class Extend(LatentShift):
    r"""Points of the sphere between t1 and z, the severity being :math:`\theta` in degrees.

    .. math::
        \tilde z = \sqrt d \; \text{slerp}\left(t_1, \frac{z}{\|z\|};
        \frac{\theta + \pi / 2}{\pi}\right)

    A point at the angle :math:`\Omega` to t1 is moved to :math:`(\theta + \pi / 2) \Omega / \pi`:
    at 0, the severity of the training set, the whole sphere is compressed into the hemisphere
    about t1. The resulting distribution is not uniform there; in high dimension it is a thin ring.

    Source: Friedman and Chowers, "Control+Shift", appendix A, Eq. 7; the text does not mention the
    norm sqrt(d), without which the generator gets latents that it never saw.
    """

    severities = Severities("an angle in degrees", high=RIGHT_ANGLE)

    class Parameters(BaseModel, extra="forbid", frozen=True):
        """Parameters of the subset.

        Attributes:
            form: ``consistent`` goes from t1 to z, so that the region grows with the angle and 90
                degrees give z itself, as the paper's text says. ``as_printed`` goes from z to t1,
                as its Eq. 7 is printed: the region shrinks to the single point t1. At 0 degrees
                they are the same.
        """

        form: Literal["consistent", "as_printed"] = "consistent"

    def subset(self, z: np.ndarray, severity: float, targets: Targets) -> np.ndarray:
        self.check(severity)
        check_dimension(z.shape[1])
        share = (severity + RIGHT_ANGLE) / STRAIGHT_ANGLE
        if self.parameters.form == "consistent":
            return on_sphere(slerp(targets.first, z, share))
        return on_sphere(slerp(z, targets.first, share))
