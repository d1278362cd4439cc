"""Attributes that a method mitigates, and the groups and subgroups that they define."""

import numpy as np
import pandas as pd

from robust_fairness.core.errors import unknown_name
from robust_fairness.methods.base import MethodParameters, Subgroups
from robust_fairness.samples import Groups, Samples, groups_of


def mitigated_attributes(samples: Samples, method: MethodParameters) -> list[pd.Series]:
    """The attributes that a method mitigates, ``[n]`` each."""
    names = method.bias_variables or samples.sensitive
    for name in names:
        if name not in samples.attributes:
            raise unknown_name("attribute", name, samples.attributes.columns)
    return [samples.attributes[name] for name in names]


def mitigated_groups(samples: Samples, method: MethodParameters) -> Groups:
    """Groups of the attributes that a method mitigates.

    A single group if there are none; no row has a group if one of them is continuous.
    """
    mitigated = mitigated_attributes(samples, method)
    if not mitigated:
        return Groups(np.zeros(len(samples), dtype=np.int64), ("everyone",))
    if not all(isinstance(one.dtype, pd.CategoricalDtype) for one in mitigated):
        return Groups(np.full(len(samples), -1, dtype=np.int64), ())
    return groups_of(samples.attributes, [str(one.name) for one in mitigated])


def subgroups_of(
    groups: Groups, samples: Samples, definition: Subgroups = "group_and_class"
) -> np.ndarray:
    """Subgroup of every row, int64 ``[n]``; -1 where the group is missing.

    Only subgroups that occur are numbered, which bounds memory. For a continuous outcome they are
    the groups.
    """
    if not samples.classes or definition == "group":
        return groups.index
    known = groups.index >= 0
    subgroups = np.full(len(samples), -1, dtype=np.int64)
    pairs = groups.index[known] * len(samples.classes) + samples.y[known]
    subgroups[known] = np.unique(pairs, return_inverse=True)[1]
    return subgroups


def groups_are_classes(groups: Groups, samples: Samples) -> bool:
    """Whether groups and classes correspond one to one, over all rows of known group."""
    known = groups.index >= 0
    if not samples.classes or not known.any():
        return False
    group, y = groups.index[known], samples.y[known]
    pairs = len(np.unique(group * len(samples.classes) + y))
    return pairs == len(np.unique(group)) == len(np.unique(y))
