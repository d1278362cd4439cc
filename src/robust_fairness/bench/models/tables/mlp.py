"""Multilayer perceptrons; a stack of them is computed by batched matrix products."""

import torch
from pydantic import Field
from torch import Tensor

from robust_fairness.bench.models.base import Model, require_features
from robust_fairness.bench.models.layers import TwoLayers
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.questions import RowShape
from robust_fairness.core.registry import PluginParameters


class Mlp(Model):
    """Two perceptrons of two layers each: features and head (Equalized Robustness, appendix A)."""

    class Parameters(PluginParameters):
        """Sizes of the network; the defaults are those of Equalized Robustness, appendix A.

        f_s is d -> 100 -> 64 and h_t is 64 -> 32 -> classes, with ReLU and dropout *between* the
        two layers of each. The paper does not say whether f_s ends in a ReLU; here it does not.
        """

        hidden: int = Field(100, ge=1, description="width of the hidden layer of f_s")
        features: int = Field(64, ge=1, description="width of the features, the output of f_s")
        head_hidden: int = Field(32, ge=1, description="width of the hidden layer of a head")
        dropout: float = Field(0.25, ge=0, lt=1, description="dropout rate after hidden layers")

    piecewise_linear = True

    def __init__(
        self, hparams: Parameters, inputs: RowShape, outputs: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, inputs, outputs, randomness)
        width = require_features(self.name, inputs)
        p = hparams
        self.early_width, self.feature_width = p.hidden, p.features
        self.body = TwoLayers(width, p.hidden, p.features, p.dropout, randomness)
        self.top = self.new_head(outputs, randomness)

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        return torch.relu(self.body.first(x))

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        body = self.body
        return body.second(noise.dropped(body, early, body.dropout) if noise else early)

    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> TwoLayers:
        p = self.hparams
        return TwoLayers(inputs or p.features, p.head_hidden, outputs, p.dropout, randomness)
