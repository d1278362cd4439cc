"""The table of latent shifts in docs/shifts.md: measured angles, norms and Eq. 2 of Control+Shift.

python benchmarks/latent_shifts.py --rows 1000

The paper takes the support of a distribution on the whole space for "the set that contains 99 % of
the mass". There are many; here it is the smallest one, the region of highest density.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from robust_fairness.bench.generation import latents
from robust_fairness.bench.generation.families import Family
from robust_fairness.bench.generation.latents import (
    LOWEST_DIMENSION,
    Targets,
    angles,
    directions,
    on_sphere,
)
from robust_fairness.bench.shifts.base import LatentShift
from robust_fairness.bench.shifts.latent import LatentOverlap
from robust_fairness.core.draws import uniform_rows
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find

MASS = 0.99
# Points of the grid that a density of angles is summed on, and its smallest density relative to
# the largest (natural logarithm).
GRID = 4096
NEGLIGIBLE = 40.0
MEASURES: tuple[Literal["volume", "mass"], ...] = ("volume", "mass")
CHANCES = 3  # stream of a seed, beside those of labels and targets
# shift, options, training severity, severities
SETS = (
    ("extend", {}, 0.0, (0.0, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 45.0, 60.0, 90.0)),
    ("extend", {"form": "as_printed"}, 0.0, (0.0, 5.0, 10.0, 30.0, 60.0, 90.0)),
    ("overlap", {}, 0.0, (0.0, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 45.0, 60.0, 90.0)),
    ("overlap", {"second_target": "as_drawn"}, 0.0, (0.0, 45.0, 90.0)),
    ("truncation", {}, 0.8, (0.8, 0.85, 0.9, 0.95, 1.0, 1.1)),
)


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


Support = Cap | Ball


def support_of(
    shift: LatentShift, latents: np.ndarray, severity: float, targets: Targets
) -> Support:
    """The smallest set that holds 99 % of the mass of a subset of ``latents`` ``[n, d]``.

    A ball for truncation, whose density falls with the norm. For overlap a cap about its axis. For
    extend a cap about t1: every angle to t1 is multiplied by the same factor c, so that the density
    on the sphere, (sin Omega / sin c Omega)^(d - 2), falls with the angle.
    """
    if shift.name == "truncation":
        return Ball(float(np.quantile(norms(latents), MASS)))
    axis = shift.axis(severity, targets) if isinstance(shift, LatentOverlap) else targets.first
    return Cap(axis, float(np.quantile(angles(latents, axis), MASS)))


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


def _draws(seed: int, rows: int, dimension: int) -> np.ndarray:
    if rows <= 1:
        raise InputError(f"{rows} rows, allowed: 2 or more")
    return latents.draws(seed, np.arange(rows), dimension)


def angle_table(
    shift: LatentShift, severities: Sequence[float], dimension: int, rows: int, seed: int = 0
) -> pd.DataFrame:
    """Angles of a shift's latents to the targets, and their norms, one row per severity.

    Returns:
        ``mean`` and ``deviation`` (standard deviation) over rows of the angle to t1 and to t2 and
        of the angle between neighbouring rows, in degrees, and of the norm in units of sqrt(d).
    """
    z, targets = _draws(seed, rows, dimension), latents.targets(seed, dimension)
    table = {}
    for severity in severities:
        moved = Family(shift.name, severity, shift.parameters, seed, seed).moved(z)
        quantities = {
            "angle to t1": angles(moved, targets.first),
            "angle to t2": angles(moved, targets.second),
            "angle between two": angles(moved[1:], moved[:-1]),
            "norm": norms(moved) / np.sqrt(dimension),
        }
        for quantity, values in quantities.items():
            table[severity, quantity] = {"mean": values.mean(), "deviation": values.std(ddof=1)}
    index = pd.MultiIndex.from_tuples(table, names=["severity", "quantity"])
    return pd.DataFrame(table.values(), index=index)


def intensity_table(
    shift: LatentShift,
    training_severity: float,
    severities: Sequence[float],
    dimension: int,
    rows: int,
    seed: int = 0,
) -> pd.DataFrame:
    """Eq. 2 between a shift's training set and each of its shifted sets, by Monte Carlo.

    The supports are estimated from ``rows`` draws, the shares from as many others.

    Returns:
        The value by ``volume`` and by ``mass`` (see ``intensity``), one row per severity.
    """
    z, targets = _draws(seed, 2 * rows, dimension), latents.targets(seed, dimension)
    chance = uniform_rows([seed, CHANCES], np.arange(rows), (1,))[:, 0].astype(np.float64)

    def moved(severity: float) -> np.ndarray:
        return Family(shift.name, severity, shift.parameters, seed, seed).moved(z)

    def support(severity: float) -> Support:
        return support_of(shift, moved(severity)[:rows], severity, targets)

    training = support(training_severity)
    table = {
        severity: {
            measure: intensity(
                training, support(severity), moved(severity)[rows:], chance, measure
            ).value
            for measure in MEASURES
        }
        for severity in severities
    }
    return pd.DataFrame.from_dict(table, orient="index")


def main() -> None:
    """Print one row a severity for each shift and dimension."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[64, 3072])
    options = parser.parse_args()
    for name, chosen, training, severities in SETS:
        plugin = find("shift", name)
        shift = plugin(plugin.Parameters.model_validate(chosen))
        for dimension in options.dimensions:
            measured = angle_table(shift, severities, dimension, options.rows)
            sizes = intensity_table(shift, training, severities, dimension, options.rows)
            print(f"\n{name} {chosen or ''} d = {dimension}, training at {training:g}")
            print(measured.unstack().swaplevel(axis=1).round(2).to_string())
            print(sizes.round(3).to_string())


if __name__ == "__main__":
    main()
