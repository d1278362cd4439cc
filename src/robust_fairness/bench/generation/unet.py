"""The generator's network: diffusers' UNet2DModel, conditioned on noise and class."""

from typing import Any, Literal

import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from robust_fairness.core.errors import InputError


class UNetParameters(BaseModel, extra="forbid", frozen=True):
    """Sizes of the network.

    The defaults are small: 8 x 8 digits on a CPU. OpenAI's ImageNet-64 network is ``channels``
    (192, 384, 576, 768), ``layers`` 3, ``attention`` (32, 16, 8), ``middle_attention``,
    ``head_width`` 64, ``groups`` 32, ``conditioning`` scale_shift, ``resampling`` resnet,
    ``frequency_shift`` 0 and ``cosine_first``.
    """

    channels: tuple[int, ...] = Field(
        (32, 64),
        min_length=1,
        max_length=8,
        description="of every level; each level halves height and width",
    )
    layers: int = Field(1, ge=1, le=32, description="residual blocks of a level on the way down")
    attention: tuple[int, ...] = Field((), description="heights of images that have attention")
    middle_attention: bool = Field(False, description="whether the lowest level has attention")
    head_width: int = Field(8, ge=1, description="channels of a head of the attention")
    groups: int = Field(8, ge=1, description="of the normalisation; must divide all channels")
    dropout: float = Field(0.0, ge=0, lt=1)
    conditioning: Literal["default", "scale_shift"] = Field(
        "scale_shift",
        description="how noise and class enter a block: as scale and shift, or (default) added",
    )
    resampling: Literal["conv", "resnet"] = Field(
        "conv", description="whether a convolution or a residual block halves and doubles"
    )
    frequency_shift: Literal[0, 1] = Field(
        1, description="1: the slowest frequency is 1 / 10,000 (Ho et al. 2020)"
    )
    cosine_first: bool = Field(False, description="order of sines and cosines")


class Network(nn.Module):
    """UNet2DModel as ``edm.Denoiser`` calls it; its names of weights are the library's."""

    def __init__(self, unet: nn.Module) -> None:
        super().__init__()
        self.unet = unet

    def forward(self, images: Tensor, times: Tensor, labels: Tensor) -> Tensor:
        """Map images ``[n, c, h, w]``, times ``[n]`` and labels ``[n]`` to images."""
        outputs: Tensor = self.unet(images, times, labels, return_dict=False)[0]
        return outputs


def options(
    parameters: UNetParameters, channels: int, size: tuple[int, int], classes: int
) -> dict[str, Any]:
    """The arguments of UNet2DModel; raises an error if sizes do not divide one another.

    A learned Fourier embedding of time is not offered: the library's takes the logarithm of its
    input and divides the output by it, unlike EDM.
    """
    p = parameters
    attending = _attending(p, size, classes)
    plain = {
        "conv": ("DownBlock2D", "UpBlock2D"),
        "resnet": ("ResnetDownsampleBlock2D", "ResnetUpsampleBlock2D"),
    }[p.resampling]
    down = tuple("AttnDownBlock2D" if attends else plain[0] for attends in attending)
    up = tuple("AttnUpBlock2D" if attends else plain[1] for attends in reversed(attending))
    return {
        "sample_size": size,
        "in_channels": channels,
        "out_channels": channels,
        "time_embedding_type": "positional",
        "freq_shift": p.frequency_shift,
        "flip_sin_to_cos": p.cosine_first,
        "block_out_channels": p.channels,
        "layers_per_block": p.layers,
        "down_block_types": down,
        "up_block_types": up,
        "add_attention": p.middle_attention,
        "attention_head_dim": p.head_width,
        "norm_num_groups": p.groups,
        "attn_norm_num_groups": p.groups,
        "dropout": p.dropout,
        "resnet_time_scale_shift": p.conditioning,
        "downsample_type": p.resampling,
        "upsample_type": p.resampling,
        "num_class_embeds": classes,
    }


def _attending(p: UNetParameters, size: tuple[int, int], classes: int) -> list[bool]:
    """Which levels have attention; raises an error if sizes do not divide one another."""
    levels = len(p.channels)
    if classes < 1:
        raise InputError("generator: at least one class is needed")
    if any(side < 1 or side % 2 ** (levels - 1) for side in size):
        raise InputError(
            f"network.channels: {levels} levels for images of {size[0]} x {size[1]}, "
            f"allowed: height and width that are multiples of {2 ** (levels - 1)}"
        )
    if any(width % p.groups for width in p.channels):
        raise InputError(f"network.groups: {p.groups}, allowed: a divisor of all of {p.channels}")
    sides = [size[0] // 2**level for level in range(levels)]
    attending = [side in p.attention for side in sides]
    widths = [width for width, attends in zip(p.channels, attending, strict=True) if attends]
    if p.middle_attention:
        widths.append(p.channels[-1])
    if any(width % p.head_width for width in widths):
        raise InputError(f"network.head_width: {p.head_width}, allowed: a divisor of {widths}")
    unknown = set(p.attention) - set(sides)
    if unknown:
        raise InputError(f"network.attention: {min(unknown)}, allowed: the levels' heights {sides}")
    return attending


def build(
    parameters: UNetParameters, channels: int, size: tuple[int, int], classes: int, seed: int
) -> Network:
    """The network with initial weights, which depend on the seed only.

    The last convolution starts at zero, as in the networks of Karras et al., so that the untrained
    denoiser predicts from means and variances only.
    """
    made_with = options(parameters, channels, size, classes)
    from diffusers import UNet2DModel

    unet: Any  # the library's mixins hide from type checkers that it is a module
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        unet = UNet2DModel(**made_with)
    nn.init.zeros_(unet.conv_out.weight)
    nn.init.zeros_(unet.conv_out.bias)
    return Network(unet)
