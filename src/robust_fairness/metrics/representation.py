r"""How good an embedding is, overall and for the rows of each group.

Source: Dullerud et al., "Is Fairness Only Metric Deep? Evaluating and Addressing Subgroup Gaps in
Deep Metric Learning" (ICLR 2022): Eq. 1, Definitions 1 to 3, 14 and 15, D.4.

Neighbours and clusters are those of the whole set of rows (D.4) and are computed once, as arrays of
rows, which metrics of groups average over the rows of a group.

Distances are computed in blocks from float64 products around the mean row, so that memory grows
linearly with the rows. On the CPU products are computed in float32 first, and those rows of a block
again whose result the rounding could change; the result is that of float64. Two squared distances
count as equal if they differ by less than ``TIE`` of the largest squared distance of a row from
that mean.
"""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from robust_fairness.core.errors import InputError
from robust_fairness.metrics.base import NO_ROWS, Score, Undefined, quantity
from robust_fairness.metrics.groups import ALL, one_group
from robust_fairness.samples import Groups

ROWS = 512  # of a block of pairs
VALUES = 2**20  # of a block of rows against centres, or of rows to decompose
TIE = 1e-12
ITERATIONS = 20  # of k-means
SEED = 0  # of its first centres
CLUSTERING = f"k-means from random rows, at most {ITERATIONS} iterations, seed {SEED}"
LEAST_VALUES = 2  # singular values of a distribution that may not be uniform


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


def _quick(x: Tensor) -> Tensor:
    """The same in the type of numbers that the device multiplies fastest."""
    return x.float() if x.is_cpu else x


def _slack(x: Tensor) -> float:
    """Bound of the error of a squared distance of ``_quick`` rows."""
    return (x.shape[1] + 8) * torch.finfo(torch.float32).eps


def _sides(x: Tensor) -> tuple[Tensor, Tensor]:
    """Two matrices ``[m, d + 2]`` whose product has the squared distances of the rows of x."""
    lengths, ones = torch.linalg.vecdot(x, x)[:, None], torch.ones_like(x[:, :1])
    return torch.cat([-2 * x, lengths, ones], 1), torch.cat([x, ones, lengths], 1)


def _ranks(x: Tensor, y: Tensor) -> Tensor:
    """``same_class_rank`` of finite rows sorted by class, int64 ``[n]``."""
    nearest = _nearest_of_class(x, y)
    limit = torch.where(nearest < torch.inf, nearest + TIE, -torch.inf)
    quick, slack = _quick(x), _slack(x)
    low, high = ((limit + change).to(quick.dtype) for change in (-slack, slack))
    left, right = _sides(quick)
    rank = (nearest < torch.inf).long()
    for a, b in _block_pairs(len(x)):
        square = left[a] @ right[b].T
        if y[b.start] <= y[a.stop - 1]:
            square.masked_fill_(y[a, None] == y[b], torch.inf)
        for rows, others, one in [(a, b, square), (b, a, square.T)][: 1 if a == b else 2]:
            near, far = (_count(one <= bound[rows, None]) for bound in (low, high))
            doubt = torch.nonzero(near != far)[:, 0]
            if len(doubt):
                exact = _squares(x[rows][doubt], x[others])
                exact.masked_fill_(y[rows][doubt, None] == y[others], torch.inf)
                near[doubt] = _count(exact <= limit[rows][doubt, None])
            rank[rows] += near
    return rank


def _count(where: Tensor) -> Tensor:
    """Number of true values in each row, int32 ``[m]``."""
    return where.view(torch.uint8).sum(1, dtype=torch.int32)


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
    lengths = [torch.linalg.vecdot(one, one) for one in (a, b)]
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
        found = _k_means(_around_mean(embedding, rows, device), torch.from_numpy(first).to(device))
        cluster[rows] = found.cpu().numpy()
    return cluster


def _k_means(x: Tensor, first: Tensor) -> Tensor:
    """Nearest centre of every row after the last step, int64 ``[n]``."""
    quick, centres = _sides(_quick(x))[0], x[first]
    labels = _nearest_centres(x, quick, centres)
    for _ in range(ITERATIONS):
        counts = labels.bincount(minlength=len(centres))[:, None]
        sums = torch.zeros_like(centres).index_add_(0, labels, x)
        centres = torch.where(counts > 0, sums / counts.clamp(min=1), centres)
        before, labels = labels, _nearest_centres(x, quick, centres)
        if torch.equal(before, labels):
            break
    return labels


def _nearest_centres(x: Tensor, quick: Tensor, centres: Tensor) -> Tensor:
    """Number of the nearest centre of every row; the first of equally near ones."""
    size = max(1, VALUES // len(centres))
    right, found = _sides(centres.to(quick.dtype))[1], []
    for exact, rough in zip(x.split(size), quick.split(size), strict=True):
        square = rough @ right.T
        nearest, label = square.min(1)
        doubt = torch.nonzero(_count(square <= nearest[:, None] + 2 * _slack(x)) > 1)[:, 0]
        if len(doubt):
            label[doubt] = _squares(exact[doubt], centres).argmin(1)
        found.append(label)
    return torch.cat(found)


@quantity(better="higher", needs=("same_class_rank",), options={"k": 1})
def recall_at(same_class_rank: np.ndarray, *, k: float = 1) -> Score:
    """Share of rows with a row of their class among their k nearest others (Definition 14).

    Of a group: with neighbours among all rows (k-close, Definition 1; D.4). A row whose class has
    no other row counts as 0, and the note says how many there are.
    """
    if k < 1 or k != int(k):
        raise InputError(f"recall_at: k is {k:g}, allowed: a whole number of 1 or more")
    alone = int(np.sum(same_class_rank == 0))
    hits = (same_class_rank > 0) & (same_class_rank <= k)
    note = f"{alone} rows without another of their class count as 0" if alone else ""
    return Score(float(hits.mean()), len(hits), note)


@quantity(better="higher", needs=("y_true", "cluster"))
def nmi(y_true: np.ndarray, cluster: np.ndarray) -> Score:
    """Normalised mutual information of classes and clusters (Definition 15).

    Of a group: of clusters of all rows (D.4). D.4 prints it without the factor 2 of Definition 15,
    which is used here. Rows of a single class have 1 in a single cluster, else 0.
    """
    from sklearn.metrics import normalized_mutual_info_score

    value = float(normalized_mutual_info_score(y_true, cluster))
    single = "a single class; " if (y_true == y_true[0]).all() else ""
    return Score(value, len(y_true), single + CLUSTERING)


@quantity(better="lower", task="any", needs=("embedding",))
def u_kl(embedding: np.ndarray) -> Score:
    r"""Distance of the singular values of the embedding from equal ones (Eq. 1, Definition 3).

    .. math:: D_{KL}(U, S) = -\log m - \frac{1}{m} \sum_{i=1}^m \log \frac{s_i}{\sum_j s_j}

    Here s are the m = min(n, d) singular values of the rows, neither centred nor squared. 0 means
    that all directions have equal weight. It is infinite, and so missing, if the rows lie in fewer
    than m dimensions. With fewer rows than dimensions, as the note says, the value is of as many
    directions as there are rows and not comparable with that of a larger group.
    """
    count, dimensions = embedding.shape
    if min(count, dimensions) < LEAST_VALUES:
        raise Undefined(f"{count} rows of {dimensions} dimensions: one singular value")
    triangle = _triangle(embedding)
    if not np.isfinite(triangle).all():
        raise Undefined("the embedding is not finite")
    values = np.linalg.svd(triangle, compute_uv=False)
    # rounding errors of the embedding are no direction
    rounding = np.finfo(np.result_type(embedding, np.float32)).eps
    rank = int((values > values[0] * max(count, dimensions) * rounding).sum())
    if rank < len(values):
        raise Undefined(f"infinite: the rows lie in {rank} of {len(values)} dimensions")
    value = -np.log(len(values)) - np.mean(np.log(values / values.sum()))
    few = f"of {count} directions: fewer rows than dimensions" if count < dimensions else ""
    return Score(max(float(value), 0.0), count, few)


def _triangle(embedding: np.ndarray) -> np.ndarray:
    """Factor R of the QR decomposition of the rows, computed in blocks."""
    dimensions = embedding.shape[1]
    triangle = np.empty((0, dimensions))
    size = max(1, VALUES // dimensions)
    for first in range(0, len(embedding), size):
        block = embedding[first : first + size].astype(np.float64)
        if not np.isfinite(block).all():
            return np.full((1, dimensions), np.nan)
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, block]), mode="r"))
    return triangle


def _positive_by_group(
    embedding: np.ndarray, y_true: np.ndarray, sensitive_features: Groups
) -> dict[str, Score]:
    sums, pairs = _pair_sums(embedding, y_true, sensitive_features)
    return _means_of_pairs(sums, pairs, sensitive_features, "no two rows of one class")


def _negative_by_group(
    embedding: np.ndarray, y_true: np.ndarray, sensitive_features: Groups
) -> dict[str, Score]:
    sums, pairs = _pair_sums(embedding, np.zeros_like(y_true), sensitive_features)
    positive, positive_pairs = _pair_sums(embedding, y_true, sensitive_features)
    sums, pairs = sums - positive, pairs - positive_pairs
    return _means_of_pairs(sums, pairs, sensitive_features, "no two rows of different classes")


@quantity(better="lower", needs=("embedding", "y_true"), of_groups=_positive_by_group)
def positive_alignment(embedding: np.ndarray, y_true: np.ndarray) -> Score:
    """Mean squared distance of two rows of one class, one or both in the group (Definition 2)."""
    return _positive_by_group(embedding, y_true, one_group(len(y_true)))[ALL]


@quantity(better="higher", needs=("embedding", "y_true"), of_groups=_negative_by_group)
def negative_alignment(embedding: np.ndarray, y_true: np.ndarray) -> Score:
    """Mean squared distance of rows of two classes, one or both in the group (Definition 2)."""
    return _negative_by_group(embedding, y_true, one_group(len(y_true)))[ALL]


def _pair_sums(
    embedding: np.ndarray, y: np.ndarray, sensitive_features: Groups
) -> tuple[np.ndarray, np.ndarray]:
    r"""Sums of squared distances over pairs of one class with one row or both in a group.

    With A the rows of a subgroup, C those of its class, n their numbers, Q sums of squared
    lengths and S sums around the class's mean (so that the class's S is 0), the ordered
    pairs of A and C sum to ``n_A Q_C + n_C Q_A`` and those of A and A to ``2 n_A Q_A - 2 |S_A|^2``.
    Each pair within A is in both twice and is subtracted once. Returns sums float64 ``[groups]``
    and numbers of pairs int64 ``[groups]``.
    """
    group, groups = sensitive_features.index, len(sensitive_features.names)
    classes, y = np.unique(y, return_inverse=True)
    keys, cell = np.unique(y * groups + group, return_inverse=True)
    class_of, group_of = np.divmod(keys, groups)
    rows, members = np.bincount(cell, minlength=len(keys)), np.bincount(y, minlength=len(classes))
    squares, square_of_sums = np.zeros(len(keys)), np.zeros(len(keys))
    with np.errstate(invalid="ignore"):  # the note names values that are not finite
        for column in embedding.T:
            x = column.astype(np.float64)
            x -= (np.bincount(y, x, len(classes)) / members)[y]
            squares += np.bincount(cell, x * x, len(keys))
            square_of_sums += np.bincount(cell, x, len(keys)) ** 2
    of_class = np.bincount(class_of, squares, len(classes))[class_of]
    members = members[class_of]
    sums = rows * of_class + members * squares - rows * squares + square_of_sums
    pairs = rows * (members - 1) - rows * (rows - 1) // 2
    totals = np.zeros(groups, dtype=np.int64)
    np.add.at(totals, group_of, pairs)
    return np.bincount(group_of, sums, groups), totals


def _means_of_pairs(
    sums: np.ndarray, pairs: np.ndarray, groups: Groups, none: str
) -> dict[str, Score]:
    """Means over pairs, one score per group; it rests on the group's rows."""
    scores = {}
    for name, total, number, n in zip(groups.names, sums, pairs, groups.counts, strict=True):
        if not n or not number:
            scores[name] = Score(None, int(n), none if n else NO_ROWS)
        elif not np.isfinite(total):
            scores[name] = Score(None, int(n), "the embedding is not finite")
        else:
            # a difference of sums that is 0 may be negative by rounding
            scores[name] = Score(max(float(total / number), 0.0), int(n))
    return scores
