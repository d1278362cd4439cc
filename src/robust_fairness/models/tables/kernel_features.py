"""Approximate kernel machines: a linear head on random Fourier features of a Gaussian kernel."""

from math import pi, sqrt

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from robust_fairness.models.base import require_features
from robust_fairness.models.embeddings._fixed_features import FixedFeatures
from robust_fairness.models.randomness import DropoutNoise, Randomness

STACKS = True


class Parameters(BaseModel):
    r"""Number of features and width of the kernel :math:`\exp(-\|x - x'\|^2 / 2 s^2)`.

    ``width``: s; unless given the square root of twice the number of inputs. That is the root
    of the mean squared distance of two rows of standardised inputs, and so close to the median
    heuristic, without a look at the data.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    features: int = Field(512, ge=1, description="random features; the error falls as their root")
    width: float | None = Field(None, gt=0, description="standard deviation s of the kernel")


class KernelFeatures(FixedFeatures):
    r"""A linear head on cosines whose inner products approximate a Gaussian kernel.

    .. math:: \phi(x) = \sqrt{2 / D} \cos(x^T \Omega / s + b)

    with standard normal frequencies and uniform phases (Rahimi and Recht, "Random Features for
    Large-Scale Kernel Machines", 2007). Frequencies and phases are drawn once, stay as they are
    and are saved with the weights. With weight decay the head is a kernel machine but for the
    approximation of the kernel, whose error is of the order of one over the root of D.
    """

    piecewise_linear = False
    frequencies: Tensor
    phases: Tensor

    def __init__(
        self, parameters: Parameters, inputs: int, outputs: int, randomness: Randomness
    ) -> None:
        super().__init__(parameters.features, outputs, randomness)
        width = parameters.width or sqrt(2 * inputs)
        frequencies = randomness.normal((inputs, parameters.features)) / width
        self.register_buffer("frequencies", frequencies)
        self.register_buffer("phases", randomness.uniform((1, parameters.features), pi))

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The cosines, ``[replica, row, features]``."""
        waves = torch.baddbmm(self.phases, x, self.frequencies)
        return sqrt(2 / self.feature_width) * torch.cos(waves)


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> KernelFeatures:
    """A stack of approximate kernel machines, one a seed of ``randomness``.

    Args:
        parameters: number of features and width of the kernel.
        inputs: shape of one row; must be one axis of features.
        outputs: number of classes, or 1 for a continuous outcome.
        randomness: source of features and initial weights.

    Raises:
        InputError: rows are no feature vectors.
    """
    count = require_features("kernel_features", inputs)
    return KernelFeatures(parameters, count, outputs, randomness)
