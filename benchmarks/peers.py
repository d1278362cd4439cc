"""Peers side by side: audits, stacks of replicas and fair training, in time and memory.

Every way runs in processes of its own, one after the other and round by round. CPU time of one
thread is that of the first call, with what it imports when it is called (an epoch of a stack, loops
or vmap is the second one; fair training includes all imports, torch's for networks), and the median
of the rounds; memory is what that adds to the peak of its process. Ways of a part get the same rows
but do not all give the same: the column ``gives`` tells what. A ratio above 1 is that of a slower
way than ours.

    python benchmarks/peers.py --repeats 3
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from _results import peak_mib, rounded, save

ROWS, BOOTSTRAPS = 50_000, 10
LOGISTIC = {"name": "estimator", "estimator": "sklearn.linear_model.LogisticRegression"}
REPLICAS, BATCH, STEPS = 16, 128, 100
Work = Callable[[], Any]


def predictions() -> dict[str, np.ndarray]:
    """Outcome, decision and two attributes of five and two values."""
    rng = np.random.default_rng(0)
    y, group, other = (rng.integers(0, levels, ROWS) for levels in (2, 5, 2))
    decided = np.where(rng.random(ROWS) < 0.7 + 0.03 * group, y, 1 - y)
    return {"y": y, "p": decided, "group": group, "other": other}


def our_audit() -> Work:
    """``rf.audit``."""
    import robust_fairness as rf

    frame = pd.DataFrame(predictions())
    return lambda: (
        rf.audit(frame, y_true="y", y_pred="p", sensitive_features=["group", "other"]).by_group
    )


def metric_frame(bootstraps: int) -> Work:
    """Rates and gaps of fairlearn's ``MetricFrame``, for each attribute as our audit has them."""
    from fairlearn import metrics
    from sklearn.metrics import accuracy_score

    data = predictions()
    scores = {
        "accuracy": accuracy_score,
        "selection_rate": metrics.selection_rate,
        "true_positive_rate": metrics.true_positive_rate,
        "false_positive_rate": metrics.false_positive_rate,
    }
    sampled = {"n_boot": bootstraps, "ci_quantiles": [0.025, 0.975], "random_state": 0}

    def frames() -> list[Any]:
        made = [
            metrics.MetricFrame(
                metrics=scores, y_true=data["y"], y_pred=data["p"],
                sensitive_features=data[attribute], **(sampled if bootstraps else {}),
            )
            for attribute in ("group", "other")
        ]  # fmt: skip
        return [(frame.by_group, frame.difference()) for frame in made]

    return frames


def polars_counts() -> Work:
    """Counts of groups, classes and decisions by polars."""
    import polars

    frame = polars.DataFrame(predictions())
    return lambda: [frame.group_by(name, "y", "p").len() for name in ("group", "other")]


def numpy_counts() -> Work:
    """The same counts by ``bincount``: what any audit has to read."""
    data = predictions()
    return lambda: [
        np.bincount(4 * data[name] + 2 * data["y"] + data["p"]) for name in ("group", "other")
    ]


def training_rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with the columns of Adult for so many steps, their classes and groups."""
    rng = np.random.default_rng(0)
    count = BATCH * STEPS
    return rng.normal(size=(count, 108)).astype(np.float32), *rng.integers(0, 2, (2, count))


def stacked() -> Work:
    """An epoch of our stack of replicas."""
    from _cells import cell_of, samples_of

    from robust_fairness.bench.compute.process import keep_freed_memory
    from robust_fairness.bench.training.fitting import Stack

    keep_freed_memory()
    x, y, sex = training_rows()
    part = np.where(np.arange(len(y) + 256) < len(y), "train", "val")
    part[-128:] = "test"
    x, y, sex = (np.concatenate([values, values[:256]]) for values in (x, y, sex))
    samples = samples_of(x, y, 2, part, sex=sex)
    cell = cell_of("erm", "mlp", seeds=REPLICAS, batch_size=BATCH)
    stack = Stack(samples, cell, cell.replicas())
    stack.run_epoch()
    return stack.run_epoch


def loops() -> Work:
    """An epoch of plain torch, one replica after the other."""
    import torch
    from _plain import Replica

    x, y, group = map(torch.as_tensor, training_rows())
    replicas = [Replica(x.shape[1], "erm") for _ in range(REPLICAS)]
    replicas[0].epoch(x, y, group, BATCH)
    return lambda: [replica.epoch(x, y, group, BATCH) for replica in replicas]


def vmapped() -> Work:
    """An epoch with ``torch.func``: gradients of one replica, mapped over all, and one Adam."""
    import torch
    from _plain import layers
    from torch.func import functional_call, grad, stack_module_state, vmap

    x, y, _ = map(torch.as_tensor, training_rows())
    nets = [
        torch.nn.Sequential(layers(x.shape[1], 100, 64), layers(64, 32, 2)) for _ in range(REPLICAS)
    ]
    weights, _ = stack_module_state(nets)
    optimiser = torch.optim.Adam(weights.values(), lr=1e-3, weight_decay=1e-5, fused=True)

    def loss(one: dict[str, torch.Tensor], rows: torch.Tensor, labels: torch.Tensor) -> Any:
        return torch.nn.functional.cross_entropy(functional_call(nets[0], one, (rows,)), labels)

    gradients = vmap(grad(loss), randomness="different")

    def epoch() -> None:
        orders = torch.stack([torch.randperm(len(x)) for _ in nets])
        for rows in orders.split(BATCH, dim=1):
            for name, gradient in gradients(weights, x[rows], y[rows]).items():
                weights[name].grad = gradient
            optimiser.step()

    epoch()
    return epoch


def people() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows whose outcome leans on features and group."""
    rng = np.random.default_rng(0)
    group, x = rng.integers(0, 2, 20_000), rng.normal(size=(20_000, 20))
    y = (x[:, 0] + 0.7 * group + rng.logistic(size=len(x)) > 0).astype(int)
    return x, y, group


def reduction() -> Work:
    """Import and fit fairlearn's exponentiated gradient of a logistic regression."""
    x, y, group = people()

    def work() -> Any:
        from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient
        from sklearn.linear_model import LogisticRegression

        made = ExponentiatedGradient(LogisticRegression(), EqualizedOdds())
        return made.fit(x, y, sensitive_features=group)

    return work


def ours(name: str, **options: Any) -> Work:
    """Import and fit a fair classifier of this package."""
    x, y, group = people()

    def work() -> Any:
        import robust_fairness as rf

        return getattr(rf, name)(**options).fit(x, y, sensitive_features=group)

    return work


PARTS: dict[str, dict[str, tuple[str, Callable[[], Work]]]] = {
    f"audit of {ROWS:,} rows by two attributes": {
        "rf.audit": ("rates, gaps, 95 % intervals, checks", our_audit),
        "MetricFrame": ("rates, gaps", partial(metric_frame, 0)),
        f"MetricFrame, {BOOTSTRAPS} bootstraps": ("rates, gaps, rough intervals",
                                                  partial(metric_frame, BOOTSTRAPS)),
        "polars": ("counts", polars_counts),
        "numpy": ("counts of codes", numpy_counts),
    },
    f"{STEPS} steps of {REPLICAS} replicas, batches of {BATCH}": {
        "stack": ("losses and validation too", stacked),
        "loops in torch": ("weights", loops),
        "torch.func.vmap": ("weights", vmapped),
    },
    "fair training on 20,000 rows": {
        "rf.ExponentiatedGradient": (
            "reduction of a logistic regression",
            partial(ours, "ExponentiatedGradient", network=LOGISTIC),
        ),
        "fairlearn's ExponentiatedGradient": ("reduction of a logistic regression", reduction),
        "rf.GroupDro, 12 epochs": ("network", partial(ours, "GroupDro", epochs=12)),
        "rf.Cuma, 12 epochs": ("network", partial(ours, "Cuma", epochs=12)),
    },
}  # fmt: skip


def measure(part: str, way: str) -> None:
    """Print CPU seconds and added memory of a way, in this process."""
    from threadpoolctl import threadpool_limits

    work = PARTS[part][way][1]()
    with threadpool_limits(1):
        before, start = peak_mib(), time.process_time()
        work()
        print("measured", time.process_time() - start, peak_mib() - before)


def main() -> None:
    """Print the time and memory of every way, and its ratio to ours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(*options.one)
        return
    rows = []
    for part, ways in PARTS.items():
        taken: dict[str, list[list[float]]] = {way: [] for way in ways}
        for _ in range(options.repeats):
            for way, spent in taken.items():
                words = [sys.executable, __file__, "--one", part, way]
                told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
                spent.append([float(word) for word in told.split("measured ")[-1].split()])
        first = median(seconds for seconds, _ in next(iter(taken.values())))
        for way, spent in taken.items():
            seconds, mib = (median(values) for values in zip(*spent, strict=True))
            rows.append(
                {
                    "what": part,
                    "way": way,
                    "gives": ways[way][0],
                    "CPU s": rounded(seconds),
                    "ratio to ours": rounded(seconds / first),
                    "added MiB": rounded(mib),
                }
            )
    save(__file__, {"repeats": options.repeats}, rows)


if __name__ == "__main__":
    main()
