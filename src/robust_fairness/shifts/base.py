"""What noise shifts share: parameters, the check of a severity, and how noise is stored."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from pydantic import BaseModel, NonNegativeInt

from robust_fairness.core.errors import InputError
from robust_fairness.samples import Samples


class NoiseParameters(BaseModel, extra="forbid", frozen=True):
    """Parameters of a noise.

    Attributes:
        seed: seed of the noise; every severity scales the same draw.
    """

    seed: NonNegativeInt = 0


def check_deviation(severity: float) -> None:
    """Check that a severity is a standard deviation.

    Raises:
        InputError: it is negative or not finite.
    """
    if not (math.isfinite(severity) and severity >= 0):
        raise InputError(
            f"noise severity {severity}: a standard deviation, allowed: 0 and larger finite numbers"
        )


def places_of(samples: Samples, places: np.ndarray | None) -> np.ndarray:
    """Place of every row in the whole dataset, int64 ``[n]``; the samples are it unless given."""
    return np.arange(len(samples)) if places is None else places


def feature_noise(
    samples: Samples, places: np.ndarray, draw: Callable[[tuple[int, int]], np.ndarray]
) -> np.ndarray:
    """Noise of float32 features ``[n, d]``, the same for a row whatever rows stand beside it.

    Features are few, so all rows of the dataset are drawn, up to the last one that is there.

    Args:
        samples: samples with such features.
        places: place of every row in the whole dataset, int64 ``[n]``.
        draw: from a shape to draws, row after row.

    Raises:
        InputError: the samples hold images or several arrays, which have no such features.
    """
    if isinstance(samples.x, dict) or samples.x.dtype != np.float32 or samples.x.ndim != 2:
        kinds = ", ".join(f"{array.dtype} {array.shape}" for array in samples.arrays.values())
        raise InputError(
            f"noise on features is not applicable to x of {kinds}, allowed: float32 (n, d)"
        )
    return draw((int(places.max(initial=-1)) + 1, samples.x.shape[1]))[places]


def perturbed(samples: Samples, noise: np.ndarray, severity: float) -> Samples:
    """Samples with noise added to their perturbation; nothing else changes.

    Args:
        samples: samples with float32 features ``[n, d]``.
        noise: draws of standard deviation 1, float32 ``[n, d]``.
        severity: standard deviation of the noise, in those of the preprocessed features.

    Raises:
        InputError: the severity is negative or not finite.
    """
    check_deviation(severity)
    perturbation = np.float32(severity) * noise
    if samples.perturbation is not None:
        perturbation = samples.perturbation + perturbation
    return replace(samples, perturbation=perturbation)
