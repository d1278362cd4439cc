"""Families: images of one subset of latent space, each decided by a seed and its place."""

from dataclasses import dataclass

import numpy as np
from pydantic import BaseModel

from robust_fairness.bench.generation import latents
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find


@dataclass(frozen=True)
class Family:
    """Which latents and labels the rows of a generated set have.

    Families that differ in ``shift``, ``severity`` and ``parameters`` only have the same draws z
    and labels at the same places: an image is seen at every severity.

    Attributes:
        shift: name of a latent shift.
        severity: its severity, in the shift's own unit.
        parameters: its parameters.
        seed: seed of the draws z and of the labels.
        target_seed: seed of t1 and t2, which stay the same throughout a study.
    """

    shift: str
    severity: float
    parameters: BaseModel
    seed: int = 0
    target_seed: int = 0

    def __post_init__(self) -> None:
        shift = find("shift", self.shift)
        if not shift.latent:
            raise InputError(
                f"shift {self.shift}: a shift of samples, allowed: a subset of latent space"
            )
        shift(self.parameters).check(self.severity)

    def latents(self, places: np.ndarray, dimension: int) -> np.ndarray:
        """Latents of the rows at some places, int64 ``[n]``, as float32 ``[n, dimension]``."""
        z = latents.draws(self.seed, places, dimension)
        return self.moved(z)

    def moved(self, z: np.ndarray) -> np.ndarray:
        """Latents of given draws of N(0, I), float32 ``[n, d]`` both."""
        targets = latents.targets(self.target_seed, z.shape[1])
        shift = find("shift", self.shift)(self.parameters)
        moved: np.ndarray = shift.subset(z, self.severity, targets)
        return moved

    def labels(self, places: np.ndarray, classes: int) -> np.ndarray:
        """Labels of the rows at some places, int64 ``[n]`` both."""
        return latents.labels(self.seed, places, classes)

    def described(self) -> dict[str, object]:
        """All that decides the latents and labels, as JSON can hold it."""
        return {
            "shift": self.shift,
            "severity": float(self.severity),
            "parameters": self.parameters.model_dump(mode="json"),
            "seed": self.seed,
            "target_seed": self.target_seed,
        }
