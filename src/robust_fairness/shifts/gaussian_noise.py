"""Gaussian noise on preprocessed features or on pixels."""

import numpy as np

from robust_fairness.core.draws import normal_rows
from robust_fairness.samples import Samples
from robust_fairness.shifts._pictures import are_pictures, brightened, noisy
from robust_fairness.shifts.base import NoiseParameters as Parameters
from robust_fairness.shifts.base import check_deviation as check
from robust_fairness.shifts.base import feature_noise, perturbed, places_of

__all__ = ["Parameters", "apply", "check"]


def apply(
    samples: Samples, severity: float, parameters: Parameters, places: np.ndarray | None = None
) -> Samples:
    r"""Add :math:`\sigma e` with :math:`e \sim N(0, 1)` to preprocessed features or to pixels.

    Args:
        samples: samples with float32 features ``[n, d]``, or uint8 pictures ``[n, c, h, w]``.
        severity: standard deviation :math:`\sigma`, in those of the preprocessed features; of
            pixels in units of their full brightness.
        parameters: seed of :math:`e`, which is the same for every severity.
        places: place of every row in the whole dataset, int64 ``[n]``; 0, 1, ... unless given. The
            noise of a row depends on its place, not on the rows that stand beside it.

    Returns:
        The same samples with ``perturbation`` float32 ``[n, d]``, or with pictures to which the
        noise was added, clipped and rounded to whole pixel values again.

    Raises:
        InputError: the severity is negative or not finite, or ``x`` is not applicable.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1; on pictures Hendrycks and
    Dietterich 2019.
    """
    places = places_of(samples, places)
    if are_pictures(samples):
        check(severity)
        scale = np.float32(severity)

        def noise(pictures: np.ndarray, at: np.ndarray) -> np.ndarray:
            draws = normal_rows(parameters.seed, at, pictures.shape[1:])
            return brightened(pictures, scale * draws)

        return noisy(samples, places, noise)

    def draw(shape: tuple[int, int]) -> np.ndarray:
        generator = np.random.Generator(np.random.PCG64(parameters.seed))
        # Rounded from float64, so that the last bit of a machine's logarithm does not show.
        return generator.standard_normal(shape).astype(np.float32)

    return perturbed(samples, feature_noise(samples, places, draw), severity)
