"""ResNet-20 for small pictures (He et al. 2016)."""

from functools import partial

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models.resnet import BasicBlock, conv3x3

from robust_fairness.models.images._staged import (
    Body,
    StagedNetwork,
    averaged,
    he_initialised,
    require_side,
    stages_of,
)
from robust_fairness.models.randomness import Randomness

STACKS = False


class Parameters(BaseModel):
    """Sizes; the source's for CIFAR-10 are the defaults: 20 layers, 0.27 million weights."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    widths: tuple[int, ...] = Field((16, 32, 64), min_length=2, description="channels of a stage")
    blocks: int = Field(3, ge=1, description="blocks of two convolutions in each stage")


class PaddedShortcut(nn.Module):
    """Every second pixel, and zeros in the channels that are new: no weights (option A).

    Args:
        added: number of new channels.
        stride: 1 or 2.
    """

    def __init__(self, added: int, stride: int) -> None:
        super().__init__()
        self.added, self.stride = added, stride

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, channel, height, width]`` to more channels and fewer pixels."""
        return functional.pad(x[..., :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.added))


def block(inputs: int, outputs: int, stride: int) -> nn.Module:
    """Block of torchvision with the shortcut that the source takes on CIFAR-10."""
    changes = stride > 1 or inputs != outputs
    shortcut = PaddedShortcut(outputs - inputs, stride) if changes else None
    return BasicBlock(inputs, outputs, stride, shortcut)


def body(parameters: Parameters, channels: int) -> Body:
    """A convolution, stages of blocks, and the average over the picture."""
    widths = parameters.widths
    stem = nn.Sequential(conv3x3(channels, widths[0]), nn.BatchNorm2d(widths[0]), nn.ReLU())
    stages = stages_of(block, widths[0], widths, parameters.blocks)
    return he_initialised(Body(stem, stages, widths, averaged(), widths[-1]))


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> StagedNetwork:
    """The network of "Deep Residual Learning for Image Recognition" (4.2), for any channels.

    Args:
        parameters: sizes.
        inputs: channels, height and width of a picture.
        outputs: number of classes.
        randomness: source of the initial weights, of one replica.

    Raises:
        InputError: rows are no pictures, or too small for so many stages.
    """
    channels = require_side("resnet20", inputs, 2 ** len(parameters.widths))
    made = partial(body, parameters, channels)
    return StagedNetwork(made, outputs, randomness, piecewise_linear=True)
