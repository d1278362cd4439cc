"""Training all replicas at once against a loop over them, as a ratio inside one run.

Synthetic rows of the size of Adult: what the rows hold does not change the cost of a step.

    python benchmarks/training.py --replicas 16 --rows 2048
"""

import argparse
import os
import statistics
import tempfile
import time

import numpy as np
import pandas as pd
from _results import Row, rounded, save

from robust_fairness.core.checkpoints import ROOT_VARIABLE, threads
from robust_fairness.experiment.experiment import Cell
from robust_fairness.samples import Samples
from robust_fairness.training import fitting


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


def seconds(stack: fitting.Stack) -> float:
    """CPU time of one epoch."""
    start = time.process_time()
    stack.run_epoch()
    return time.process_time() - start


def main() -> None:
    """Print epoch times of both ways and their ratio for every method."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, default=16)
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--features", type=int, default=108)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--methods", default="erm,adv_debias,laftr,cuma")
    options = parser.parse_args()
    os.environ[ROOT_VARIABLE] = tempfile.mkdtemp()
    rows: list[Row] = []
    samples = adult_like(options.rows, options.features)
    for method in options.methods.split(","):
        cell = Cell.model_validate(
            {
                "dataset": "adult_like",
                "label": method,
                "method": {"name": method},
                "network": {"name": "mlp"},
                "protocol": {"batch_size": options.batch_size, "epochs": 100},
                "seeds": list(range(options.replicas)),
            }
        )
        with threads(options.threads):
            together = fitting.Stack(samples, cell, cell.replicas())
            alone = [fitting.Stack(samples, cell, [replica]) for replica in cell.replicas()]
            pairs = [
                (seconds(together), sum(map(seconds, alone))) for _ in range(options.repeats + 1)
            ][1:]
        ratios = [loop / stack for stack, loop in pairs]
        rows.append(
            {
                "method": method,
                "epoch of the stack, CPU s": rounded(statistics.median(p[0] for p in pairs)),
                "of a loop, CPU s": rounded(statistics.median(p[1] for p in pairs)),
                "loop / stack": rounded(statistics.median(ratios)),
                "lowest": rounded(min(ratios)),
            }
        )
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
