"""EDM: a denoiser, its training loss and the deterministic sampler, on plain tensors.

Source: Karras et al., "Elucidating the Design Space of Diffusion-Based Generative Models"
(NeurIPS 2022): Table 1, column "Ours", and the deterministic sampler (Algorithm 1). Images
are in [-1, 1]; sigma is the standard deviation of the noise on them.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

import torch
from jaxtyping import Float, Int, UInt8
from pydantic import BaseModel, Field, model_validator
from torch import Tensor, nn

LARGEST_PIXEL = 255

# Images with noise, standard deviations of that noise (one, or one an image), labels: the
# images without it, by expectation.
Denoise = Callable[[Tensor, Tensor, Tensor], Tensor]


class Preconditioning(BaseModel, extra="forbid", frozen=True):
    """How the network's inputs and outputs are scaled (Table 1, "Network and preconditioning").

    ``noise_factor`` times ln(sigma) / 4 is the network's time. It is 1 in the paper; a network
    of OpenAI's ImageNet models counts time in thousandths.
    """

    sigma_data: float = Field(0.5, gt=0, description="standard deviation that data count as")
    noise_factor: float = Field(1.0, gt=0)


class Sampler(BaseModel, extra="forbid", frozen=True):
    """The deterministic sampler (Table 1, "Sampling").

    18 steps, 35 evaluations of the network, are the paper's for CIFAR-10; 40 steps, 79
    evaluations, are usual for 64 x 64.
    """

    steps: int = Field(18, ge=1)
    sigma_min: float = Field(0.002, gt=0)
    sigma_max: float = Field(80.0, gt=0)
    rho: float = Field(7.0, gt=0, description="the higher, the shorter are steps of little noise")
    precision: Literal["float32", "bfloat16"] = "float32"
    compiled: bool = Field(False, description="whether torch compiles the network first")

    @model_validator(mode="after")
    def _falls(self) -> "Sampler":
        if self.sigma_min >= self.sigma_max:
            raise ValueError(f"sigma_min {self.sigma_min}, allowed: below sigma_max")
        return self


class Denoiser(nn.Module):
    """D(x; sigma) = c_skip x + c_out F(c_in x; c_noise): a network F, preconditioned (Eq. 7).

    Args:
        network: maps images ``[n, c, h, w]``, times ``[n]`` and labels ``[n]`` to images. It
            computes in the precision of its weights; everything around it in that of ``x``.
        preconditioning: how it is scaled.
    """

    def __init__(self, network: nn.Module, preconditioning: Preconditioning) -> None:
        super().__init__()
        self.network = network
        self.preconditioning = preconditioning

    def forward(
        self,
        x: Float[Tensor, "n c h w"],
        sigma: Float[Tensor, "..."],
        labels: Int[Tensor, " n"],
    ) -> Float[Tensor, "n c h w"]:
        """The expected images behind noisy ones."""
        data = self.preconditioning.sigma_data
        sigma = sigma.expand(len(x))
        time = sigma.log() * (self.preconditioning.noise_factor / 4)
        each = sigma[:, None, None, None]
        total = each.square() + data**2
        inputs = (x * total.rsqrt()).to(next(self.network.parameters()).dtype)
        outputs = self.network(inputs, time, labels).to(x.dtype)
        return x * (data**2 / total) + outputs * (each * data * total.rsqrt())


def training_sigmas(normal: Float[Tensor, " n"], mean: float, deviation: float) -> Tensor:
    """Noise levels to train at: ln(sigma) ~ N(mean, deviation^2) (Table 1, "Training")."""
    return (normal * deviation + mean).exp()


def loss(
    denoiser: Denoiser,
    images: Float[Tensor, "n c h w"],
    labels: Int[Tensor, " n"],
    sigmas: Float[Tensor, " n"],
    normal: Float[Tensor, "n c h w"],
) -> Float[Tensor, ""]:
    """Weighted squared error of the denoised images, averaged over images and pixels.

    The weight (sigma^2 + sigma_data^2) / (sigma sigma_data)^2 is 1 / c_out^2, so that the loss is
    the plain squared error of the network's own output (Eq. 8).
    """
    data = denoiser.preconditioning.sigma_data
    each = sigmas[:, None, None, None]
    weights = (each.square() + data**2) / (each * data).square()
    denoised = denoiser(images + each * normal, sigmas, labels)
    return (weights * (denoised - images).square()).mean()


def schedule(sampler: Sampler) -> list[float]:
    """Falling noise levels, one more than there are steps (Eq. 5); the last one is 0."""
    first, last = sampler.sigma_max ** (1 / sampler.rho), sampler.sigma_min ** (1 / sampler.rho)
    between = [number / max(1, sampler.steps - 1) for number in range(sampler.steps)]
    return [(first + share * (last - first)) ** sampler.rho for share in between] + [0.0]


def heun(
    denoise: Denoise, latents: Float[Tensor, "n c h w"], labels: Tensor, sigmas: Sequence[float]
) -> Float[Tensor, "n c h w"]:
    """Follow the probability flow from noise to images: Heun's method (Algorithm 1).

    dx / dsigma = (x - D(x; sigma)) / sigma. Each step goes along the slope at its start, then
    again along the mean of the slopes at both ends; the last step ends without noise, where the
    slope is not defined, and is Euler's. Nothing in the loop waits for the device.

    Args:
        denoise: D.
        latents: draws of N(0, I): the first noise level is multiplied here.
        labels: class of every image ``[n]``.
        sigmas: falling noise levels, the last one 0.

    Returns:
        Images, in [-1, 1] except for errors; dtype and device of the latents.
    """
    levels = torch.tensor(sigmas, dtype=latents.dtype).to(latents.device)
    x = latents * sigmas[0]
    for number, (start, end) in enumerate(pairwise(sigmas)):
        slope = (x - denoise(x, levels[number], labels)) / start
        ahead = torch.add(x, slope, alpha=end - start)
        if end > 0:
            slope += (ahead - denoise(ahead, levels[number + 1], labels)) / end
            ahead = torch.add(x, slope, alpha=(end - start) / 2)
        x = ahead
    return x


def from_pixels(pixels: UInt8[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Images of 0 to 255 as float32 in [-1, 1]."""
    return pixels.float() / (LARGEST_PIXEL / 2) - 1


def to_pixels(images: Float[Tensor, "*shape"]) -> UInt8[Tensor, "*shape"]:
    """Images in [-1, 1] as 0 to 255: clipped, then rounded to the nearest."""
    return ((images.clamp(-1, 1) + 1) * (LARGEST_PIXEL / 2)).round().to(torch.uint8)
