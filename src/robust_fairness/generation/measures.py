"""Measures of the latents of a shift, as tables: angles, norms and Eq. 2 of Control+Shift."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel

from robust_fairness.core.draws import uniform_rows
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find
from robust_fairness.core.tables import table
from robust_fairness.generation import latents
from robust_fairness.generation.families import Family
from robust_fairness.generation.supports import Support, intensity, norms

ANGLES = {
    "shift": "str", "dimension": "int64", "severity": "float64", "quantity": "str",
    "mean": "float64", "deviation": "float64", "n": "int64",
}  # fmt: skip
INTENSITIES = {
    "shift": "str", "dimension": "int64", "training_severity": "float64", "severity": "float64",
    "measure": "str", "value": "float64", "error": "float64", "n": "int64",
}  # fmt: skip
MEASURES: tuple[Literal["volume", "mass"], ...] = ("volume", "mass")
CHANCES = 3  # stream of a seed, beside those of labels and targets


def angle_table(
    shift: str,
    parameters: BaseModel,
    severities: Sequence[float],
    dimension: int,
    rows: int,
    seed: int = 0,
) -> pd.DataFrame:
    """Angles of a shift's latents to the targets, and their norms, at every severity.

    Returns:
        A frame of ``ANGLES``: mean and standard deviation over rows of the angle to t1 and to t2
        and of the angle between any two latents of neighbouring rows, all in degrees, and of the
        norm in units of sqrt(d).
    """
    if rows <= 1:
        raise InputError(f"angle_table: {rows} rows, allowed: 2 or more")
    z = latents.draws(seed, np.arange(rows), dimension)
    targets = latents.targets(seed, dimension)
    found = []
    for severity in severities:
        moved = Family(shift, severity, parameters, seed, seed).moved(z)
        quantities = {
            "angle to t1": latents.angles(moved, targets.first),
            "angle to t2": latents.angles(moved, targets.second),
            "angle between two": latents.angles(moved[1:], moved[:-1]),
            "norm": norms(moved) / np.sqrt(dimension),
        }
        for quantity, values in quantities.items():
            found.append(
                {
                    "shift": shift, "dimension": dimension, "severity": severity,
                    "quantity": quantity, "mean": values.mean(),
                    "deviation": values.std(ddof=1), "n": len(values),
                }
            )  # fmt: skip
    return table(ANGLES, found)


def intensity_table(
    shift: str,
    parameters: BaseModel,
    training_severity: float,
    severities: Sequence[float],
    dimension: int,
    rows: int,
    seed: int = 0,
) -> pd.DataFrame:
    """Eq. 2 between a shift's training set and each of its shifted sets, by Monte Carlo.

    The supports are estimated from ``rows`` draws, the shares from as many others.

    Returns:
        A frame of ``INTENSITIES``, for each severity by volume and by mass (see
        ``supports.intensity``).
    """
    if rows <= 0:
        raise InputError(f"intensity_table: {rows} rows, allowed: 1 or more")
    z = latents.draws(seed, np.arange(2 * rows), dimension)
    chance = uniform_rows([seed, CHANCES], np.arange(rows), (1,))[:, 0].astype(np.float64)
    targets = latents.targets(seed, dimension)

    def family(severity: float) -> Family:
        return Family(shift, severity, parameters, seed, seed)

    def support(severity: float) -> Support:
        moved = family(severity).moved(z[:rows])
        found: Support = find("shift", shift)(parameters).support(moved, severity, targets)
        return found

    training = support(training_severity)
    found = []
    for severity in severities:
        shifted, moved = support(severity), family(severity).moved(z[rows:])
        for measure in MEASURES:
            estimate = intensity(training, shifted, moved, chance, measure)
            found.append(
                {
                    "shift": shift, "dimension": dimension, "severity": severity,
                    "training_severity": training_severity, "measure": measure,
                    "value": estimate.value, "error": estimate.error, "n": estimate.n,
                }
            )  # fmt: skip
    return table(INTENSITIES, found)
