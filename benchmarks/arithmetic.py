"""How near trainings are to the rate at which this processor multiplies and adds.

Operations are torch's count of those in matrix products and convolutions, forward and backward; a
step also does what is not counted. The median of rounds, CPU time of one thread.

    python benchmarks/arithmetic.py
"""

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from itertools import product

import torch
from _cells import cell_of
from _results import Row, rounded, save
from bias_mitigation import own_stack, pictures, seconds
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode
from training import adult_like, plain

from robust_fairness.core.checkpoints import ROOT_VARIABLE, threads
from robust_fairness.core.memory import keep_freed_memory
from robust_fairness.training import fitting

SIZE = 2048  # of the matrices
REPLICAS = 16
BILLION = 1e9

Work = Callable[[], object]


def products() -> dict[str, tuple[Work, float]]:
    """Products of two square matrices by every library that torch or numpy comes with."""
    a, b = torch.randn(2, SIZE, SIZE)
    count = 2.0 * SIZE**3
    found = {
        "matrix product, torch": (lambda: a @ b, count),
        "matrix product, numpy": (lambda: a.numpy() @ b.numpy(), count),
    }
    if torch.backends.mkldnn.is_available():
        one, other = a.to_mkldnn(), b.to_mkldnn()
        found["matrix product, oneDNN"] = (lambda: functional.linear(one, other), count)
    return found


def trainings() -> dict[str, tuple[Work, float]]:
    """Epochs of the standard model on images, and of its replicas on a table."""
    works: dict[str, Work] = {
        f"erm at {size} pixels": own_stack(pictures(256, size), "erm", 128).run_epoch
        for size in (24, 96)
    }
    samples = adult_like(4352, 108)
    for batch_size in (128, 1024):
        cell = cell_of("erm", "mlp", seeds=REPLICAS, batch_size=batch_size)
        stack = fitting.Stack(samples, cell, cell.replicas())
        works[f"{REPLICAS} replicas of erm, batch {batch_size:,}, stack"] = stack.run_epoch
        works[f"the same, plain loop, batch {batch_size:,}"] = plain(samples, "erm", batch_size)
    return {name: (work, operations(work)) for name, work in works.items()}


def operations(work: Work) -> float:
    """How many multiplications and additions it needs."""
    with FlopCounterMode(display=False) as counter:
        work()
    return float(counter.get_total_flops())


def main() -> None:
    """Print the rate of everything and its share of that of torch's matrix product."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    os.environ[ROOT_VARIABLE] = tempfile.mkdtemp()
    keep_freed_memory()
    with threads(1):
        works = {**products(), **trainings()}
        times: dict[str, list[float]] = {name: [] for name in works}
        for _, (name, (work, _)) in product(range(options.repeats), works.items()):
            times[name].append(seconds(work))
        rates = {
            name: count / statistics.median(times[name]) / BILLION
            for name, (_, count) in works.items()
        }
    of_torch = rates["matrix product, torch"]
    rows: list[Row] = [
        {"what": name, "GFLOP/s": rounded(rate), "x torch's product": rounded(rate / of_torch)}
        for name, rate in rates.items()
    ]
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
