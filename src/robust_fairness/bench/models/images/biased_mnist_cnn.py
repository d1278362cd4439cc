"""The convolutional network of the bias mitigation study, for Biased MNIST."""

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from robust_fairness.bench.models.base import SingleModel, images, initialised, require_images
from robust_fairness.bench.models.layers import NormalisedConvolution
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.questions import RowShape
from robust_fairness.core.registry import PluginParameters


class BiasedMnistCnn(SingleModel):
    """Normalised inputs, four convolutions, global average pooling and a linear head.

    The paper (5) says four ReLU layers with max pooling after the first convolution; batch
    normalisation of the inputs and global average pooling are in the published code only.
    """

    class Parameters(PluginParameters):
        """Sizes; default: the paper's."""

        width: int = Field(32, ge=1, description="channels of the first two layers; then twice")

    piecewise_linear = True

    def __init__(
        self, hparams: Parameters, inputs: RowShape, outputs: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, inputs, outputs, randomness)
        channels, *_ = require_images(self.name, inputs)
        width = hparams.width
        self.early_width, self.feature_width = width, 2 * width

        def layers() -> nn.ModuleList:
            return nn.ModuleList(
                [
                    NormalisedConvolution(channels, width, 5),
                    nn.Conv2d(width, width, 3, padding=1),
                    nn.Conv2d(width, 2 * width, 3, stride=2, padding=1),
                    nn.Conv2d(2 * width, 2 * width, 3, stride=2, padding=1),
                ]
            )

        self.layers = initialised(layers, randomness)
        self.top = self.new_head(outputs, randomness)

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """The second convolution's activations ``[1, row, width, height / 2, width / 2]``."""
        first, second, *_ = self.layers
        # the ReLU after the maximum equals that before it, on a quarter of the numbers
        pooled = functional.max_pool2d(first(images(x)), 3, stride=2, padding=1)
        return torch.relu(second(torch.relu(pooled)))[None]

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Features ``[1, row, 2 * width]``, averaged over the image."""
        *_, third, fourth = self.layers
        return torch.relu(fourth(torch.relu(third(early.squeeze(0))))).mean((-1, -2))[None]
