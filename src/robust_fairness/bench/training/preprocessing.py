"""Preprocessing of inputs, fitted on each replica's training rows, and attributes of methods.

Attributes that a method mitigates define groups and subgroups, or are numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from robust_fairness.bench.experiment.experiment import Protocol
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


BRIGHTEST = 255  # of a pixel
SMALLEST_EIGENVALUE = 1e-6  # of the largest; directions below it are constant but for rounding


class Preprocessing(nn.Module):
    """Affine maps of a stack of replicas: of the features, and of a continuous outcome.

    Buffers: ``centre`` ``[replica, d]``; ``matrix`` ``[replica, d]`` (each feature on its own)
    or ``[replica, d, d]``; ``outcome`` ``[replica, 2]``: mean and standard deviation of y;
    ``fill`` ``[replica, d]``: what replaces a missing feature, None where none is missing. For
    images d is 1: all pixels have the same map.

    Args:
        fitted: the buffers of every replica, without the replica axis, see ``fit``.
    """

    centre: Tensor
    matrix: Tensor
    outcome: Tensor
    fill: Tensor | None

    def __init__(self, fitted: Sequence[Mapping[str, np.ndarray]]) -> None:
        super().__init__()
        for name in ("centre", "matrix", "outcome"):
            self.register_buffer(name, torch.from_numpy(np.stack([fit[name] for fit in fitted])))
        fills = [fit["fill"] for fit in fitted if "fill" in fit]
        self.register_buffer("fill", torch.from_numpy(np.stack(fills)) if fills else None)

    def forward(self, x: Tensor) -> Tensor:
        """Map raw ``[replica, row, d]``, or images, to network inputs of the same shape.

        Rows fitted without features are not changed.
        """
        if not self.centre.numel():
            return x
        leading = (len(self.centre), *[1] * (x.ndim - 2), -1)
        if self.fill is not None:
            x = torch.where(x.isnan(), self.fill.view(leading), x)
        centred = x - self.centre.view(leading)
        if self.matrix.ndim == 2:
            return centred * self.matrix.view(leading)
        return centred @ self.matrix

    def standardise_outcome(self, y: Tensor) -> Tensor:
        """Outcomes ``[replica, row]`` in standard deviations from the mean; classes as they are."""
        if not y.is_floating_point():
            return y
        mean, deviation = self.outcome.unsqueeze(1).unbind(-1)
        return (y.to(mean.dtype) - mean) / deviation

    def restore_outcome(self, outputs: Tensor) -> Tensor:
        """Predicted outcomes ``[replica, row, 1]`` back in their own units."""
        mean, deviation = self.outcome[:, None, None].unbind(-1)
        return outputs * deviation + mean


def fit_split(protocol: Protocol, samples: Samples, split: str) -> dict[str, np.ndarray]:
    """float64 buffers of ``Preprocessing`` fitted on the training rows of a split."""
    # questions are not changed
    x = np.empty((len(samples), 0)) if samples.questions else samples.arrays["x"]
    rows = samples.rows(split, "train")
    return fit(
        protocol,
        x[rows],
        samples.y[rows],
        incomplete=x.dtype.kind == "f" and bool(np.isnan(x).any()),
        sensitive=sensitive_features(samples) if protocol.remove_correlation else (),
    )


def fit(
    protocol: Protocol,
    x: np.ndarray,
    y: np.ndarray,
    *,
    incomplete: bool = False,
    sensitive: Sequence[int] = (),
) -> dict[str, np.ndarray]:
    """float64 buffers of ``Preprocessing`` fitted on one replica's training rows.

    ``x`` are float32 features ``[n, d]``, or uint8 images, which are scaled to [0, 1] whatever the
    protocol; d is 0 for questions, which are not changed. ``y`` are classes or float32 outcomes.
    ``incomplete``: whether features of the dataset, in any of its rows, may be missing (NaN). A
    feature without a value in the training rows is 0 in all rows. ``sensitive`` are the positions
    of features of sensitive attributes.
    """
    outcome = np.array([0.0, 1.0])
    if y.dtype.kind == "f":
        deviation = y.std(dtype=np.float64)
        outcome = np.array([y.mean(dtype=np.float64), deviation if deviation > 0 else 1.0])
    if x.dtype == np.uint8:
        return {"centre": np.zeros(1), "matrix": np.full(1, 1 / BRIGHTEST), "outcome": outcome}
    x = x.astype(np.float64)
    unused = np.zeros(x.shape[1], dtype=bool)
    fitted = {"outcome": outcome}
    if incomplete:
        unused = np.isnan(x).all(0)
        keeps_missing = protocol.imputation == "none"
        filled = imputed(x, "mean" if keeps_missing else protocol.imputation)
        x = np.where(np.isnan(x), filled, x)
        if not keeps_missing:
            fitted["fill"] = filled
    if protocol.constant_features == "drop":
        unused |= (x == x[:1]).all(0)
    centre, matrix = WHITENING[protocol.preprocessing if x.shape[1] else "none"](x)
    matrix[unused] = 0
    if protocol.remove_correlation:
        columns = list(sensitive)
        centre[columns] = x[:, columns].mean(0)
        matrix = uncorrelated(x - centre, matrix, columns, protocol.remove_correlation)
    return {"centre": centre, "matrix": matrix, **fitted}


def uncorrelated(
    x: np.ndarray, matrix: np.ndarray, sensitive: list[int], alpha: float
) -> np.ndarray:
    """The map of ``CorrelationRemover`` after that of ``matrix``, float64 ``[d, d]``.

    Of every feature the linear prediction by the sensitive ones is subtracted, ``alpha`` times;
    sensitive features, which are centred in ``x`` ``[n, d]``, become 0.
    """
    square = np.diag(matrix) if matrix.ndim == 1 else matrix.copy()
    square[sensitive] = 0
    slopes = np.linalg.lstsq(x[:, sensitive], x @ square, rcond=None)[0]
    square[sensitive] = -alpha * slopes
    return square


def imputed(x: np.ndarray, strategy: str) -> np.ndarray:
    """What replaces missing values of each feature, float64 ``[d]``; 0 where all are missing."""
    from sklearn.impute import SimpleImputer

    return SimpleImputer(strategy=strategy, keep_empty_features=True).fit(x).statistics_


def none(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features as they are."""
    return np.zeros(x.shape[1]), np.ones(x.shape[1])


def standardise(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean 0 and standard deviation 1 of each feature; a constant one is only centred."""
    deviation = x.std(0)
    return x.mean(0), 1 / np.where(deviation > 0, deviation, 1.0)


def pca(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal axes scaled to standard deviation 1; axes without variance give 0."""
    centre, axes, scale = _principal_axes(x)
    return centre, axes * scale


def zca(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """PCA whitening turned back to the features' own axes."""
    centre, axes, scale = _principal_axes(x)
    return centre, (axes * scale) @ axes.T


WHITENING: dict[str, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "none": none,
    "standardise": standardise,
    "pca": pca,
    "zca": zca,
}


def _principal_axes(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    centre = x.mean(0)
    variances, axes = np.linalg.eigh(np.cov(x - centre, rowvar=False, bias=True))
    kept = variances > SMALLEST_EIGENVALUE * variances.max()
    scale = np.where(kept, 1 / np.sqrt(np.where(kept, variances, 1)), 0)
    return centre, axes, scale
