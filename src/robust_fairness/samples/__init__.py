"""Samples, their groups and splits: the only thing that travels between the packages."""

from robust_fairness.samples.samples import (
    OF_SPLIT,
    PARTS,
    REQUIRED_PARTS,
    Arrays,
    Groups,
    Samples,
    groups_of,
    numbers_of,
    require_categorical,
    values_of,
    width_of,
)

__all__ = [
    "OF_SPLIT",
    "PARTS",
    "REQUIRED_PARTS",
    "Arrays",
    "Groups",
    "Samples",
    "groups_of",
    "numbers_of",
    "require_categorical",
    "values_of",
    "width_of",
]
