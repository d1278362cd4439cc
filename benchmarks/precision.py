"""A step in bfloat16 against the same step in float32, as a ratio of CPU time inside one run.

Without instructions for bfloat16 (AVX512-BF16, AMX) a processor converts every number, which is
slower than float32. ``benchmarks/gpu.py`` measures the same on a GPU.

    python benchmarks/precision.py --size 96 --batch-size 128
"""

import argparse
import os
import statistics
import tempfile
import time

from _cells import cell_of
from _results import rounded, save
from bias_mitigation import pictures

from robust_fairness.core.checkpoints import ROOT_VARIABLE, threads
from robust_fairness.core.memory import keep_freed_memory
from robust_fairness.training import fitting


def seconds(stack: fitting.Stack) -> float:
    """CPU time of one epoch."""
    start = time.process_time()
    stack.run_epoch()
    return time.process_time() - start


def main() -> None:
    """Print and save the time of a step in both precisions for every network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", default="biased_mnist_cnn,resnet18")
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    os.environ[ROOT_VARIABLE] = tempfile.mkdtemp()
    keep_freed_memory()
    samples = pictures(options.batch_size, options.size)
    rows = []
    for network in options.networks.split(","):
        stacks = {}
        for precision in ("float32", "bfloat16"):
            cell = cell_of("erm", network, batch_size=options.batch_size, precision=precision)
            stacks[precision] = fitting.Stack(samples, cell, cell.replicas())
        with threads(1):
            rounds = [[seconds(one) for one in stacks.values()] for _ in range(options.repeats + 1)]
        full, half = map(statistics.median, zip(*rounds[1:], strict=True))
        rows.append(
            {
                "network": network,
                "float32, s": rounded(full),
                "bfloat16, s": rounded(half),
                "float32 / bfloat16": rounded(statistics.median(a / b for a, b in rounds[1:])),
            }
        )
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
