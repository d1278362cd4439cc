"""Networks whose features are not trained: one linear head on a fixed map of the inputs."""

from abc import abstractmethod

from torch import Tensor

from robust_fairness.models.base import Model
from robust_fairness.models.layers import Linear
from robust_fairness.models.randomness import DropoutNoise, Randomness


class LinearHead(Linear):
    """An affine layer that is called as a head of a network is, with the noise of the batch."""

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Map ``[replica, row, inputs]`` to ``[replica, row, outputs]``; nothing is dropped."""
        return super().forward(x)


class FixedFeatures(Model):
    """A linear head on features that stay as they are; the head is all that is trained.

    Attributes:
        top: the head.

    Args:
        width: number of features.
        outputs: number of classes, or 1 for a continuous outcome.
        randomness: source of the head's initial weights.
    """

    def __init__(self, width: int, outputs: int, randomness: Randomness) -> None:
        super().__init__()
        self.early_width = self.feature_width = width
        self.top = self.new_head(outputs, randomness)

    @abstractmethod
    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The features ``[replica, row, features]``."""

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The same."""
        return early

    def head(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Outputs ``[replica, row, output]``."""
        return self.top(features)

    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> LinearHead:
        """A linear layer from the features (or ``inputs``) to ``outputs``."""
        return LinearHead(inputs or self.feature_width, outputs, randomness)
