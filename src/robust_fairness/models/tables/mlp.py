"""Multilayer perceptrons, all replicas at once as batched matrix products."""

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from robust_fairness.models.base import Model, require_features
from robust_fairness.models.layers import TwoLayers
from robust_fairness.models.randomness import DropoutNoise, Randomness

STACKS = True


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


class Mlp(Model):
    """The paper's pair of two-layer perceptrons: features and head."""

    piecewise_linear = True

    def __init__(
        self, parameters: Parameters, inputs: int, outputs: int, randomness: Randomness
    ) -> None:
        super().__init__()
        p = self.parameters_of_network = parameters
        self.early_width, self.feature_width = p.hidden, p.features
        self.body = TwoLayers(inputs, p.hidden, p.features, p.dropout, randomness)
        self.top = self.new_head(outputs, randomness)

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The hidden layer of f_s, ``[replica, row, hidden]``."""
        return self.body.hidden(x)

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Features ``[replica, row, features]``."""
        features = self.body.top(early, noise)
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
    return Mlp(parameters, require_features("mlp", inputs), outputs, randomness)
