"""Error rate, delay and cost of the monitor of gaps, by simulation.

Streams of 60 periods of two groups of unequal size (4 to 1), whose common level drifts; a gap that
grows does so in the 13th period. The tables are CSV files in docs/tables.

    python benchmarks/monitor.py --streams 1000
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from robust_fairness.inference import LEVEL, Rates, interval, linear_gap
from robust_fairness.inference.sequential import Batches, growth

TABLES = Path(__file__).resolve().parents[1] / "docs" / "tables"
PERIODS, START, DRIFT = 60, 12, 0.01
OF = linear_gap("largest", 2)


def stream(
    rng: np.random.Generator, rows: int, reference: int, difference: float, grown: float
) -> int | None:
    """The period of the first alarm of a stream; None without one."""
    level = 0.4 + np.cumsum(rng.normal(0, DRIFT, PERIODS)).clip(-0.15, 0.15)
    later = np.where(np.arange(PERIODS) >= START, grown, 0.0)
    n, n_then = np.array([4 * rows, rows]), np.array([4 * rows, rows]) * reference
    then = rng.binomial(n_then, [0.4, 0.4 + difference])
    hits = rng.binomial(n, np.stack([level, level + difference + later], 1))
    bound = interval(Rates.of_counts(then[None].astype(float), n_then[None].astype(float)), OF)
    batches = Batches.of(hits, np.tile(n, (PERIODS, 1)), then, n_then)
    return growth(batches, OF, float(bound[1][0])).alarm(LEVEL / 2)


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
    delays(streams // 10).to_csv(TABLES / "monitor_delays.csv", index=False)


if __name__ == "__main__":
    main()
