"""ResNet-18 with normalisation and ReLU before every convolution (He et al. 2016b)."""

from functools import partial

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn
from torchvision.models.resnet import conv3x3

from robust_fairness.models.images._staged import (
    Body,
    StagedNetwork,
    averaged,
    he_initialised,
    require_side,
    stages_of,
)
from robust_fairness.models.layers import PointConvolution
from robust_fairness.models.randomness import Randomness

STACKS = False


class Parameters(BaseModel):
    """Sizes; the defaults are ResNet-18's, with one 3 x 3 convolution in the place of its stem.

    Four stages need sides of 16 pixels; three widths make a network for smaller pictures.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    widths: tuple[int, ...] = Field(
        (64, 128, 256, 512), min_length=2, description="channels of a stage"
    )
    blocks: int = Field(2, ge=1, description="blocks of two convolutions in each stage")


class PreActivatedBlock(nn.Module):
    """Two convolutions, each after normalisation and ReLU, added to the block's input.

    Where the shape changes, the shortcut is a 1 x 1 convolution of what the first one is given.

    Args:
        inputs: channels that it takes.
        outputs: channels that it gives.
        stride: of the first convolution.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.activate = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU())
        self.residual = nn.Sequential(
            conv3x3(inputs, outputs, stride),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            conv3x3(outputs, outputs),
        )
        changes = stride > 1 or inputs != outputs
        self.shortcut = PointConvolution(inputs, outputs, stride) if changes else None

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, inputs, height, width]`` to ``[row, outputs, ...]``."""
        active = self.activate(x)
        residual: Tensor = self.residual(active)
        return residual + (x if self.shortcut is None else self.shortcut(active))


def body(parameters: Parameters, channels: int) -> Body:
    """A convolution, stages of blocks, the last activation and the average over the picture."""
    widths = parameters.widths
    stages = stages_of(PreActivatedBlock, widths[0], widths, parameters.blocks)
    end = averaged(nn.BatchNorm2d(widths[-1]), nn.ReLU())
    return he_initialised(Body(conv3x3(channels, widths[0]), stages, widths, end, widths[-1]))


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> StagedNetwork:
    """The blocks of "Identity Mappings in Deep Residual Networks" (Fig. 4e) as an 18-layer net.

    Args:
        parameters: sizes.
        inputs: channels, height and width of a picture.
        outputs: number of classes.
        randomness: source of the initial weights, of one replica.

    Raises:
        InputError: rows are no pictures, or too small for so many stages.
    """
    channels = require_side("preact_resnet", inputs, 2 ** len(parameters.widths))
    made = partial(body, parameters, channels)
    return StagedNetwork(made, outputs, randomness, piecewise_linear=True)
