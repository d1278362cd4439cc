"""Error rate, delay and cost of the monitor of gaps, by simulation.

Streams of 60 periods of two groups of unequal size (4 to 1), whose common level drifts; a gap that
grows does so in the 13th period, one that varies in a year (season of .05) or by chance (standard
deviation .02) does so in the reference, too. The tables are CSV files in docs/tables.

    python benchmarks/monitor.py --streams 1000
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from robust_fairness.auditing.followed import DEVIATIONS
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.rates import linear_gap
from robust_fairness.numbers.sequential import Batches, Reference, growth

TABLES = Path(__file__).resolve().parents[1] / "docs" / "tables"
PERIODS, START, DRIFT = 60, 12, 0.01
OF = linear_gap("largest", 2)
VARIES = {
    "no": lambda rng, months: 0.0 * months,
    "season of .05": lambda rng, months: 0.05 * np.sin((months + rng.integers(12)) * np.pi / 6),
    "by chance, .02": lambda rng, months: rng.normal(0, 0.02, len(months)),
}


def stream(
    rng: np.random.Generator,
    rows: int,
    reference: int,
    difference: float,
    grown: float,
    varies: str = "no",
    deviations: float = DEVIATIONS,
) -> int | None:
    """The period of the first alarm of a stream; None without one."""
    months = np.arange(-reference, PERIODS)
    level = 0.4 + np.cumsum(rng.normal(0, DRIFT, len(months))).clip(-0.15, 0.15)
    moved = VARIES[varies](rng, months) + np.where(months >= START, grown, 0.0)
    n = np.tile([4 * rows, rows], (len(months), 1))
    hits = rng.binomial(n, np.stack([level, level + difference + moved], 1)).astype(float)
    then = Reference(hits[:reference], n[:reference].astype(float))
    most, varied = then.most(OF.functions, LEVEL / 2), then.variation(OF.functions)
    batches = Batches.of(hits[reference:], n[reference:], then.hits.sum(0), then.n.sum(0))
    return growth(batches, OF, float((most + deviations * varied).max())).alarm(LEVEL / 2)


def alarms(streams: int) -> pd.DataFrame:
    """Share of streams without a growth that ever alarm."""

    def rows() -> Iterator[dict[str, object]]:
        for size in (50, 1000):
            for reference in (1, 12):
                for difference in (0.0, 0.1):
                    rng = np.random.default_rng([size, reference])
                    alarmed = [
                        stream(rng, size, reference, difference, 0.0) is not None
                        for _ in range(streams)
                    ]
                    yield {
                        "rows of the smaller group": size, "periods of the reference": reference,
                        "gap": difference, "ever an alarm": f"{np.mean(alarmed):.3f}",
                    }  # fmt: skip

    return pd.DataFrame(rows())


def variations(streams: int) -> pd.DataFrame:
    """The same of gaps that vary between periods, with the default margin and without one."""

    def rows() -> Iterator[dict[str, object]]:
        for size in (250, 1000, 3000, 10_000):
            for varies in ("season of .05", "by chance, .02"):
                row = {"rows of the smaller group": size, "varies": varies}
                for words, deviations in (("default margin", DEVIATIONS), ("no margin", 0.0)):
                    rng = np.random.default_rng([size, 2])
                    alarmed = [
                        stream(rng, size, 12, 0.05, 0.0, varies, deviations) is not None
                        for _ in range(streams)
                    ]
                    row[f"ever an alarm, {words}"] = f"{np.mean(alarmed):.3f}"
                yield row

    return pd.DataFrame(rows())


def delays(streams: int) -> pd.DataFrame:
    """Periods until a growth is found: median, and the share that is found in 48 periods."""

    def rows() -> Iterator[dict[str, object]]:
        for size in (50, 100, 250, 1000, 5000):
            for reference in (1, 12):
                row: dict[str, object] = {
                    "rows of the smaller group": size, "periods of the reference": reference
                }  # fmt: skip
                for grown in (0.05, 0.1):
                    rng = np.random.default_rng([size, reference, 1])
                    periods = [stream(rng, size, reference, 0.05, grown) for _ in range(streams)]
                    waited = np.array([np.inf if at is None else at - START + 1 for at in periods])
                    middle = np.quantile(waited, 0.5, method="higher")
                    row[f"growth of {grown}: periods"] = (
                        f"{middle:.0f}" if np.isfinite(middle) else "not found"
                    )
                    row[f"{grown}: found"] = f"{np.isfinite(waited).mean():.2f}"
                yield row

    return pd.DataFrame(rows())


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000)
    streams = parser.parse_args().streams
    alarms(streams).to_csv(TABLES / "monitor_alarms.csv", index=False)
    variations(streams // 2).to_csv(TABLES / "monitor_variations.csv", index=False)
    delays(streams // 10).to_csv(TABLES / "monitor_delays.csv", index=False)


if __name__ == "__main__":
    main()
