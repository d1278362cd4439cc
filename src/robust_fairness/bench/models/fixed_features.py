"""Networks whose features are not trained: one linear head on a fixed map of the inputs."""

from typing import Any

from torch import Tensor

from robust_fairness.bench.models.base import Model, require_features
from robust_fairness.bench.models.layers import Linear
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.questions import RowShape


class FixedFeatures(Model):
    """A linear head ``top`` on fixed features (``early``); only the head is trained.

    ``width`` is the number of features; default: that of the inputs.
    """

    def __init__(
        self, hparams: Any, inputs: RowShape, outputs: int, randomness: Randomness, width: int = 0
    ) -> None:
        super().__init__(hparams, inputs, outputs, randomness)
        self.early_width = self.feature_width = width or require_features(self.name, inputs)
        self.top = self.new_head(outputs, randomness)

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        return early

    def new_head(self, outputs: int, randomness: Randomness, inputs: int | None = None) -> Linear:
        return Linear(inputs or self.feature_width, outputs, randomness)
