"""The sets that hold 99 % of the mass of subsets of latent space, and Eq. 2 of Control+Shift.

The paper takes the support of a distribution on all of space for "the set that contains 99 % of
the mass". There are many; here it is the smallest one, the region of highest density.
"""

import math
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.generation.latents import LOWEST_DIMENSION, angles, directions, on_sphere

MASS = 0.99
# Points of the grid that a density of angles is summed on, and its smallest density relative to
# the largest (natural logarithm).
GRID = 4096
NEGLIGIBLE = 40.0


@runtime_checkable
class Support(Protocol):
    """A region of latent space."""

    def holds(self, latents: np.ndarray) -> np.ndarray:
        """Whether each latent, float32 ``[n, d]``, is in it, bool ``[n]``."""

    def uniform(self, z: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """Points drawn uniformly in it, float32 ``[n, d]``.

        Args:
            z: draws of N(0, I), float32 ``[n, d]``, for the direction from its centre.
            chance: draws of U(0, 1), ``[n]``, for the distance from its centre.
        """


@dataclass(frozen=True)
class Cap:
    """All points of the sphere of radius sqrt(d) within an angle of a direction."""

    axis: np.ndarray
    half_angle: float

    def holds(self, latents: np.ndarray) -> np.ndarray:
        """Whether each latent, ``[n, d]``, lies within the angle, whatever its norm."""
        return angles(latents, self.axis) <= self.half_angle

    def uniform(self, z: np.ndarray, chance: np.ndarray) -> np.ndarray:
        r"""Points uniform on the cap: the density of their angle is :math:`\sin^{d - 2}`."""
        axis = directions(self.axis)
        around = directions(z - (z @ axis)[:, None] * axis)
        angle = self._angles_of(chance, z.shape[1])[:, None]
        return on_sphere(np.cos(angle) * axis + np.sin(angle) * around)

    def _angles_of(self, chance: np.ndarray, dimension: int) -> np.ndarray:
        """Quantiles of the angle to the axis, radians ``[n]``.

        The grid covers the angles whose density is not negligible: in high dimension, those near
        the rim or the equator.
        """
        widest = math.radians(self.half_angle)
        peak = min(widest, math.pi / 2)
        least = math.exp(-NEGLIGIBLE / max(1, dimension - 2)) * math.sin(peak)
        lowest = math.asin(least) if dimension > LOWEST_DIMENSION else 0.0
        grid = np.linspace(lowest, min(widest, math.pi - lowest), GRID)
        logarithm = (
            (dimension - 2) * np.log(np.sin(grid)) if dimension > LOWEST_DIMENSION else 0 * grid
        )
        density = np.exp(logarithm - logarithm.max())
        mass = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
        return np.interp(chance, mass / mass[-1], grid)


@dataclass(frozen=True)
class Ball:
    """All points within a distance of 0."""

    radius: float

    def holds(self, latents: np.ndarray) -> np.ndarray:
        """Whether each latent, ``[n, d]``, lies within the distance."""
        return norms(latents) <= self.radius

    def uniform(self, z: np.ndarray, chance: np.ndarray) -> np.ndarray:
        r"""Points uniform in the ball: their norm is the radius times :math:`u^{1 / d}`."""
        radius = self.radius * chance ** (1 / z.shape[1])
        return (radius[:, None] * directions(z)).astype(np.float32)


def norms(latents: np.ndarray) -> np.ndarray:
    """Norms of latents ``[n, d]``, float64 ``[n]``."""
    exact = latents.astype(np.float64)
    return np.sqrt((exact * exact).sum(axis=1))


def cap_of(latents: np.ndarray, axis: np.ndarray) -> Cap:
    """The cap about a direction, float64 ``[d]``, that holds 99 % of some latents ``[n, d]``."""
    return Cap(axis, float(np.quantile(angles(latents, axis), MASS)))


def ball_of(latents: np.ndarray) -> Ball:
    """The ball that holds 99 % of some latents ``[n, d]``."""
    return Ball(float(np.quantile(norms(latents), MASS)))


@dataclass(frozen=True)
class Intensity:
    """Eq. 2, estimated.

    Attributes:
        value: 0 if the shifted support is in the training support, 1 if they are disjoint.
        error: standard error over the drawn points, for given supports.
        n: number of points.
    """

    value: float
    error: float
    n: int


def intensity(
    training: Support,
    shifted: Support,
    latents: np.ndarray,
    chance: np.ndarray,
    measure: Literal["volume", "mass"] = "volume",
) -> Intensity:
    r"""The share of a shifted support that lies outside of the training support, by Monte Carlo.

    .. math::
        \mathcal I = 1 - \frac{|\text{supp}(p_{train}) \cap \text{supp}(p_{shift})|}
        {|\text{supp}(p_{shift})|}

    Sizes are volumes (of a part of the sphere, or of balls): points are drawn uniformly in the
    shifted support and counted. For distributions that are uniform on their supports, as in the
    paper, shares of mass are the same; latents are not uniform, and ``mass`` differs.

    Args:
        training: support of the training set.
        shifted: support of the shifted set.
        latents: latents of the shifted set, float32 ``[n, d]``.
        chance: draws of U(0, 1), ``[n]``, independent of the latents.
        measure: ``volume``; or ``mass``, which counts the latents in the shifted support.

    Source: Friedman and Chowers, "Control+Shift", Eq. 2.
    """
    points = shifted.uniform(latents, chance) if measure == "volume" else latents
    if measure == "mass":
        points = points[shifted.holds(points)]
    if not len(points):
        raise InputError("intensity: no latent is in the shifted support")
    value = 1 - float(training.holds(points).mean())
    return Intensity(value, math.sqrt(value * (1 - value) / len(points)), len(points))
