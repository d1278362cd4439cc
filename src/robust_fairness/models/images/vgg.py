"""VGG-16 with batch normalisation, for small pictures (Simonyan and Zisserman 2015)."""

from functools import partial

from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import nn
from torchvision.models.resnet import conv3x3

from robust_fairness.models.images._staged import (
    Body,
    StagedNetwork,
    averaged,
    he_initialised,
    require_side,
)
from robust_fairness.models.randomness import Randomness

STACKS = False


class Parameters(BaseModel):
    """Sizes; the defaults are configuration D (16 layers), which needs sides of 32 pixels."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    widths: tuple[int, ...] = Field(
        (64, 128, 256, 512, 512), min_length=2, description="channels of a stage"
    )
    convolutions: tuple[int, ...] = Field((2, 2, 3, 3, 3), description="layers of a stage")

    @model_validator(mode="after")
    def _as_many(self) -> "Parameters":
        if len(self.convolutions) != len(self.widths) or min(self.convolutions) < 1:
            raise ValueError(
                f"convolutions {self.convolutions} for {len(self.widths)} widths, "
                "allowed: one number of 1 and more for each"
            )
        return self


def stage(inputs: int, outputs: int, convolutions: int) -> nn.Module:
    """Convolutions and the maximum of 2 x 2 pixels.

    They have no bias, unlike torchvision's: normalisation takes it away again.
    """
    layers: list[nn.Module] = []
    for _ in range(convolutions):
        layers += [conv3x3(inputs, outputs), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        inputs = outputs
    return nn.Sequential(*layers, nn.MaxPool2d(2))


def body(parameters: Parameters, channels: int) -> Body:
    """Stages that each halve the picture, and the average of what is left of it."""
    widths = parameters.widths
    inputs = (channels, *widths[:-1])
    stages = [stage(*sizes) for sizes in zip(inputs, widths, parameters.convolutions, strict=True)]
    return he_initialised(Body(nn.Identity(), stages, widths, averaged(), widths[-1]))


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> StagedNetwork:
    """The convolutions of "Very Deep Convolutional Networks" and one linear layer.

    torchvision's three layers of 4,096 units on 7 x 7 pixels are for large pictures: they would
    be nine tenths of the weights.

    Args:
        parameters: sizes.
        inputs: channels, height and width of a picture.
        outputs: number of classes.
        randomness: source of the initial weights, of one replica.

    Raises:
        InputError: rows are no pictures, or too small for so many stages.
    """
    channels = require_side("vgg", inputs, 2 ** len(parameters.widths))
    made = partial(body, parameters, channels)
    return StagedNetwork(made, outputs, randomness, piecewise_linear=True)
