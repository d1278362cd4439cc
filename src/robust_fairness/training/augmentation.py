"""Augmentation of training images: RandAugment, for whole batches on the device.

Source: Cubuk et al., "RandAugment: Practical automated data augmentation with a reduced search
space" (CVPR workshops 2020), with the operations and defaults of ``torchvision.transforms.v2``: of
14 operations two are drawn for every image, with replacement, and applied one after the other at
magnitude 9 of 30; both signs of the nine signed operations are equally likely. Uncovered pixels are
black.

torchvision's own transform draws once per call. Here every image draws its own operations, and the
images of a batch with the same operation are changed together; results equal torchvision's on
single images.
"""

from collections.abc import Callable
from functools import cache
from math import atan, degrees
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from robust_fairness.core.errors import InputError
from robust_fairness.models.base import IMAGE_AXES
from robust_fairness.models.randomness import Randomness
from robust_fairness.samples import Samples
from robust_fairness.training.cropping import crop_and_flip, flip

NONE = "none"
AT_ONCE = 2  # operations per image
MAGNITUDE, MAGNITUDES = 9, 31
CHANNELS = (1, 3)  # accepted by torchvision's operations on colours
BRIGHTEST = 255

# Operations that only move pixels, and the others.
MOVES = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
OTHERS = (
    "brightness", "posterize", "solarize", "identity", "color", "contrast", "sharpness",
    "autocontrast", "equalize",
)  # fmt: skip
OPERATIONS = (*MOVES, *OTHERS)
DIRECTED = (*MOVES, "brightness", "color", "contrast", "sharpness")

# An operation with its direction; those that only move pixels, by one look-up for all, first.
KINDS = tuple(
    (name, direction)
    for name in OPERATIONS
    for direction in ((1, -1) if name in DIRECTED else (1,))
)
MOVING = sum(name in MOVES for name, _ in KINDS)

Images = UInt8[Tensor, "rows channels height width"]
Batches = UInt8[Tensor, "replicas rows channels height width"]


def require_augmentable(name: str, samples: Samples) -> None:
    """Raise unless rows are uint8 images of one or three channels, or nothing is augmented."""
    if name == NONE:
        return
    if isinstance(samples.x, dict):
        told = f"rows are several arrays: {', '.join(samples.x)}"
    else:
        shape = samples.x.shape[1:]
        if samples.x.dtype == np.uint8 and len(shape) == IMAGE_AXES and shape[0] in CHANNELS:
            return
        told = f"rows are {samples.x.dtype} of shape {shape}"
    raise InputError(
        f"augmentation: {name} and {told}, allowed: uint8 images of 1 or 3 channels, or {NONE}"
    )


def named(
    name: str, shape: Any, device: torch.device
) -> Callable[[Tensor, Randomness], Tensor] | None:
    """The augmentation ``name`` of rows of that shape; None for none."""
    if name == NONE:
        return None
    plain = {"crop_and_flip": crop_and_flip, "flip": flip}
    return plain.get(name) or RandAugment(shape[-2], shape[-1], device)


class RandAugment:
    """Changes every image by operations of its own.

    torchvision leaves images of one channel unchanged by ``color``, and treats the channel as the
    brightness in the other operations.
    """

    def __init__(self, height: int, width: int, device: torch.device) -> None:
        self.size = (height, width)
        self.sources = sources_of_places(height, width).to(device)

    def __call__(self, images: Batches, randomness: Randomness) -> Batches:
        """Augmented copies of a batch; ``randomness`` is on the CPU."""
        kinds = drawn_kinds(randomness, images.shape[1])
        return self.changed(images.flatten(0, 1), kinds.flatten(0, 1)).view_as(images)

    def changed(self, images: Images, kinds: Int64[Tensor, "rows operations"]) -> Images:
        """The images after the operations (positions in ``KINDS``, on the CPU), in their order."""
        for kind in kinds.unbind(1):
            order = kind.argsort(stable=True)
            parts = self._in_order(images[order.to(images.device)], kind[order])
            images = torch.cat(parts)[order.argsort().to(images.device)]
        return images

    def _in_order(self, images: Images, kind: Int64[Tensor, " rows"]) -> list[Tensor]:
        counts = kind.bincount(minlength=len(KINDS)).tolist()
        moving = sum(counts[:MOVING])
        to_move, *others = images.split([moving, *counts[MOVING:]])
        parts = [moved(to_move, self.sources[kind[:moving].to(images.device)])]
        for (name, direction), some in zip(KINDS[MOVING:], others, strict=True):
            if len(some):
                parts.append(operation(name, direction, *self.size)(some))
        return parts


def drawn_kinds(randomness: Randomness, rows: int) -> Int64[Tensor, "replicas rows operations"]:
    """Positions in ``KINDS`` drawn for a batch: operations, with a sign that some use."""
    each = torch.tensor(
        [
            KINDS.index((name, direction if name in DIRECTED else 1))
            for name in OPERATIONS
            for direction in (1, -1)
        ]
    )
    return each[randomness.integers((rows, AT_ONCE), len(each))]


def moved(images: Images, sources: Int64[Tensor, "rows places"]) -> Images:
    """Images whose pixels come from other positions, counted from 1; 0 is black."""
    flat = torch.nn.functional.pad(images.flatten(2), (1, 0))
    places = sources[:, None].expand(-1, images.shape[1], -1)
    return flat.gather(2, places).view_as(images)


def sources_of_places(height: int, width: int) -> Int64[Tensor, "kinds places"]:
    """Source of every pixel under the operations that move pixels, from 1; 0 is black."""
    # float32 counts to 2^24, so to an image of 4096 x 4096 pixels
    numbered = torch.arange(1.0, height * width + 1).view(1, 1, height, width)
    kinds = KINDS[:MOVING]
    result = [operation(name, direction, height, width)(numbered) for name, direction in kinds]
    return torch.cat(result).flatten(1).long()


@cache
def operation(name: str, direction: int, height: int, width: int) -> Callable[[Tensor], Tensor]:
    """An operation of torchvision at the magnitude of RandAugment's defaults."""
    from torchvision.transforms.v2 import functional

    def affine(
        image: Tensor, x: float = 0.0, y: float = 0.0, right: int = 0, down: int = 0
    ) -> Tensor:
        """Shear by degrees about the first pixel, or move by pixels."""
        changed: Tensor = functional.affine(
            image, angle=0.0, translate=[right, down], scale=1.0, shear=[x, y],
            center=[0, 0] if x or y else None,
        )  # fmt: skip
        return changed

    def strength(most: float) -> float:
        """The signed magnitude out of ``most``, in the single precision of torchvision."""
        return direction * float(torch.linspace(0, most, MAGNITUDES)[MAGNITUDE])

    slant = degrees(atan(strength(0.3)))
    factor = 1 + strength(0.9)
    operations: dict[str, Callable[[Tensor], Tensor]] = {
        "shear_x": lambda image: affine(image, x=slant),
        "shear_y": lambda image: affine(image, y=slant),
        "translate_x": lambda image: affine(image, right=int(strength(150 / 331 * width))),
        "translate_y": lambda image: affine(image, down=int(strength(150 / 331 * height))),
        "rotate": lambda image: functional.rotate(image, strength(30)),
        "brightness": lambda image: functional.adjust_brightness(image, factor),
        "color": lambda image: functional.adjust_saturation(image, factor),
        "contrast": lambda image: functional.adjust_contrast(image, factor),
        "sharpness": lambda image: functional.adjust_sharpness(image, factor),
        "posterize": lambda image: functional.posterize(image, round(8 - strength(4))),
        "solarize": lambda image: functional.solarize(
            image, BRIGHTEST * float(torch.linspace(1, 0, MAGNITUDES)[MAGNITUDE])
        ),
        "autocontrast": functional.autocontrast,
        "equalize": functional.equalize,
        "identity": lambda image: image,
    }
    return operations[name]
