"""Training on images: every method's images a second against the published loop.

That loop is the same torch layers in channels-first order with autograd and Adam, as the published
code trains the standard model, LfF and LNL (``_published.py``); all other methods are compared with
the standard model's, which costs less than theirs. It has a process of its own, since ours keeps
its memory. Both are timed in turn, so that ratios do not depend on what else the machine does.

    python benchmarks/bias_mitigation.py --sizes 24,96 --batches 4
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from itertools import product
from multiprocessing import get_context

import numpy as np
import torch
from _cells import cell_of, samples_of
from _published import epoch_of
from _results import Row, peak_mib, rounded, save

from robust_fairness.bench.compute.checkpoints import ROOT_VARIABLE, threads
from robust_fairness.bench.compute.process import keep_freed_memory
from robust_fairness.bench.training import fitting
from robust_fairness.core.samples import Samples

METHODS = (
    "erm", "group_upweighting", "group_dro", "rubi", "lnl", "irmv1", "lff", "spectral_decoupling",
)  # fmt: skip
CLASSES = 10
FEW = 16  # validation and test rows


def images(rows: int, size: int) -> Samples:
    """Random images with ten classes and a variable of ten values."""
    rng = np.random.default_rng(0)
    part = np.array(["train"] * rows + ["val"] * FEW + ["test"] * FEW)
    x = rng.integers(0, 256, (len(part), 3, size, size), dtype=np.uint8)
    y, shape = rng.integers(0, CLASSES, (2, len(part)))
    return samples_of(x, y, CLASSES, part, shape=shape)


def seconds(epoch: Callable[[], None]) -> float:
    """CPU time."""
    start = time.process_time()
    epoch()
    return time.process_time() - start


@cache
def _published(method: str, rows: int, size: int, batch_size: int) -> Callable[[], None]:
    return epoch_of(method, images(rows, size), batch_size)


def published_seconds(threads_: int, method: str, *sizes: int) -> float:
    """CPU time of an epoch of the published loop, after one that is not counted."""
    torch.set_num_threads(threads_)
    known = _published.cache_info().currsize
    epoch = _published(method, *sizes)
    if _published.cache_info().currsize > known:
        epoch()
    return seconds(epoch)


def own_stack(samples: Samples, method: str, batch_size: int) -> fitting.Stack:
    """One replica of a method."""
    cell = cell_of(method, "biased_mnist_cnn", batch_size=batch_size)
    return fitting.Stack(samples, cell, cell.replicas())


def measure(
    other: ProcessPoolExecutor, method: str, rows: int, size: int, options: argparse.Namespace
) -> Row:
    """Both ways in turn, after a warm-up."""
    stack = own_stack(images(rows, size), method, options.batch_size)
    visited = sum(rows.shape[1] for rows in stack.data.epoch_batches(stack.method.visiting_order))
    theirs = partial(
        other.submit, published_seconds, options.threads, method, rows, size, options.batch_size
    )
    pairs = [
        (seconds(stack.run_epoch) / visited, theirs().result() / rows)
        for _ in range(options.repeats + 1)
    ][1:]
    ratios = [published / ours for ours, published in pairs]
    ours, published = np.median(pairs, axis=0)
    return {
        "pixels": size,
        "method": method,
        "images per CPU s": rounded(1 / ours),
        "published loop": rounded(1 / published),
        "ratio": rounded(statistics.median(ratios)),
        "lowest": rounded(min(ratios)),
        "peak of the process, MiB": int(peak_mib()),
        "of the published loop": int(other.submit(peak_mib).result()),
    }


def main() -> None:
    """Print images a second of every method and of the published loop, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="24,96")
    parser.add_argument("--batches", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    os.environ[ROOT_VARIABLE] = tempfile.mkdtemp()
    keep_freed_memory()
    rows = options.batches * options.batch_size
    with (
        ProcessPoolExecutor(1, get_context("spawn")) as other,
        threads(options.threads),
    ):
        cases = product(map(int, options.sizes.split(",")), options.methods.split(","))
        measured = [measure(other, method, rows, size, options) for size, method in cases]
    save(__file__, vars(options), measured)


if __name__ == "__main__":
    main()
