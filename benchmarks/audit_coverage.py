"""Coverage of the intervals of an audit, by simulation: values, changes, weights and households.

Tables of two classes with two groups are drawn with known gaps of the true positive rate; counted
is how often the 95 % interval contains the true value. Every entry of the tables is the lowest
coverage over the gaps that are named there. They are written into docs/audit.md.

    python benchmarks/audit_coverage.py --tables 1000
"""

import argparse
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from robust_fairness.auditing import intervals
from robust_fairness.auditing.cells import Cells
from robust_fairness.auditing.changes import change_of
from robust_fairness.core import tables
from robust_fairness.metrics import find_metric
from robust_fairness.samples import Groups

PAGE = Path(__file__).resolve().parents[1] / "docs" / "audit.md"
TRUE_POSITIVE, TRUE_NEGATIVE, POSITIVE = 0.7, 0.8, 0.4
SIZES = ((500, 500), (500, 50)), ((500, 50), (500, 50)), ((500, 500), (2000, 2000))
GAPS = ((0.0, 0.0), (0.02, 0.0), (0.1, 0.0), (0.0, 0.1), (0.1, 0.1), (0.3, 0.1))
METRICS = ("demographic_parity_difference", "equal_opportunity_difference",
           "equalized_odds_difference", "delta_eo", "demographic_parity_ratio",
           "worst_group_accuracy")  # fmt: skip
Drawn = tuple[Cells, dict[str, float]]


def shares(gap: float, positive: float) -> np.ndarray:
    """Shares of a group's rows by class and prediction."""
    recall = TRUE_POSITIVE - gap
    negative = (1 - positive) * np.array([TRUE_NEGATIVE, 1 - TRUE_NEGATIVE])
    return np.array([*negative, positive * (1 - recall), positive * recall])


def truth(gap: float, positive: float) -> dict[str, float]:
    """The metrics of two groups, of which the second one has the gap."""
    selected = positive * TRUE_POSITIVE + (1 - positive) * (1 - TRUE_NEGATIVE)
    return {
        "demographic_parity_difference": positive * gap,
        "equal_opportunity_difference": gap,
        "equalized_odds_difference": gap,
        "delta_eo": gap,
        "demographic_parity_ratio": (selected - positive * gap) / selected,
        "worst_group_accuracy": positive * (TRUE_POSITIVE - gap) + (1 - positive) * TRUE_NEGATIVE,
    }


def drawn(rng: np.random.Generator, rows: tuple[int, int], gap: float, positive: float) -> Cells:
    """Cells of a table, of so many rows of both groups."""
    counts = [rng.multinomial(n, shares(g, positive)) for n, g in zip(rows, (0, gap), strict=True)]
    n = np.concatenate([np.reshape(counts, (2, 2, 2)), np.zeros((1, 2, 2), np.int64)])
    weight = n.astype(float)
    return Cells(("a", "b"), ("0", "1"), n, weight, weight)


def interval(name: str, cells: Cells) -> tuple[float, float, float]:
    """Value and bounds of a metric; NaN where it has none."""
    metric = find_metric(name)
    compared = intervals.compared_in_cells(metric, cells)
    bound = compared.bound() if compared else intervals.ratio_in_cells(name, cells)
    value = np.nan
    if compared is None and bound is not None:
        selected = cells.means(*intervals.row_values("selection_rate", cells)).value
        value = float(selected.min() / selected.max())
    elif compared is not None:
        value = 1 - compared.value if compared.turned else compared.value
    return (value, bound.low, bound.high) if bound else (np.nan, np.nan, np.nan)


def change(name: str, now: Cells, then: Cells) -> tuple[float, float]:
    """Interval of a change."""
    metric = find_metric(name)
    current, earlier = (intervals.compared_in_cells(metric, one) for one in (now, then))
    if current is not None and earlier is not None:
        return current.change_from(earlier)
    return change_of(interval(name, now), interval(name, then))


def share_inside(tables_: int, once: Callable[[], dict[str, tuple[float, float, float]]]) -> dict:
    """Share of simulated tables whose interval contains the true value, by metric."""
    inside: dict[str, list[bool]] = {}
    for _ in range(tables_):
        for name, (low, true, high) in once().items():
            if np.isfinite(low):
                inside.setdefault(name, []).append(low <= true <= high)
    return {name: float(np.mean(found)) for name, found in inside.items()}


def lowest(found: list[dict[str, float]]) -> dict[str, str]:
    """The lowest coverage of every metric, as text."""
    return {name: f"{min(one[name] for one in found):.3f}" for name in METRICS}


def values(count: int) -> pd.DataFrame:
    """Coverage of values, by the rows of both groups and the share of positives."""

    def of(rows: int, positive: float, gap: float) -> dict[str, float]:
        rng, true = np.random.default_rng([rows, int(100 * gap)]), truth(gap, positive)

        def once() -> dict[str, tuple[float, float, float]]:
            cells = drawn(rng, (rows, rows), gap, positive)
            ends = {name: interval(name, cells)[1:] for name in METRICS}
            return {name: (low, true[name], high) for name, (low, high) in ends.items()}

        return share_inside(count, once)

    return pd.DataFrame(
        {"rows of a group": rows, "share of positives": positive,
         **lowest([of(rows, positive, gap) for gap in (0.0, 0.05, 0.2)])}
        for rows in (30, 100, 300, 1000, 10_000)
        for positive in (0.1, 0.4)
    )  # fmt: skip


def changes(count: int) -> pd.DataFrame:
    """Coverage of changes between two periods, by the rows of both groups."""

    def of(sizes: tuple, gaps: tuple[float, float]) -> dict[str, float]:
        rng = np.random.default_rng(0)
        now, then = (truth(gap, POSITIVE) for gap in gaps)

        def once() -> dict[str, tuple[float, float, float]]:
            both = [drawn(rng, *one, POSITIVE) for one in zip(sizes, gaps, strict=True)]
            ends = {name: change(name, *both) for name in METRICS}
            return {name: (low, now[name] - then[name], high) for name, (low, high) in ends.items()}

        return share_inside(count, once)

    def text(rows: tuple[int, int]) -> str:
        return f"{rows[0]} and {rows[1]}"

    return pd.DataFrame(
        {"rows now": text(now), "rows then": text(then),
         **lowest([of((now, then), gaps) for gaps in GAPS])}
        for now, then in SIZES
    )  # fmt: skip


def designs(count: int) -> pd.DataFrame:
    """Coverage of the demographic parity difference of rows that are not alike or independent."""
    name = "demographic_parity_difference"

    def rows(rng: np.random.Generator, unit: bool, weighted: bool) -> Iterator[Cells]:
        """Half of the households are of either group; their rows are alike in four fifths.

        Rows of weight 9 are selected more often in group b, as the population is.
        """
        people, house = 900, np.arange(900) // 3
        group = rng.integers(0, 2, 300)[house]
        heavy = rng.random(people) < 0.3
        share = np.where(group == 1, np.where(heavy, 0.7, 0.3), 0.5)
        drawn_ = rng.random(people)
        if unit:
            drawn_ = np.where(rng.random(people) < 0.8, rng.random(people)[house], drawn_)
        selected = (drawn_ < share).astype(np.int64)
        groups, nothing = Groups(group, ("a", "b")), np.zeros(people, np.int64)
        weight = np.where(heavy, 9.0, 1.0) if weighted else None
        for units in (None, house):
            yield Cells.of(groups, nothing, selected, ("0", "1"), weight, None, None, units)

    def of(unit: bool, weighted: bool) -> dict[str, str]:
        rng, metric = np.random.default_rng([unit, weighted]), find_metric(name)
        heavy = 0.3 * 9 / (0.3 * 9 + 0.7) if weighted else 0.3
        true = abs(0.7 * heavy + 0.3 * (1 - heavy) - 0.5)
        kinds = "rows", "units"

        def once() -> dict[str, tuple[float, float, float]]:
            made = {}
            for kind, cells in zip(kinds, rows(rng, unit, weighted), strict=True):
                compared = intervals.compared_in_cells(metric, cells)
                assert compared is not None
                bound = compared.bound()
                made[kind] = (bound.low, true, bound.high)
            return made

        found = share_inside(count, once)
        return {"by rows": f"{found['rows']:.3f}", "by --unit": f"{found['units']:.3f}"}

    return pd.DataFrame(
        {"rows": "households of three" if unit else "independent",
         "weights": "1 and 9" if weighted else "equal", **of(unit, weighted)}
        for unit, weighted in itertools.product((False, True), repeat=2)
    )  # fmt: skip


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--tables", type=int, default=1000)
    count = parser.parse_args().tables
    made = {f"coverage_{make.__name__}": make(count) for make in (values, changes, designs)}
    page = PAGE.read_text(encoding="utf-8")
    functions = {name: (lambda table=table: table) for name, table in made.items()}
    PAGE.write_text(tables.in_page(page, functions), encoding="utf-8")


if __name__ == "__main__":
    main()
