"""The networks of EDM's CIFAR-10 experiments: DDPM++ and NCSN++.

Sources: Song et al., "Score-Based Generative Modeling through Stochastic Differential Equations"
(2021), appendix H; Karras et al., "Elucidating the Design Space of Diffusion-Based Generative
Models" (2022), Table 7 and appendix F. Weights have the names of the authors' published networks,
without the inputs of their augmentation, which are zero when images are made.
"""

from math import log2, pi, sqrt
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import BaseModel, Field
from torch import Tensor, nn
from torch.nn import functional

from robust_fairness.core.errors import InputError

FILTERS = {"ddpm++": (1, 1), "ncsn++": (1, 3, 3, 1)}  # of halving and doubling, along an axis
EMBEDDING = 4  # times the base channels: width of the embedding of noise and class
EPSILON = 1e-6
LOWEST_FREQUENCY = 1e-4
FOURIER_SCALE = 16.0
GROUPS, GROUP_WIDTH = 32, 4  # of the normalisation: at most so many groups, of at least this width


class SongUNetParameters(BaseModel, extra="forbid", frozen=True):
    """Form and sizes of the network; the published ones have ``channels`` 128."""

    architecture: Literal["ddpm++", "ncsn++"]
    channels: int = Field(128, ge=4, multiple_of=4)
    multipliers: tuple[int, ...] = Field(
        (2, 2, 2), min_length=1, max_length=8, description="of the channels, by level"
    )
    layers: int = Field(4, ge=1, le=32, description="residual blocks of a level on the way down")
    attention: tuple[int, ...] = Field((16,), description="heights of images that have attention")
    dropout: float = Field(0.13, ge=0, lt=1)


def kernel(architecture: str) -> Float[Tensor, "1 1 k k"]:
    """The filter that halves images; its weights sum to 1."""
    line = torch.tensor(FILTERS[architecture], dtype=torch.float32)
    return (line.outer(line) / line.sum() ** 2)[None, None]


class Resample(nn.Module):
    """Halve or double height and width by a fixed filter."""

    def __init__(self, architecture: str, direction: Literal["up", "down"]) -> None:
        super().__init__()
        self.architecture, self.up = architecture, direction == "up"

    def forward(self, x: Tensor, padded: bool = True) -> Tensor:
        weights = kernel(self.architecture).to(x).expand(x.shape[1], -1, -1, -1)
        margin = (weights.shape[-1] - 1) // 2 if padded else 0
        if self.up:  # each pixel is spread over four
            return functional.conv_transpose2d(x, 4 * weights, None, 2, margin, groups=len(weights))
        return functional.conv2d(x, weights, None, 2, margin, groups=len(weights))


def normalisation(channels: int) -> nn.GroupNorm:
    """Group normalisation of some channels."""
    return nn.GroupNorm(min(GROUPS, channels // GROUP_WIDTH), channels, EPSILON)


class Waves(nn.Module):
    """Sines and cosines of times: of geometric frequencies, or random ones that are stored."""

    freqs: Tensor | None

    def __init__(self, width: int, random: bool) -> None:
        super().__init__()
        self.count = width // 2
        self.register_buffer("freqs", FOURIER_SCALE * torch.randn(self.count) if random else None)

    def forward(self, times: Float[Tensor, " n"]) -> Float[Tensor, "n width"]:
        if self.freqs is None:
            steps = torch.arange(self.count, device=times.device) / (self.count - 1)
            angles = times.float().outer(LOWEST_FREQUENCY**steps)
        else:
            angles = times.float().outer(2 * pi * self.freqs.float())
        return torch.cat([angles.sin(), angles.cos()], dim=1)


class Block(nn.Module):
    """A residual block, with attention of one head if ``attends``; sums are scaled by sqrt(1/2)."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        parameters: SongUNetParameters,
        attends: bool = False,
        resample: Literal["up", "down"] | None = None,
    ) -> None:
        super().__init__()
        self.resample = Resample(parameters.architecture, resample) if resample else nn.Identity()
        self.norm0 = normalisation(inputs)
        self.conv0 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.affine = nn.Linear(EMBEDDING * parameters.channels, outputs)
        self.norm1 = normalisation(outputs)
        self.dropout = nn.Dropout(parameters.dropout)
        self.conv1 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = (
            nn.Conv2d(inputs, outputs, 1) if resample or inputs != outputs else nn.Identity()
        )
        self.attends = attends
        if attends:
            self.norm2 = normalisation(outputs)
            self.qkv = nn.Conv2d(outputs, 3 * outputs, 1)
            self.proj = nn.Conv2d(outputs, outputs, 1)

    def forward(self, x: Tensor, embedding: Tensor) -> Tensor:
        branch = self.conv0(self.resample(functional.silu(self.norm0(x))))
        branch = branch + self.affine(embedding)[:, :, None, None]
        branch = self.conv1(self.dropout(functional.silu(self.norm1(branch))))
        x = (self.skip(self.resample(x)) + branch) * sqrt(0.5)
        return (x + self.proj(self._attended(x))) * sqrt(0.5) if self.attends else x

    def _attended(self, x: Tensor) -> Tensor:
        """Values of all places, weighted by the similarity of queries and keys."""
        # channels of a place are in groups of three: query, key, value
        joint = self.qkv(self.norm2(x)).flatten(2).unflatten(1, (-1, 3))
        query, key, value = (part.transpose(1, 2) for part in joint.unbind(2))
        mixed = functional.scaled_dot_product_attention(query, key, value)
        return mixed.transpose(1, 2).reshape(x.shape)


class SongUNet(nn.Module):
    """The network F of ``edm.Denoiser``.

    DDPM++ halves and doubles by means of 2 x 2 pixels and embeds the noise by sines and cosines of
    fixed frequencies. NCSN++ uses a wider filter and random Fourier features, and adds the image,
    halved by learned convolutions, to every level on the way down.
    """

    def __init__(
        self, parameters: SongUNetParameters, channels: int, size: int, classes: int
    ) -> None:
        super().__init__()
        p = parameters
        wide = p.architecture == "ncsn++"
        noise = (2 if wide else 1) * p.channels
        self.map_noise = Waves(noise, random=wide)
        width = EMBEDDING * p.channels
        self.map_label = nn.Linear(classes, noise)
        self.map_layer0 = nn.Linear(noise, width)
        self.map_layer1 = nn.Linear(width, width)
        self.halve = Resample(p.architecture, "down")
        self.enc, self.dec = nn.ModuleDict(), nn.ModuleDict()
        levels = [(size >> level, p.channels * times) for level, times in enumerate(p.multipliers)]
        current, image, kept = p.channels, channels, [p.channels]
        for level, (side, outputs) in enumerate(levels):
            name = f"{side}x{side}"
            if level == 0:
                self.enc[f"{name}_conv"] = nn.Conv2d(channels, current, 3, padding=1)
            else:
                self.enc[f"{name}_down"] = Block(current, current, p, resample="down")
                if wide:
                    margin = 1 + (len(FILTERS[p.architecture]) - 1) // 2  # of both filters
                    self.enc[f"{name}_aux_residual"] = nn.Conv2d(image, current, 3, padding=margin)
                    image = current
                kept.append(current)
            for layer in range(p.layers):
                attends = side in p.attention
                self.enc[f"{name}_block{layer}"] = Block(current, outputs, p, attends)
                current = outputs
                kept.append(current)
        for side, outputs in reversed(levels):
            name = f"{side}x{side}"
            if side == levels[-1][0]:
                self.dec[f"{name}_in0"] = Block(current, current, p, attends=True)
                self.dec[f"{name}_in1"] = Block(current, current, p)
            else:
                self.dec[f"{name}_up"] = Block(current, current, p, resample="up")
            for layer in range(p.layers + 1):
                attends = side in p.attention and layer == p.layers
                self.dec[f"{name}_block{layer}"] = Block(current + kept.pop(), outputs, p, attends)
                current = outputs
        self.dec[f"{name}_aux_norm"] = normalisation(current)
        self.dec[f"{name}_aux_conv"] = nn.Conv2d(current, channels, 3, padding=1)

    @property
    def unet(self) -> nn.Module:
        """The module whose weights a generator stores."""
        return self

    def forward(
        self,
        images: Float[Tensor, "n c h w"],
        times: Float[Tensor, " n"],
        labels: Int[Tensor, " n"],
    ) -> Float[Tensor, "n c h w"]:
        """Map noisy images, times and labels to images."""
        embedding = self._embedding(self.map_noise(times).to(images.dtype), labels)
        x, image = images, images
        kept: list[Tensor] = []
        for name, layer in self.enc.items():
            if name.endswith("_aux_residual"):
                image = (x + self.halve(layer(image), padded=False)) * sqrt(0.5)
                x = kept[-1] = image
                continue
            x = layer(x, embedding) if isinstance(layer, Block) else layer(x)
            kept.append(x)
        for name, layer in self.dec.items():
            if isinstance(layer, Block):
                joined = torch.cat([x, kept.pop()], dim=1) if "_block" in name else x
                x = layer(joined, embedding)
            else:
                x = functional.silu(layer(x)) if name.endswith("_norm") else layer(x)
        return x

    def _embedding(self, noise: Tensor, labels: Tensor) -> Tensor:
        # one-hot labels count as their number of classes, so that they have unit variance
        chosen = self.map_label.weight.T[labels] * sqrt(self.map_label.in_features)
        embedding = noise + chosen + self.map_label.bias
        embedding = functional.silu(self.map_layer0(embedding))
        return functional.silu(self.map_layer1(embedding))


def build(
    parameters: SongUNetParameters, channels: int, size: tuple[int, int], classes: int, seed: int
) -> SongUNet:
    """The network with initial weights, which depend on the seed only; the last ones are zero."""
    levels, least = len(parameters.multipliers), 2 ** (len(parameters.multipliers) - 1)
    if size[0] != size[1] or size[0] % least or log2(size[0] // least) < 1:
        raise InputError(
            f"network.multipliers: {levels} levels for images of {size[0]} x {size[1]}, "
            f"allowed: squares whose sides are multiples of {least}, the lowest 2 or more"
        )
    sides = [size[0] >> level for level in range(levels)]
    if set(parameters.attention) - set(sides):
        raise InputError(
            f"network.attention: {parameters.attention}, allowed: the levels' heights {sides}"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = SongUNet(parameters, channels, size[0], classes)
    last = network.dec[f"{size[0]}x{size[0]}_aux_conv"]
    nn.init.zeros_(last.get_parameter("weight"))
    nn.init.zeros_(last.get_parameter("bias"))
    return network
