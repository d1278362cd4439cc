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

from robust_fairness.bench.maths.cross_covariance import (
    Pivots,
    Variable,
    features,
    kernel_features,
    pivots,
)

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
    return _share_as_large([(left, right, np.arange(len(left)))], strata, permutations, seed)


def hsic_test(
    variables: Sequence[Variable],
    classes: np.ndarray,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    chosen: Sequence[Pivots] | None = None,
) -> float:
    r"""As ``permutation_test``, with the sum of n HSIC over the classes as statistic.

    HSIC of the n rows of a class is :math:`Tr[G_X G_Z] / n^2` of their centred kernel matrices
    (Gretton et al. 2007, "A Kernel Statistical Test of Independence", Eq. 4). Widths and pivots of
    the two variables are those of all rows.

    Args:
        variables: two variables of n rows.
        classes: int64 class of every row ``[n]``, within which rows are permuted; one of a single
            row adds nothing.
        permutations: number of permutations, see ``permutation_test``.
        seed: of the permutations.
        chosen: pivots of the variables, where they are known already.

    >>> from robust_fairness.bench.maths.cross_covariance import variable
    >>> rng = np.random.default_rng(0)
    >>> y, a = rng.integers(0, 2, 200), rng.normal(size=200)
    >>> columns = [torch.from_numpy(values[:, None]) for values in (y + np.sin(3 * a), a)]
    >>> hsic_test([variable(column) for column in columns], y, permutations=199)
    0.005
    """
    chosen = chosen or list(map(pivots, variables))
    left, right = map(kernel_features, variables, chosen)
    parts = []
    for number in np.unique(classes):
        rows = np.flatnonzero(classes == number)
        first, second = (columns[rows] - columns[rows].mean(0) for columns in (left, right))
        parts.append((first / len(rows) ** 0.5, second, rows))
    return _share_as_large(parts, classes, permutations, seed)


def _share_as_large(
    parts: Sequence[tuple[torch.Tensor, torch.Tensor, np.ndarray]],
    strata: np.ndarray,
    permutations: int,
    seed: int,
) -> float:
    """Share of permutations whose sum over parts of ``|left^T right|^2`` is at least the observed.

    A part has the features of two variables ``[n_part, r]`` and the rows that they belong to; the
    strata do not cross parts.
    """
    observed = sum((left.mT @ right).square().sum() for left, right, _ in parts)
    generator = np.random.default_rng(seed)
    most = max(min(left.numel(), right.numel()) for left, right, _ in parts)
    at_once = max(1, NUMBERS_AT_ONCE // most)
    as_large = 1
    for start in range(0, permutations, at_once):
        count = min(at_once, permutations - start)
        drawn = permutations_within(strata, count, generator)
        sums = torch.zeros(count, dtype=torch.float64)
        for left, right, rows in parts:
            still, moved = (left, right) if left.shape[1] > right.shape[1] else (right, left)
            place = torch.from_numpy(np.searchsorted(rows, drawn[:, rows]))
            exchanged = moved.index_select(0, place.T.flatten()).view(len(moved), -1)
            products = still.mT @ exchanged  # [s, permutation * m]
            sums += products.square().sum(0).unflatten(0, (count, -1)).sum(1)
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
