"""RandAugment of batches: its share of a training step, and what it costs image by image.

python benchmarks/randaugment.py --networks biased_mnist_cnn,resnet18 --batch-size 128 --side 32
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from _cells import cell_of, samples_of
from _results import rounded, save
from torchvision.transforms import v2

from robust_fairness.bench.compute.checkpoints import threads
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.training import fitting
from robust_fairness.bench.training.augmentation import randaugment
from robust_fairness.core.samples import Samples


def images(count: int, side: int) -> Samples:
    """Random images of two classes; all but the last two train."""
    rng = np.random.default_rng(0)
    part = np.full(count, "train", dtype=object)
    part[-2:] = "val", "test"
    x = rng.integers(0, 256, (count, 3, side, side), dtype=np.uint8)
    return samples_of(x, rng.integers(0, 2, count), 2, part)


def milliseconds(action: Callable[[], object], device: str) -> float:
    """Processor time of an action; where there is a GPU, wall time until it has ended there."""
    clock = time.perf_counter if device == "cuda" else time.process_time
    start = clock()
    action()
    if device == "cuda":
        torch.cuda.synchronize()
    return 1000 * (clock() - start)


def spread(values: list[float], form: str) -> str:
    """Median and range."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def main() -> None:
    """Print the time of augmenting a batch, beside image by image and beside whole steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", default="biased_mnist_cnn,resnet18")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    samples = images(options.batch_size * options.steps + 2, options.side)
    batch = torch.from_numpy(samples.x[: options.batch_size]).to(device)
    randomness, single = Randomness([0], "augmentation"), v2.RandAugment()

    def together() -> float:
        return milliseconds(lambda: randaugment(batch[None], randomness), device)

    def alone() -> float:
        return milliseconds(lambda: [single(image) for image in batch], device)

    with threads(options.threads):
        pairs = [(together(), alone()) for _ in range(options.repeats + 1)][1:]
        rows = [
            {
                "what": "a batch",
                "ms": rounded(statistics.median(batched for batched, _ in pairs)),
                "torchvision image by image / at once": spread([b / a for a, b in pairs], ".1f"),
            }
        ]
        for network in options.networks.split(","):
            stack = stack_of(network, options.batch_size, samples)
            pairs = [
                (together(), milliseconds(stack.run_epoch, device) / options.steps)
                for _ in range(options.repeats + 1)
            ][1:]
            rows.append(
                {
                    "what": f"a step of {network} with it",
                    "ms": rounded(statistics.median(two for _, two in pairs)),
                    "its share": spread([batched / two for batched, two in pairs], ".1%"),
                }
            )
    save(__file__, vars(options), rows)


def stack_of(network: str, batch_size: int, samples: Samples) -> fitting.Stack:
    """One replica of plain training on augmented images."""
    cell = cell_of("erm", network, batch_size=batch_size, augmentation="randaugment")
    return fitting.Stack(samples, cell, cell.replicas())


if __name__ == "__main__":
    main()
