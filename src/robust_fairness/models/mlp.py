"""Multilayer perceptrons, all replicas at once as batched matrix products."""

from math import sqrt

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from robust_fairness.errors import InputError
from robust_fairness.models._model import Model
from robust_fairness.models._randomness import DropoutNoise, Randomness


class Parameters(BaseModel):
    """Sizes of the network; the defaults are those of Equalized Robustness, appendix A.

    f_s is d -> 100 -> 64 and h_t is 64 -> 32 -> classes, with ReLU and dropout *between* the two
    layers of each. Whether f_s ends in a ReLU is not said; we take the text at its word (none).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    hidden: int = Field(100, ge=1, description="width of the hidden layer of f_s")
    features: int = Field(64, ge=1, description="width of the features, the output of f_s")
    head_hidden: int = Field(32, ge=1, description="width of the hidden layer of a head")
    dropout: float = Field(0.25, ge=0, lt=1, description="dropout rate after each hidden layer")
    feature_relu: bool = Field(False, description="whether f_s ends in a ReLU")


class Linear(nn.Module):
    """Affine layers of a stack, initialised as ``torch.nn.Linear`` is.

    ``weight`` is ``[replica, inputs, outputs]`` and ``bias`` ``[replica, 1, outputs]``.
    """

    def __init__(self, inputs: int, outputs: int, randomness: Randomness) -> None:
        super().__init__()
        bound = 1 / sqrt(inputs)
        self.weight = nn.Parameter(randomness.uniform((inputs, outputs), bound))
        self.bias = nn.Parameter(randomness.uniform((1, outputs), bound))

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[replica, row, inputs]`` to ``[replica, row, outputs]``."""
        return torch.baddbmm(self.bias, x, self.weight)


class Dropout(nn.Module):
    """Dropout whose mask comes with the batch, so that two passes can share it."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor, noise: DropoutNoise | None) -> Tensor:
        """Drop entries of ``[replica, row, width]``; the identity without noise."""
        if noise is None or self.rate == 0:
            return x
        return x * noise.mask(self, x, self.rate)


class TwoLayers(nn.Module):
    """Linear, ReLU, dropout, linear."""

    def __init__(
        self, inputs: int, hidden: int, outputs: int, dropout: float, randomness: Randomness
    ) -> None:
        super().__init__()
        self.first = Linear(inputs, hidden, randomness)
        self.dropout = Dropout(dropout)
        self.second = Linear(hidden, outputs, randomness)

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Map ``[replica, row, inputs]`` to ``[replica, row, outputs]``."""
        return self.second(self.dropout(torch.relu(self.first(x)), noise))


class Mlp(Model):
    """The paper's pair of two-layer perceptrons: features and head."""

    piecewise_linear = True

    def __init__(
        self, parameters: Parameters, inputs: int, outputs: int, randomness: Randomness
    ) -> None:
        super().__init__()
        p = self.parameters_of_network = parameters
        self.body = TwoLayers(inputs, p.hidden, p.features, p.dropout, randomness)
        self.top = self.new_head(outputs, randomness)

    def features(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Features ``[replica, row, features]``."""
        features = self.body(x, noise)
        return torch.relu(features) if self.parameters_of_network.feature_relu else features

    def head(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Outputs ``[replica, row, output]``."""
        return self.top(features, noise)

    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> TwoLayers:
        """Two layers from the features (or ``inputs``) to ``outputs``."""
        p = self.parameters_of_network
        return TwoLayers(inputs or p.features, p.head_hidden, outputs, p.dropout, randomness)


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> Mlp:
    """A stack of perceptrons, one a seed of ``randomness``.

    Args:
        parameters: sizes.
        inputs: shape of one row; must be one axis of features.
        outputs: number of classes, or 1 for a continuous outcome.
        randomness: source of the initial weights.

    Raises:
        InputError: rows are no feature vectors.
    """
    if len(inputs) != 1:
        raise InputError(f"network mlp: rows have shape {inputs}, allowed: one axis of features")
    return Mlp(parameters, inputs[0], outputs, randomness)
