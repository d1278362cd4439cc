"""Coverage of the intervals of changes between two periods, by simulation.

Tables of two classes with two groups are drawn for an earlier and a current period, with known gaps
of the true positive rate; counted is how often the interval of the change contains the true change.

    python benchmarks/audit_coverage.py --tables 1000
"""

import argparse
import itertools

import numpy as np

from robust_fairness.auditing import intervals
from robust_fairness.auditing.cells import Cells, scores_of
from robust_fairness.auditing.changes import change_of
from robust_fairness.metrics import find_metric

TRUE_POSITIVE, TRUE_NEGATIVE, POSITIVE = 0.7, 0.8, 0.4
SIZES = (((500, 500), (500, 50)), ((500, 50), (500, 50)), ((500, 500), (2000, 2000)),
         ((2000, 2000), (2000, 2000)))  # fmt: skip
GAPS = ((0.0, 0.0), (0.02, 0.0), (0.1, 0.0), (0.0, 0.1), (0.1, 0.1), (0.3, 0.1))
METRICS = ("equal_opportunity_difference", "equalized_odds_difference", "delta_eo",
           "demographic_parity_ratio", "worst_group_accuracy")  # fmt: skip


def cells(gap: float) -> np.ndarray:
    """Shares of a group's rows by class and prediction."""
    recall = TRUE_POSITIVE - gap
    negative = (1 - POSITIVE) * np.array([TRUE_NEGATIVE, 1 - TRUE_NEGATIVE])
    return np.array([*negative, POSITIVE * (1 - recall), POSITIVE * recall])


def truth(gap: float) -> dict[str, float]:
    """The metrics of two groups, of which the second one has the gap."""
    selected = POSITIVE * TRUE_POSITIVE + (1 - POSITIVE) * (1 - TRUE_NEGATIVE)
    return {
        "equal_opportunity_difference": gap,
        "equalized_odds_difference": gap,
        "delta_eo": gap,
        "demographic_parity_ratio": (selected - POSITIVE * gap) / selected,
        "worst_group_accuracy": POSITIVE * (TRUE_POSITIVE - gap) + (1 - POSITIVE) * TRUE_NEGATIVE,
    }


def cells_of(counts: np.ndarray) -> Cells:
    """Cells of counts by group, class and prediction."""
    n = np.concatenate([counts, np.zeros((1, 2, 2), np.int64)])
    weight = n.astype(float)
    return Cells(("a", "b"), ("0", "1"), n, weight, weight)


def interval(name: str, counts: np.ndarray) -> tuple[float, float, float]:
    """Value and bounds of a metric."""
    drawn, metric = cells_of(counts), find_metric(name)
    compared = intervals.compared_in_cells(metric, drawn)
    bound = compared.bound() if compared else intervals.ratio_in_cells(name, drawn)
    return scores_of(metric, drawn)[""].value, bound.low, bound.high


def change(name: str, now: np.ndarray, then: np.ndarray) -> tuple[float, float]:
    """Interval of a change."""
    both = [intervals.compared_in_cells(find_metric(name), cells_of(one)) for one in (now, then)]
    if None not in both:
        return both[0].change_from(both[1])
    return change_of(interval(name, now), interval(name, then))


def coverage(sizes: tuple, gaps: tuple[float, float], tables: int) -> dict[str, float]:
    """Share of the tables whose interval of the change contains the true one, by metric."""
    rng = np.random.default_rng(0)
    held = dict.fromkeys(METRICS, 0)
    true = [truth(gap) for gap in gaps]
    for _ in range(tables):
        both = []
        for rows, gap in zip(sizes, gaps, strict=True):
            shares = (cells(0.0), cells(gap))
            counts = np.stack([rng.multinomial(*one) for one in zip(rows, shares, strict=True)])
            counts = counts.reshape(2, 2, 2)
            both.append(counts)
        for name in METRICS:
            low, high = change(name, *both)
            held[name] += low <= true[0][name] - true[1][name] <= high
    return {name: count / tables for name, count in held.items()}


def main() -> None:
    """Print a table of coverages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--tables", type=int, default=1000)
    options = parser.parse_args()
    print("| rows now | rows then | gap now, then |", " | ".join(METRICS), "|")
    for sizes, gaps in itertools.product(SIZES, GAPS):
        found = coverage(sizes, gaps, options.tables)
        texts = [f"{one:.3f}" for one in found.values()]
        print("|", sizes[0], "|", sizes[1], "|", gaps, "|", " | ".join(texts), "|", flush=True)


if __name__ == "__main__":
    main()
