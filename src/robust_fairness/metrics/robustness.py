"""Equalized Robustness: the distance between the groups' distributions of loss curvature."""

from collections.abc import Sequence

import numpy as np
import torch

from robust_fairness.metrics._rates import by_group, rates
from robust_fairness.metrics.base import Score, metric
from robust_fairness.metrics.kernels import BANDWIDTHS, blocked_group_mmd, mean_over_pairs

SMALL_BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # S1 of Table 6
LARGE_BANDWIDTHS = (4.0, 8.0, 16.0, 32.0, 64.0)  # S3 of Table 6
LEAST_ROWS = 2


def _distance(
    values: np.ndarray, group: np.ndarray, groups: tuple[str, ...], bandwidths: Sequence[float]
) -> Score:
    """Mean squared MMD over the pairs of groups with at least two rows each (Eqs. 5 to 7)."""
    present = np.bincount(group, minlength=len(groups)) >= LEAST_ROWS
    if present.sum() < LEAST_ROWS:
        return Score(None, 0, "fewer than two groups with two rows")
    distances, counts = blocked_group_mmd(
        torch.from_numpy(values), torch.from_numpy(group), len(groups), bandwidths
    )
    value = mean_over_pairs(distances, counts)
    return Score(max(float(value), 0.0), len(values))


@metric(better="lower", task="any")
def delta_er(curvature: np.ndarray, group: np.ndarray, groups: tuple[str, ...]) -> Score:
    """Squared MMD between the groups' exact loss curvatures (Eqs. 5 to 7).

    The kernel is the sum over S = {1, 2, 4, 8, 16}, so that it lies between 0 and 10. With more
    than two groups it is the mean over all pairs of groups with at least two rows.
    """
    return _distance(curvature, group, groups, BANDWIDTHS)


@metric(better="lower", task="any")
def delta_er_one_shot(
    curvature_one_shot: np.ndarray, group: np.ndarray, groups: tuple[str, ...]
) -> Score:
    """Squared MMD between the groups' one-shot curvatures (Eqs. 5 to 8)."""
    return _distance(curvature_one_shot, group, groups, BANDWIDTHS)


@metric(better="lower", task="any")
def delta_er_small_bandwidths(
    curvature: np.ndarray, group: np.ndarray, groups: tuple[str, ...]
) -> Score:
    """``delta_er`` with the narrow kernels S1 of Table 6."""
    return _distance(curvature, group, groups, SMALL_BANDWIDTHS)


@metric(better="lower", task="any")
def delta_er_large_bandwidths(
    curvature: np.ndarray, group: np.ndarray, groups: tuple[str, ...]
) -> Score:
    """``delta_er`` with the wide kernels S3 of Table 6."""
    return _distance(curvature, group, groups, LARGE_BANDWIDTHS)


@metric(better="lower", task="any")
def curvature_by_group(
    curvature: np.ndarray, group: np.ndarray, groups: tuple[str, ...]
) -> dict[str, Score]:
    """Mean exact loss curvature within each group."""
    return by_group(*rates(curvature, group, len(groups)), groups)
