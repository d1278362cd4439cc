"""Latents of single rows, and the geometry of the sphere that subsets of latent space share.

The draw z and the label of a row depend on a seed and on its place in the dataset only.
"""

import math
from dataclasses import dataclass

import numpy as np

from robust_fairness.core.draws import normal_rows, uniform_rows
from robust_fairness.core.errors import InputError

LOWEST_DIMENSION = 2  # a sphere of dimension 1 is two points
# Streams of a seed beside that of z. Numbers from 1 on: [seed, 0] is the stream of the seed itself.
LABELS, TARGETS = 1, 2
# A great circle through two points is not defined where they are opposite; nearer than this
# (radians), rounding in double precision would show in single precision.
OPPOSITE = 1e-8


@dataclass(frozen=True)
class Targets:
    """The two directions that the subsets of a family share.

    Attributes:
        first: t1, a unit vector, float64 ``[d]``.
        second: t2, a unit vector, float64 ``[d]``, as drawn.
    """

    first: np.ndarray
    second: np.ndarray

    @property
    def orthogonal_second(self) -> np.ndarray:
        """The unit vector in the plane of both, at a right angle to t1, nearest t2; ``[d]``."""
        return directions(self.second - (self.second @ self.first) * self.first)


def check_dimension(dimension: int) -> None:
    """Raise an error for latents of a dimension without angles."""
    if dimension < LOWEST_DIMENSION:
        raise InputError(
            f"latents of dimension {dimension}: a sphere of it has no angles, "
            f"allowed: {LOWEST_DIMENSION} and more"
        )


def draws(seed: int, places: np.ndarray, dimension: int) -> np.ndarray:
    """The draws z of N(0, I) of the rows at some places, float32 ``[n, dimension]``."""
    check_dimension(dimension)
    return normal_rows(seed, places, (dimension,))


def labels(seed: int, places: np.ndarray, classes: int) -> np.ndarray:
    """Labels of the rows at some places, uniform on 0 to ``classes - 1``, int64 ``[n]``."""
    chance = uniform_rows([seed, LABELS], places, (1,))[:, 0]
    return (chance.astype(np.float64) * classes).astype(np.int64)


def targets(seed: int, dimension: int) -> Targets:
    """The directions of two draws of N(0, I) of a seed (Control+Shift, appendix A).

    Their stream is none of those of z, so that no row of a family of the same seed is a target.
    """
    check_dimension(dimension)
    stream = np.random.Generator(np.random.PCG64([seed, TARGETS]))
    # Rounded, so that the last bit of a machine's logarithm does not show.
    first, second = directions(stream.standard_normal((2, dimension)).astype(np.float32))
    return Targets(first, second)


def directions(vectors: np.ndarray) -> np.ndarray:
    """Vectors ``[..., d]`` divided by their norms, float64; rows do not affect one another."""
    exact = np.ascontiguousarray(vectors, dtype=np.float64)
    norms = np.sqrt((exact * exact).sum(axis=-1, keepdims=True))
    if not (np.isfinite(norms) & (norms > 0)).all():
        raise InputError("latents: one is zero or not finite, allowed: vectors with a direction")
    return exact / norms


def on_sphere(units: np.ndarray) -> np.ndarray:
    """Unit vectors ``[n, d]`` on the sphere of radius sqrt(d), float32.

    Draws of N(0, I) are near it in high dimension.
    """
    return (math.sqrt(units.shape[-1]) * units).astype(np.float32)


def angles(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Angles between vectors ``[..., d]`` in degrees, float64 ``[...]``."""
    return np.asarray(np.degrees(_angles(directions(first), directions(second))))


def _angles(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Angles between unit vectors in radians, exact near 0 and pi, where the arc cosine is not.

    Source: W. Kahan, "How Futile are Mindless Assessments of Roundoff" (2006), section 12.
    """
    apart, together = first - second, first + second
    half = np.arctan2(
        np.sqrt((apart * apart).sum(axis=-1)), np.sqrt((together * together).sum(axis=-1))
    )
    return np.asarray(2 * half)


def slerp(start: np.ndarray, end: np.ndarray, share: float) -> np.ndarray:
    r"""Points on the great circles from some directions to others (Control+Shift, Eq. 6).

    .. math::
        \Omega = \arccos(a^T b), \quad \text{slerp}(a, b; \tau)
        = \frac{\sin((1 - \tau) \Omega)}{\sin \Omega} a + \frac{\sin(\tau \Omega)}{\sin \Omega} b

    Both are normalised first, as in the paper. For equal directions the result is that direction,
    the limit; opposite directions are an error.

    Args:
        start: a, ``[n, d]`` or ``[d]``.
        end: b, ``[n, d]`` or ``[d]``.
        share: :math:`\tau`, between 0 and 1.

    Returns:
        Unit vectors, float64 ``[n, d]``, or ``[d]`` for two vectors.
    """
    if not 0 <= share <= 1:
        raise InputError(f"slerp: share {share} of the way, allowed: 0 to 1")
    start, end = directions(start), directions(end)
    angle = _angles(start, end)
    if (math.pi - angle < OPPOSITE).any():
        raise InputError("slerp: two directions are opposite, which no single great circle joins")
    sine = np.sin(angle)
    same = sine == 0
    sine = np.where(same, 1, sine)
    of_start = np.where(same, 1 - share, np.sin((1 - share) * angle) / sine)
    of_end = np.where(same, share, np.sin(share * angle) / sine)
    return of_start[..., None] * start + of_end[..., None] * end
