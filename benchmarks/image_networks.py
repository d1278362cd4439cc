"""Images a second, forward and backward, of every image network, as ratios to ResNet-20.

Random images of 32 x 32 pixels and three channels: what they show does not change the cost.

    python benchmarks/image_networks.py --batch-size 128 --networks resnet20,vgg
"""

import argparse
import os
import platform
import statistics
import time
from collections.abc import Iterator

import torch
from torch.nn.functional import cross_entropy

from robust_fairness.core.registry import find
from robust_fairness.models.randomness import DropoutNoise, Randomness

NETWORKS = (
    "resnet20,preact_resnet,vgg,resnext,densenet,shake_shake,vision_transformer,mlp_mixer,resnet18"
)


def steps(name: str, device: torch.device, batch_size: int, size: int) -> Iterator[float]:
    """Seconds of one forward and backward pass after the other; the first one warms up."""
    module = find("network", name)
    network = module(module.Parameters(), (3, size, size), 10, Randomness([0], "weights")).to(
        device
    )
    x = torch.rand(1, batch_size, 3, size, size, device=device)
    y = torch.arange(batch_size, device=device) % 10
    dropout = Randomness([0], "dropout", device)
    weights = list(network.parameters())
    while True:
        start = time.perf_counter()
        loss = cross_entropy(network(x, DropoutNoise(dropout))[0], y)
        torch.autograd.grad(loss, weights)
        if device.type == "cuda":
            torch.cuda.synchronize()
        yield time.perf_counter() - start


def main() -> None:
    """Print images a second and their ratio to the first network's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", default=NETWORKS)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    print(
        f"{where}, {os.cpu_count()} cores, torch {torch.__version__}, "
        f"{options.threads} thread(s), batch {options.batch_size}, {options.size} x {options.size}"
    )
    first, *others = options.networks.split(",")
    sizes = (device, options.batch_size, options.size)
    baseline = steps(first, *sizes)
    next(baseline)
    for name in (first, *others):
        passes = steps(name, *sizes)
        next(passes)
        # in turn, so that both see the same load of the machine
        pairs = [(next(passes), next(baseline)) for _ in range(options.repeats)]
        ratios = [reference / own for own, reference in pairs]
        rate = options.batch_size / statistics.median(own for own, _ in pairs)
        print(
            f"{name:20} {rate:10.1f} images/s, {statistics.median(ratios):6.3f} of {first} "
            f"({min(ratios):.3f} to {max(ratios):.3f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
