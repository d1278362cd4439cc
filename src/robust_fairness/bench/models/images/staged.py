"""Image networks that are a sequence of stages: residual, dense and plain convolutions."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import DenseNet
from torchvision.models.resnet import BasicBlock, Bottleneck, conv3x3

from robust_fairness.bench.models.base import SingleModel, images, initialised, require_images
from robust_fairness.bench.models.layers import PointConvolution
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.errors import InputError
from robust_fairness.core.questions import RowShape
from robust_fairness.core.registry import PluginParameters

ROUNDING = 1e-9
BOTTLENECK = 4  # channels between the two convolutions of a layer, in growth rates
STEM = 16  # channels


class Noisy(nn.Module):
    """A layer that takes the noise of the batch; None turns its randomness off."""


class Chain(nn.Sequential, Noisy):
    """A sequence of layers, of which those that are ``Noisy`` receive the noise of the batch."""

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Apply all layers to ``[row, ...]``."""
        for layer in self:
            x = layer(x, noise) if isinstance(layer, Noisy) else layer(x)
        return x


@dataclass(frozen=True)
class Body:
    """A network up to its features.

    ``stem`` maps images ``[row, channel, height, width]`` to the first of two or more stages, whose
    output channels are ``widths``, and ``end`` the last one to ``[row, channel]``.
    """

    stem: nn.Module
    stages: Sequence[nn.Module]
    widths: Sequence[int]
    end: nn.Module


class StagedNetwork(SingleModel):
    """A network whose early layer ends the first half of the stages; a head is one linear layer.

    Where all stages but the first halve the image, its sides need two pixels in the last one: batch
    normalisation of one pixel has no variance in a batch of one row.
    """

    piecewise_linear = True
    halves: ClassVar[bool] = True

    def __init__(
        self, hparams: Any, inputs: RowShape, outputs: int, randomness: Randomness
    ) -> None:
        super().__init__(hparams, inputs, outputs, randomness)
        shape = require_images(self.name, inputs)

        def layers() -> nn.ModuleList:
            body = self.body(*shape)
            require_side(self.name, shape, 2 ** len(body.stages) if self.halves else 1)
            cut = len(body.stages) // 2
            self.early_width, self.feature_width = body.widths[cut - 1], body.widths[-1]
            first = Chain(body.stem, *body.stages[:cut])
            return nn.ModuleList([first, Chain(*body.stages[cut:], body.end)])

        self.layers = initialised(layers, randomness)
        self.top = self.new_head(outputs, randomness)

    @abstractmethod
    def body(self, channels: int, height: int, width: int) -> Body:
        """The network up to its features, with its initial weights."""

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        return self.layers[0](images(x), noise)[None]

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        return self.layers[1](early.squeeze(0), noise)[None]


def stages_of(
    block: Callable[[int, int, int], nn.Module], inputs: int, widths: Sequence[int], blocks: int
) -> list[nn.Module]:
    """Stages of equally many blocks; all but the first halve the image.

    ``block`` constructs a block from input channels, output channels and stride.
    """
    made: list[nn.Module] = []
    for number, width in enumerate(widths):
        first = block(inputs, width, 2 if number else 1)
        made.append(Chain(first, *(block(width, width, 1) for _ in range(blocks - 1))))
        inputs = width
    return made


def averaged(*layers: nn.Module) -> nn.Module:
    """Layers followed by global average pooling, ``[row, channel]``."""
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def he_initialised(body: Body) -> Body:
    """The same body with convolutions drawn as in He et al. (2015), by fan-out."""
    for piece in (body.stem, *body.stages, body.end):
        for layer in piece.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return body


def require_side(network: str, shape: tuple[int, int, int], least: int) -> None:
    """Raise if a side of the images is shorter than ``least`` pixels."""
    _, height, width = shape
    if min(height, width) < least:
        raise InputError(
            f"network {network}: images of {height} x {width}, "
            f"allowed with these stages: sides of {least} and more"
        )


def patch_of(network: str, height: int, width: int, patch: int | None) -> int:
    """Side of a patch, which divides both sides; default: an eighth of the shorter, at least 2."""
    side = patch or max(2, min(height, width) // 8)
    if height % side or width % side:
        raise InputError(
            f"network {network}: images of {height} x {width} and patch {side}, "
            "allowed: a patch that divides both sides"
        )
    return side


class Resnet20(StagedNetwork):
    """ResNet-20 for small images (He et al. 2016).

    The network of "Deep Residual Learning for Image Recognition" (4.2).
    """

    name = "resnet20"

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


class PreactResnet(StagedNetwork):
    """ResNet-18 with normalisation and ReLU before every convolution (He et al. 2016b).

    The blocks of "Identity Mappings in Deep Residual Networks" (Fig. 4e) in 18 layers.
    """

    name = "preact_resnet"

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


class Resnext(StagedNetwork):
    """ResNeXt-29 for small images (Xie et al. 2017).

    The network of "Aggregated Residual Transformations" (5.3).
    """

    name = "resnext"

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


class Densenet(StagedNetwork):
    """DenseNet-BC for small images (Huang et al. 2017).

    The network of "Densely Connected Convolutional Networks" (Table 2).

    The source's dropout for data without augmentation is left out.
    """

    name = "densenet"

    class Parameters(PluginParameters):
        """Sizes; default: the source's DenseNet-BC of 100 layers, 0.77 million weights."""

        growth: int = Field(12, ge=1, description="channels that a layer adds (k)")
        layers: tuple[int, ...] = Field(
            (16, 16, 16), min_length=2, description="layers of two convolutions in each block"
        )

    def body(self, channels: int, height: int, width: int) -> Body:
        growth, layers = self.hparams.growth, self.hparams.layers
        stem = conv3x3(channels, 2 * growth)
        net = DenseNet(growth, layers, 2 * growth, BOTTLENECK)
        nn.init.kaiming_normal_(stem.weight)  # as torchvision's own layers
        pieces = dict(net.features.named_children())
        stages = [
            nn.Sequential(
                pieces[f"denseblock{number}"], pieces.get(f"transition{number}", nn.Identity())
            )
            for number in range(1, len(layers) + 1)
        ]
        widths = [
            pieces[f"transition{number}"].conv.out_channels for number in range(1, len(layers))
        ]
        end = averaged(net.features.norm5, nn.ReLU())
        return Body(stem, stages, [*widths, net.classifier.in_features], end)


class Vgg(StagedNetwork):
    """VGG-16 with batch normalisation, for small images (Simonyan and Zisserman 2015).

    The convolutions of "Very Deep Convolutional Networks" and one linear layer.

    torchvision's three layers of 4,096 units on 7 x 7 pixels are for large images: they would be
    nine tenths of the weights.
    """

    name = "vgg"

    class Parameters(PluginParameters):
        """Sizes; default: configuration D (16 layers), which needs sides of 32 pixels."""

        widths: tuple[int, ...] = Field(
            (64, 128, 256, 512, 512), min_length=2, description="channels of a stage"
        )
        convolutions: tuple[int, ...] = Field((2, 2, 3, 3, 3), description="layers of a stage")

        @model_validator(mode="after")
        def _same_length(self) -> "Vgg.Parameters":
            if len(self.convolutions) != len(self.widths) or min(self.convolutions) < 1:
                raise ValueError(
                    f"convolutions {self.convolutions} for {len(self.widths)} widths, "
                    "allowed: one number of 1 and more for each"
                )
            return self

    def body(self, channels: int, height: int, width: int) -> Body:
        widths = self.hparams.widths
        sizes = zip((channels, *widths[:-1]), widths, self.hparams.convolutions, strict=True)
        stages = [stage(*size) for size in sizes]
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


class ShakeShake(StagedNetwork):
    """Shake-Shake 26: two residual branches in a random mixture (Gastaldi 2017).

    The network of "Shake-Shake regularization".
    """

    name = "shake_shake"

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
