"""Training replicas in stacks against a loop over them, as a ratio inside one run.

Synthetic rows with the columns of Adult: what the rows hold does not change the cost of a step. The
loop is over ``MEASURED_ALONE`` replicas, whose time is multiplied.

    python benchmarks/training.py --replicas 16 --batch-sizes 128
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
from _results import Row, rounded, save

from robust_fairness.core.checkpoints import ROOT_VARIABLE, threads
from robust_fairness.core.memory import keep_freed_memory
from robust_fairness.experiment.experiment import Cell
from robust_fairness.samples import Samples
from robust_fairness.training import fitting, stacking

MEASURED_ALONE = 8


def adult_like(rows: int, features: int) -> Samples:
    """Rows with two classes and two groups; one split that trains on nearly all of them."""
    rng = np.random.default_rng(0)
    part = np.where(np.arange(rows) < rows - 256, "train", "val")
    part[-128:] = "test"
    return Samples(
        x=rng.normal(size=(rows, features)).astype(np.float32),
        y=rng.integers(0, 2, rows),
        attributes=pd.DataFrame(
            {"sex": pd.Categorical.from_codes(rng.integers(0, 2, rows), ["f", "m"])}
        ),
        id=np.arange(rows),
        splits=pd.DataFrame({"split_0": pd.Categorical(part, ["train", "val", "test"])}),
        classes=("no", "yes"),
        sensitive=("sex",),
    )


def seconds(stacks: Sequence[fitting.Stack]) -> float:
    """CPU time of one epoch of each."""
    start = time.process_time()
    for stack in stacks:
        stack.run_epoch()
    return time.process_time() - start


def measure(samples: Samples, method: str, count: int, batch_size: int, repeats: int) -> Row:
    """Epoch times of both ways and their ratio, of rounds in turn after a warm-up."""
    cell = Cell.model_validate(
        {
            "dataset": "adult_like",
            "label": method,
            "method": {"name": method},
            "network": {"name": "mlp"},
            "protocol": {"batch_size": batch_size, "epochs": 100},
            "seeds": list(range(count)),
        }
    )
    replicas = cell.replicas()
    groups = stacking.stacks(replicas, samples, "mlp")
    together = [fitting.Stack(samples, cell, group) for group in groups]
    alone = [fitting.Stack(samples, cell, [one]) for one in replicas[:MEASURED_ALONE]]
    factor = count / len(alone)
    pairs = [(seconds(together), factor * seconds(alone)) for _ in range(repeats + 1)][1:]
    ratios = [loop / stack for stack, loop in pairs]
    return {
        "method": method,
        "replicas": count,
        "batch size": batch_size,
        "stacks": len(groups),
        "epoch of the stacks, CPU s": rounded(statistics.median(p[0] for p in pairs)),
        "of a loop, CPU s": rounded(statistics.median(p[1] for p in pairs)),
        "loop / stacks": rounded(statistics.median(ratios)),
        "lowest": rounded(min(ratios)),
    }


def main() -> None:
    """Print epoch times of both ways and their ratio for every method, number and batch size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", default="16,32")
    parser.add_argument("--batch-sizes", default="128,1024")
    parser.add_argument("--rows", type=int, default=2304)
    parser.add_argument("--features", type=int, default=108)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--methods", default="erm,adv_debias,laftr,cuma")
    options = parser.parse_args()
    os.environ[ROOT_VARIABLE] = tempfile.mkdtemp()
    keep_freed_memory()
    samples = adult_like(options.rows, options.features)
    counts, batch_sizes = (
        [int(one) for one in text.split(",")] for text in (options.replicas, options.batch_sizes)
    )
    with threads(options.threads):
        rows = [
            measure(samples, method, count, batch_size, options.repeats)
            for method, batch_size, count in product(
                options.methods.split(","), batch_sizes, counts
            )
        ]
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
