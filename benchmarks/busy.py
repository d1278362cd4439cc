"""CPU time beside busy processes, as a ratio to that without them, and why threads must sleep.

The first part trains a small network of images with one and with two CPU threads, which OpenMP lets
spin or sleep while they wait for each other. The second runs commands. Each is measured in turn
alone and beside processes that compute all the time; the ratio of a shared cache and of
hyperthreads is part of it.

    python benchmarks/busy.py --processes 6 --repeats 3
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from _results import cpu_seconds, rounded, save

PYTHON = sys.executable
TRAINING = """
import sys, torch
torch.set_num_threads(int(sys.argv[1]))
conv = torch.nn.Conv2d
net = torch.nn.Sequential(
    conv(3, 32, 3), torch.nn.ReLU(), conv(32, 64, 3), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(64, 10))
optimiser = torch.optim.Adam(net.parameters(), fused=True)
x, y = torch.randn(64, 3, 24, 24), torch.randint(0, 10, (64,))
for _ in range(int(sys.argv[2])):
    optimiser.zero_grad()
    torch.nn.functional.cross_entropy(net(x), y).backward()
    optimiser.step()
"""
ROWS = 300_000
COMMAND = [PYTHON, "-m", "robust_fairness"]
RUN = ["run", "--pipelines=robust_fairness", "--datasets=biased_digits"]
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TESTS = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/metrics"]
ONE = {"OMP_NUM_THREADS": "1"}
OFF = {"ROBUST_FAIRNESS_MLFLOW": "off"}


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """So many processes that compute all the time, and end with this one's block or process."""
    ends_by_signals = {number: signal.signal(number, _leave) for number in ENDING}
    started: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(processes):
            started.append(subprocess.Popen([PYTHON, "-c", "while True: pass"]))
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()
        for number, handler in ends_by_signals.items():
            signal.signal(number, handler)


def _leave(number: int, frame: object) -> None:
    """Leave every block, so that nothing keeps running."""
    raise SystemExit(128 + number)


def trained(threads: int, policy: str, steps: int) -> float:
    """CPU seconds of a training, without those of a training of no step."""
    words = [PYTHON, "-c", TRAINING, str(threads)]
    with_steps, without = (
        cpu_seconds([*words, str(count)], Path.cwd(), OMP_WAIT_POLICY=policy)
        for count in (steps, 0)
    )
    return with_steps - without


def commands(folder: Path) -> dict[str, Callable[[], float]]:
    """CPU seconds of commands, by name, in a new project below a folder."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 2, (ROWS, 3)), columns=["y", "p", "sex"])
    table.to_csv(folder / "p.csv", index=False)
    cpu_seconds([*COMMAND, "new", "project"], folder)
    project = folder / "project"
    audit = ["audit", "p.csv", "--target=y", "--prediction=p", "--attributes=sex", "--force"]

    def demo() -> float:
        with TemporaryDirectory() as new:
            return cpu_seconds([*COMMAND, "demo", "demo"], Path(new))

    runs = {
        f"run, biased digits, {method}": [*RUN, f"--methods={method}"]
        for method in ("lff", "rubi", "group_dro")
    }
    return {
        f"audit, {ROWS:,} rows": lambda: cpu_seconds([*COMMAND, *audit], folder),
        "demo": demo,
        "tests of the metrics": lambda: cpu_seconds(TESTS, Path(__file__).parents[1], **ONE),
        **{
            name: lambda words=words: cpu_seconds([*COMMAND, *words], project, **OFF)
            for name, words in runs.items()
        },
    }


def main() -> None:
    """Print CPU times and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    os.environ.pop("OMP_NUM_THREADS", None)  # those of the protocols count
    os.environ.pop("OMP_WAIT_POLICY", None)
    measured: dict[str, Callable[[], float]] = {
        f"{threads} threads, {policy}": lambda t=threads, p=policy: trained(t, p, options.steps)
        for threads, policy in ((1, "passive"), (2, "active"), (2, "passive"))
    }
    rows = []
    with TemporaryDirectory() as folder:
        measured |= commands(Path(folder))
        for name, seconds in measured.items():
            alone, beside = [], []
            for _ in range(options.repeats):
                alone.append(seconds())
                with busy(options.processes):
                    beside.append(seconds())
            rows.append(
                {
                    "what": name,
                    "alone, CPU s": rounded(median(alone)),
                    "beside busy processes, CPU s": rounded(median(beside)),
                    "ratio": rounded(median(beside) / median(alone)),
                }
            )
            print(rows[-1], flush=True)
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
