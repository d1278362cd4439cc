"""Equalized Robustness: the distance between the groups' distributions of loss curvature."""

from typing import Any

from robust_fairness.numbers.groups import as_groups
from robust_fairness.numbers.quantities import Array, RowValues, Score, measure, quantity

SMALL_BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)  # S1 of Table 6
LARGE_BANDWIDTHS = (4.0, 8.0, 16.0, 32.0, 64.0)  # S3 of Table 6
LEAST_ROWS = 2


def _distance(values: Array, sensitive_features: Any, **kernel: Any) -> Score:
    """Mean squared MMD over the pairs of groups with at least two rows each (Eqs. 5 to 7)."""
    import torch

    from robust_fairness.bench.maths.kernels import blocked_group_mmd, mean_over_pairs

    groups = as_groups(sensitive_features)
    if (groups.counts >= LEAST_ROWS).sum() < LEAST_ROWS:
        return Score(None, 0, "fewer than two groups with two rows")
    distances, counts = blocked_group_mmd(
        torch.from_numpy(values), torch.from_numpy(groups.index), len(groups.names), **kernel
    )
    value = mean_over_pairs(distances, counts)
    return Score(max(float(value), 0.0), len(values))


CURVATURE = ("curvature", "sensitive_features")
ONE_SHOT = ("curvature_one_shot", "sensitive_features")


@measure(better="lower", task="any", needs=CURVATURE, unshifted_only=True)
def delta_er(curvature: Array, *, sensitive_features: Any) -> Score:
    """Squared MMD between the groups' exact loss curvatures (Eqs. 5 to 7).

    The kernel is the sum over S = {1, 2, 4, 8, 16}, so that it lies between 0 and 10. With more
    than two groups it is the mean over all pairs of groups with at least two rows. It is a property
    of the unshifted test set (5.1).
    """
    return _distance(curvature, sensitive_features)


@measure(better="lower", task="any", needs=ONE_SHOT, unshifted_only=True)
def delta_er_one_shot(curvature_one_shot: Array, *, sensitive_features: Any) -> Score:
    """Squared MMD between the groups' one-shot curvatures (Eqs. 5 to 8)."""
    return _distance(curvature_one_shot, sensitive_features)


@measure(better="lower", task="any", needs=CURVATURE, unshifted_only=True)
def delta_er_small_bandwidths(curvature: Array, *, sensitive_features: Any) -> Score:
    """``delta_er`` with the narrow kernels S1 of Table 6."""
    return _distance(curvature, sensitive_features, bandwidths=SMALL_BANDWIDTHS)


@measure(better="lower", task="any", needs=CURVATURE, unshifted_only=True)
def delta_er_large_bandwidths(curvature: Array, *, sensitive_features: Any) -> Score:
    """``delta_er`` with the wide kernels S3 of Table 6."""
    return _distance(curvature, sensitive_features, bandwidths=LARGE_BANDWIDTHS)


@quantity(better="lower", task="any", needs=("curvature",), unshifted_only=True)
def curvature(curvature: Array) -> RowValues:
    """Mean exact loss curvature."""
    return RowValues(curvature)
