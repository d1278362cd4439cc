"""ResNeXt-29 for small images (Xie et al. 2017)."""

from pydantic import Field
from torch import nn
from torchvision.models.resnet import Bottleneck, conv3x3

from robust_fairness.core.registry import PluginParameters
from robust_fairness.models.images._staged import (
    Body,
    StagedNetwork,
    averaged,
    he_initialised,
    stages_of,
)
from robust_fairness.models.layers import PointConvolution

ROUNDING = 1e-9


class Resnext(StagedNetwork):
    """The network of "Aggregated Residual Transformations" (5.3)."""

    class Parameters(PluginParameters):
        """Sizes; default: 29 layers as in the source, 2 x 64d (9.1 million weights).

        The source's own is 8 x 64d: 34.4 million weights, too slow without an accelerator.
        """

        cardinality: int = Field(2, ge=1, description="groups of the 3 x 3 convolutions")
        group_width: int = Field(64, ge=1, description="channels of a group in the first stage")
        planes: int = Field(64, ge=1, description="channels of the stem, a quarter of a stage's")
        stages: int = Field(3, ge=2, description="each has twice the channels of the one before")
        blocks: int = Field(3, ge=1, description="blocks of three convolutions in each stage")

    def body(self, channels: int, height: int, width: int) -> Body:
        p, planes = self.hparams, self.hparams.planes
        stem = nn.Sequential(conv3x3(channels, planes), nn.BatchNorm2d(planes), nn.ReLU())
        widths = [Bottleneck.expansion * planes * 2**stage for stage in range(p.stages)]
        stages = stages_of(self.block, planes, widths, p.blocks)
        return he_initialised(Body(stem, stages, widths, averaged()))

    def block(self, inputs: int, outputs: int, stride: int) -> nn.Module:
        """Block of torchvision; its shortcut is a 1 x 1 convolution where the shape changes."""
        changes = stride > 1 or inputs != outputs
        shortcut = nn.Sequential(PointConvolution(inputs, outputs, stride), nn.BatchNorm2d(outputs))
        return Bottleneck(
            inputs,
            outputs // Bottleneck.expansion,
            stride,
            shortcut if changes else None,
            groups=self.hparams.cardinality,
            # torchvision scales the width of a group to 64 planes and rounds down
            base_width=(1 + ROUNDING) * 64 * self.hparams.group_width / self.hparams.planes,
        )
