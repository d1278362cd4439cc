"""Linear models: the features are the inputs themselves."""

from torch import Tensor

from robust_fairness.bench.models.fixed_features import FixedFeatures
from robust_fairness.bench.models.randomness import DropoutNoise


class LinearNetwork(FixedFeatures):
    """One affine map of the inputs: logistic or linear regression, depending on the loss."""

    piecewise_linear = True

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        return x
