"""Training steps of UpDn by method and number of groups, and what heads of groups weigh.

Questions, features and groups are generated at the size of GQA: what they hold does not change
the cost of a step. Numbers of groups take turns, and ratios are of processor time, so that they do
not depend on what else the machine does.

    python benchmarks/question_groups.py --repeats 3
"""

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from robust_fairness.core.checkpoints import ROOT_VARIABLE, threads
from robust_fairness.experiment.experiment import Cell
from robust_fairness.samples import Samples
from robust_fairness.samples.questions import Boxes, Questions
from robust_fairness.training import fitting

METHODS = ("group_upweighting", "group_dro", "irmv1", "rubi", "lnl")
GROUPS = (2, 115, 1833, 133328)  # head or tail, global groups, answers, local groups
ROWS, ANSWERS, WORDS, TOKENS = 943_000, 1833, 3000, 14
PICTURES, BOXES, FEATURES = 64, 36, 2048
FEW = 256  # validation and test rows
ADAM = 4  # numbers a weight: itself, its gradient and two moments


def boxes(folder: Path) -> Boxes:
    """Features of a few pictures."""
    rng = np.random.default_rng(0)
    shape = (PICTURES, BOXES, FEATURES)
    np.save(folder / "features.npy", rng.random(shape, dtype=np.float32).astype(np.float16))
    np.save(folder / "counts.npy", rng.integers(10, BOXES + 1, PICTURES).astype(np.int16))
    return Boxes(str(folder), shape, "generated")


def questions(rows: int, groups: tuple[int, ...], pictures: Boxes) -> Samples:
    """Random questions with an attribute for each number of groups, all of which occur."""
    rng = np.random.default_rng(0)
    part = np.array(["train"] * rows + ["val"] * FEW + ["test"] * FEW)
    count = len(part)
    attributes = {
        f"of_{number}": pd.Categorical.from_codes(
            rng.permutation(count) % number, list(map(str, range(number)))
        )
        for number in groups
    }
    return Samples(
        x={
            "tokens": rng.integers(1, WORDS, (count, TOKENS), dtype=np.int32),
            "picture": rng.integers(0, PICTURES, count, dtype=np.int32),
        },
        y=rng.integers(0, ANSWERS, count),
        attributes=pd.DataFrame(attributes),
        id=np.arange(count),
        splits=pd.DataFrame({"split_0": pd.Categorical(part, ["train", "val", "test"])}),
        classes=tuple(map(str, range(ANSWERS))),
        questions=Questions(("", *(f"word {n}" for n in range(1, WORDS))), pictures),
    )


def stack_of(method: str, groups: int, samples: Samples, batch_size: int) -> fitting.Stack:
    """A replica of UpDn at the sizes of the study."""
    cell = Cell.model_validate(
        {
            "dataset": "questions",
            "label": method,
            "method": {"name": method, "explicit": [f"of_{groups}"]},
            "network": {"name": "updn"},
            "protocol": {"batch_size": batch_size, "epochs": 30, "preprocessing": "none"},
            "seeds": [0],
        }
    )
    return fitting.Stack(samples, cell, cell.replicas())


def timed(stack: fitting.Stack, batches: Iterator[Tensor]) -> tuple[float, float]:
    """Wall time and processor time of the steps on one batch."""
    rows = next(batches)
    wall, processor = time.perf_counter(), time.process_time()
    for step in stack.method.steps(stack.model, stack.data.batch(rows)):
        stack.optimisation.apply(step)
    return time.perf_counter() - wall, time.process_time() - processor


def measure(method: str, options: argparse.Namespace, samples: Samples) -> None:
    """Print one line for each number of groups."""
    stacks = {n: stack_of(method, n, samples, options.batch_size) for n in options.groups}
    batches, orders = {}, {}
    for number, stack in stacks.items():
        stack.model.train()
        stack.method.train()
        start = time.perf_counter()
        batches[number] = stack.data.epoch_batches(stack.method.visiting_order)
        timed(stack, batches[number])
        orders[number] = time.perf_counter() - start
    rounds = [
        {number: timed(stack, batches[number]) for number, stack in stacks.items()}
        for _ in range(options.repeats)
    ]
    fewest = min(options.groups)
    for number, stack in stacks.items():
        ratios = [times[number][1] / times[fewest][1] for times in rounds]
        own = sum(one.numel() * one.element_size() for one in stack.method.parameters())
        print(
            f"{method:18} {number:7} groups, {stack.data.subgroup.max() + 1:7} cells: "
            f"{1 / statistics.median(times[number][0] for times in rounds):6.3f} steps/s, "
            f"{statistics.median(ratios):5.2f} x the cost of {fewest} "
            f"({min(ratios):.2f} to {max(ratios):.2f}); first batch after {orders[number]:.1f} s; "
            f"own weights {own / 1e6:.1f} MB, in training {ADAM * own / 1e6:.1f} MB",
            flush=True,
        )


def main() -> None:
    """Print steps a second, ratios to the fewest groups and the memory of a method's own heads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--groups", type=int, nargs="+", default=GROUPS)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    os.environ[ROOT_VARIABLE] = tempfile.mkdtemp()
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, torch "
        f"{torch.__version__}, {options.threads} threads, batch {options.batch_size}, "
        f"{options.rows} rows, {ANSWERS} answers, {BOXES} boxes x {FEATURES}"
    )
    with tempfile.TemporaryDirectory() as folder, threads(options.threads):
        samples = questions(options.rows, tuple(options.groups), boxes(Path(folder)))
        for method in options.methods.split(","):
            measure(method, options, samples)


if __name__ == "__main__":
    main()
