"""Subsets of the latent space of a generator (Control+Shift, 3.2)."""

import math
from typing import Literal

import numpy as np
from pydantic import BaseModel

from robust_fairness.bench.generation.latents import (
    Targets,
    check_dimension,
    directions,
    on_sphere,
    slerp,
)
from robust_fairness.bench.shifts.base import RIGHT_ANGLE, LatentShift, Severities
from robust_fairness.core.errors import InputError

STRAIGHT_ANGLE = 180.0  # degrees
HALF = 0.5


class Extend(LatentShift):
    r"""A cap of the latent sphere that grows from about t1.

    Points of the sphere between t1 and z, the severity being :math:`\theta` in degrees.

    .. math::
        \tilde z = \sqrt d \; \text{slerp}\left(t_1, \frac{z}{\|z\|};
        \frac{\theta + \pi / 2}{\pi}\right)

    A point at the angle :math:`\Omega` to t1 is moved to :math:`(\theta + \pi / 2) \Omega / \pi`:
    at 0, the severity of the training set, the whole sphere is compressed into the hemisphere
    about t1. The resulting distribution is not uniform there; in high dimension it is a thin ring.

    Source: Friedman and Chowers, "Control+Shift", appendix A, Eq. 7; the text does not mention the
    norm sqrt(d), without which the generator gets latents that it never saw.
    """

    name = "extend"
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


class Truncation(LatentShift):
    r"""Latents of another variance than the generator's prior.

    Draws of N(0, R^2 I): :math:`\tilde z = R z`, not on a sphere.

    The severity is R; 1 is the generator's prior, a training set has less.

    Source: Friedman and Chowers, "Control+Shift", appendix A.
    """

    name = "truncation"

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


class LatentOverlap(LatentShift):
    r"""A cap of the latent sphere that is turned from t1 towards t2.

    Points of the sphere half-way between z and the axis of the cap.

    .. math::
        \tilde z = \sqrt d \; \text{slerp}\left(\frac{z}{\|z\|}, \tilde t; \frac 1 2\right)

    The severity is :math:`\theta` in degrees, 0 for the training set.

    Source: Friedman and Chowers, "Control+Shift", appendix A, Eq. 8 and 9; t2 is made orthogonal
    to t1 here (``second_target``), and the norm is sqrt(d).
    """

    name = "overlap"
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


class FullSupport(LatentShift):
    """The whole latent space: the training set of which no subset is a shift.

    The draws themselves; the only severity is 0.

    Source: Friedman and Chowers, "Control+Shift", 4.2.2 ("from all of the latent space").
    """

    name = "full_support"

    class Parameters(BaseModel, extra="forbid", frozen=True):
        """Parameters of the subset.

        Attributes:
            form: ``normal`` takes the draws as they are, the generator's own prior; ``sphere``
                moves them to the sphere of radius sqrt(d), all of which the caps are subsets of.
        """

        form: Literal["normal", "sphere"] = "normal"

    def check(self, severity: float) -> None:
        if severity != 0:
            raise InputError(f"full_support severity {severity}: there is one set only, allowed: 0")

    def subset(self, z: np.ndarray, severity: float, targets: Targets) -> np.ndarray:
        self.check(severity)
        check_dimension(z.shape[1])
        return z if self.parameters.form == "normal" else on_sphere(directions(z))
