"""Coverage of the intervals of an audit, by simulation: values, changes, designs and strata.

Tables of two classes with two groups are drawn with known gaps of the true positive rate; counted
is how often the 95 % interval contains the true value. Every entry of the tables is the lowest
coverage over the gaps that are named there. They are CSV files in docs/tables.

    python benchmarks/audit_coverage.py --tables 2000
"""

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from robust_fairness.auditing.changes import change_of
from robust_fairness.auditing.control import ControlStrata, within
from robust_fairness.auditing.power import power_of
from robust_fairness.metrics import find_metric
from robust_fairness.numbers import intervals
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.intervals import Compared
from robust_fairness.numbers.rates import Rates

TABLES = Path(__file__).resolve().parents[1] / "docs" / "tables"
TRUE_POSITIVE, TRUE_NEGATIVE, POSITIVE = 0.7, 0.8, 0.4
SIZES = ((500, 500), (500, 50)), ((500, 50), (500, 50)), ((500, 500), (2000, 2000))
GAPS = ((0.0, 0.0), (0.02, 0.0), (0.1, 0.0), (0.0, 0.1), (0.1, 0.1), (0.3, 0.1))
METRICS = ("demographic_parity_difference", "equal_opportunity_difference",
           "equalized_odds_difference", "delta_eo", "demographic_parity_ratio",
           "worst_group_accuracy")  # fmt: skip


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


def drawn(rng: np.random.Generator, rows: tuple[int, int], gap: float, positive: float) -> Counts:
    """Counts of a table, of so many rows of both groups."""
    counts = [rng.multinomial(n, shares(g, positive)) for n, g in zip(rows, (0, gap), strict=True)]
    n = np.concatenate([np.reshape(counts, (2, 2, 2)), np.zeros((1, 2, 2), np.int64)])
    weight = n.astype(float)
    return Counts(("a", "b"), ("0", "1"), n, weight, weight)


def together(name: str, cells: list[Counts]) -> tuple[Compared | None, np.ndarray]:
    """What a metric compares in tables, as tests of a family, and which tables ``[m]`` have it."""
    comparisons = [intervals.compared(find_metric(name), table) for table in cells]
    known = [comparison for comparison in comparisons if comparison is not None]
    place = np.flatnonzero([comparison is not None for comparison in comparisons])
    if not known:
        return None, place
    parts = [
        (comparison.rates.value, comparison.rates.variance, comparison.rates.n)
        for comparison in known
    ]
    covariance = None
    if known[0].rates.covariance is not None:
        covariance = np.concatenate([comparison.rates.covariance for comparison in known])
    value, variance, n = (np.concatenate(part) for part in zip(*parts, strict=True))
    return replace(known[0], rates=Rates(value, variance, n, covariance=covariance)), place


def of_ratios(name: str, cells: list[Counts]) -> tuple[np.ndarray, ...]:
    """Ratios, lower and upper bounds ``[tables]`` each; NaN without any."""
    scores = [intervals.estimated(find_metric(name), table)[0][""] for table in cells]
    ratios = [(score.value, score.low, score.high) for score in scores]
    return tuple(np.array(ratios, dtype=np.float64).T)


def coverage(name: str, true: float, now: list[Counts], then: list[Counts] | None = None) -> float:
    """Share of tables whose interval of the value, or of its change, contains the true one."""
    if name == "demographic_parity_ratio":
        current = of_ratios(name, now)
        low, high = current[1:] if then is None else change_of(current, of_ratios(name, then))
    else:
        compared, place = together(name, now)
        assert compared is not None
        if then is None:
            low, high = compared.ends()
        else:
            earlier, before = together(name, then)
            assert earlier is not None and (place == before).all()
            tests = compared.tests_from(earlier)
            assert tests is not None
            low, high = (tests[end].to_numpy() for end in ("low", "high"))
    known = np.isfinite(low)
    return float(((low <= true) & (true <= high))[known].mean())


def lowest(coverages: list[dict[str, float]]) -> dict[str, str]:
    """The lowest coverage of every metric, as text."""
    return {name: f"{min(shares[name] for shares in coverages):.3f}" for name in METRICS}


def values(count: int) -> pd.DataFrame:
    """Coverage of values, by the rows of both groups and the share of positives."""

    def of(rows: int, positive: float, gap: float) -> dict[str, float]:
        rng, true = np.random.default_rng([rows, int(100 * gap)]), truth(gap, positive)
        cells = [drawn(rng, (rows, rows), gap, positive) for _ in range(count)]
        return {name: coverage(name, true[name], cells) for name in METRICS}

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
        now, then = (
            [drawn(rng, rows, gap, POSITIVE) for _ in range(count)]
            for rows, gap in zip(sizes, gaps, strict=True)
        )
        true = [truth(gap, POSITIVE) for gap in gaps]
        return {name: coverage(name, true[0][name] - true[1][name], now, then) for name in METRICS}

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

    def rows(rng: np.random.Generator, unit: bool, weighted: bool) -> Iterator[Counts]:
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
        groups, nothing = Groups.named(group, ("a", "b")), np.zeros(people, np.int64)
        weight = np.where(heavy, 9.0, 1.0) if weighted else None
        for units in (None, house):
            yield Counts.of(groups, nothing, selected, ("0", "1"), weight, None, None, units)

    def of(unit: bool, weighted: bool) -> dict[str, str]:
        rng = np.random.default_rng([unit, weighted])
        heavy = 0.3 * 9 / (0.3 * 9 + 0.7) if weighted else 0.3
        true = abs(0.7 * heavy + 0.3 * (1 - heavy) - 0.5)
        tables_ = [tuple(rows(rng, unit, weighted)) for _ in range(count)]
        kinds = ("by rows", "by --unit")
        return {
            kind: f"{coverage(name, true, list(cells)):.3f}"
            for kind, cells in zip(kinds, zip(*tables_, strict=True), strict=True)
        }

    return pd.DataFrame(
        {"rows": "households of three" if unit else "independent",
         "weights": "1 and 9" if weighted else "equal", **of(unit, weighted)}
        for unit, weighted in itertools.product((False, True), repeat=2)
    )  # fmt: skip


def strata(count: int) -> pd.DataFrame:
    """Coverage of the demographic parity difference within strata, and of its change.

    Groups differ in the shares of the strata, and strata in their rates, from .05 to .85. The true
    value is that of the strata of the rows: where the gap differs between strata, their mean with
    the weights of Mantel and Haenszel.
    """
    gap = find_metric("demographic_parity_difference").gap
    assert gap is not None

    def rows(rng: np.random.Generator, number: int, n: tuple[int, int], gaps: np.ndarray) -> tuple:
        """What is compared, and the true gap."""
        rising = np.linspace(1, 3, number)
        sizes = np.stack(
            [rng.multinomial(n[0], rising / rising.sum()),
             rng.multinomial(n[1], rising[::-1] / rising.sum())], 1
        )  # fmt: skip
        low = np.linspace(0.05, 0.65, number)
        hits = rng.binomial(sizes, np.stack([low, low + gaps], 1))
        n_by_cell = np.zeros((2 * number, 2, 2), np.int64)
        n_by_cell[:, 0, 0], n_by_cell[:, 0, 1] = (sizes - hits).ravel(), hits.ravel()
        counts = Counts.of_rows(n_by_cell)
        known = ControlStrata("", "", ("a", "b"), np.empty(0), number, counts)
        k = sizes.prod(1) / np.maximum(sizes.sum(1), 1)
        return within(gap, known).compared, abs(k @ gaps / k.sum())

    def of(number: int, n: tuple[int, int]) -> dict[str, str]:
        shares: dict[str, list[float]] = {"value": [], "change": []}
        for gaps in (np.zeros(number), np.full(number, 0.1), np.linspace(0, 0.2, number)):
            rng = np.random.default_rng([number, *n])
            tables_ = [rows(rng, number, n, gaps) for _ in range(count)]
            hits = [low <= true <= high for made, true in tables_ for low, high in [made.ends()]]
            shares["value"].append(np.mean(hits))
            pairs = zip(tables_[::2], tables_[1::2], strict=True)
            changed = [
                tests["low"][0] - 1e-12 <= true - before <= tests["high"][0] + 1e-12
                for (now, true), (then, before) in pairs
                for tests in [now.tests_from(then)]
            ]
            shares["change"].append(np.mean(changed))
        return {name: f"{min(each):.3f}" for name, each in shares.items()}

    return pd.DataFrame(
        {"strata": number, "rows of a group": f"{n[0]} and {n[1]}", **of(number, n)}
        for number in (2, 10, 50)
        for n in ((30, 30), (100, 100), (100, 1000), (1000, 1000))
    )


def power(count: int) -> pd.DataFrame:
    """How often the gap and the change that audits name as shown with 80 % power are shown."""
    name = "equal_opportunity_difference"

    def expected(rows: tuple[int, int]) -> Compared:
        n = [np.round(size * shares(0.0, POSITIVE)) for size in rows]
        made = intervals.compared(find_metric(name), Counts.of_rows(np.reshape(n, (2, 2, 2))))
        assert made is not None
        return made

    def of(rows: tuple[int, int]) -> dict[str, str]:
        ((shown),) = power_of(*[{("", name): expected(rows)}] * 2, [name])
        rng = np.random.default_rng(rows)
        none = [drawn(rng, rows, 0.0, POSITIVE) for _ in range(count)]
        some, changed = (
            [drawn(rng, rows, size, POSITIVE) for _ in range(count)]
            for size in (shown.gap, shown.change)
        )
        gaps, before, after = (together(name, cells)[0] for cells in (some, none, changed))
        assert gaps is not None and before is not None and after is not None
        tests = after.tests_from(before)
        assert tests is not None
        values = {
            "gap": shown.gap, "shown": (gaps.ends()[0] > 0).mean(),
            "change": shown.change, "significant": (tests["p_signed"] < 0.05).mean(),
        }  # fmt: skip
        return {name: f"{value:.3f}" for name, value in values.items()}

    return pd.DataFrame(
        {"rows of groups": f"{rows[0]} and {rows[1]}", **of(rows)}
        for rows in ((300, 300), (300, 3000), (1000, 1000), (10_000, 10_000))
    )


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--tables", type=int, default=2000)
    count = parser.parse_args().tables
    for make in (values, changes, designs, strata, power):
        make(count).to_csv(TABLES / f"coverage_{make.__name__}.csv", index=False)


if __name__ == "__main__":
    main()
