"""Networks whose features are not trained: one linear head on a fixed map of the inputs."""

from typing import Any

from torch import Tensor

from robust_fairness.models.base import Model
from robust_fairness.models.layers import Linear
from robust_fairness.models.randomness import DropoutNoise, Randomness
from robust_fairness.samples.questions import RowShape


class LinearHead(Linear):
    """An affine layer with the signature of a head."""

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        return super().forward(x)


class FixedFeatures(Model):
    """A linear head ``top`` on ``width`` fixed features (``early``); only the head is trained."""

    stacks = True
    fixed_features = True

    def __init__(
        self, hparams: Any, inputs: RowShape, outputs: int, randomness: Randomness, width: int
    ) -> None:
        super().__init__(hparams, inputs, outputs, randomness)
        self.early_width = self.feature_width = width
        self.top = self.new_head(outputs, randomness)

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        return early

    def head(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        return self.top(features)

    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> LinearHead:
        return LinearHead(inputs or self.feature_width, outputs, randomness)
