"""Latents of another variance than the generator's prior."""

import math

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.generation.latents import Targets, check_dimension
from robust_fairness.generation.supports import Ball, ball_of
from robust_fairness.shifts._latent import LatentParameters as Parameters

__all__ = ["Parameters", "check", "subset", "support"]


def check(severity: float) -> None:
    """Check that a severity is a truncation radius.

    Raises:
        InputError: it is not greater than 0, or not finite.
    """
    if not (math.isfinite(severity) and severity > 0):
        raise InputError(
            f"truncation severity {severity}: the radius R that latents are multiplied by, "
            "allowed: finite numbers greater than 0"
        )


def subset(z: np.ndarray, severity: float, targets: Targets, parameters: Parameters) -> np.ndarray:
    r"""Draws of N(0, R^2 I): :math:`\tilde z = R z`, no sphere.

    Args:
        z: draws of N(0, I), float32 ``[n, d]``.
        severity: R; 1 is the generator's prior, a training set has less.
        targets: not used.
        parameters: there are none.

    Returns:
        float32 ``[n, d]``.

    Raises:
        InputError: R is not greater than 0, or d is less than 2.

    Source: Friedman and Chowers, "Control+Shift", appendix A.
    """
    check(severity)
    check_dimension(z.shape[1])
    return np.float32(severity) * z


def support(latents: np.ndarray, severity: float, targets: Targets, parameters: Parameters) -> Ball:
    """The smallest set that holds 99 % of the mass: a ball, since density falls with the norm.

    Args:
        latents: what ``subset`` gave, float32 ``[n, d]``.
        severity: R, not used.
        targets: not used.
        parameters: there are none.
    """
    return ball_of(latents)
