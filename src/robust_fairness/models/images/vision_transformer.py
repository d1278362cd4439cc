"""A small vision transformer (Dosovitskiy et al. 2021)."""

from functools import partial

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torchvision.models import VisionTransformer

from robust_fairness.core.errors import InputError
from robust_fairness.models.images._staged import Body, StagedNetwork, require_patches
from robust_fairness.models.randomness import Randomness

STACKS = False


class Parameters(BaseModel):
    """Sizes; the defaults are the width of ViT-Ti with half its depth: 2.7 million weights.

    ``patch``: side of a patch in pixels; an eighth of the picture's, at least 2, unless given:
    4 for 32 pixels, 8 for 64. There is no dropout.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    patch: int | None = Field(None, ge=1)
    width: int = Field(192, ge=1, description="numbers of a token")
    heads: int = Field(3, ge=1, description="attention heads; they divide the width")
    hidden: int = Field(768, ge=1, description="width of the perceptron of a block")
    depth: int = Field(6, ge=2, description="blocks")

    @model_validator(mode="after")
    def _heads_divide(self) -> "Parameters":
        if self.width % self.heads:
            raise ValueError(f"width {self.width}, allowed: multiples of {self.heads} heads")
        return self


class Tokens(nn.Module):
    """torchvision's patches with their places, behind the class token.

    Args:
        net: torchvision's network.
        channels: of a picture; its own layer takes three.
    """

    def __init__(self, net: VisionTransformer, channels: int) -> None:
        super().__init__()
        size = net.conv_proj.kernel_size
        self.project = nn.Conv2d(channels, net.hidden_dim, size, stride=size)
        deviation = (channels * size[0] * size[1]) ** -0.5
        nn.init.trunc_normal_(self.project.weight, std=deviation)
        nn.init.zeros_(self.project.bias)  # type: ignore[arg-type]
        self.class_token = net.class_token
        self.places = net.encoder.pos_embedding

    def forward(self, x: Tensor) -> Tensor:
        """Tokens ``[row, width, 1 + patch]`` of pictures ``[row, channel, height, width]``."""
        patches = self.project(x).flatten(2).mT
        tokens = torch.cat([self.class_token.expand(len(x), -1, -1), patches], dim=1)
        return (tokens + self.places).mT


class AttentionBlock(nn.Module):
    """torchvision's block, for tokens in the last axis.

    Attention is computed by its formula: torch's fused kernels have no second derivative, which
    the curvature of the loss needs, and save little for 65 tokens.

    Args:
        block: torchvision's.
    """

    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, width, token]`` to the same."""
        with sdpa_kernel(SDPBackend.MATH):
            mapped: Tensor = self.block(x.mT).mT
        return mapped


class ClassToken(nn.Module):
    """The normalised class token.

    Args:
        normalise: layer normalisation.
    """

    def __init__(self, normalise: nn.Module) -> None:
        super().__init__()
        self.normalise = normalise

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, width, token]`` to ``[row, width]``."""
        token: Tensor = self.normalise(x[..., 0])
        return token


def body(parameters: Parameters, channels: int, side: int, patch: int) -> Body:
    """The network of torchvision in pieces."""
    p = parameters
    net = VisionTransformer(side, patch, p.depth, p.heads, p.width, p.hidden)
    blocks = [AttentionBlock(block) for block in net.encoder.layers]
    end = ClassToken(net.encoder.ln)
    return Body(Tokens(net, channels), blocks, [p.width] * p.depth, end, p.width)


def build(
    parameters: Parameters, inputs: tuple[int, ...], outputs: int, randomness: Randomness
) -> StagedNetwork:
    """The network of "An Image is Worth 16x16 Words", small, for square pictures.

    Args:
        parameters: sizes.
        inputs: channels, height and width of a picture.
        outputs: number of classes.
        randomness: source of the initial weights, of one replica.

    Raises:
        InputError: rows are no square pictures, or the patch does not divide their side.
    """
    patch = require_patches("vision_transformer", inputs, parameters.patch)
    channels, height, width = inputs
    if height != width:
        raise InputError(
            f"network vision_transformer: pictures of {height} x {width}, allowed: square ones"
        )
    made = partial(body, parameters, channels, height, patch)
    return StagedNetwork(made, outputs, randomness, piecewise_linear=False)
