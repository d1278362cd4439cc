"""The convolutional network of the study of bias mitigation, for Biased MNIST."""

from functools import partial

import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn import functional

from robust_fairness.models.base import SingleModel, initialised, pictures, require_pictures
from robust_fairness.models.layers import NormalisedConvolution, SingleHead
from robust_fairness.models.randomness import DropoutNoise, Randomness

STACKS = False


class Parameters(BaseModel):
    """Sizes of the network; the paper's are the defaults.

    The paper (5) says four ReLU layers with max pooling after the first convolution; the batch
    normalisation of the inputs and the global average are in the published code only.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: int = Field(32, ge=1, description="channels of the first two layers; then twice that")


class BiasedMnistCnn(SingleModel):
    """Normalised inputs, four convolutions, global average and a linear head."""

    piecewise_linear = True

    def __init__(
        self, parameters: Parameters, channels: int, outputs: int, randomness: Randomness
    ) -> None:
        super().__init__()
        width = parameters.width
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
        # the ReLU after the maximum is the same as before it, on a quarter of the numbers
        pooled = functional.max_pool2d(first(pictures(x)), 3, stride=2, padding=1)
        return torch.relu(second(torch.relu(pooled)))[None]

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Features ``[1, row, 2 * width]``, averaged over the picture."""
        *_, third, fourth = self.layers
        return torch.relu(fourth(torch.relu(third(early[0])))).mean((-1, -2))[None]

    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> SingleHead:
        """One linear layer."""
        linear = partial(nn.Linear, inputs or self.feature_width, outputs)
        return SingleHead(initialised(linear, randomness))


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> BiasedMnistCnn:
    """The network for pictures of any size.

    Args:
        parameters: sizes.
        inputs: channels, height and width of a picture.
        outputs: number of classes.
        randomness: source of the initial weights, of one replica.

    Raises:
        InputError: rows are no pictures.
    """
    require_pictures("biased_mnist_cnn", inputs)
    return BiasedMnistCnn(parameters, inputs[0], outputs, randomness)
