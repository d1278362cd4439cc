"""VGG-16 with batch normalisation, for small images (Simonyan and Zisserman 2015)."""

from typing import Any

from pydantic import Field, model_validator
from torch import nn
from torchvision.models.resnet import conv3x3

from robust_fairness.core.registry import PluginParameters
from robust_fairness.models.images._staged import Body, StagedNetwork, averaged, he_initialised


class Vgg(StagedNetwork):
    """The convolutions of "Very Deep Convolutional Networks" and one linear layer.

    torchvision's three layers of 4,096 units on 7 x 7 pixels are for large images: they would be
    nine tenths of the weights.
    """

    class Parameters(PluginParameters):
        """Sizes; default: configuration D (16 layers), which needs sides of 32 pixels."""

        widths: tuple[int, ...] = Field(
            (64, 128, 256, 512, 512), min_length=2, description="channels of a stage"
        )
        convolutions: tuple[int, ...] = Field((2, 2, 3, 3, 3), description="layers of a stage")

        @model_validator(mode="after")
        def _same_length(self) -> Any:
            if len(self.convolutions) != len(self.widths) or min(self.convolutions) < 1:
                raise ValueError(
                    f"convolutions {self.convolutions} for {len(self.widths)} widths, "
                    "allowed: one number of 1 and more for each"
                )
            return self

    def body(self, channels: int, height: int, width: int) -> Body:
        widths = self.hparams.widths
        sizes = zip((channels, *widths[:-1]), widths, self.hparams.convolutions, strict=True)
        stages = [stage(*one) for one in sizes]
        return he_initialised(Body(nn.Identity(), stages, widths, averaged()))


def stage(inputs: int, outputs: int, convolutions: int) -> nn.Module:
    """Convolutions and the maximum of 2 x 2 pixels.

    Unlike torchvision's they have no bias, which normalisation would remove.
    """
    layers: list[nn.Module] = []
    for _ in range(convolutions):
        layers += [conv3x3(inputs, outputs), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        inputs = outputs
    return nn.Sequential(*layers, nn.MaxPool2d(2))
