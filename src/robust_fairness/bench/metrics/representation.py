r"""How good an embedding is, overall and for the rows of each group.

Source: Dullerud et al., "Is Fairness Only Metric Deep? Evaluating and Addressing Subgroup Gaps in
Deep Metric Learning" (ICLR 2022): Eq. 1, Definitions 1 to 3, 14 and 15, D.4.

Neighbours and clusters are those of the whole set of rows (D.4) and are computed once, as arrays of
rows, which metrics of groups average over the rows of a group.
"""

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.numbers.groups import Groups, everyone
from robust_fairness.numbers.quantities import NO_ROWS, Means, Score, Undefined, quantity

LEAST_VALUES = 2  # singular values of a distribution that may not be uniform
BLOCK = 2**20  # values that are decomposed at once


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

    from robust_fairness.bench.maths.embeddings import CLUSTERING

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
    size = max(1, BLOCK // dimensions)
    for first in range(0, len(embedding), size):
        block = embedding[first : first + size].astype(np.float64)
        if not np.isfinite(block).all():
            return np.full((1, dimensions), np.nan)
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, block]), mode="r"))
    return triangle


def _positive_by_group(
    embedding: np.ndarray, y_true: np.ndarray, sensitive_features: Groups
) -> Means:
    sums, pairs = _pair_sums(embedding, y_true, sensitive_features)
    return _means_of_pairs(sums, pairs, sensitive_features, "no two rows of one class")


def _negative_by_group(
    embedding: np.ndarray, y_true: np.ndarray, sensitive_features: Groups
) -> Means:
    sums, pairs = _pair_sums(embedding, np.zeros_like(y_true), sensitive_features)
    positive, positive_pairs = _pair_sums(embedding, y_true, sensitive_features)
    sums, pairs = sums - positive, pairs - positive_pairs
    return _means_of_pairs(sums, pairs, sensitive_features, "no two rows of different classes")


@quantity(better="lower", needs=("embedding", "y_true"), by_groups=_positive_by_group)
def positive_alignment(embedding: np.ndarray, y_true: np.ndarray) -> Score:
    """Mean squared distance of two rows of one class, one or both in the group (Definition 2)."""
    return _positive_by_group(embedding, y_true, everyone(len(y_true))).scores([""])[""]


@quantity(better="higher", needs=("embedding", "y_true"), by_groups=_negative_by_group)
def negative_alignment(embedding: np.ndarray, y_true: np.ndarray) -> Score:
    """Mean squared distance of rows of two classes, one or both in the group (Definition 2)."""
    return _negative_by_group(embedding, y_true, everyone(len(y_true))).scores([""])[""]


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


def _means_of_pairs(sums: np.ndarray, pairs: np.ndarray, groups: Groups, none: str) -> Means:
    """Means over pairs, one per group; it rests on the group's rows."""
    scores = []
    for total, number, n in zip(sums, pairs, groups.counts.tolist(), strict=True):
        if not n or not number:
            scores.append(Score(None, n, none if n else NO_ROWS))
        elif not np.isfinite(total):
            scores.append(Score(None, n, "the embedding is not finite"))
        else:  # a difference of sums that is 0 may be negative by rounding
            scores.append(Score(max(float(total / number), 0.0), n))
    return Means.of_scores(scores)
