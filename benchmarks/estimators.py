"""HistGradientBoosting on Adult as a cell of the grid against scikit-learn alone.

Both fit the same rows and predict the same validation rows. A cell stores the fitted estimator
without pickle as well, loads it again, and writes its validation loss and checkpoint.

    python benchmarks/estimators.py --repeats 5
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from _results import rounded, save
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

import robust_fairness as rf
from robust_fairness import training
from robust_fairness.compute.checkpoints import ROOT_VARIABLE
from robust_fairness.experiment.experiment import Cell
from robust_fairness.samples import Samples

PARAMS = {"early_stopping": False}


def seconds(work: Callable[[], Any]) -> float:
    """CPU time of a call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def alone(samples: Samples) -> None:
    """Fit and predict with scikit-learn."""
    part = samples.splits["split_0"]
    x, y = samples.arrays["x"].astype(np.float64), samples.y
    machine = HistGradientBoostingClassifier(**PARAMS).fit(x[part == "train"], y[part == "train"])
    machine.predict_proba(x[part == "val"])


def in_the_grid(samples: Samples) -> None:
    """Train a cell, without a checkpoint of an earlier round."""
    cell = Cell.model_validate(
        {
            "dataset": "adult",
            "label": "boosted_trees",
            "method": {"name": "erm"},
            "network": {"name": "estimator", "params": PARAMS},
            "protocol": {"threads": 1},
            "seeds": [0],
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        os.environ[ROOT_VARIABLE] = folder
        training.train(samples, cell)


def main() -> None:
    """Measure both in turn and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    samples = rf.load("adult", splits=1)
    with threadpool_limits(1):
        pairs = [
            (seconds(lambda: in_the_grid(samples)), seconds(lambda: alone(samples)))
            for _ in range(options.repeats + 1)
        ][1:]
    ratios = [grid / direct for grid, direct in pairs]
    row = {
        "training rows": int((samples.splits["split_0"] == "train").sum()),
        "a cell, CPU s": rounded(statistics.median(pair[0] for pair in pairs)),
        "scikit-learn, CPU s": rounded(statistics.median(pair[1] for pair in pairs)),
        "ratio, least": rounded(min(ratios)),
        "ratio, median": rounded(statistics.median(ratios)),
    }
    save(__file__, vars(options), [row])


if __name__ == "__main__":
    main()
