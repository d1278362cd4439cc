"""The contract of shifts: of samples, of the images among them, and of latent space."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from pydantic import BaseModel

from robust_fairness.bench.generation.latents import Targets
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import Plugin, PluginParameters
from robust_fairness.core.samples import Samples

BRIGHTEST = 255
VALUES_PER_BLOCK = 2**22  # pixel values that are changed together, so that memory is bounded
IMAGE_AXES = 4  # row, channel, height, width
RIGHT_ANGLE = 90.0  # degrees


class Severities(NamedTuple):
    """The severities that are allowed, and what they are."""

    unit: str
    low: float = 0
    high: float = math.inf


class Shift(Plugin, ABC):
    """A distribution shift with a severity.

    Attributes:
        applies_to: the kinds of data (see ``datasets.base.Dataset``) that it can be applied to.
        latent: whether it is a subset of latent space (``LatentShift``).
        severities: the allowed severities, for ``check``.
    """

    applies_to: ClassVar[tuple[str, ...]]
    latent: ClassVar[bool] = False
    severities: ClassVar[Severities] = Severities("a number", -math.inf)
    Parameters: ClassVar[type[BaseModel]] = PluginParameters
    parameters: Any

    def __init__(self, parameters: BaseModel | None = None) -> None:
        self.parameters = self.Parameters() if parameters is None else parameters

    def check(self, severity: float) -> None:
        """Raise an error if a severity is not allowed; called when the configuration is read."""
        unit, low, high = self.severities
        if not (math.isfinite(severity) and low <= severity <= high):
            allowed = f"to {high:g}" if math.isfinite(high) else "and larger finite numbers"
            raise InputError(f"{self.name} severity {severity}: {unit}, allowed: {low:g} {allowed}")


class SampleShift(Shift):
    """A shift of the inputs of samples, or of which of them are test rows."""

    def apply(self, samples: Samples, severity: float, places: np.ndarray | None = None) -> Samples:
        """The shifted samples.

        Args:
            samples: rows of a dataset.
            severity: severity in the shift's own unit.
            places: row numbers of the samples in the whole dataset, int64 ``[n]``; 0, 1, ... by
                default. Random numbers of a row depend on the seed and on its place alone.
        """
        self.check(severity)
        if places is None:
            places = np.arange(len(samples))
        return self.shifted(samples, severity, places)

    @abstractmethod
    def shifted(self, samples: Samples, severity: float, places: np.ndarray) -> Samples:
        """The shifted samples; arguments as of ``apply``, checked."""


class ImageShift(SampleShift):
    """A shift of the pixels of images, block by block.

    Attributes:
        LEVELS: severities of the published levels 1 to 5, by side of the images: of ImageNet-C
            (224), of its 64 x 64 version and of CIFAR-10-C (32).
    """

    applies_to: ClassVar[tuple[str, ...]] = ("image", "generated")
    LEVELS: ClassVar[Mapping[int, tuple[float, ...]]] = {}

    def shifted(self, samples: Samples, severity: float, places: np.ndarray) -> Samples:
        if not are_images(samples):
            raise not_applicable(self.name, samples, "uint8 (n, c, h, w)")
        images = np.asarray(samples.x)
        shifted = np.empty_like(images)
        rows_per_block = max(1, VALUES_PER_BLOCK // max(1, prod(images.shape[1:])))
        for start in range(0, len(images), rows_per_block):
            rows = slice(start, start + rows_per_block)
            shifted[rows] = self.shifted_images(images[rows], severity, places[rows])
        return replace(samples, x=shifted)

    @abstractmethod
    def shifted_images(self, images: np.ndarray, severity: float, places: np.ndarray) -> np.ndarray:
        """Shifted images, each of which depends on the image in its row and its place alone.

        Args:
            images: uint8 ``[n, c, h, w]``, some rows of the dataset.
            severity: severity of the shift.
            places: row numbers of the images in the whole dataset, int64 ``[n]``.

        Returns:
            uint8 ``[n, c, h, w]``.
        """


class LatentShift(Shift):
    """A subset of a generator's latent space, from which generated images are made."""

    applies_to = ("generated",)
    latent = True

    @abstractmethod
    def subset(self, z: np.ndarray, severity: float, targets: Targets) -> np.ndarray:
        """Points of the subset, one for each draw.

        Args:
            z: draws of N(0, I), float32 ``[n, d]``.
            severity: severity of the shift.
            targets: the directions t1 and t2 of the study.

        Returns:
            float32 ``[n, d]``.
        """


def are_images(samples: Samples) -> bool:
    """Whether ``x`` holds uint8 images ``[n, c, h, w]``."""
    x = samples.x
    return isinstance(x, np.ndarray) and x.dtype == np.uint8 and x.ndim == IMAGE_AXES


def not_applicable(shift: str, samples: Samples, allowed: str) -> InputError:
    """An error for samples that a shift cannot be applied to."""
    kinds = ", ".join(f"{array.dtype} {array.shape}" for array in samples.arrays.values())
    return InputError(f"{shift} is not applicable to x of {kinds}, allowed: {allowed}")
