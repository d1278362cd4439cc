"""Layers of a stack of replicas, whose weights have a leading replica axis, and losses of rows."""

from math import sqrt
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from robust_fairness.bench.models.randomness import DropoutNoise, Randomness

ABSENT = -1e15  # logit of a class without training rows: its square is finite in float32


class Linear(nn.Module):
    """Affine layers of a stack, initialised as ``torch.nn.Linear`` is.

    ``weight`` is ``[replica, inputs, outputs]`` and ``bias`` ``[replica, 1, outputs]``.
    """

    def __init__(self, inputs: int, outputs: int, randomness: Randomness) -> None:
        super().__init__()
        bound = 1 / sqrt(inputs)
        self.weight = nn.Parameter(randomness.uniform((inputs, outputs), bound))
        self.bias = nn.Parameter(randomness.uniform((1, outputs), bound))

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Map ``[replica, row, inputs]`` to ``[replica, row, outputs]``; noise has no effect."""
        return torch.baddbmm(self.bias, x, self.weight)


class TwoLayers(nn.Module):
    """Linear, ReLU, dropout, linear; without noise there is no dropout."""

    def __init__(
        self, inputs: int, hidden: int, outputs: int, dropout: float, randomness: Randomness
    ) -> None:
        super().__init__()
        self.first = Linear(inputs, hidden, randomness)
        self.dropout = dropout
        self.second = Linear(hidden, outputs, randomness)

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Map ``[replica, row, inputs]`` to ``[replica, row, outputs]``."""
        hidden = torch.relu(self.first(x))
        return self.second(noise.dropped(self, hidden, self.dropout) if noise else hidden)


class NormalisedConvolution(nn.Module):
    """Batch normalisation of images, then a convolution.

    A channel of ones lets scale and shift of the normalisation move into the kernel. The result
    is the same, also at the padded border, but training needs no gradient of the images, which
    makes a whole step about a sixth faster.
    """

    def __init__(self, channels: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self.normalise = nn.BatchNorm2d(channels)
        self.convolve = nn.Conv2d(channels, outputs, kernel, padding=kernel // 2)

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, channel, height, width]`` to ``[row, outputs, height, width]``."""
        norm, kernel = self.normalise, self.convolve.weight
        running = norm.running_mean, norm.running_var
        standard = functional.batch_norm(x, *running, training=self.training)
        inputs = torch.cat([standard, torch.ones_like(x[:, :1])], dim=1)
        scaled = kernel * norm.weight[:, None, None]
        shift = (kernel * norm.bias[:, None, None]).sum(1, keepdim=True)
        kernel, padding = torch.cat([scaled, shift], dim=1), self.convolve.padding
        return functional.conv2d(inputs, kernel, self.convolve.bias, padding=padding)


class PointConvolution(nn.Conv2d):
    """A 1 x 1 convolution without bias, of every pixel or every ``stride``-th.

    Pixels are sliced instead of torch's own stride, whose second derivative for channels-last
    images writes beyond its memory on the CPU (torch 2.15). Curvature takes second derivatives.
    """

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__(inputs, outputs, 1, bias=False)
        self.step = stride

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[row, inputs, height, width]`` to ``[row, outputs, ...]``."""
        return functional.conv2d(x[..., :: self.step, :: self.step], self.weight)


def replace_shortcuts(*stages: Any) -> None:
    """Give the shortcuts of torchvision's stages of stride 2 second derivatives, in place."""
    for stage in stages:
        shortcut = stage[0].downsample
        outputs, inputs, *_ = shortcut[0].weight.shape
        point = PointConvolution(inputs, outputs, stride=2)
        point.weight = shortcut[0].weight
        shortcut[0] = point


def unit_length(x: Tensor) -> Tensor:
    """Vectors ``[..., width]`` of length 1; one of length 0 stays, with a finite gradient."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / torch.where(length > 0, length, 1)


class SingleHead(nn.Module):
    """A head of torch's own layers, for a stack of one replica."""

    def __init__(self, layers: nn.Module) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, x: Tensor, noise: DropoutNoise | None = None) -> Tensor:
        """Map ``[1, row, ...]`` to ``[1, row, outputs]``."""
        return self.layers(x[0])[None]


def mean_where(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of ``[..., row]`` over the rows where ``mask`` holds; 0 where it holds for none."""
    weights = mask.to(values.dtype)
    return (values * weights).sum(-1) / weights.sum(-1).clamp(min=1)


def loss_of_rows(outputs: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy, or squared error of a continuous outcome, of every row, ``[..., row]``.

    Args:
        outputs: logits ``[..., row, class]``, or predictions ``[..., row, 1]``.
        y: int64 classes, or float outcomes, ``[..., row]``.
    """
    if y.is_floating_point():
        return (outputs.squeeze(-1) - y).square()
    losses = functional.cross_entropy(outputs.flatten(0, -2), y.flatten(), reduction="none")
    return losses.view(y.shape)


def binary_cross_entropy(logits: Tensor, y: Tensor) -> Tensor:
    """Sum over classes of the binary cross-entropy of each, of every row ``[..., row]``.

    The target is 1 for the class ``[..., row]`` and 0 for the others, of logits ``[..., row,
    class]``.
    """
    return functional.softplus(logits).sum(-1) - logits.gather(-1, y.unsqueeze(-1)).squeeze(-1)
