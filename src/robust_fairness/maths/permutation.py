"""Permutation tests of (conditional) independence with the FairCOCCO statistic (C.3).

The null distribution is not known, so rows of one variable are permuted. Under equalised odds with
discrete outcomes they are permuted within each class, which does not change the conditioning
variable and both norms of the score: only the inner product is computed again, and the test is
exact. If the conditioning variable is continuous, rows are permuted within *strata* of nearly equal
values (the local permutation of Kim, Neykov, Balakrishnan and Wasserman 2022), which is
approximate: docs/measures.md has the measured type-I error.
"""

from collections.abc import Sequence

import numpy as np
import torch

from robust_fairness.maths.cross_covariance import Pivots, Variable, features, pivots

PERMUTATIONS = 1000
STRATUM_ROWS = 5  # of a stratum of a continuous variable; more rows, more type-I errors
NUMBERS_AT_ONCE = 2**20
DRAWN_BITS = 53  # of a random number


def permutation_test(
    variables: Sequence[Variable],
    strata: np.ndarray,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    chosen: Sequence[Pivots] | None = None,
) -> float:
    """Share of permutations, the identity included, with at least the observed dependence.

    Args:
        variables: two variables of n rows and, as the third, the conditioning one.
        strata: int64 stratum of every row ``[n]``; a row alone in its stratum stays in place.
        permutations: number of permutations; no p-value is below ``1 / (permutations + 1)``.
        seed: of the permutations.
        chosen: pivots of the variables, where they are known already.
    """
    chosen = chosen or list(map(pivots, variables))
    left, right, *given = map(features, variables, chosen)
    for rest in given:
        left = left - rest @ (rest.mT @ left)
    still, moved = (left, right) if left.shape[1] > right.shape[1] else (right, left)
    observed = (still.mT @ moved).square().sum()
    generator = np.random.default_rng(seed)
    at_once = max(1, NUMBERS_AT_ONCE // moved.numel())
    as_large = 1
    for start in range(0, permutations, at_once):
        count = min(at_once, permutations - start)
        rows = torch.from_numpy(permutations_within(strata, count, generator))
        exchanged = moved.index_select(0, rows.T.flatten()).view(len(moved), -1)
        products = still.mT @ exchanged  # [s, permutation * m]
        sums = products.square().sum(0).unflatten(0, (count, -1)).sum(1)
        # the identity, drawn again, may differ in the last digits
        as_large += int((sums >= observed * (1 - 1e-12)).sum())
    return as_large / (permutations + 1)


def permutations_within(
    strata: np.ndarray, count: int, generator: np.random.Generator
) -> np.ndarray:
    """Random permutations ``[count, n]`` that keep every row in its stratum ``[n]``.

    Rows are sorted by one integer: the stratum, then a random number.
    """
    random_bits = min(DRAWN_BITS, 63 - int(strata.max()).bit_length())
    random = generator.random((count, len(strata))) * 2.0**random_bits
    drawn = np.empty(random.shape, dtype=np.int64)
    drawn[:, np.argsort(strata, kind="stable")] = (
        random.astype(np.int64) + (strata << random_bits)
    ).argsort(axis=1, kind="stable")
    return drawn


def strata_of(given: np.ndarray, rows: int = STRATUM_ROWS) -> np.ndarray:
    """Stratum of every row by its values ``[n, d]``, int64 ``[n]``.

    Rows of equal values are a stratum where values repeat that often. Otherwise the rows are
    halved at the median of the column that varies most, and the halves again, until strata are of
    at most ``rows`` rows.
    """
    distinct, codes = np.unique(given, axis=0, return_inverse=True)
    if len(distinct) * rows <= len(given):
        return codes.reshape(-1).astype(np.int64)
    strata = np.empty(len(given), dtype=np.int64)
    waiting, number = [np.arange(len(given))], 0
    while waiting:
        some = waiting.pop()
        if len(some) <= rows:
            strata[some] = number
            number += 1
            continue
        column = np.ptp(given[some], axis=0).argmax()
        ordered = some[np.argsort(given[some, column], kind="stable")]
        waiting += np.array_split(ordered, 2)
    return strata
