"""Whether rows of a table of scores are copies of other rows."""

import numpy as np
from scipy import special

BLOCK = 100  # rows of similar scores
MOST_ROWS = 20_000  # that are read
LEVEL = 1e-3
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio, which mixes bits


def copied(score: np.ndarray, y: np.ndarray) -> bool:
    """Whether rows of equal scores have equal labels much more often than rows of similar scores.

    Scores of trees or of few features are equal by nature: the labels of these rows then vary as
    those of rows with similar scores do. The labels of copies do not. The variance of the labels
    within equal scores is compared with that among the ``BLOCK`` rows around them. It has to be at
    most half of it, which is the case if at least half of these rows are copies, and the number
    of different labels has to be too small for chance (Poisson). Of many scores a random part is
    read, with all rows that have them.

    Args:
        score: scores of the positive class ``[n]``.
        y: classes 0 and 1 ``[n]``.

    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> y = rng.random(1000) < score
    >>> copied(score, y), copied(np.tile(score, 2), np.tile(y, 2))
    (False, True)
    """
    if len(score) > MOST_ROWS:
        kept = score.view(np.uint64) * FACTOR < np.uint64(2**64 * MOST_ROWS // len(score))
        score, y = score[kept], y[kept]
    order = np.argsort(score)
    score, y = score[order], y[order]
    first = np.flatnonzero(np.diff(score, prepend=-np.inf))
    n = np.diff(first, append=len(score))
    positive = np.add.reduceat(y, first, dtype=np.float64) if len(first) else np.zeros(0)
    block = first // BLOCK
    of_block, positive_of_block = np.bincount(block, n)[block], np.bincount(block, positive)[block]
    tied = (n > 1) & (of_block > n)
    # variances of the classes of equal scores, and of similar ones, times n
    within, among = (
        hits * (rows - hits) / (rows - 1) * n[tied] / rows
        for hits, rows in ((positive[tied], n[tied]), (positive_of_block[tied], of_block[tied]))
    )
    expected = among.sum()
    return bool(within.sum() <= expected / 2 and special.pdtr(within.sum(), expected) < LEVEL)
