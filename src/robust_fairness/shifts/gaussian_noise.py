"""Gaussian noise on preprocessed features."""

import numpy as np

from robust_fairness.samples import Samples
from robust_fairness.shifts._shift import NoiseParameters as Parameters
from robust_fairness.shifts._shift import check_deviation as check
from robust_fairness.shifts._shift import feature_shape, perturbed

__all__ = ["Parameters", "apply", "check"]


def apply(samples: Samples, severity: float, parameters: Parameters) -> Samples:
    r"""Add :math:`\sigma e` with :math:`e \sim N(0, 1)` to the preprocessed features.

    Args:
        samples: samples with float32 features ``[n, d]``.
        severity: standard deviation :math:`\sigma`, in those of the preprocessed features.
        parameters: seed of :math:`e`, which is the same for every severity.

    Returns:
        The same samples with ``perturbation`` float32 ``[n, d]``.

    Raises:
        InputError: the severity is negative or not finite, or ``x`` is not applicable.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1.
    """
    generator = np.random.Generator(np.random.PCG64(parameters.seed))
    # Rounded from float64, so that the last bit of a machine's logarithm does not show.
    noise = generator.standard_normal(feature_shape(samples)).astype(np.float32)
    return perturbed(samples, noise, severity)
