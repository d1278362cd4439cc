"""Attributes of rows as numbers, for methods that read them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from robust_fairness.samples import numbers_of


@dataclass(frozen=True)
class Encoding:
    """Numeric columns of attributes, standardised for every replica.

    Attributes:
        values: unscaled ``[n, column]``: a continuous attribute has one column, a categorical one
            a column of 0 and 1 for each of its categories; NaN where the attribute is missing.
        centre: means of the continuous columns on each replica's training rows
            ``[replica, column]``; 0 for categories.
        scale: their standard deviations; 1 for categories and constant columns.
        widths: number of columns of every attribute.
    """

    values: Tensor
    centre: Tensor
    scale: Tensor
    widths: tuple[int, ...]

    def of(self, rows: Tensor) -> Tensor:
        """Standardised columns ``[replica, m, column]`` of rows ``[replica, m]``."""
        return (self.values[rows] - self.centre.unsqueeze(1)) / self.scale.unsqueeze(1)


def encode(columns: Sequence[pd.Series], train: Tensor, like: Tensor) -> Encoding:
    """Encode attributes for training rows ``[replica, m]``, with dtype and device of ``like``."""
    blocks = [numbers_of(column) for column in columns]
    empty = np.empty((len(columns[0]) if columns else int(train.max()) + 1, 0))
    values = torch.from_numpy(np.concatenate([empty, *blocks], axis=1)).to(like)
    widths = tuple(block.shape[1] for block in blocks)
    continuous = torch.tensor(np.repeat(widths, widths) == 1, device=like.device)
    seen = values[train]
    known = seen.isfinite().sum(1).clamp(min=1)
    centre = seen.nansum(1) / known
    deviation = ((seen - centre.unsqueeze(1)).square().nansum(1) / known).sqrt()
    one = torch.ones_like(deviation)
    return Encoding(
        values,
        torch.where(continuous, centre, 0 * one),
        torch.where(continuous & (deviation > 0), deviation, one),
        widths,
    )
