"""Networks of stages, cut into early layers, features and head."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from torch import Tensor, nn

from robust_fairness.core.errors import InputError
from robust_fairness.models.base import SingleModel, initialised, pictures, require_pictures
from robust_fairness.models.layers import SingleHead
from robust_fairness.models.randomness import DropoutNoise, Randomness


class Noisy(nn.Module):
    """A layer that is called with the noise of the batch; None turns its randomness off."""


class Chain(nn.Sequential, Noisy):
    """Layers one after the other; those that are ``Noisy`` are given the noise of the batch."""

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """What the last layer makes of ``[row, ...]``."""
        for layer in self:
            x = layer(x, noise) if isinstance(layer, Noisy) else layer(x)
        return x


@dataclass(frozen=True)
class Body:
    """A network up to its features, in the pieces that it may be cut between.

    Attributes:
        stem: from pictures ``[row, channel, height, width]`` to the first stage.
        stages: two and more, each ``[row, channel, ...]`` to ``[row, channel, ...]``.
        widths: channels that every stage gives.
        end: from the last stage to features ``[row, feature_width]``.
        feature_width: their number.
    """

    stem: nn.Module
    stages: Sequence[nn.Module]
    widths: Sequence[int]
    end: nn.Module
    feature_width: int


class StagedNetwork(SingleModel):
    """The early layer ends the first half of the stages; a head is one linear layer.

    Args:
        body: makes the network up to its features.
        outputs: number of classes, or 1 for a continuous outcome.
        randomness: source of the initial weights, of one replica.
        piecewise_linear: whether outputs are piecewise linear in the inputs without noise.
    """

    def __init__(
        self,
        body: Callable[[], Body],
        outputs: int,
        randomness: Randomness,
        piecewise_linear: bool,
    ) -> None:
        super().__init__()
        self.piecewise_linear = piecewise_linear

        def layers() -> nn.ModuleList:
            made = body()
            cut = len(made.stages) // 2
            self.early_width, self.feature_width = made.widths[cut - 1], made.feature_width
            first = Chain(made.stem, *made.stages[:cut])
            return nn.ModuleList([first, Chain(*made.stages[cut:], made.end)])

        self.layers = initialised(layers, randomness)
        self.top = self.new_head(outputs, randomness)

    def early(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Activations ``[1, row, channel, ...]`` after the first half of the stages."""
        activations: Tensor = self.layers[0](pictures(x), noise)
        return activations[None]

    def late(self, early: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Features ``[1, row, feature]``."""
        features: Tensor = self.layers[1](early[0], noise)
        return features[None]

    def new_head(
        self, outputs: int, randomness: Randomness, inputs: int | None = None
    ) -> SingleHead:
        """One linear layer from the features (or ``inputs`` numbers) to ``outputs``."""
        linear = partial(nn.Linear, inputs or self.feature_width, outputs)
        return SingleHead(initialised(linear, randomness))


def stages_of(
    block: Callable[[int, int, int], nn.Module], inputs: int, widths: Sequence[int], blocks: int
) -> list[nn.Module]:
    """Stages of equally many blocks; all but the first stage halve the picture at their start.

    Args:
        block: makes a block from channels that it takes, channels that it gives and stride.
        inputs: channels of the stem.
        widths: channels that every stage gives.
        blocks: blocks of a stage.
    """
    made: list[nn.Module] = []
    for number, width in enumerate(widths):
        first = block(inputs, width, 2 if number else 1)
        made.append(Chain(first, *(block(width, width, 1) for _ in range(blocks - 1))))
        inputs = width
    return made


def averaged(*layers: nn.Module) -> nn.Module:
    """Layers whose result is averaged over the picture, ``[row, channel]``."""
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def he_initialised(body: Body) -> Body:
    """The same with convolutions drawn as He et al. (2015) do, by the numbers that they give."""
    for piece in (body.stem, *body.stages, body.end):
        for layer in piece.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return body


def require_side(network: str, inputs: tuple[int, ...], least: int) -> int:
    """Check that rows are pictures that stay a picture in every stage; their channels.

    Args:
        network: its name.
        inputs: shape of one row.
        least: shortest side that is left 2 pixels or more wherever it is normalised: one pixel
            has no variance in a batch of one row.

    Raises:
        InputError: they are no pictures, or too small.
    """
    require_pictures(network, inputs)
    channels, height, width = inputs
    if min(height, width) < least:
        raise InputError(
            f"network {network}: pictures of {height} x {width}, "
            f"allowed with these stages: sides of {least} and more"
        )
    return channels


def require_patches(network: str, inputs: tuple[int, ...], patch: int | None) -> int:
    """Check that pictures can be cut into patches; the side of a patch.

    Args:
        network: its name.
        inputs: shape of one row.
        patch: its side; an eighth of the picture's shorter side, at least 2, unless given.

    Raises:
        InputError: they are no pictures, or their sides no multiples of the patch's.
    """
    require_pictures(network, inputs)
    _, height, width = inputs
    side = patch or max(2, min(height, width) // 8)
    if height % side or width % side:
        raise InputError(
            f"network {network}: pictures of {height} x {width} and patch {side}, "
            "allowed: a patch that divides both sides"
        )
    return side
