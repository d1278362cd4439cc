"""A cap of the latent sphere that grows from about t1 on."""

from typing import Literal

import numpy as np
from pydantic import BaseModel

from robust_fairness.generation.latents import Targets, check_dimension, on_sphere, slerp
from robust_fairness.generation.supports import Cap, cap_of
from robust_fairness.shifts._latent import RIGHT_ANGLE, STRAIGHT_ANGLE
from robust_fairness.shifts._latent import check_angle as check

__all__ = ["Parameters", "check", "subset", "support"]


class Parameters(BaseModel, extra="forbid", frozen=True):
    """Parameters of the subset.

    Attributes:
        form: ``consistent`` goes from t1 to z, so that the region grows with the angle and 90
            degrees give z itself, as the paper's text says. ``as_printed`` goes from z to t1, as
            its Eq. 7 is printed: the region shrinks to the single point t1. At 0 degrees they are
            the same.
    """

    form: Literal["consistent", "as_printed"] = "consistent"


def subset(z: np.ndarray, severity: float, targets: Targets, parameters: Parameters) -> np.ndarray:
    r"""Points of the sphere between t1 and z.

    .. math::
        \tilde z = \sqrt d \; \text{slerp}\left(t_1, \frac{z}{\|z\|};
        \frac{\theta + \pi / 2}{\pi}\right)

    A point at the angle :math:`\Omega` to t1 comes to :math:`(\theta + \pi / 2) \Omega / \pi`: at
    0 the whole sphere is pressed into the hemisphere about t1, half-way. The pushed forward
    distribution is not uniform there; in high dimension it is a thin ring.

    Args:
        z: draws of N(0, I), float32 ``[n, d]``.
        severity: :math:`\theta` in degrees, 0 of the training set.
        targets: t1 is used.
        parameters: form of the equation.

    Returns:
        float32 ``[n, d]`` of norm sqrt(d).

    Raises:
        InputError: the angle is not between 0 and 90, d is less than 2, or a z is opposite t1.

    Source: Friedman and Chowers, "Control+Shift", appendix A, Eq. 7; the text says nothing of
    the norm sqrt(d), without which the generator is given latents that it never saw.
    """
    check(severity)
    check_dimension(z.shape[1])
    share = (severity + RIGHT_ANGLE) / STRAIGHT_ANGLE
    if parameters.form == "consistent":
        return on_sphere(slerp(targets.first, z, share))
    return on_sphere(slerp(z, targets.first, share))


def support(latents: np.ndarray, severity: float, targets: Targets, parameters: Parameters) -> Cap:
    """The smallest set that holds 99 % of the mass: a cap about t1, where density falls from.

    A point comes nearer to t1 by the same factor wherever it is, so that the density on the
    sphere, (sin Omega / sin c Omega)^(d - 2), falls with the angle.

    Args:
        latents: what ``subset`` gave, float32 ``[n, d]``.
        severity: the angle, not used.
        targets: t1 is used.
        parameters: form of the equation, not used.
    """
    return cap_of(latents, targets.first)
