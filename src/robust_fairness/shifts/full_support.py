"""The whole latent space: the training set of which no subset is a shift."""

from typing import Literal

import numpy as np
from pydantic import BaseModel

from robust_fairness.core.errors import InputError
from robust_fairness.generation.latents import Targets, check_dimension, directions, on_sphere
from robust_fairness.shifts.base import LatentShift


class FullSupport(LatentShift):
    """The draws themselves; the only severity is 0.

    Source: Friedman and Chowers, "Control+Shift", 4.2.2 ("from all of the latent space").
    """

    class Parameters(BaseModel, extra="forbid", frozen=True):
        """Parameters of the subset.

        Attributes:
            form: ``normal`` takes the draws as they are, the generator's own prior; ``sphere``
                moves them to the sphere of radius sqrt(d), all of which the caps are subsets of.
        """

        form: Literal["normal", "sphere"] = "normal"

    def check(self, severity: float) -> None:
        if severity != 0:
            raise InputError(f"full_support severity {severity}: there is one set only, allowed: 0")

    def subset(self, z: np.ndarray, severity: float, targets: Targets) -> np.ndarray:
        self.check(severity)
        check_dimension(z.shape[1])
        return z if self.parameters.form == "normal" else on_sphere(directions(z))
