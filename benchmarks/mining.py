"""Share of mining in a training step: a small convolutional network with embeddings of 128 numbers.

Random pictures, two of a class: what they show does not change the cost. Forward, mining,
objective, backward and Adam's step are timed one after the other in every step, so that each
share is a ratio inside one run. The target is less than 15 % for mining.

    python benchmarks/mining.py --network biased_mnist_cnn --batch-size 128
"""

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
from _results import rounded, save
from torch.nn.functional import normalize

from robust_fairness.core.registry import find, names
from robust_fairness.methods.metric_learning import class_batches
from robust_fairness.models.randomness import DropoutNoise, Randomness
from robust_fairness.objectives.base import Objective

PHASES = ("forward", "mining", "objective", "backward", "step")
Clock = Callable[[], float]


def clock_of(device: torch.device) -> Clock:
    """Seconds now, when the device has done what it was asked for."""

    def now() -> float:
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    return now


def steps(
    network: torch.nn.Module,
    objective: Objective,
    miner_name: str,
    options: argparse.Namespace,
    device: torch.device,
) -> Iterator[dict[str, float]]:
    """Seconds of the phases of one step after the other; the first one warms up."""
    found = find("miner", miner_name)
    miner, generator = found(found.Parameters()), torch.Generator(device).manual_seed(0)
    dropout, now = Randomness([0], "dropout", device), clock_of(device)
    weights = [*network.parameters(), *objective.parameters()]
    adam = torch.optim.Adam(weights, lr=1e-4, fused=True)
    every = torch.arange(options.classes).repeat_interleave(options.batch_size)
    batches = class_batches(every, options.batch_size, 2, torch.Generator()).split(
        options.batch_size
    )
    for rows in batches:
        labels = every[rows].to(device)
        x = torch.rand(1, len(labels), 3, options.size, options.size, device=device)
        times = [now()]
        embeddings = network(x, DropoutNoise(dropout))[0]
        embeddings = normalize(embeddings) if objective.normalised else embeddings
        times.append(now())
        triplets = None
        if objective.mined:
            triplets = miner.mine(embeddings.detach(), labels, generator)
        times.append(now())
        loss = objective(embeddings, labels, triplets)
        times.append(now())
        gradients = torch.autograd.grad(loss, weights)
        times.append(now())
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient.contiguous()
        adam.step()
        times.append(now())
        yield {
            phase: after - before
            for phase, (before, after) in zip(PHASES, pairwise(times), strict=True)
        }


def shares(seconds: list[dict[str, float]], phase: str) -> list[float]:
    """Share of a phase in every step."""
    return [step[phase] / sum(step.values()) for step in seconds]


def main() -> None:
    """Print the shares of mining and of the objective, for all miners and objectives."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", default="biased_mnist_cnn")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--dimensions", type=int, default=128)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    print(
        f"{where}, {os.cpu_count()} cores, torch {torch.__version__}, {options.threads} thread(s), "
        f"{options.network}, batch {options.batch_size}, {options.size} x {options.size}, "
        f"{options.dimensions} dimensions, {options.classes} classes"
    )
    module = find("network", options.network)
    rows = []
    for name in names("objective"):
        declared = find("objective", name)
        for miner in names("miner") if declared.mined else ["none"]:
            shape = (3, options.size, options.size)
            network = module(
                module.Parameters(), shape, options.dimensions, Randomness([0], "weights")
            ).to(device)
            objective = declared(
                find("objective", name).Parameters(),
                options.classes,
                options.dimensions,
                Randomness([0], "heads"),
            ).to(device)
            passes = steps(
                network, objective, miner if declared.mined else "random", options, device
            )
            next(passes)
            seconds = [next(passes) for _ in range(options.repeats)]
            mining, loss = shares(seconds, "mining"), shares(seconds, "objective")
            rows.append(
                {
                    "objective": name,
                    "miner": miner,
                    "step, wall-clock ms": rounded(
                        1e3 * statistics.median(sum(s.values()) for s in seconds)
                    ),
                    "share of mining": f"{statistics.median(mining):.1%}",
                    "share of the objective": f"{statistics.median(loss):.1%}",
                }
            )
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
