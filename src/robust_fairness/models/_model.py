"""What the training loop and the methods know of a network."""

from abc import ABC, abstractmethod

from torch import Tensor, nn

from robust_fairness.models._randomness import DropoutNoise, Randomness


class Model(nn.Module, ABC):
    """A stack of networks: features (f_s) and a head on them (h_t).

    Attributes:
        piecewise_linear: whether outputs are piecewise linear in the inputs when dropout is
            off, which gives loss curvature in closed form.
    """

    piecewise_linear: bool

    @abstractmethod
    def features(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Features ``[replica, row, ...]`` of inputs ``[replica, row, ...]``.

        Args:
            x: inputs, preprocessed.
            noise: dropout masks of the batch; None turns dropout off.
        """

    @abstractmethod
    def head(self, features: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Outputs ``[replica, row, output]`` of features: logits, or the predicted outcome."""

    @abstractmethod
    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> nn.Module:
        """A head of the same structure for another target, for example an adversary (h_a).

        Args:
            outputs: number of outputs.
            randomness: source of its initial weights.
            inputs: width of its input; that of the features unless given.
        """

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Outputs ``[replica, row, output]`` of inputs ``[replica, row, ...]``."""
        return self.head(self.features(x, noise), noise)
