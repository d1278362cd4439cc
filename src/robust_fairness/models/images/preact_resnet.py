"""ResNet-18 with normalisation and ReLU before every convolution (He et al. 2016b)."""

from pydantic import Field
from torch import Tensor, nn
from torchvision.models.resnet import conv3x3

from robust_fairness.core.registry import PluginParameters
from robust_fairness.models.images._staged import (
    Body,
    StagedNetwork,
    averaged,
    he_initialised,
    stages_of,
)
from robust_fairness.models.layers import PointConvolution


class PreactResnet(StagedNetwork):
    """The blocks of "Identity Mappings in Deep Residual Networks" (Fig. 4e) in 18 layers."""

    class Parameters(PluginParameters):
        """Sizes; default: those of ResNet-18, with one 3 x 3 convolution instead of its stem.

        Four stages need sides of 16 pixels; use three widths for smaller images.
        """

        widths: tuple[int, ...] = Field(
            (64, 128, 256, 512), min_length=2, description="channels of a stage"
        )
        blocks: int = Field(2, ge=1, description="blocks of two convolutions in each stage")

    def body(self, channels: int, height: int, width: int) -> Body:
        widths = self.hparams.widths
        stages = stages_of(PreActivatedBlock, widths[0], widths, self.hparams.blocks)
        end = averaged(nn.BatchNorm2d(widths[-1]), nn.ReLU())
        return he_initialised(Body(conv3x3(channels, widths[0]), stages, widths, end))


class PreActivatedBlock(nn.Module):
    """Two convolutions, each after normalisation and ReLU, added to the block's input.

    Where the shape changes, the shortcut is a 1 x 1 convolution of the first one's input.
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
        return self.residual(active) + (x if self.shortcut is None else self.shortcut(active))
