"""What shifts of latents share: parameters, and the check of an angle.

A latent shift moves no given picture: it says which subset of latent space a generator's pictures
are made from. It offers ``Parameters``, ``check(severity)`` and, in the place of ``apply``,
``subset(z, severity, targets, parameters)``.
"""

from types import ModuleType

from pydantic import BaseModel

from robust_fairness.core.errors import InputError

RIGHT_ANGLE, STRAIGHT_ANGLE = 90.0, 180.0  # degrees


class LatentParameters(BaseModel, extra="forbid", frozen=True):
    """Parameters of a subset that has none."""


def check_angle(severity: float) -> None:
    """Check that a severity is an angle in degrees.

    Raises:
        InputError: it is not between 0 and 90.
    """
    if not 0 <= severity <= RIGHT_ANGLE:
        raise InputError(f"latent shift severity {severity}: an angle in degrees, allowed: 0 to 90")


def is_latent(shift: ModuleType) -> bool:
    """Whether a shift is a subset of latent space, which a generated dataset alone can have."""
    return hasattr(shift, "subset")
