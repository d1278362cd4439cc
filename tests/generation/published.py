"""Networks of published form, made here: their weights, and what they compute, restated."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional


class Weights(dict):
    """Random weights that come into being when a network first asks for them."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.draws = torch.Generator().manual_seed(seed)

    def of(self, name: str, *shape: int) -> Tensor:
        if name not in self:
            # attention that is far from even, so that a wrong one shows
            scale = (5 if "qkv.weight" in name else 0.5) * torch.Size(shape[1:]).numel() ** -0.5
            self[name] = torch.randn(shape, generator=self.draws) * scale
        return self[name]

    def convolved(self, x: Tensor, name: str, out: int, kernel: int = 3) -> Tensor:
        weight = self.of(f"{name}.weight", out, x.shape[1], kernel, kernel)
        return functional.conv2d(x, weight, self.of(f"{name}.bias", out), padding=kernel // 2)

    def normed(self, x: Tensor, name: str) -> Tensor:
        parameters = [self.of(f"{name}.{part}", x.shape[1]) for part in ("weight", "bias")]
        return functional.group_norm(x, 32, *parameters, eps=1e-5)

    def mapped(self, x: Tensor, name: str, out: int) -> Tensor:
        weight = self.of(f"{name}.weight", out, x.shape[1])
        return functional.linear(x, weight, self.of(f"{name}.bias", out))


def waves(time: Tensor, width: int) -> Tensor:
    """Cosines, then sines, of frequencies from 1 down to nearly 1 / 10,000."""
    frequency = 10_000 ** -(torch.arange(width // 2) / (width // 2))
    return torch.cat([(time[:, None] * frequency).cos(), (time[:, None] * frequency).sin()], 1)


def attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention of ``[n, head, width, place]``."""
    weights = torch.einsum("nhcq,nhck->nhqk", q, k) / q.shape[2] ** 0.5
    return torch.einsum("nhqk,nhck->nhcq", weights.softmax(-1), v)


def openai(
    w: Weights,
    x: Tensor,
    time: Tensor,
    label: Tensor,
    *,
    widths: Sequence[int],
    layers: int,
    attends: Sequence[bool],
    heads_of: int,
    classes: int,
) -> Tensor:
    """The network of OpenAI's consistency models, by its names of weights."""
    size = 4 * widths[0]
    emb = functional.silu(w.mapped(waves(time, widths[0]), "time_embed.0", size))
    emb = w.mapped(emb, "time_embed.2", size) + w.of("label_emb.weight", classes, size)[label]

    def block(x: Tensor, name: str, out: int, resize=lambda x: x) -> Tensor:
        h = resize(functional.silu(w.normed(x, f"{name}.in_layers.0")))
        h = w.convolved(h, f"{name}.in_layers.2", out)
        entering = w.mapped(functional.silu(emb), f"{name}.emb_layers.1", 2 * out)
        scale, shift = entering[:, :, None, None].chunk(2, 1)
        h = functional.silu(w.normed(h, f"{name}.out_layers.0") * (1 + scale) + shift)
        h = w.convolved(h, f"{name}.out_layers.3", out)
        x = resize(x)
        return h + (x if x.shape[1] == out else w.convolved(x, f"{name}.skip_connection", out, 1))

    def attention(x: Tensor, name: str) -> Tensor:
        width = x.shape[1]
        joint = w.convolved(w.normed(x, f"{name}.norm"), f"{name}.qkv", 3 * width, 1)
        q, k, v = joint.reshape(len(x), 3, width // heads_of, heads_of, -1).unbind(1)
        return x + w.convolved(attended(q, k, v).reshape(x.shape), f"{name}.proj_out", width, 1)

    x = w.convolved(x, "input_blocks.0.0", widths[0])
    kept, number = [x], 1
    for level, width in enumerate(widths):
        for _ in range(layers):
            x = block(x, f"input_blocks.{number}.0", width)
            x = attention(x, f"input_blocks.{number}.1") if attends[level] else x
            kept.append(x)
            number += 1
        if level + 1 < len(widths):
            x = block(x, f"input_blocks.{number}.0", width, lambda x: functional.avg_pool2d(x, 2))
            kept.append(x)
            number += 1
    x = block(x, "middle_block.0", widths[-1])
    x = block(attention(x, "middle_block.1"), "middle_block.2", widths[-1])
    number = 0
    for level in reversed(range(len(widths))):
        for layer in range(layers + 1):
            name, part = f"output_blocks.{number}", 1
            x = block(torch.cat([x, kept.pop()], 1), f"{name}.0", widths[level])
            if attends[level]:
                x, part = attention(x, f"{name}.1"), 2
            if level and layer == layers:
                x = block(
                    x,
                    f"{name}.{part}",
                    widths[level],
                    lambda x: functional.interpolate(x, scale_factor=2),
                )
            number += 1
    return w.convolved(functional.silu(w.normed(x, "out.0")), "out.2", 3)


def nvlabs(
    w: Weights,
    x: Tensor,
    time: Tensor,
    label: Tensor,
    *,
    widths: Sequence[int],
    layers: int,
    attends: Sequence[bool],
    heads_of: int,
    classes: int,
) -> Tensor:
    """NVlabs' module DhariwalUNet, by its names of weights."""
    size = 4 * widths[0]
    emb = functional.silu(w.mapped(waves(time, widths[0]), "map_layer0", size))
    emb = w.mapped(emb, "map_layer1", size)
    one_hot = functional.one_hot(label, classes).float()
    emb = functional.silu(emb + one_hot @ w.of("map_label.weight", size, classes).T)

    def block(x: Tensor, name: str, out: int, resize=None, heads: int = 0) -> Tensor:
        fit = resize or (lambda x: x)
        for conv in ("conv0", "skip") if resize else ():
            w[f"{name}.{conv}.resample_filter"] = torch.full((1, 1, 2, 2), 0.25)
        h = w.convolved(fit(functional.silu(w.normed(x, f"{name}.norm0"))), f"{name}.conv0", out)
        scale, shift = w.mapped(emb, f"{name}.affine", 2 * out)[:, :, None, None].chunk(2, 1)
        h = functional.silu(w.normed(h, f"{name}.norm1") * (scale + 1) + shift)
        h = w.convolved(h, f"{name}.conv1", out)
        x = fit(x)
        x = h + (x if x.shape[1] == out else w.convolved(x, f"{name}.skip", out, 1))
        if not heads:
            return x
        joint = w.convolved(w.normed(x, f"{name}.norm2"), f"{name}.qkv", 3 * out, 1)
        q, k, v = joint.reshape(len(x), heads, out // heads, 3, -1).unbind(3)
        return x + w.convolved(attended(q, k, v).reshape(x.shape), f"{name}.proj", out, 1)

    side, kept = x.shape[-1], []
    for level, width in enumerate(widths):
        here = side >> level
        if level:
            name = f"enc.{here}x{here}_down"
            x = block(x, name, x.shape[1], lambda x: functional.avg_pool2d(x, 2))
        else:
            x = w.convolved(x, f"enc.{here}x{here}_conv", width)
        kept.append(x)
        for layer in range(layers):
            heads = width // heads_of if attends[level] else 0
            x = block(x, f"enc.{here}x{here}_block{layer}", width, None, heads)
            kept.append(x)
    for level in reversed(range(len(widths))):
        here, width = side >> level, widths[level]
        if level == len(widths) - 1:
            x = block(x, f"dec.{here}x{here}_in0", width, None, width // heads_of)
            x = block(x, f"dec.{here}x{here}_in1", width)
        else:
            name = f"dec.{here}x{here}_up"
            x = block(x, name, x.shape[1], lambda x: functional.interpolate(x, scale_factor=2))
        for layer in range(layers + 1):
            heads = width // heads_of if attends[level] else 0
            joined = torch.cat([x, kept.pop()], 1)
            x = block(joined, f"dec.{here}x{here}_block{layer}", width, None, heads)
    return w.convolved(functional.silu(w.normed(x, "out_norm")), "out_conv", 3)
