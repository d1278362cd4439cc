"""FairCOCCO: time and memory of the score by rows, of a training step, of the permutation test.

Every number of rows is scored in a process of its own, whose peak memory is told above what it
had after its imports (Linux only).

    python benchmarks/kernel_fairness.py --threads 2
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from robust_fairness.metrics.cross_covariance import (
    exact_score,
    low_rank_score,
    pivots,
    variable,
)
from robust_fairness.metrics.permutation import PERMUTATIONS, permutation_test, strata_of

ROWS = (256, 1024, 2048, 4096, 16_384, 65_536, 262_144)
MOST_EXACT_ROWS = 2048
MOST_ROWS_OF_FOUR = 16_384
MIB = 2**20
STEPS = 8  # of an epoch


def columns(rows: int, attributes: int) -> list[torch.Tensor]:
    """Predictions, attributes and outcome ``[n, d]``, all continuous and dependent."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(rows, 1))
    a = rng.normal(size=(rows, attributes)) + 0.5 * y
    p = np.tanh(y + 0.5 * a.sum(1, keepdims=True) + rng.normal(size=(rows, 1)))
    return [torch.from_numpy(one) for one in (p, a, y)]


def seconds(work: Callable[[], object]) -> float:
    """Wall time."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def peak_bytes() -> int:
    """Most memory that this process has held so far."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def measure_score(rows: int, attributes: int, most: int, threads: int) -> dict[str, float]:
    """Score rows once, in this process: time, memory and, where there is one, the exact value."""
    torch.set_num_threads(threads)
    few = [variable(one) for one in columns(64, 1)]
    low_rank_score(few, [pivots(one) for one in few])  # starts torch's threads
    p, a, y = columns(rows, attributes)
    before = peak_bytes()
    start = time.perf_counter()
    variables = [variable(p), variable(a, y), variable(y)]
    chosen = [pivots(one, most=most) for one in variables]
    found = low_rank_score(variables, chosen)
    result = {
        "seconds": time.perf_counter() - start,
        "memory": peak_bytes() - before,
        "rank": max(one.rows.shape[-1] for one in chosen),
    }
    if rows <= MOST_EXACT_ROWS:
        start = time.perf_counter()
        exact = exact_score(variables)
        result["exact_seconds"] = time.perf_counter() - start
        result["error"] = float((found / exact - 1).abs())
    return result


def print_scores(attributes: int, most: int, threads: int) -> None:
    """A line for every number of rows."""
    print(f"conditional score, {attributes} attribute(s), at most {most} pivots")
    for rows in ROWS if attributes == 1 else [n for n in ROWS if n <= MOST_ROWS_OF_FOUR]:
        command = [sys.executable, __file__, "--score", f"{rows},{attributes},{most},{threads}"]
        found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        exact = (
            f", exact {found['exact_seconds']:.3f} s "
            f"({found['exact_seconds'] / found['seconds']:.1f} x), error {found['error']:.1e}"
            if "error" in found
            else ""
        )
        print(
            f"  {rows:7} rows: {found['seconds']:6.3f} s "
            f"({1e6 * found['seconds'] / rows:4.0f} us a row), {found['memory'] / MIB:4.0f} MiB, "
            f"rank {found['rank']}{exact}"
        )


def print_steps(replicas: int, batch_size: int, repeats: int, threads: int) -> None:
    """Cost of a training step with the penalty against one without, in turn."""
    from training import adult_like

    from robust_fairness.core import checkpoints
    from robust_fairness.experiment.experiment import Cell
    from robust_fairness.methods import faircocco
    from robust_fairness.training import fitting

    samples = adult_like(STEPS * batch_size + 256, 108)

    def stack(method: str, **options: int) -> fitting.Stack:
        cell = Cell.model_validate(
            {
                "dataset": "adult_like",
                "label": method,
                "method": {"name": method, **options},
                "network": {"name": "mlp"},
                "protocol": {"batch_size": batch_size, "epochs": 100},
                "seeds": list(range(replicas)),
            }
        )
        return fitting.Stack(samples, cell, cell.replicas())

    def exactly(epoch: Callable[[], None]) -> Callable[[], None]:
        def work() -> None:
            with patch.object(
                faircocco, "low_rank_score", lambda variables, _: exact_score(variables)
            ):
                epoch()

        return work

    with checkpoints.threads(threads):
        plain = stack("erm").run_epoch
        works = {
            "32 pivots": stack("faircocco").run_epoch,
            "all rows pivots": stack("faircocco", pivots=batch_size).run_epoch,
            "whole matrices": exactly(stack("faircocco").run_epoch),
        }
        for name, work in works.items():
            pairs = [(seconds(work), seconds(plain)) for _ in range(repeats + 1)][1:]
            ratios = [with_it / without for with_it, without in pairs]
            penalised, without = (
                1000 * statistics.median(one) / STEPS for one in zip(*pairs, strict=True)
            )
            print(
                f"  {replicas:2} replica(s), {name:15} {penalised:7.1f} ms a step, "
                f"without {without:5.1f}, ratio "
                f"{statistics.median(ratios):.1f} ({min(ratios):.1f} to {max(ratios):.1f})"
            )


def print_permutations(rows: int, threads: int) -> None:
    """Time of a permutation test given classes, given numbers and given nothing."""
    torch.set_num_threads(threads)
    p, a, y = columns(rows, 1)
    classes = (y > 0).double()
    for name, given in (("nothing", None), ("classes", classes), ("numbers", y)):
        variables = [variable(p), variable(a)]
        strata = np.zeros(rows, dtype=np.int64)
        if given is not None:
            variables = [variable(p), variable(a, given), variable(given)]
            strata = strata_of(given.numpy())
        taken = seconds(lambda v=variables, s=strata: permutation_test(v, s))
        print(f"  {PERMUTATIONS} permutations of {rows} rows given {name}: {taken:.1f} s")


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--rows", type=int, default=4096, help="rows of the permutation test")
    parser.add_argument("--parts", default="score,step,permutations")
    parser.add_argument("--score", help="rows,attributes,pivots,threads of one process")
    options = parser.parse_args()
    if options.score:
        print(json.dumps(measure_score(*map(int, options.score.split(",")))))
        return
    os.environ["ROBUST_FAIRNESS_CHECKPOINTS"] = tempfile.mkdtemp()
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"torch {torch.__version__}, {options.threads} thread(s)"
    )
    parts = options.parts.split(",")
    if "score" in parts:
        for attributes, most in ((1, 100), (1, 400), (4, 400)):
            print_scores(attributes, most, options.threads)
    if "step" in parts:
        print(f"training step, mlp, 108 features, batch {options.batch_size}")
        for replicas in (1, 16):
            print_steps(replicas, options.batch_size, options.repeats, options.threads)
    if "permutations" in parts:
        print("permutation test")
        print_permutations(options.rows, options.threads)


if __name__ == "__main__":
    main()
