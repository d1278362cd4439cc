"""Published networks of the ADM architecture, under the names that diffusers gives their weights.

Architecture: Dhariwal and Nichol, "Diffusion Models Beat GANs on Image Synthesis" (2021); as a
denoiser of EDM: Karras et al. (2022), Table 7, column "ADM". Two forms are known: plain state
dictionaries (OpenAI's consistency models) and NVlabs' stored modules. They are the same network
except for names, the order of queries, keys and values, and how the class enters.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch
from torch import Tensor

from robust_fairness.core.errors import InputError

GROUPS = 32
LEAST_WIDTH = 128  # below, NVlabs' normalisation has fewer groups than 32
# Names of weights in residual blocks, in attention blocks (except queries, keys and values) and
# outside of blocks ("ends"): those of diffusers and of both forms.
NAMES = pd.read_csv(Path(__file__).with_name("published.csv"))

Weights = Mapping[str, Tensor]
Form = Literal["openai", "nvlabs"]
Settings = dict[str, Any]  # fields of ``unet.UNetParameters``


def from_openai(
    weights: Weights, size: int, head_width: int, file: str
) -> tuple[Settings, dict[str, Tensor]]:
    """The network of a plain state dictionary, and its weights by their new names.

    Args:
        weights: by the names of OpenAI's consistency models. Guided diffusion has the same names
            and another order of queries, keys and values, which files do not mention.
        size: height and width of an image.
        head_width: channels of a head of the attention.
        file: its name, for errors.
    """
    outputs = 1 + max(
        (int(name.split(".")[1]) for name in _of(weights, "output_blocks")), default=-1
    )
    ups = [
        index
        for index in range(outputs)
        for part in (1, 2)
        if f"output_blocks.{index}.{part}.in_layers.0.weight" in weights
    ]
    levels = len(ups) + 1
    layers, rest = divmod(outputs, levels)
    if rest or layers < 2 or ups != [layers * level - 1 for level in range(1, levels)]:
        raise InputError(
            f"{file}: no network of the ADM architecture, whose levels are residual blocks"
        )
    layers -= 1
    attends = [
        f"input_blocks.{1 + level * (layers + 1)}.1.qkv.weight" in weights
        for level in range(levels)
    ]
    blocks = _blocks(layers, attends, _openai_names(layers, attends))
    converted = _converted(weights, "openai", blocks, head_width, file)
    return _network(converted, layers, attends, size, head_width), converted


def _openai_names(layers: int, attends: list[bool]) -> Iterator[tuple[str, str]]:
    """OpenAI's names of residual blocks and their attention, in the order of the network."""
    levels, blocks = len(attends), layers + 1
    for number in range(1, levels * blocks):
        yield f"input_blocks.{number}.0", f"input_blocks.{number}.1"
    yield "middle_block.0", "middle_block.1"
    yield "middle_block.2", ""
    for up, attending in enumerate(reversed(attends)):
        for number in range(up * blocks, (up + 1) * blocks):
            yield f"output_blocks.{number}.0", f"output_blocks.{number}.1"
        if up + 1 < levels:
            yield f"output_blocks.{number}.{2 if attending else 1}", ""


def from_nvlabs(
    weights: Weights, size: int, head_width: int, file: str
) -> tuple[Settings, dict[str, Tensor]]:
    """The network of NVlabs' stored modules, and its weights by their new names."""
    sides = sorted(
        {int(name.split(".")[1].split("x")[0]) for name in _of(weights, "enc") if "_block" in name},
        reverse=True,
    )
    first = f"enc.{sides[0]}x{sides[0]}" if sides else ""
    layers = len({name.split(".")[1] for name in weights if name.startswith(f"{first}_block")})
    if not sides or sides != [sides[0] >> level for level in range(len(sides))]:
        raise InputError(f"{file}: no network of the ADM architecture: levels of {sides} pixels")
    attends = [f"enc.{side}x{side}_block0.qkv.weight" in weights for side in sides]
    names = ((name, name) for name in _nvlabs_names(sides, layers))
    blocks = _blocks(layers, attends, names)
    known = {name: tensor for name, tensor in weights.items() if not _is_filter(name, tensor)}
    # labels of augmentation are zero when images are made
    known.pop("map_augment.weight", None)
    for part in ("weight", "bias"):
        known[f"conv_in.{part}"] = _taken(known, f"{first}_conv.{part}", file)
    known["map_label.weight"] = _taken(known, "map_label.weight", file).T.contiguous()
    converted = _converted(known, "nvlabs", blocks, head_width, file)
    network = _network(converted, layers, attends, size, head_width)
    widths = network["channels"]
    if min(widths) < LEAST_WIDTH:
        raise InputError(
            f"{file}: levels of {tuple(widths)} channels, allowed: {LEAST_WIDTH} or more"
        )
    return network, converted


def _nvlabs_names(sides: list[int], layers: int) -> Iterator[str]:
    """NVlabs' names of blocks, which have their attention, in the order of the network."""
    levels = [f"{side}x{side}" for side in sides]
    for level in levels:
        if level != levels[0]:
            yield f"enc.{level}_down"
        yield from (f"enc.{level}_block{layer}" for layer in range(layers))
    yield from (f"dec.{levels[-1]}_in0", f"dec.{levels[-1]}_in1")
    for level in reversed(levels):
        if level != levels[-1]:
            yield f"dec.{level}_up"
        yield from (f"dec.{level}_block{layer}" for layer in range(layers + 1))


def _blocks(
    layers: int, attends: list[bool], names: Iterator[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    """Diffusers' name of every block, and its other name.

    ``names`` are those of residual blocks and the attention after them, in the network's order.
    """

    def both(part: str, layer: int, attending: bool) -> Iterator[tuple[str, str]]:
        block, attention = next(names)
        yield f"{part}.resnets.{layer}", block
        if attending:
            yield f"{part}.attentions.{layer}", attention

    for level, attending in enumerate(attends):
        for layer in range(layers):
            yield from both(f"down_blocks.{level}", layer, attending)
        if level + 1 < len(attends):
            yield f"down_blocks.{level}.downsamplers.0", next(names)[0]
    yield from both("mid_block", 0, True)
    yield from both("mid_block", 1, False)
    for up, attending in enumerate(reversed(attends)):
        for layer in range(layers + 1):
            yield from both(f"up_blocks.{up}", layer, attending)
        if up + 1 < len(attends):
            yield f"up_blocks.{up}.upsamplers.0", next(names)[0]


def _of(weights: Weights, part: str) -> list[str]:
    """Names of weights below one part, of the form ``part.number.``."""
    names = [name for name in weights if name.startswith(f"{part}.") and name.count(".") > 1]
    return [name for name in names if name.split(".")[1].split("x")[0].isdigit()]


def _is_filter(name: str, tensor: Tensor) -> bool:
    """Whether a tensor is the mean of 2 x 2 pixels, by which NVlabs' blocks halve and double."""
    return name.endswith(".resample_filter") and torch.equal(tensor, torch.full((1, 1, 2, 2), 0.25))


def _taken(left: dict[str, Tensor], name: str, file: str) -> Tensor:
    """A weight, which is then no longer left."""
    if name not in left:
        raise InputError(f"{file}: no weight {name}, allowed: a class-conditional ADM network")
    return left.pop(name)


def _converted(
    weights: Weights,
    form: Form,
    blocks: Iterable[tuple[str, str]],
    head_width: int,
    file: str,
) -> dict[str, Tensor]:
    """All weights under their new names; each is used once and none is left over."""
    left, result = dict(weights), {}
    names = {
        part: dict(zip(rows["diffusers"], rows[form], strict=True))
        for part, rows in NAMES.groupby("part")
    }
    for target, source in names["ends"].items():
        for part in ("weight",) if target == "class_embedding" else ("weight", "bias"):
            result[f"{target}.{part}"] = _taken(left, f"{source}.{part}", file)
    for target, source in blocks:
        attention = ".attentions." in target
        for new, old in names["attention" if attention else "block"].items():
            if new == "conv_shortcut" and f"{source}.{old}.weight" not in left:
                continue
            for part in ("weight", "bias"):
                result[f"{target}.{new}.{part}"] = _taken(left, f"{source}.{old}.{part}", file)
        if attention:
            result |= _attention(target, source, left, form, head_width, file)
            matrix = result[f"{target}.to_out.0.weight"]
            result[f"{target}.to_out.0.weight"] = matrix.flatten(1)
    if left:
        raise InputError(f"{file}: weight {min(left)} is unknown, allowed: an ADM network")
    return result


def _network(
    weights: Weights, layers: int, attends: list[bool], size: int, head_width: int
) -> Settings:
    """Settings of the network that has some weights, which have their new names."""
    widths = [
        len(weights[f"down_blocks.{level}.resnets.0.conv2.weight"]) for level in range(len(attends))
    ]
    entering = len(weights["down_blocks.0.resnets.0.time_emb_proj.weight"])
    return {
        "channels": widths,
        "layers": layers,
        "attention": [size >> level for level, attending in enumerate(attends) if attending],
        "middle_attention": True,
        "head_width": head_width,
        "groups": GROUPS,
        "dropout": 0.0,
        "conditioning": "scale_shift" if entering == 2 * widths[0] else "default",
        "resampling": "resnet",
        "frequency_shift": 0,
        "cosine_first": True,
    }


def _attention(
    target: str, source: str, left: dict[str, Tensor], form: Form, head_width: int, file: str
) -> dict[str, Tensor]:
    """Queries, keys and values, separated: weights ``[channels, channels]``, biases."""
    result = {}
    for part in ("weight", "bias"):
        joint = _taken(left, f"{source}.qkv.{part}", file).flatten(1 if part == "weight" else 0)
        if len(joint) % (3 * head_width):
            raise InputError(
                f"{file}: {source}.qkv has {len(joint)} rows, "
                f"allowed: multiples of 3 heads of {head_width} channels"
            )
        by_role = joint.unflatten(0, (-1, 3)).unbind(1) if form == "nvlabs" else joint.chunk(3)
        for role, tensor in zip("qkv", by_role, strict=True):
            result[f"{target}.to_{role}.{part}"] = tensor.contiguous()
    return result
