"""Linear models: the features are the inputs themselves."""

from typing import Any

from torch import Tensor

from robust_fairness.models.base import require_features
from robust_fairness.models.fixed_features import FixedFeatures
from robust_fairness.models.randomness import DropoutNoise, Randomness
from robust_fairness.samples.questions import RowShape


class LinearNetwork(FixedFeatures):
    """One affine map of the inputs: logistic or linear regression, depending on the loss."""

    piecewise_linear = True

    def __init__(
        self, hparams: Any, inputs: RowShape, outputs: int, randomness: Randomness
    ) -> None:
        width = require_features(self.name, inputs)
        super().__init__(hparams, inputs, outputs, randomness, width)

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        return x
