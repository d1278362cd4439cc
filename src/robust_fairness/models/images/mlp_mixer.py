"""A small MLP-Mixer (Tolstikhin et al. 2021)."""

from functools import partial

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor, nn

from robust_fairness.models.images._staged import Body, StagedNetwork, require_patches
from robust_fairness.models.randomness import Randomness

STACKS = False


class Parameters(BaseModel):
    """Sizes; the source's smallest network is Mixer-S, with four times this width: 1.1 million.

    ``patch``: side of a patch in pixels; an eighth of the picture's, at least 2, unless given:
    4 for 32 pixels, 8 for 64. There is neither dropout nor stochastic depth.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    patch: int | None = Field(None, ge=1)
    width: int = Field(128, ge=1, description="numbers of a token")
    hidden_tokens: int = Field(64, ge=1, description="width of the perceptron over tokens")
    hidden: int = Field(512, ge=1, description="width of the perceptron over a token's numbers")
    depth: int = Field(8, ge=2, description="blocks")


class Mixer(nn.Module):
    """Mixes the tokens of each channel, then the channels of each token.

    Args:
        parameters: sizes.
        tokens: number of tokens.
    """

    def __init__(self, parameters: Parameters, tokens: int) -> None:
        super().__init__()
        p = parameters
        self.before_tokens, self.before_channels = nn.LayerNorm(p.width), nn.LayerNorm(p.width)
        self.mix_tokens = perceptron(tokens, p.hidden_tokens)
        self.mix_channels = perceptron(p.width, p.hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, width, token]`` to the same."""
        x = x + self.mix_tokens(self.before_tokens(x.mT).mT)
        mixed: Tensor = self.mix_channels(self.before_channels(x.mT)).mT
        return x + mixed


class MeanToken(nn.Module):
    """The mean of the normalised tokens.

    Args:
        width: numbers of a token.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.normalise = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, width, token]`` to ``[row, width]``."""
        mean: Tensor = self.normalise(x.mT).mean(1)
        return mean


def perceptron(width: int, hidden: int) -> nn.Module:
    """Two linear layers with a GELU between them, on the last axis."""
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


def body(parameters: Parameters, inputs: tuple[int, ...], patch: int) -> Body:
    """Patches, blocks, and the mean over tokens."""
    p, (channels, height, width) = parameters, inputs
    stem = nn.Sequential(nn.Conv2d(channels, p.width, patch, stride=patch), nn.Flatten(2))
    tokens = (height // patch) * (width // patch)
    blocks = [Mixer(p, tokens) for _ in range(p.depth)]
    return Body(stem, blocks, [p.width] * p.depth, MeanToken(p.width), p.width)


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> StagedNetwork:
    """The network of "MLP-Mixer: An all-MLP Architecture for Vision", small.

    Args:
        parameters: sizes.
        inputs: channels, height and width of a picture.
        outputs: number of classes.
        randomness: source of the initial weights, of one replica.

    Raises:
        InputError: rows are no pictures, or the patch does not divide their sides.
    """
    patch = require_patches("mlp_mixer", inputs, parameters.patch)
    made = partial(body, parameters, inputs, patch)
    return StagedNetwork(made, outputs, randomness, piecewise_linear=False)
