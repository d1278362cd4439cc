"""The default run against that of another checkout, as ``make run`` starts it.

Each is run once, one after the other, by two workers. The other checkout has the environment that
its own ``requirements.lock`` asks for.

    python benchmarks/default_run.py --other ../earlier --other-kedro ../earlier/.venv/bin/kedro
"""

import argparse
import sys
import time
from pathlib import Path

from _results import Row, cpu_seconds, rounded, save

HERE = Path(__file__).resolve().parents[1]
RUN = [
    "run", "--pipelines=robust_fairness",
    "--runner=robust_fairness.runs.runners.DaskRunner", "--runner-params=workers=2",
]  # fmt: skip


def seconds(project: Path, kedro: Path) -> tuple[float, float]:
    """CPU and wall-clock seconds of the default run of a checkout."""
    start = time.perf_counter()
    spent = cpu_seconds([str(kedro), *RUN], project, PYTHONPATH=str(project / "src"))
    return spent, time.perf_counter() - start


def table(other: tuple[float, float], this: tuple[float, float]) -> list[Row]:
    """A row for each kind of seconds, and their ratio."""
    return [
        {"seconds": kind, "other": rounded(old), "this": rounded(new), "ratio": rounded(new / old)}
        for kind, old, new in zip(("CPU", "wall-clock"), other, this, strict=True)
    ]


def main() -> None:
    """Print the times of both and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--other", type=Path, required=True, help="folder of the checkout")
    parser.add_argument("--other-kedro", type=Path, required=True, help="kedro of its environment")
    options = parser.parse_args()
    other = seconds(options.other.resolve(), options.other_kedro.absolute())
    this = seconds(HERE, Path(sys.executable).with_name("kedro"))
    save(__file__, {"other": options.other.name}, table(other, this))


if __name__ == "__main__":
    main()
