"""Impulse noise, "salt and pepper", on pixels (Hendrycks and Dietterich 2019)."""

import numpy as np

from robust_fairness.core.draws import uniform_rows
from robust_fairness.core.errors import InputError
from robust_fairness.samples import Samples
from robust_fairness.shifts._pictures import BRIGHTEST, noisy
from robust_fairness.shifts.base import NoiseParameters as Parameters
from robust_fairness.shifts.base import places_of

__all__ = ["Parameters", "apply", "check"]

HALF = np.float32(0.5)


def check(severity: float) -> None:
    """Check that a severity is a share.

    Raises:
        InputError: it is not between 0 and 1.
    """
    if not 0 <= severity <= 1:
        raise InputError(f"impulse_noise severity {severity}: a share of pixels, allowed: 0 to 1")


def apply(
    samples: Samples, severity: float, parameters: Parameters, places: np.ndarray | None = None
) -> Samples:
    """Set pixel values to the darkest or the brightest with a given probability.

    Each channel of each pixel is hit on its own, as the source's code does it. A value that is
    hit at one severity is hit in the same way at every greater one.

    Args:
        samples: samples of uint8 pictures ``[n, c, h, w]``.
        severity: probability p that a value is hit; half of those become 0, half 255.
        parameters: seed of the impulses.
        places: place of every row in the whole dataset, int64 ``[n]``; 0, 1, ... unless given. The
            noise of a row depends on its place, not on the rows that stand beside it.

    Raises:
        InputError: the severity is no share, or ``x`` holds no pictures.

    Source: "Equalized Robustness" (under review, ICLR 2022), 5.1: p = 0.03.
    """
    check(severity)

    def hit(pictures: np.ndarray, at: np.ndarray) -> np.ndarray:
        # one stream each, so that no share depends on how many values are hit
        chance, side = (
            uniform_rows([parameters.seed, stream], at, pictures.shape[1:]) for stream in range(2)
        )
        impulse = np.where(side < HALF, np.uint8(BRIGHTEST), np.uint8(0))
        return np.where(chance < np.float32(severity), impulse, pictures)

    return noisy(samples, places_of(samples, places), hit)
