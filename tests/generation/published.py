"""Networks of published form, made here: their weights, and what they compute, restated."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

Resize = Callable[[Tensor], Tensor]


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


def adm(
    w: Weights,
    x: Tensor,
    emb: Tensor,
    parts: dict[str, str],
    names: Iterator[tuple[str, str]],
    joint: Callable[[Tensor, int], Tensor],
    widths: Sequence[int],
    layers: int,
    attends: Sequence[bool],
    heads_of: int,
) -> Tensor:
    """The network, from the first level on.

    Args:
        w: its weights.
        x: images after the first convolution.
        emb: embedding of time and class, activated.
        parts: names of weights in a block.
        names: names of a residual block and of the attention after it, in the order of their use.
        joint: queries, keys and values ``[3, n, head, width, place]`` of ``[n, channel, y, x]``.
        widths, layers, attends, heads_of: its sizes.
    """

    def block(x: Tensor, name: str, out: int, resize: Resize | None = None) -> Tensor:
        fit = resize or (lambda x: x)
        filtered = ("conv0", "skip") if resize and parts["conv0"] == "conv0" else ()
        for part in filtered:  # NVlabs stores them
            w[f"{name}.{part}.resample_filter"] = torch.full((1, 1, 2, 2), 0.25)
        h = fit(functional.silu(w.normed(x, f"{name}.{parts['norm0']}")))
        h = w.convolved(h, f"{name}.{parts['conv0']}", out)
        entering = w.mapped(emb, f"{name}.{parts['affine']}", 2 * out)
        scale, shift = entering[:, :, None, None].chunk(2, 1)
        h = functional.silu(w.normed(h, f"{name}.{parts['norm1']}") * (1 + scale) + shift)
        h = w.convolved(h, f"{name}.{parts['conv1']}", out)
        x = fit(x)
        skip = f"{name}.{parts['skip']}"
        return h + (x if x.shape[1] == out else w.convolved(x, skip, out, 1))

    def attention(x: Tensor, name: str) -> Tensor:
        width = x.shape[1]
        qkv = w.convolved(w.normed(x, f"{name}.{parts['norm2']}"), f"{name}.qkv", 3 * width, 1)
        seen = attended(*joint(qkv, width // heads_of)).reshape(x.shape)
        return x + w.convolved(seen, f"{name}.{parts['proj']}", width, 1)

    def both(x: Tensor, width: int, attending: bool) -> Tensor:
        name, place = next(names)
        x = block(x, name, width)
        return attention(x, place) if attending else x

    kept = [x]
    for level, width in enumerate(widths):
        for _ in range(layers):
            x = both(x, width, attends[level])
            kept.append(x)
        if level + 1 < len(widths):
            x = block(x, next(names)[0], width, lambda x: functional.avg_pool2d(x, 2))
            kept.append(x)
    x = both(both(x, widths[-1], True), widths[-1], False)
    for level in reversed(range(len(widths))):
        for _ in range(layers + 1):
            x = both(torch.cat([x, kept.pop()], 1), widths[level], attends[level])
        if level:
            grown = partial(functional.interpolate, scale_factor=2)
            x = block(x, next(names)[0], widths[level], grown)
    return x


PARTS = ("norm0", "conv0", "affine", "norm1", "conv1", "skip", "norm2", "proj")


def openai(w: Weights, x: Tensor, time: Tensor, label: Tensor, *, classes: int, **sizes) -> Tensor:
    """The network of OpenAI's consistency models, by its names of weights."""
    widths, layers, attends = sizes["widths"], sizes["layers"], sizes["attends"]
    size = 4 * widths[0]
    emb = functional.silu(w.mapped(waves(time, widths[0]), "time_embed.0", size))
    emb = w.mapped(emb, "time_embed.2", size) + w.of("label_emb.weight", classes, size)[label]

    def names() -> Iterator[tuple[str, str]]:
        for number in range(1, len(widths) * (layers + 1)):
            yield f"input_blocks.{number}.0", f"input_blocks.{number}.1"
        yield "middle_block.0", "middle_block.1"
        yield "middle_block.2", ""
        number = 0
        for level in reversed(range(len(widths))):
            for _ in range(layers + 1):
                block = f"output_blocks.{number}"
                number += 1
                yield f"{block}.0", f"{block}.1"
            if level:
                yield f"{block}.{2 if attends[level] else 1}", ""

    def joint(qkv: Tensor, heads: int) -> Tensor:
        return qkv.reshape(len(qkv), 3, heads, sizes["heads_of"], -1).transpose(0, 1)

    parts = (
        "in_layers.0", "in_layers.2", "emb_layers.1", "out_layers.0", "out_layers.3",
        "skip_connection", "norm", "proj_out",
    )  # fmt: skip
    x = w.convolved(x, "input_blocks.0.0", widths[0])
    named = dict(zip(PARTS, parts, strict=True))
    x = adm(w, x, functional.silu(emb), named, names(), joint, **sizes)
    return w.convolved(functional.silu(w.normed(x, "out.0")), "out.2", 3)


def nvlabs(w: Weights, x: Tensor, time: Tensor, label: Tensor, *, classes: int, **sizes) -> Tensor:
    """NVlabs' module DhariwalUNet, by its names of weights."""
    widths, layers = sizes["widths"], sizes["layers"]
    size = 4 * widths[0]
    emb = functional.silu(w.mapped(waves(time, widths[0]), "map_layer0", size))
    emb = w.mapped(emb, "map_layer1", size)
    one_hot = functional.one_hot(label, classes).float()
    emb = functional.silu(emb + one_hot @ w.of("map_label.weight", size, classes).T)
    sides = [f"{x.shape[-1] >> level}x{x.shape[-1] >> level}" for level in range(len(widths))]

    def names() -> Iterator[str]:
        for level, side in enumerate(sides):
            yield from [f"enc.{side}_down"] if level else []
            yield from (f"enc.{side}_block{layer}" for layer in range(layers))
        yield from (f"dec.{sides[-1]}_in0", f"dec.{sides[-1]}_in1")
        for side in reversed(sides):
            yield from [f"dec.{side}_up"] if side != sides[-1] else []
            yield from (f"dec.{side}_block{layer}" for layer in range(layers + 1))

    def joint(qkv: Tensor, heads: int) -> Tensor:
        return qkv.reshape(len(qkv), heads, sizes["heads_of"], 3, -1).movedim(3, 0)

    x = w.convolved(x, f"enc.{sides[0]}_conv", widths[0])
    named = dict(zip(PARTS, PARTS, strict=True))
    x = adm(w, x, emb, named, ((name, name) for name in names()), joint, **sizes)
    return w.convolved(functional.silu(w.normed(x, "out_norm")), "out_conv", 3)
