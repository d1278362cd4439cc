"""Nearest neighbours and clusters of an embedding, as arrays of rows (D.4 of finDML).

Distances are computed in blocks from float64 products around the mean row, so that memory grows
linearly with the rows. Two squared distances count as equal if they differ by less than ``TIE`` of
the largest squared distance of a row from that mean.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from robust_fairness.core.errors import InputError

ROWS = 512  # of a block of pairs
VALUES = 2**20  # of a block of rows against centres, or of rows to decompose
TIE = 1e-12
ITERATIONS = 20  # of k-means
SEED = 0  # of its first centres
CLUSTERING = f"k-means from random rows, at most {ITERATIONS} iterations, seed {SEED}"


def same_class_rank(embedding: np.ndarray, y: np.ndarray, device: str = "cpu") -> np.ndarray:
    """Rank by distance of the nearest other row of a row's class among all other rows.

    That is 1 plus the number of rows of other classes that are at most as far away, int64 ``[n]``;
    0 where a class has no other row or the row of the embedding ``[n, d]`` is not finite. Ties
    count as nearer: an embedding that maps all rows to one point is not close.
    """
    rank = np.zeros(len(embedding), dtype=np.int64)
    rows = _finite(embedding)
    rows = rows[np.argsort(y[rows], kind="stable")]
    if len(rows):
        x = _around_mean(embedding, rows, device)
        rank[rows] = _ranks(x, torch.from_numpy(y[rows]).to(device)).cpu().numpy()
    return rank


def _finite(embedding: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.isfinite(embedding).all(axis=1))


def _around_mean(embedding: np.ndarray, rows: np.ndarray, device: str) -> Tensor:
    """Some rows minus their mean, scaled to lengths of at most 1, float64 ``[m, d]``."""
    x = torch.from_numpy(embedding[rows]).to(device, torch.float64)
    x.sub_(x.mean(0))
    longest = float(torch.linalg.vecdot(x, x).max()) ** 0.5
    return x.div_(longest) if longest > 0 else x


def _ranks(x: Tensor, y: Tensor) -> Tensor:
    """``same_class_rank`` of finite rows sorted by class, int64 ``[n]``."""
    nearest = _nearest_of_class(x, y)
    limit = torch.where(nearest < torch.inf, nearest + TIE, -torch.inf)
    rank = (nearest < torch.inf).long()
    for a, b in _block_pairs(len(x)):
        square = _squares(x[a], x[b])
        if y[b.start] <= y[a.stop - 1]:
            square.masked_fill_(y[a, None] == y[b], torch.inf)
        rank[a] += (square <= limit[a, None]).sum(1)
        if a != b:
            rank[b] += (square <= limit[b]).sum(0)
    return rank


def _nearest_of_class(x: Tensor, y: Tensor) -> Tensor:
    """Squared distance to the nearest other row of the class; infinite where there is none."""
    nearest = torch.full_like(x[:, 0], torch.inf)
    for a, b in _block_pairs(len(x)):
        if y[b.start] <= y[a.stop - 1]:  # sorted: otherwise no class is in both
            square = _squares(x[a], x[b]).masked_fill_(y[a, None] != y[b], torch.inf)
            if a == b:
                square.fill_diagonal_(torch.inf)
            nearest[a] = torch.minimum(nearest[a], square.amin(1))
            nearest[b] = torch.minimum(nearest[b], square.amin(0))
    return nearest


def _block_pairs(rows: int) -> Iterator[tuple[slice, slice]]:
    """Every two blocks of rows once, and each with itself."""
    blocks = [slice(first, min(first + ROWS, rows)) for first in range(0, rows, ROWS)]
    for number, a in enumerate(blocks):
        for b in blocks[number:]:
            yield a, b


def _squares(a: Tensor, b: Tensor) -> Tensor:
    """Squared distances of every two rows ``[m, d]`` and ``[k, d]``."""
    lengths = [torch.linalg.vecdot(item, item) for item in (a, b)]
    return torch.addmm(lengths[0][:, None] + lengths[1], a, b.T, alpha=-2)


def clusters(
    embedding: np.ndarray, number: int, seed: int = SEED, device: str = "cpu"
) -> np.ndarray:
    """Cluster of every row by k-means (Lloyd 1982), int64 ``[n]``; -1 for rows that are not finite.

    The first centres are rows drawn without replacement, and there are at most ``ITERATIONS``
    steps, as in the authors' toolbox (faiss, 20 iterations, one start). A centre without rows stays
    where it is, so clusters may be empty. Own code, so that results do not depend on the number of
    threads or the version of a library.
    """
    if number < 1:
        raise InputError(f"number of clusters: {number}, allowed: 1 or more")
    cluster = np.full(len(embedding), -1, dtype=np.int64)
    rows = _finite(embedding)
    if len(rows):
        first = np.random.default_rng(seed).permutation(len(rows))[:number]
        labels = _k_means(_around_mean(embedding, rows, device), torch.from_numpy(first).to(device))
        cluster[rows] = labels.cpu().numpy()
    return cluster


def _k_means(x: Tensor, first: Tensor) -> Tensor:
    """Nearest centre of every row after the last step, int64 ``[n]``."""
    centres = x[first]
    labels = _nearest_centres(x, centres)
    for _ in range(ITERATIONS):
        counts = labels.bincount(minlength=len(centres))[:, None]
        sums = torch.zeros_like(centres).index_add_(0, labels, x)
        centres = torch.where(counts > 0, sums / counts.clamp(min=1), centres)
        before, labels = labels, _nearest_centres(x, centres)
        if torch.equal(before, labels):
            break
    return labels


def _nearest_centres(x: Tensor, centres: Tensor) -> Tensor:
    """Number of the nearest centre of every row; the first of equally near ones."""
    blocks = x.split(max(1, VALUES // len(centres)))
    return torch.cat([_squares(block, centres).argmin(1) for block in blocks])
