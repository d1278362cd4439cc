"""ResNet-20 for small images (He et al. 2016)."""

from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models.resnet import BasicBlock, conv3x3

from robust_fairness.core.registry import PluginParameters
from robust_fairness.models.images._staged import (
    Body,
    StagedNetwork,
    averaged,
    he_initialised,
    stages_of,
)


class Resnet20(StagedNetwork):
    """The network of "Deep Residual Learning for Image Recognition" (4.2)."""

    class Parameters(PluginParameters):
        """Sizes; default: the source's for CIFAR-10 (20 layers, 0.27 million weights)."""

        widths: tuple[int, ...] = Field(
            (16, 32, 64), min_length=2, description="channels of a stage"
        )
        blocks: int = Field(3, ge=1, description="blocks of two convolutions in each stage")

    def body(self, channels: int, height: int, width: int) -> Body:
        widths = self.hparams.widths
        stem = nn.Sequential(conv3x3(channels, widths[0]), nn.BatchNorm2d(widths[0]), nn.ReLU())
        stages = stages_of(block, widths[0], widths, self.hparams.blocks)
        return he_initialised(Body(stem, stages, widths, averaged()))


class PaddedShortcut(nn.Module):
    """Every ``stride``-th pixel, with zeros in ``added`` new channels: no weights (option A)."""

    def __init__(self, added: int, stride: int) -> None:
        super().__init__()
        self.added, self.stride = added, stride

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, channel, height, width]`` to more channels and fewer pixels."""
        return functional.pad(x[..., :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.added))


def block(inputs: int, outputs: int, stride: int) -> nn.Module:
    """Block of torchvision with the shortcut of the source on CIFAR-10."""
    changes = stride > 1 or inputs != outputs
    shortcut = PaddedShortcut(outputs - inputs, stride) if changes else None
    return BasicBlock(inputs, outputs, stride, shortcut)
