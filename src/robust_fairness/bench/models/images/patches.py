"""Image networks of patches: vision transformer and MLP-Mixer."""

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torchvision.models import VisionTransformer as Transformer

from robust_fairness.bench.models.images.staged import Body, StagedNetwork, patch_of
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import PluginParameters


class VisionTransformer(StagedNetwork):
    """A small vision transformer (Dosovitskiy et al. 2021).

    The network of "An Image is Worth 16x16 Words", small, for square images.
    """

    name = "vision_transformer"

    class Parameters(PluginParameters):
        """Sizes; default: the width of ViT-Ti with half its depth, 2.7 million weights.

        There is no dropout.
        """

        patch: int | None = Field(
            None, ge=1, description="side of a patch in pixels; default: an eighth, at least 2"
        )
        width: int = Field(192, ge=1, description="channels of a token")
        heads: int = Field(3, ge=1, description="attention heads; they divide the width")
        hidden: int = Field(768, ge=1, description="width of the perceptron of a block")
        depth: int = Field(6, ge=2, description="blocks")

        @model_validator(mode="after")
        def _heads_divide(self) -> "VisionTransformer.Parameters":
            if self.width % self.heads:
                raise ValueError(f"width {self.width}, allowed: multiples of {self.heads} heads")
            return self

    piecewise_linear = False
    halves = False

    def body(self, channels: int, height: int, width: int) -> Body:
        p, patch = self.hparams, patch_of(self.name, height, width, self.hparams.patch)
        if height != width:
            raise InputError(
                f"network {self.name}: images of {height} x {width}, allowed: square images"
            )
        net = Transformer(height, patch, p.depth, p.heads, p.width, p.hidden)
        blocks = [AttentionBlock(block) for block in net.encoder.layers]
        end = ClassToken(net.encoder.ln)
        return Body(Tokens(net, channels), blocks, [p.width] * p.depth, end)


class Tokens(nn.Module):
    """torchvision's patches with their positions, after the class token."""

    def __init__(self, net: Transformer, channels: int) -> None:
        super().__init__()
        size = net.conv_proj.kernel_size
        self.project = nn.Conv2d(channels, net.hidden_dim, size, stride=size)
        std = (channels * size[0] * size[1]) ** -0.5
        nn.init.trunc_normal_(self.project.weight, std=std)
        nn.init.zeros_(self.project.bias)  # type: ignore[arg-type]
        self.class_token = net.class_token
        self.places = net.encoder.pos_embedding

    def forward(self, x: Tensor) -> Tensor:
        """Tokens ``[row, width, 1 + patch]`` of images ``[row, channel, height, width]``."""
        patches = self.project(x).flatten(2).mT
        tokens = torch.cat([self.class_token.expand(len(x), -1, -1), patches], dim=1)
        return (tokens + self.places).mT


class AttentionBlock(nn.Module):
    """torchvision's block, for tokens in the last axis.

    Attention is computed by its formula: torch's fused kernels have no second derivative, which
    the curvature of the loss needs.
    """

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, width, token]`` to the same shape."""
        with sdpa_kernel(SDPBackend.MATH):
            return self.block(x.mT).mT


class ClassToken(nn.Module):
    """The normalised class token."""

    def __init__(self, normalise: nn.Module) -> None:
        super().__init__()
        self.normalise = normalise

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, width, token]`` to ``[row, width]``."""
        return self.normalise(x[..., 0])


class MlpMixer(StagedNetwork):
    """A small MLP-Mixer (Tolstikhin et al. 2021).

    The network of "MLP-Mixer: An all-MLP Architecture for Vision", small.
    """

    name = "mlp_mixer"

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
