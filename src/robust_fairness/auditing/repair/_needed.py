"""How many rows a promise of a repair needs."""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from scipy import special

from robust_fairness.auditing.repair._rows import Rows
from robust_fairness.numbers.estimate import FEWEST_ROWS, POWER
from robust_fairness.numbers.quantities import means_of_rows
from robust_fairness.numbers.rates import Rates, contrast, linear_gap

EXPECTED_ROWS = float(special.gammaincinv(FEWEST_ROWS, POWER))  # of which 80 % have enough
MOST_GROWTH, STEPS = 1e5, 500  # of the rows of a refused fit
DRAWS = 1000  # of the errors of rates


def growth_needed(
    rows: Rows,
    positive: np.ndarray,
    among: Sequence[int | None],
    held_out: float,
    tolerance: float,
    confidence: float,
) -> float:
    """How many times as many rows show that differences are within a tolerance, in 80 %.

    With so many rows groups are alike on those that the rule is fitted on: differences vary by
    these and by as many that are held out. All have to be shown. Groups
    are taken to have the rates of all rows, and decisions not to be drawn, which varies most.

    Args:
        rows: those that were decided, without those that were trained on.
        positive: their probabilities to be decided as positive ``[n]``.
        among: the classes that rates are taken among, None for all rows.
        held_out: the share of ``rows`` that is held out.
        tolerance: the largest difference that is promised.
        confidence: of the test of the promise.
    """
    shares, counts = [], []
    for label in among:
        used = (rows.weight > 0) & (True if label is None else rows.y == label)
        of = rows.groups.index[used], positive[used], len(rows.groups.values)
        counts.append(held_out * means_of_rows(*of, rows.weight[used]).effective)
        shares.append(np.average(positive[used], weights=rows.weight[used]))
    value, n = np.repeat(shares, len(rows.groups.values)), np.concatenate(counts)
    pairs = linear_gap("largest", len(rows.groups.values), len(shares)).functions
    errors = np.random.default_rng(0).normal(scale=np.sqrt(2), size=(DRAWS, len(n)))

    def is_shown(growth: float) -> bool:
        rates = Rates.of_counts(growth * n[None] * value, growth * n[None]).corrected()
        critical = contrast(rates, None, pairs, None).critical(1 - confidence)
        within = errors * np.sqrt(rates.variance) @ pairs.T + critical <= tolerance
        return within.all(1).mean() >= POWER and growth * n.min() >= EXPECTED_ROWS

    growths = np.geomspace(1, MOST_GROWTH, STEPS)
    return float(growths[bisect_left(growths[:-1], True, key=is_shown)])
