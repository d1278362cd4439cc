"""Image networks that are a sequence of stages."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from robust_fairness.core.errors import InputError
from robust_fairness.models.base import SingleModel, images, initialised, require_images
from robust_fairness.models.randomness import DropoutNoise, Randomness
from robust_fairness.samples.questions import RowShape


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
