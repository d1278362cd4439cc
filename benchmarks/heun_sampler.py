"""Heun sampling against the network's own forward time, and pictures a second by batch size.

Random weights and latents: what they hold does not change the cost. Sampling and bare forward
passes take turns, so that what else the machine does meets both; the middle ratio counts.

    python benchmarks/heun_sampler.py --batches 16,64,256 --threads 1
"""

import argparse
import os
import platform
import statistics
import time

import torch
from _results import rounded, save

from robust_fairness.core.checkpoints import threads
from robust_fairness.generation import edm, unet

CLASSES = 10


def seconds(work, device: torch.device) -> float:
    """Wall time of a piece of work; a GPU is waited for at both ends."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    """Print the ratio and the rate for every batch size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", default="16,64,256")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--shape", default="1,8,8", help="channels, height, width")
    parser.add_argument("--channels", default="32,64", help="of the network's levels")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--compiled", action="store_true")
    options = parser.parse_args()
    channels, *size = map(int, options.shape.split(","))
    device, dtype = torch.device(options.device), getattr(torch, options.precision)
    parameters = unet.Parameters(
        channels=tuple(map(int, options.channels.split(","))), layers=options.layers
    )
    network = unet.build(parameters, channels, (size[0], size[1]), CLASSES, seed=0)
    network = network.to(device, dtype).eval().requires_grad_(False)
    if options.compiled:
        network = torch.compile(network)
    denoiser = edm.Denoiser(network, edm.Preconditioning())
    sampler = edm.Sampler(steps=options.steps)
    evaluations = 2 * options.steps - 1  # the last step has one
    name = torch.cuda.get_device_name() if device.type == "cuda" else platform.machine()
    print(
        f"{name}, {os.cpu_count()} cores, torch {torch.__version__}, {options.threads} thread(s), "
        f"{sum(one.numel() for one in network.parameters()):,} parameters, "
        f"pictures {options.shape}, {options.precision}, {evaluations} evaluations"
    )
    rows = []
    for count in map(int, options.batches.split(",")):
        latents = torch.randn(count, channels, *size, device=device)
        labels = torch.arange(count, device=device) % CLASSES
        inputs, times = latents.to(dtype), torch.zeros(count, device=device)

        def bare(inputs=inputs, times=times, labels=labels) -> None:
            for _ in range(evaluations):
                network(inputs, times, labels)

        def sample(latents=latents, labels=labels) -> None:
            pictures = edm.heun(denoiser, latents, labels, edm.schedule(sampler))
            edm.to_pixels(pictures).cpu()

        with threads(options.threads), torch.inference_mode():
            seconds(bare, device), seconds(sample, device)  # kernels are chosen, caches filled
            pairs = [
                (seconds(bare, device), seconds(sample, device)) for _ in range(options.repeats)
            ]
        ratios = [whole / own for own, whole in pairs]
        rows.append(
            {
                "batch": count,
                "images per wall-clock s": rounded(count / min(whole for _, whole in pairs)),
                "sampling / forward passes": rounded(statistics.median(ratios)),
                "most": rounded(max(ratios)),
            }
        )
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
