"""ResNeXt-29 for small pictures (Xie et al. 2017)."""

from functools import partial

from pydantic import BaseModel, ConfigDict, Field
from torch import nn
from torchvision.models.resnet import Bottleneck, conv3x3

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
ROUNDING = 1e-9


class Parameters(BaseModel):
    """Sizes; 29 layers as in the source, 2 x 64d (9.1 million weights).

    The source's own is 8 x 64d: 34.4 million weights, out of reach without an accelerator.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    cardinality: int = Field(2, ge=1, description="groups of the 3 x 3 convolutions")
    group_width: int = Field(64, ge=1, description="channels of a group in the first stage")
    planes: int = Field(64, ge=1, description="channels of the stem, a quarter of a stage's")
    stages: int = Field(3, ge=2, description="each has twice the channels of the one before")
    blocks: int = Field(3, ge=1, description="blocks of three convolutions in each stage")


def block(parameters: Parameters, inputs: int, outputs: int, stride: int) -> nn.Module:
    """Block of torchvision; its shortcut is a 1 x 1 convolution where the shape changes."""
    changes = stride > 1 or inputs != outputs
    shortcut = nn.Sequential(PointConvolution(inputs, outputs, stride), nn.BatchNorm2d(outputs))
    return Bottleneck(
        inputs,
        outputs // Bottleneck.expansion,
        stride,
        shortcut if changes else None,
        groups=parameters.cardinality,
        # torchvision scales the width of a group to 64 planes and rounds down
        base_width=(1 + ROUNDING) * 64 * parameters.group_width / parameters.planes,
    )


def body(parameters: Parameters, channels: int) -> Body:
    """A convolution, stages of blocks, and the average over the picture."""
    planes = parameters.planes
    stem = nn.Sequential(conv3x3(channels, planes), nn.BatchNorm2d(planes), nn.ReLU())
    widths = [Bottleneck.expansion * planes * 2**stage for stage in range(parameters.stages)]
    stages = stages_of(partial(block, parameters), planes, widths, parameters.blocks)
    return he_initialised(Body(stem, stages, widths, averaged(), widths[-1]))


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> StagedNetwork:
    """The network of "Aggregated Residual Transformations" (5.3), for any channels.

    Args:
        parameters: sizes.
        inputs: channels, height and width of a picture.
        outputs: number of classes.
        randomness: source of the initial weights, of one replica.

    Raises:
        InputError: rows are no pictures, or too small for so many stages.
    """
    channels = require_side("resnext", inputs, 2**parameters.stages)
    made = partial(body, parameters, channels)
    return StagedNetwork(made, outputs, randomness, piecewise_linear=True)
