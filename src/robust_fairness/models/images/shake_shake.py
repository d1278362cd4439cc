"""Shake-Shake 26: two residual branches in a random mixture (Gastaldi 2017)."""

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models.resnet import conv3x3

from robust_fairness.core.registry import PluginParameters
from robust_fairness.models.images._staged import (
    Body,
    Noisy,
    StagedNetwork,
    averaged,
    he_initialised,
    stages_of,
)
from robust_fairness.models.layers import PointConvolution
from robust_fairness.models.randomness import DropoutNoise

STEM = 16  # channels


class ShakeShake(StagedNetwork):
    """The network of "Shake-Shake regularization"."""

    class Parameters(PluginParameters):
        """Sizes; default: the source's 26 2x32d (26 layers, 2.9 million weights)."""

        width: int = Field(32, ge=2, multiple_of=2, description="channels of a branch, first stage")
        stages: int = Field(3, ge=2, description="each has twice the channels of the one before")
        blocks: int = Field(
            4, ge=1, description="blocks of two convolutions a branch in each stage"
        )

    def body(self, channels: int, height: int, width: int) -> Body:
        stem = nn.Sequential(conv3x3(channels, STEM), nn.BatchNorm2d(STEM))
        widths = [self.hparams.width * 2**stage for stage in range(self.hparams.stages)]
        stages = stages_of(ShakeShakeBlock, STEM, widths, self.hparams.blocks)
        return he_initialised(Body(stem, stages, widths, averaged(nn.ReLU())))


class HalvingShortcut(nn.Module):
    """Two 1 x 1 convolutions of every second pixel: of the image, and of it shifted by one.

    The source does not say whether the block's input is rectified before (implementations differ);
    here it is not.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.straight = PointConvolution(inputs, outputs // 2, stride=2)
        self.shifted = PointConvolution(inputs, outputs // 2, stride=2)
        self.normalise = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, inputs, height, width]`` to ``[row, outputs, height / 2, width / 2]``."""
        moved = functional.pad(x, (-1, 1, -1, 1))
        together = torch.cat([self.straight(x), self.shifted(moved)], dim=1)
        return self.normalise(together)


class ShakeShakeBlock(Noisy):
    r"""The block's input and a mixture of two branches.

    .. math:: x + \alpha F_1(x) + (1 - \alpha) F_2(x)

    With noise every image has its own uniform alpha, and the gradient uses another one
    (Shake-Shake-Image); without noise alpha is 1/2.
    """

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()

        def branch() -> nn.Module:
            return nn.Sequential(
                nn.ReLU(),
                conv3x3(inputs, outputs, stride),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
                conv3x3(outputs, outputs),
                nn.BatchNorm2d(outputs),
            )

        self.first, self.second = branch(), branch()
        self.shortcut: nn.Module = nn.Identity()
        if stride > 1:
            self.shortcut = HalvingShortcut(inputs, outputs)
        elif inputs != outputs:
            point = PointConvolution(inputs, outputs)
            self.shortcut = nn.Sequential(point, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Map ``[row, inputs, height, width]`` to ``[row, outputs, ...]``."""
        mixed = self.mixture(self.first(x), self.second(x), noise)
        return self.shortcut(x) + mixed

    def mixture(self, first: Tensor, second: Tensor, noise: DropoutNoise | None) -> Tensor:
        """The mixture of the branches' outputs ``[row, channel, height, width]``."""
        if noise is None:
            return (first + second) / 2
        (drawn,) = noise.uniform(self, (2, len(first), 1, 1, 1)).to(first.dtype)
        forward, backward = drawn
        followed = torch.lerp(second, first, backward)
        return followed + (torch.lerp(second, first, forward) - followed).detach()
