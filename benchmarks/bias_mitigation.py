"""Training on pictures: every method's images a second against a plain published loop.

The plain loop is the same torch layers in channels-first order with autograd and Adam, as the
published code trains the standard model. Each method is timed in turn with it, so that the ratio
does not depend on what else the machine does.

    python benchmarks/bias_mitigation.py --size 96 --batches 4
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from _results import Row, rounded, save
from torch import nn
from torch.nn import functional

from robust_fairness.core.checkpoints import ROOT_VARIABLE, threads
from robust_fairness.experiment.experiment import Cell
from robust_fairness.samples import Samples
from robust_fairness.training import fitting

METHODS = (
    "erm", "group_upweighting", "group_dro", "rubi", "lnl", "irmv1", "lff", "spectral_decoupling",
)  # fmt: skip
CLASSES = 10
FEW = 16  # validation and test rows


def pictures(rows: int, size: int) -> Samples:
    """Random pictures with ten classes and a variable of ten values."""
    rng = np.random.default_rng(0)
    part = np.array(["train"] * rows + ["val"] * FEW + ["test"] * FEW)
    names = list(map(str, range(CLASSES)))
    return Samples(
        x=rng.integers(0, 256, (len(part), 3, size, size), dtype=np.uint8),
        y=rng.integers(0, CLASSES, len(part)),
        attributes=pd.DataFrame(
            {"shape": pd.Categorical.from_codes(rng.integers(0, CLASSES, len(part)), names)}
        ),
        id=np.arange(len(part)),
        splits=pd.DataFrame({"split_0": pd.Categorical(part, ["train", "val", "test"])}),
        classes=tuple(names),
        sensitive=("shape",),
    )


class Plain(nn.Module):
    """The published network, ReLU before the maximum."""

    def __init__(self) -> None:
        super().__init__()
        self.normalise = nn.BatchNorm2d(3)
        sizes = [(3, 32, 5, 1), (32, 32, 3, 1), (32, 64, 3, 2), (64, 64, 3, 2)]
        self.layers = nn.ModuleList(
            [nn.Conv2d(i, o, k, stride=s, padding=k // 2) for i, o, k, s in sizes]
        )
        self.top = nn.Linear(64, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits ``[row, class]``."""
        x = functional.relu(self.layers[0](self.normalise(x)))
        x = functional.max_pool2d(x, 3, stride=2, padding=1)
        for layer in self.layers[1:]:
            x = functional.relu(layer(x))
        return self.top(x.mean((2, 3)))


def plain_epoch(samples: Samples, batch_size: int) -> Callable[[], None]:
    """One epoch of the plain loop."""
    net = Plain()
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
    x, y = torch.from_numpy(samples.x), torch.from_numpy(samples.y)
    rows = torch.from_numpy(samples.rows("split_0", "train"))

    def epoch() -> None:
        for batch in rows[torch.randperm(len(rows))].split(batch_size):
            optimiser.zero_grad()
            functional.cross_entropy(net(x[batch].float()), y[batch]).backward()
            optimiser.step()

    return epoch


def seconds(epoch: Callable[[], None]) -> float:
    """CPU time."""
    start = time.process_time()
    epoch()
    return time.process_time() - start


def main() -> None:
    """Print images a second of every method and ratios to the plain loop and to erm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=96)
    parser.add_argument("--batches", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    os.environ[ROOT_VARIABLE] = tempfile.mkdtemp()
    rows = options.batches * options.batch_size
    samples = pictures(rows, options.size)
    costs: dict[str, float] = {}
    found: list[Row] = []
    with threads(options.threads):
        plain = plain_epoch(samples, options.batch_size)
        for method in options.methods.split(","):
            cell = Cell.model_validate(
                {
                    "dataset": "pictures",
                    "label": method,
                    "method": {"name": method},
                    "network": {"name": "biased_mnist_cnn"},
                    "protocol": {"batch_size": options.batch_size, "epochs": 100},
                    "seeds": [0],
                }
            )
            stack = fitting.Stack(samples, cell, cell.replicas())
            batches = stack.data.epoch_batches(stack.method.visiting_order)
            visited = len(torch.cat(list(batches), dim=1)[0])
            pairs = [
                (seconds(stack.run_epoch) / visited, seconds(plain) / rows)
                for _ in range(options.repeats + 1)
            ][1:]
            ratio = statistics.median(theirs / ours for ours, theirs in pairs)
            costs[method] = 1 / ratio
            found.append(
                {
                    "method": method,
                    "images per CPU s": rounded(1 / statistics.median(p[0] for p in pairs)),
                    "published loop": rounded(1 / statistics.median(p[1] for p in pairs)),
                    "x published loop": rounded(ratio),
                    "x the time of erm": rounded(costs[method] / costs.get("erm", costs[method])),
                }
            )
    save(__file__, vars(options), found)


if __name__ == "__main__":
    main()
