"""All of latent space: the training set that no subset of it shifts away from."""

from typing import Literal

import numpy as np
from pydantic import BaseModel

from robust_fairness.core.errors import InputError
from robust_fairness.generation.latents import Targets, check_dimension, directions, on_sphere
from robust_fairness.generation.supports import Ball, Cap, ball_of, cap_of

__all__ = ["Parameters", "check", "subset", "support"]


class Parameters(BaseModel, extra="forbid", frozen=True):
    """Parameters of the subset.

    Attributes:
        form: ``normal`` takes the draws as they are, the generator's own prior; ``sphere`` moves
            them to the sphere of radius sqrt(d), all of which the caps are subsets of.
    """

    form: Literal["normal", "sphere"] = "normal"


def check(severity: float) -> None:
    """Check that no severity is asked for.

    Raises:
        InputError: it is not 0.
    """
    if severity != 0:
        raise InputError(f"full_support severity {severity}: there is one set only, allowed: 0")


def subset(z: np.ndarray, severity: float, targets: Targets, parameters: Parameters) -> np.ndarray:
    """The draws themselves.

    Args:
        z: draws of N(0, I), float32 ``[n, d]``.
        severity: 0.
        targets: not used.
        parameters: whether they are moved to the sphere.

    Returns:
        float32 ``[n, d]``.

    Raises:
        InputError: the severity is not 0, or d is less than 2.

    Source: Friedman and Chowers, "Control+Shift", 4.2.2 ("from all of the latent space").
    """
    check(severity)
    check_dimension(z.shape[1])
    return z if parameters.form == "normal" else on_sphere(directions(z))


def support(
    latents: np.ndarray, severity: float, targets: Targets, parameters: Parameters
) -> Ball | Cap:
    """The smallest set that holds 99 % of the mass: a ball, or nearly the whole sphere.

    On the sphere the density is uniform, so that every set of that size is a smallest one; the
    cap about t1 is taken.

    Args:
        latents: what ``subset`` gave, float32 ``[n, d]``.
        severity: 0, not used.
        targets: t1 is used.
        parameters: whether they were moved to the sphere.
    """
    return ball_of(latents) if parameters.form == "normal" else cap_of(latents, targets.first)
