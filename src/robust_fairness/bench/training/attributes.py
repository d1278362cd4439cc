"""Attributes that a method mitigates: the groups and subgroups that they define, and numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from robust_fairness.bench.methods.base import MethodParameters, Subgroups
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.samples import Samples
from robust_fairness.numbers.groups import Groups, groups_of, numbers_of


def mitigated_attributes(samples: Samples, method: MethodParameters) -> list[pd.Series]:
    """The attributes that a method mitigates, ``[n]`` each."""
    names = method.bias_variables or samples.sensitive
    for name in names:
        if name not in samples.attributes:
            raise unknown_name("attribute", name, samples.attributes.columns)
    return [samples.attributes[name] for name in names]


def sensitive_features(samples: Samples) -> list[int]:
    """Positions of the features that were made of the columns of sensitive attributes."""
    columns = samples.columns or samples.features
    for name in samples.sensitive:
        if name not in columns:
            raise InputError(
                f"remove_correlation: attribute {name} is no column of the features, allowed: "
                "sensitive attributes that are"
            )
    if not samples.sensitive:
        raise InputError("remove_correlation: the dataset has no sensitive attributes")
    return [place for place, name in enumerate(columns) if name in samples.sensitive]


def mitigated_groups(samples: Samples, method: MethodParameters) -> Groups:
    """Groups of the attributes that a method mitigates.

    A single group if there are none; no row has a group if one of them is continuous.
    """
    mitigated = mitigated_attributes(samples, method)
    if not mitigated:
        return Groups.named(np.zeros(len(samples), dtype=np.int64), ["everyone"])
    if not all(isinstance(item.dtype, pd.CategoricalDtype) for item in mitigated):
        return Groups(np.full(len(samples), -1, dtype=np.int64), ())
    return groups_of(samples.attributes, [str(item.name) for item in mitigated])


def subgroups_of(
    groups: Groups, samples: Samples, definition: Subgroups = "group_and_class"
) -> np.ndarray:
    """Subgroup of every row, int64 ``[n]``; -1 where the group or the domain is missing.

    Only subgroups that occur are numbered, which bounds memory; of the domains those that are
    trained on. For a continuous outcome a group and a class together are the group.
    """
    if definition == "class":
        return samples.y
    if definition == "domain":
        domain = samples.attributes[samples.domain]
        trained = domain[(samples.splits == "train").any(axis=1)].cat.remove_unused_categories()
        return domain.cat.set_categories(trained.cat.categories).cat.codes.to_numpy(np.int64)
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


@dataclass(frozen=True)
class Encoding:
    """Numeric columns of attributes, standardised for every replica.

    Attributes:
        values: unscaled ``[n, column]``: a continuous attribute has one column, a categorical one
            a column of 0 and 1 for each of its categories; NaN where the attribute is missing.
        centre: means of the continuous columns on each replica's training rows
            ``[replica, column]``; 0 for categories.
        scale: their standard deviations; 1 for categories and constant columns.
    """

    values: Tensor
    centre: Tensor
    scale: Tensor

    def of(self, rows: Tensor) -> Tensor:
        """Standardised columns ``[replica, m, column]`` of rows ``[replica, m]``."""
        return (self.values[rows] - self.centre.unsqueeze(1)) / self.scale.unsqueeze(1)


def encode(columns: Sequence[pd.Series], train: Tensor, like: Tensor) -> Encoding:
    """Encode attributes for training rows ``[replica, m]``, with dtype and device of ``like``."""
    blocks = [numbers_of(column) for column in columns]
    empty = np.empty((len(columns[0]) if columns else int(train.max()) + 1, 0))
    values = torch.from_numpy(np.concatenate([empty, *blocks], axis=1)).to(like)
    widths = [block.shape[1] for block in blocks]
    continuous = torch.tensor(np.repeat(widths, widths) == 1, device=like.device)
    seen = values[train]
    known = seen.isfinite().sum(1).clamp(min=1)
    centre = seen.nansum(1) / known
    deviation = ((seen - centre.unsqueeze(1)).square().nansum(1) / known).sqrt()
    units = torch.ones_like(deviation)
    return Encoding(
        values,
        torch.where(continuous, centre, 0 * units),
        torch.where(continuous & (deviation > 0), deviation, units),
    )
