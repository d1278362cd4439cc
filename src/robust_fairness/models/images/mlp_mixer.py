"""A small MLP-Mixer (Tolstikhin et al. 2021)."""

from pydantic import Field
from torch import Tensor, nn

from robust_fairness.core.registry import PluginParameters
from robust_fairness.models.images._staged import Body, StagedNetwork, patch_of


class MlpMixer(StagedNetwork):
    """The network of "MLP-Mixer: An all-MLP Architecture for Vision", small."""

    class Parameters(PluginParameters):
        """Sizes; the source's smallest network, Mixer-S, has four times this width: 1.1 million.

        There is neither dropout nor stochastic depth.
        """

        patch: int | None = Field(
            None, ge=1, description="side of a patch in pixels; default: an eighth, at least 2"
        )
        width: int = Field(128, ge=1, description="channels of a token")
        hidden_tokens: int = Field(64, ge=1, description="width of the perceptron over tokens")
        hidden: int = Field(512, ge=1, description="width of the perceptron over channels")
        depth: int = Field(8, ge=2, description="blocks")

    piecewise_linear = False
    halves = False

    def body(self, channels: int, height: int, width: int) -> Body:
        p, patch = self.hparams, patch_of(self.name, height, width, self.hparams.patch)
        stem = nn.Sequential(nn.Conv2d(channels, p.width, patch, stride=patch), nn.Flatten(2))
        tokens = (height // patch) * (width // patch)
        blocks = [Mixer(p, tokens) for _ in range(p.depth)]
        return Body(stem, blocks, [p.width] * p.depth, MeanToken(p.width))


class Mixer(nn.Module):
    """Mixes the tokens of each channel, then the channels of each token ``[row, width, token]``."""

    def __init__(self, hparams: MlpMixer.Parameters, tokens: int) -> None:
        super().__init__()
        p = hparams
        self.before_tokens, self.before_channels = nn.LayerNorm(p.width), nn.LayerNorm(p.width)
        self.mix_tokens = perceptron(tokens, p.hidden_tokens)
        self.mix_channels = perceptron(p.width, p.hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, width, token]`` to the same shape."""
        x = x + self.mix_tokens(self.before_tokens(x.mT).mT)
        return x + self.mix_channels(self.before_channels(x.mT)).mT


class MeanToken(nn.Module):
    """The mean of the normalised tokens."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.normalise = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, width, token]`` to ``[row, width]``."""
        return self.normalise(x.mT).mean(1)


def perceptron(width: int, hidden: int) -> nn.Module:
    """Two linear layers with a GELU between them, on the last axis."""
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))
