"""Maximum mean discrepancy between the scalars of groups (Equalized Robustness, Eqs. 6 and 7)."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

BANDWIDTHS = (1.0, 2.0, 4.0, 8.0, 16.0)  # S of Eq. 7
NODES = 10  # of a bin of half a bandwidth
BLOCK = 256  # rows of float64 that stay in the cache of a core: larger ones are slower


def mixed_rbf(a: Tensor, b: Tensor, bandwidths: Sequence[float] = BANDWIDTHS) -> Tensor:
    r"""Sum over the bandwidths s of exp(-(a - b)^2 / 2 s^2), ``[..., n, m]`` (Eq. 7).

    Args are scalars ``[..., n]`` and ``[..., m]`` and rising bandwidths. Of a bandwidth of half the
    width the exponential is the fourth power.
    """
    square = (a.unsqueeze(-1) - b.unsqueeze(-2)).square()
    widest = bandwidths[-1]
    kernel = torch.exp(square * (-0.5 / widest**2))
    total = kernel
    for wider, narrower in zip(bandwidths[:0:-1], bandwidths[-2::-1], strict=True):
        if wider == 2 * narrower:
            kernel = kernel.square().square()
        else:
            kernel = torch.exp(square * (-0.5 / narrower**2))
        total = total + kernel
    return total


def indicators(group: Tensor, groups: int, dtype: torch.dtype) -> Tensor:
    """One column per group, 1 for its rows, ``[..., n, groups]``; 0 for a missing group (-1)."""
    return functional.one_hot(group + 1, groups + 1)[..., 1:].to(dtype)


def group_mmd(
    values: Tensor, group: Tensor, groups: int, bandwidths: Sequence[float] = BANDWIDTHS
) -> tuple[Tensor, Tensor]:
    r"""Squared MMD between the values of every two groups, the biased V-statistic of Eq. 7.

    With K the kernel matrix and W the indicators divided by the groups' counts,
    :math:`M = W^T K W` holds all the means of Eq. 7: MMD^2(g, h) = M_gg - 2 M_gh + M_hh.

    Returns:
        Squared distances ``[..., groups, groups]`` (finite but meaningless where a group has no
        row) of values ``[..., n]``, and counts ``[..., groups]``; group -1 is missing.
    """
    members = indicators(group, groups, values.dtype)
    counts = members.sum(-2)
    weights = members / counts.clamp(min=1).unsqueeze(-2)
    means = weights.mT @ mixed_rbf(values, values, bandwidths) @ weights
    return _distances(means), counts


def _distances(means: Tensor) -> Tensor:
    within = means.diagonal(dim1=-2, dim2=-1)
    return within.unsqueeze(-1) - 2 * means + within.unsqueeze(-2)


def mean_over_pairs(distances: Tensor, counts: Tensor) -> Tensor:
    """Mean over the pairs of groups with at least two rows each, ``[...]``; 0 without a pair."""
    present = counts >= 2  # one row has no distribution
    pairs = (present.unsqueeze(-1) & present.unsqueeze(-2)).triu(1)
    number = pairs.sum((-2, -1)).clamp(min=1)
    return torch.where(pairs, distances, 0).sum((-2, -1)) / number


def mean_pairwise_mmd(
    values: Tensor, group: Tensor, groups: int, bandwidths: Sequence[float] = BANDWIDTHS
) -> Tensor:
    """Mean squared MMD over all pairs of groups of a batch, ``[...]``; see ``group_mmd``."""
    return mean_over_pairs(*group_mmd(values, group, groups, bandwidths))


def blocked_group_mmd(
    values: Tensor,
    group: Tensor,
    groups: int,
    bandwidths: Sequence[float] = BANDWIDTHS,
    block: int = BLOCK,
) -> tuple[Tensor, Tensor]:
    """``group_mmd`` of one large set of values ``[n]``, in float64.

    Values are moved to interpolation nodes first if these are fewer (error 1e-11 of the kernel);
    kernel matrices are at most ``block`` by ``block``.
    """
    values = values.double()
    members = indicators(group, groups, torch.float64)
    counts = members.sum(0)
    weights = members / counts.clamp(min=1)
    means = torch.zeros(groups, groups, dtype=torch.float64, device=values.device)
    for bandwidth in bandwidths:
        points, gathered = gathered_at_nodes(values, weights, bandwidth)
        means += _weighted_means(points, gathered, bandwidth, block)
    return _distances(means), counts


def gathered_at_nodes(values: Tensor, weights: Tensor, bandwidth: float) -> tuple[Tensor, Tensor]:
    """Points ``[m]`` and weights ``[m, groups]`` that replace all values in Gaussian kernel sums.

    Values ``[n]`` are in bins of half a bandwidth, in which the kernel is a polynomial of degree 9
    up to 1e-12; a value's weight is distributed over the ten Chebyshev nodes of its bin by its
    Lagrange polynomials. The values themselves are returned where m is not smaller.
    """
    width = bandwidth / 2
    bins, place = torch.unique(torch.floor(values / width), return_inverse=True)
    if len(bins) * NODES >= len(values):
        return values, weights
    odd = 2 * torch.arange(NODES, dtype=torch.float64, device=values.device) + 1
    nodes = torch.cos(torch.pi * odd / (2 * NODES))  # in [-1, 1]
    inside = 2 * (values / width - bins[place]) - 1
    gathered = weights.new_zeros(len(bins), NODES, weights.shape[1])
    for number, node in enumerate(nodes):
        others = torch.cat([nodes[:number], nodes[number + 1 :]])
        polynomial = (inside.unsqueeze(1) - others).prod(1) / (node - others).prod()
        gathered[:, number].index_add_(0, place, polynomial.unsqueeze(1) * weights)
    points = (bins.unsqueeze(1) + (nodes + 1) / 2) * width
    return points.flatten(), gathered.flatten(0, 1)


def _weighted_means(points: Tensor, weights: Tensor, bandwidth: float, block: int) -> Tensor:
    """W^T K W for one Gaussian kernel, from the blocks on and above the diagonal."""
    means = weights.new_zeros(weights.shape[1], weights.shape[1])
    for i in range(0, len(points), block):
        rows = slice(i, i + block)
        for j in range(i, len(points), block):
            columns = slice(j, j + block)
            kernel = mixed_rbf(points[rows], points[columns], (bandwidth,))
            part = weights[rows].T @ kernel @ weights[columns]
            means += part if i == j else part + part.T
    return means
