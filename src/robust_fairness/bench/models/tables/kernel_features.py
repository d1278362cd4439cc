"""Approximate kernel machines: a linear head on random Fourier features of a Gaussian kernel."""

from math import pi, sqrt

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.bench.models.base import require_features
from robust_fairness.bench.models.fixed_features import FixedFeatures
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.questions import RowShape
from robust_fairness.core.registry import PluginParameters


class KernelFeatures(FixedFeatures):
    r"""A linear head on cosines whose inner products approximate a Gaussian kernel.

    .. math:: \phi(x) = \sqrt{2 / D} \cos(x^T \Omega / s + b)

    with standard normal frequencies and uniform phases (Rahimi and Recht, "Random Features for
    Large-Scale Kernel Machines", 2007), drawn once and saved with the weights.
    """

    class Parameters(PluginParameters):
        r"""Number of features and width of the kernel :math:`\exp(-\|x - x'\|^2 / 2 s^2)`.

        ``width``: default: the root of the mean squared distance of two standardised rows.
        """

        features: int = Field(512, ge=1, description="number of random features (D)")
        width: float | None = Field(None, gt=0, description="standard deviation s of the kernel")

    piecewise_linear = False
    frequencies: Tensor
    phases: Tensor

    def __init__(
        self, hparams: Parameters, inputs: RowShape, outputs: int, randomness: Randomness
    ) -> None:
        count, features = require_features(self.name, inputs), hparams.features
        super().__init__(hparams, inputs, outputs, randomness, features)
        frequencies = randomness.normal((count, features)) / (hparams.width or sqrt(2 * count))
        self.register_buffer("frequencies", frequencies)
        self.register_buffer("phases", randomness.uniform((1, features), pi))

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        waves = torch.baddbmm(self.phases, x, self.frequencies)
        return sqrt(2 / self.feature_width) * torch.cos(waves)
