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
from math import atan, degrees

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from robust_fairness.bench.models.base import IMAGE_AXES
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.training.cropping import crop_and_flip, flip
from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples

NONE = "none"
AT_ONCE = 2  # operations per image
MAGNITUDE, MAGNITUDES = 9, 31
CHANNELS = (1, 3)  # accepted by torchvision's operations on colours
BRIGHTEST = 255

MOVES = ("shear_x", "shear_y", "translate_x", "translate_y", "rotate")
OTHERS = (
    "brightness", "posterize", "solarize", "identity", "color", "contrast", "sharpness",
    "autocontrast", "equalize",
)  # fmt: skip
OPERATIONS = (*MOVES, *OTHERS)
DIRECTED = (*MOVES, "brightness", "color", "contrast", "sharpness")
# An operation with its direction.
KINDS = tuple(
    (name, direction)
    for name in OPERATIONS
    for direction in ((1, -1) if name in DIRECTED else (1,))
)

Images = UInt8[Tensor, "rows channels height width"]
Batches = UInt8[Tensor, "replicas rows channels height width"]


def require_augmentable(name: str, samples: Samples) -> None:
    """Raise unless rows are uint8 images of one or three channels."""
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


def randaugment(images: Batches, randomness: Randomness) -> Batches:
    """A copy of the batch with every image changed by two operations of its own.

    torchvision leaves images of one channel unchanged by ``color``, and treats the channel as the
    brightness in the other operations. ``randomness`` is on the CPU.
    """
    kinds = drawn_kinds(randomness, images.shape[1])
    return changed(images.flatten(0, 1), kinds.flatten(0, 1)).view_as(images)


# By name, from images and random numbers.
AUGMENTATIONS: dict[str, Callable[[Tensor, Randomness], Tensor]] = {
    "randaugment": randaugment,
    "crop_and_flip": crop_and_flip,
    "flip": flip,
}


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


def changed(images: Images, kinds: Int64[Tensor, "rows operations"]) -> Images:
    """The images after the operations (positions in ``KINDS``, on the CPU), in their order."""
    for kind in kinds.unbind(1):
        before, images = images, images.clone()
        for number in kind.unique().tolist():
            rows = (kind == number).to(images.device)
            images[rows] = operated(before[rows], *KINDS[number])
    return images


def operated(images: Images, name: str, direction: int) -> Images:
    """Images after an operation of torchvision at the magnitude of RandAugment's defaults."""
    from torchvision.transforms.v2 import functional

    def affine(x: float = 0.0, y: float = 0.0, right: int = 0, down: int = 0) -> Tensor:
        """Shear by degrees about the first pixel, or move by pixels."""
        result: Tensor = functional.affine(
            images, angle=0.0, translate=[right, down], scale=1.0, shear=[x, y],
            center=[0, 0] if x or y else None,
        )  # fmt: skip
        return result

    def strength(most: float) -> float:
        """The signed magnitude out of ``most``, in the single precision of torchvision."""
        return direction * float(torch.linspace(0, most, MAGNITUDES)[MAGNITUDE])

    height, width = images.shape[-2:]
    slant, factor = degrees(atan(strength(0.3))), 1 + strength(0.9)
    operations: dict[str, Callable[[], Tensor]] = {
        "shear_x": lambda: affine(x=slant),
        "shear_y": lambda: affine(y=slant),
        "translate_x": lambda: affine(right=int(strength(150 / 331 * width))),
        "translate_y": lambda: affine(down=int(strength(150 / 331 * height))),
        "rotate": lambda: functional.rotate(images, strength(30)),
        "brightness": lambda: functional.adjust_brightness(images, factor),
        "color": lambda: functional.adjust_saturation(images, factor),
        "contrast": lambda: functional.adjust_contrast(images, factor),
        "sharpness": lambda: functional.adjust_sharpness(images, factor),
        "posterize": lambda: functional.posterize(images, round(8 - strength(4))),
        "solarize": lambda: functional.solarize(
            images, BRIGHTEST * float(torch.linspace(1, 0, MAGNITUDES)[MAGNITUDE])
        ),
        "autocontrast": lambda: functional.autocontrast(images),
        "equalize": lambda: functional.equalize(images),
        "identity": lambda: images,
    }
    return operations[name]()
