"""Samples, their groups and splits: the only thing that travels between the packages."""

from robust_fairness.numbers.groups import (
    Groups,
    groups_of,
    intersection,
    numbers_of,
    require_categorical,
    shown,
    values_of,
    width_of,
)
from robust_fairness.samples.samples import OOD_PARTS, PARTS, REQUIRED_PARTS, Arrays, Samples

__all__ = [
    "OOD_PARTS",
    "PARTS",
    "REQUIRED_PARTS",
    "Arrays",
    "Groups",
    "Samples",
    "groups_of",
    "intersection",
    "numbers_of",
    "require_categorical",
    "shown",
    "values_of",
    "width_of",
]
