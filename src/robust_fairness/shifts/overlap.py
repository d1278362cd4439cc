"""A cap of the latent sphere that is turned from t1 towards t2."""

from typing import Literal

import numpy as np
from pydantic import BaseModel

from robust_fairness.generation.latents import Targets, check_dimension, on_sphere, slerp
from robust_fairness.generation.supports import Cap, cap_of
from robust_fairness.shifts._latent import RIGHT_ANGLE
from robust_fairness.shifts._latent import check_angle as check

__all__ = ["Parameters", "axis", "check", "subset", "support"]

HALF = 0.5


class Parameters(BaseModel, extra="forbid", frozen=True):
    """Parameters of the subset.

    Attributes:
        second_target: ``orthogonal`` turns towards the direction at a right angle to t1 that is
            nearest t2, so that the severity is the angle that the cap was turned by.
            ``as_drawn`` turns towards t2, as the paper does; in low dimension its angle to t1,
            and so all angles, are far from those asked for.
    """

    second_target: Literal["orthogonal", "as_drawn"] = "orthogonal"


def axis(severity: float, targets: Targets, parameters: Parameters) -> np.ndarray:
    r"""The middle of the cap, :math:`\tilde t = \text{slerp}(t_1, t_2; 2 \theta / \pi)`.

    Args:
        severity: :math:`\theta` in degrees.
        targets: t1 and t2.
        parameters: which second target.

    Returns:
        A unit vector, float64 ``[d]``.

    Raises:
        InputError: the angle is not between 0 and 90, or t1 and t2 are opposite.

    Source: Friedman and Chowers, "Control+Shift", appendix A, Eq. 8.
    """
    check(severity)
    as_drawn = parameters.second_target == "as_drawn"
    second = targets.second if as_drawn else targets.orthogonal_second
    return slerp(targets.first, second, severity / RIGHT_ANGLE)


def subset(z: np.ndarray, severity: float, targets: Targets, parameters: Parameters) -> np.ndarray:
    r"""Points of the sphere half-way between z and the middle of the cap.

    .. math::
        \tilde z = \sqrt d \; \text{slerp}\left(\frac{z}{\|z\|}, \tilde t; \frac 1 2\right)

    Args:
        z: draws of N(0, I), float32 ``[n, d]``.
        severity: :math:`\theta` in degrees, 0 of the training set.
        targets: t1 and t2.
        parameters: which second target.

    Returns:
        float32 ``[n, d]`` of norm sqrt(d).

    Raises:
        InputError: the angle is not between 0 and 90, d is less than 2, or a z is opposite the
            middle.

    Source: Friedman and Chowers, "Control+Shift", appendix A, Eq. 8 and 9; t2 is made orthogonal
    to t1 here (``second_target``), and the norm is sqrt(d).
    """
    check_dimension(z.shape[1])
    return on_sphere(slerp(z, axis(severity, targets, parameters), HALF))


def support(latents: np.ndarray, severity: float, targets: Targets, parameters: Parameters) -> Cap:
    """The smallest set that holds 99 % of the mass: a cap about its middle.

    Args:
        latents: what ``subset`` gave, float32 ``[n, d]``.
        severity: the angle in degrees.
        targets: t1 and t2.
        parameters: which second target.
    """
    return cap_of(latents, axis(severity, targets, parameters))
