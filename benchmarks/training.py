"""Training replicas in stacks against loops over them, as ratios inside one run.

One loop is plain torch (``_plain.py``), the other our own training of one replica at a time.
Synthetic rows with the columns of Adult: what the rows hold does not change the cost of a step.
Loops are over ``MEASURED_ALONE`` replicas, whose time is multiplied.

    python benchmarks/training.py --replicas 16 --batch-sizes 128
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import numpy as np
import torch
from _cells import cell_of, samples_of
from _plain import Replica as Plain
from _results import Row, rounded, save

from robust_fairness.bench.compute.checkpoints import ROOT_VARIABLE, threads
from robust_fairness.bench.compute.process import keep_freed_memory
from robust_fairness.bench.training import fitting
from robust_fairness.core.samples import Samples

MEASURED_ALONE = 8


def adult_like(rows: int, features: int) -> Samples:
    """Rows with two classes and two groups; one split that trains on nearly all of them."""
    rng = np.random.default_rng(0)
    part = np.where(np.arange(rows) < rows - 256, "train", "val")
    part[-128:] = "test"
    x = rng.normal(size=(rows, features)).astype(np.float32)
    y, sex = rng.integers(0, 2, (2, rows))
    return samples_of(x, y, 2, part, sex=sex)


def seconds(epochs: Sequence[Callable[[], None]]) -> float:
    """CPU time of one epoch of each."""
    start = time.process_time()
    for epoch in epochs:
        epoch()
    return time.process_time() - start


def plain(samples: Samples, method: str, batch_size: int) -> Callable[[], None]:
    """An epoch of a replica in plain torch."""
    rows = samples.rows("split_0", "train")
    x, y = torch.as_tensor(samples.x[rows]), torch.as_tensor(samples.y[rows])
    group = torch.as_tensor(samples.attributes["sex"].cat.codes.to_numpy()[rows]).long()
    return partial(Plain(x.shape[1], method).epoch, x, y, group, batch_size)


def measure(samples: Samples, method: str, count: int, batch_size: int, repeats: int) -> Row:
    """Epoch times of the three ways and their ratios, of rounds in turn after a warm-up."""
    cell = cell_of(method, "mlp", seeds=count, batch_size=batch_size)
    replicas = cell.replicas()
    groups = [stacked for stacked, _ in fitting.trainings(replicas, samples, "mlp")]
    alone = replicas[:MEASURED_ALONE]
    ways = [
        [fitting.Stack(samples, cell, group).run_epoch for group in groups],
        [fitting.Stack(samples, cell, [replica]).run_epoch for replica in alone],
        [plain(samples, method, batch_size) for _ in alone],
    ]
    rounds = np.array([[seconds(way) for way in ways] for _ in range(repeats + 1)])[1:]
    rounds[:, 1:] *= count / len(alone)
    stacked, ours, written_plainly = np.median(rounds, axis=0)
    ratios = rounds[:, 2] / rounds[:, 0]
    return {
        "method": method,
        "replicas": count,
        "batch size": batch_size,
        "stacks": len(groups),
        "epoch of the stacks, CPU s": rounded(stacked),
        "of our loop, CPU s": rounded(ours),
        "of a plain loop, CPU s": rounded(written_plainly),
        "plain loop / stacks": rounded(float(np.median(ratios))),
        "lowest": rounded(float(ratios.min())),
        "our loop / stacks": rounded(float(np.median(rounds[:, 1] / rounds[:, 0]))),
    }


def main() -> None:
    """Print the times and ratios of every method, number of replicas and batch size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", default="16,32,100")
    parser.add_argument("--batch-sizes", default="128,1024")
    parser.add_argument("--rows", type=int, default=4352)
    parser.add_argument("--features", type=int, default=108)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--methods", default="erm,adv_debias,laftr,cuma")
    options = parser.parse_args()
    os.environ[ROOT_VARIABLE] = tempfile.mkdtemp()
    keep_freed_memory()
    samples = adult_like(options.rows, options.features)
    counts, batch_sizes = (
        [int(number) for number in text.split(",")]
        for text in (options.replicas, options.batch_sizes)
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
