"""What a GPU does with the training loop: right numbers, speed, and what to change.

    python benchmarks/gpu.py                       # everything, in less than ten minutes
    python benchmarks/gpu.py --device cpu --toy    # the same at toy size, without a GPU

Every method trains on the CPU and again on the device from the same initial weights, batches and
draws. Speed is measured in steps per second, with the share of that time in which a kernel runs.
Results are printed and written to ``gpu.json`` in ``--to``; measurements for which no time is left
are listed there, and a method that fails is a row with its error.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import _cells
import numpy as np
import pandas as pd
import torch
from _results import machine
from bias_mitigation import images
from torch import Tensor
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from training import adult_like

from robust_fairness.bench.compute.checkpoints import ROOT_VARIABLE, threads
from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.training import data, fitting
from robust_fairness.core.registry import find, names
from robust_fairness.core.samples import Samples

Row = dict[str, Any]
METHODS = tuple(name for name in names("method") if find("method", name).estimators != "only")
MLP = {"name": "mlp"}
EMBEDDING = {"name": "embedding", "backbone": MLP, "classifier": "logistic_regression"}
CONVOLUTION = {"name": "biased_mnist_cnn"}
NETWORKS = {"donini": {"name": "linear"}, "metric_learning": EMBEDDING, "parade": EMBEDDING}
# Miners draw where the embeddings are, so that methods of embeddings are compared without one.
UNMINED = {"objective": "multisimilarity"}
OPTIONS = {"dfr_train": {"warm_up_epochs": 1}, "metric_learning": UNMINED, "parade": UNMINED}
# Of the largest weight, after the epochs of a comparison; FairCOCCO solves with nearly equal rows.
TOLERANCE = {"float64": 1e-6, "float32": 1e-2}
EPOCHS = 2
PRECISIONS = ("float32", "tfloat32", "bfloat16")
WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")
# A kernel runs less than that share of the time: the device waits for the CPU.
BUSY = 0.5
WORTH = 1.2  # a ratio of speeds that is worth a change


class DrawnOnCpu(Randomness):
    """The CPU's random numbers on another device, whose own generators give others."""

    def __init__(self, seeds: Sequence[int], purpose: str, device: Any = "cpu") -> None:
        super().__init__(seeds, purpose)
        self.to = torch.device(device)

    def spread(self, draws: Sequence[Tensor]) -> Tensor:
        return super().spread(draws).to(self.to)

    def bernoulli(self, shape: Sequence[int], probability: float) -> Tensor:
        return super().bernoulli(shape, probability).to(self.to)


def in_domains(samples: Samples) -> Samples:
    """The samples in three domains; the test rows of the last one are out of distribution."""
    code = np.arange(len(samples)) % 3
    splits = samples.splits.astype(object)
    splits[(code == 2)[:, None] & (splits == "test")] = "ood_test"
    site = pd.Categorical.from_codes(code, ["a", "b", "c"])
    return replace(
        samples,
        attributes=samples.attributes.assign(site=site),
        domain="site",
        splits=splits.astype(pd.CategoricalDtype(["train", "val", "test", "ood_test"])),
    )


def cell_of(method: str, network: dict[str, Any], seeds: int = 1, **protocol: Any) -> Cell:
    """A cell of a method with its options."""
    options = {"name": method, **OPTIONS.get(method, {})}
    return _cells.cell_of(options, network, seeds, **protocol)


def stack_of(samples: Samples, cell: Cell) -> fitting.Stack:
    """All replicas of a cell, before training."""
    return fitting.Stack(samples, cell, cell.replicas())


def weights(stack: fitting.Stack) -> Tensor:
    """All weights of the network on the CPU, in one row of float64."""
    return torch.cat(
        [weight.detach().flatten().double().cpu() for weight in stack.model.parameters()]
    )


class Bench:
    """The measurements on one device, until a deadline."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.device = options, torch.device(options.device)
        self.deadline = time.monotonic() + 60 * options.minutes
        self.sections: dict[str, list[Row]] = {}
        self.left_out: list[str] = []
        toy = options.toy
        self.batch, self.size, self.steps = (32, 8, 2) if toy else (128, 96, 20)
        self.table = in_domains(adult_like(512 if toy else 4096, 8 if toy else 108))
        self.images = in_domains(images(self.batch * self.steps, self.size))
        self.few = in_domains(images(2 * self.batch, 8 if toy else 24))
        self.networks = ("biased_mnist_cnn",) if toy else ("biased_mnist_cnn", "resnet18")
        self.stacks = (1, 2) if toy else (1, 4, 16, 64)

    def measure(self, section: str, what: str, make: Callable[[], Row]) -> None:
        """Add a row to a section, or what went wrong; nothing after the deadline."""
        if time.monotonic() > self.deadline:
            self.left_out.append(f"{section}: {what}")
            return
        try:
            row = {"what": what, **make()}
        except (RuntimeError, ValueError, TypeError, NotImplementedError) as error:
            row = {"what": what, "error": f"{type(error).__name__}: {str(error).splitlines()[0]}"}
        self.sections.setdefault(section, []).append(row)
        print(section, row, flush=True)

    def wait(self) -> None:
        """Wait until the device has done all that it was asked for."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def compared(
        self, samples: Samples, method: str, network: dict[str, Any], precision: str
    ) -> Row:
        """Training on the device against training on the CPU; twice for equal bits."""
        protocol = {"batch_size": self.batch, "precision": precision}
        visited: list[list[Tensor]] = []
        reference = stack_of(samples, cell_of(method, network, device="cpu", **protocol))
        initial, draw = weights(reference), reference.data.epoch_batches

        def recorded(*order: Any) -> Iterator[Tensor]:
            visited.append(list(draw(*order))[: self.steps])
            return iter(visited[-1])

        with patch.object(reference.data, "epoch_batches", recorded):
            for _ in range(EPOCHS):
                reference.run_epoch()
        cell = cell_of(method, network, device=self.options.device, **protocol)
        first, again = (self.replayed(samples, cell, visited) for _ in range(2))
        largest = weights(reference).abs().max()
        difference = ((first - weights(reference)).abs().max() / largest).item()
        return {
            "difference": difference,
            "within": difference < TOLERANCE[precision],
            "moved": not torch.equal(initial, first),
            "same bits twice": torch.equal(first, again),
        }

    def replayed(self, samples: Samples, cell: Cell, visited: list[list[Tensor]]) -> Tensor:
        """Weights after epochs on the device, of recorded batches and the CPU's draws."""
        with patch.object(data, "Randomness", DrawnOnCpu):
            stack = stack_of(samples, cell)
        epochs = iter(visited)

        def batches(*order: Any) -> Iterator[Tensor]:
            return (rows.to(self.device) for rows in next(epochs))

        with patch.object(stack.data, "epoch_batches", batches):
            for _ in range(EPOCHS):
                stack.run_epoch()
        return weights(stack)

    def speed(self, samples: Samples, cell: Cell) -> Row:
        """Steps per second, the share of that time in kernels, and waits per step."""
        stack = stack_of(samples, cell)
        batches = list(stack.data.epoch_batches(stack.method.visiting_order))[: self.steps]
        with patch.object(stack.data, "epoch_batches", lambda *_: iter(batches)):
            stack.run_epoch()  # warms up
            seconds = min(self.seconds(stack.run_epoch) for _ in range(3))
            activities = [ProfilerActivity.CPU]
            activities += [ProfilerActivity.CUDA] if self.device.type == "cuda" else []
            with profile(activities=activities) as profiler:
                profiled = self.seconds(stack.run_epoch)
        events = profiler.key_averages()
        waits = sum(event.count for event in events if event.key in WAITS)
        return {
            "steps/s": round(len(batches) / seconds, 1),
            "replica steps/s": round(len(batches) * len(cell.seeds) / seconds, 1),
            "in kernels": round(self.kernel_seconds(events) / profiled, 2),
            "waits per step": round(waits / len(batches), 1),
        }

    def seconds(self, run: Callable[[], object]) -> float:
        """Wall-clock time until the device is done."""
        self.wait()
        start = time.perf_counter()
        run()
        self.wait()
        return time.perf_counter() - start

    def kernel_seconds(self, events: Any) -> float:
        """Time in kernels of the GPU, or in torch's operations on the CPU."""
        if self.device.type == "cuda":
            # an operation has the time of its kernels, which are events of their own
            kernels = [event for event in events if event.device_type == DeviceType.CUDA]
            return sum(event.self_device_time_total for event in kernels) / 1e6
        return sum(event.self_cpu_time_total for event in events) / 1e6

    def image_cell(self, method: str, network: dict[str, Any], precision: str = "float32") -> Cell:
        """A cell on images; TF32 is a setting of torch and no precision of the protocol."""
        named = "bfloat16" if precision == "bfloat16" else "float32"
        return cell_of(
            method, network, batch_size=self.batch, device=self.options.device, precision=named
        )

    def many(self, way: str, count: int) -> Row:
        """Gradients of so many convolutional networks for one batch each."""
        cell = self.image_cell("erm", CONVOLUTION)
        stacks = [stack_of(self.images, cell) for _ in range(count)]
        rows = next(iter(stacks[0].data.epoch_batches(stacks[0].method.visiting_order)))
        batch = stacks[0].data.batch(rows)
        models = [stack.model.train() for stack in stacks]
        run = WAYS[way](models, batch.x, batch.y)
        run()
        seconds = min(self.seconds(run) for _ in range(3))
        return {"networks": count, "gradients/s": round(count / seconds, 1)}


def one_by_one(models: list[Any], x: Tensor, y: Tensor) -> Callable[[], object]:
    """The gradients of one network after the other."""

    def run() -> object:
        return [
            torch.autograd.grad(model.task_loss(model(x), y).mean(), list(model.parameters()))
            for model in models
        ]

    return run


def vmapped(models: list[Any], x: Tensor, y: Tensor) -> Callable[[], object]:
    """The gradients of all networks by ``torch.func.vmap``."""
    together, buffers = torch.func.stack_module_state(models)
    base = models[0]

    def loss(parameters: dict[str, Tensor], kept: dict[str, Tensor]) -> Tensor:
        outputs = torch.func.functional_call(base, (parameters, kept), (x,))
        return base.task_loss(outputs, y).mean()

    gradient = torch.func.vmap(torch.func.grad(loss))
    return lambda: gradient(together, buffers)


def graphed(models: list[Any], x: Tensor, y: Tensor) -> Callable[[], object]:
    """The gradients of one network after the other, replayed as a CUDA graph."""
    run = one_by_one(models, x, y)
    if x.device.type != "cuda":
        return run
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def channels_last(models: list[Any], x: Tensor, y: Tensor) -> Callable[[], object]:
    """The gradients of one network after the other, with the channels of a pixel in a row."""
    for model in models:
        model.to(memory_format=torch.channels_last)
    return one_by_one(models, x[0].contiguous(memory_format=torch.channels_last)[None], y)


def compiled(models: list[Any], x: Tensor, y: Tensor) -> Callable[[], object]:
    """The gradients of one network after the other, each compiled; on a GPU only."""
    if x.device.type == "cuda":
        for model in models:
            model.compile(mode="max-autotune-no-cudagraphs")
    return one_by_one(models, x, y)


WAYS = {
    "one by one": one_by_one,
    "vmapped": vmapped,
    "CUDA graph": graphed,
    "channels last": channels_last,
    "compiled": compiled,
}


@contextmanager
def tensor_cores(allowed: bool) -> Iterator[None]:
    """Whether float32 products and convolutions on a GPU may use TF32."""
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.cudnn.allow_tf32 = before[1]


def compare(bench: Bench, on: str, samples: Samples, method: str, *setting: Any) -> None:
    """Measure how a method on the device differs from the CPU."""
    bench.measure(
        f"against the CPU, {on}", method, lambda: bench.compared(samples, method, *setting)
    )


def run(bench: Bench, methods: Sequence[str]) -> None:
    """All measurements, the most important first."""
    with tensor_cores(allowed=False):
        for method in methods:
            network = NETWORKS.get(method, MLP)
            for precision in TOLERANCE:
                compare(bench, f"tables in {precision}", bench.table, method, network, precision)
            if method not in NETWORKS:
                compare(bench, "images in float32", bench.few, method, CONVOLUTION, "float32")
    for network in bench.networks:
        for precision in PRECISIONS:
            cell = bench.image_cell("erm", {"name": network}, precision)
            with tensor_cores(allowed=precision != "float32"):
                bench.measure(
                    "precisions",
                    f"{network}, {precision}",
                    lambda network=network, precision=precision, cell=cell: {
                        "network": network,
                        "precision": precision,
                        **bench.speed(bench.images, cell),
                    },
                )
    for count in bench.stacks:
        cell = cell_of("erm", MLP, seeds=count, batch_size=bench.batch, device=bench.options.device)
        bench.measure(
            "stacks of tables",
            f"{count} replicas",
            lambda cell=cell: bench.speed(bench.table, cell),
        )
        for way in WAYS:
            bench.measure(
                "networks of images",
                f"{count} networks, {way}",
                lambda way=way, count=count: bench.many(way, count),
            )
    for method in methods:
        if method not in NETWORKS:
            cell = bench.image_cell(method, CONVOLUTION)
            bench.measure("images", method, lambda cell=cell: bench.speed(bench.images, cell))


def advice(sections: dict[str, list[Row]]) -> list[str]:
    """What to change, from the measurements, a sentence each."""
    correct = {name: rows for name, rows in sections.items() if rows and "within" in rows[0]}
    sentences = [line for name, rows in correct.items() for line in wrong(name, rows)]
    failed = {
        f"{row['what']} ({name})": row["error"]
        for name, rows in sections.items()
        for row in rows
        if "error" in row
    }
    sentences += [f"{what} fails: {error}" for what, error in failed.items()]
    done = {name: [row for row in rows if "error" not in row] for name, rows in sections.items()}
    return sentences + launches(done.get("images", [])) + precisions(done) + fastest(done)


def wrong(section: str, rows: Sequence[Row]) -> list[str]:
    """Methods whose numbers are not those of the CPU, or not the same again."""
    problems = {
        "other weights than on the CPU": "within",
        "other bits when repeated": "same bits twice",
        "the initial weights": "moved",
    }
    named = {
        problem: [row["what"] for row in rows if not row.get(key, True)]
        for problem, key in problems.items()
    }
    return [f"{section}: {', '.join(those)} gives {how}." for how, those in named.items() if those]


def launches(rows: Sequence[Row]) -> list[str]:
    """Methods in which the device waits for the CPU, or the CPU for the device."""
    idle = [row["what"] for row in rows if row["in kernels"] < BUSY]
    waiting = [row["what"] for row in rows if row["waits per step"] >= 1]
    lines = {
        "Kernels run in less than half of the time; larger batches, CUDA graphs or several "
        "trainings at once would use the rest": idle,
        "The CPU waits for the device in every step": waiting,
    }
    return [f"{what}: {', '.join(those)}." for what, those in lines.items() if those]


def precisions(done: dict[str, list[Row]]) -> list[str]:
    """Whether other precisions than float32 are worth using."""
    speeds = {(row["network"], row["precision"]): row["steps/s"]
              for row in done.get("precisions", [])}  # fmt: skip
    sentences = []
    for (network, precision), speed in speeds.items():
        exact = speeds.get((network, "float32"))
        if exact and precision != "float32":
            verdict = "use it" if speed / exact > WORTH else "do not use it"
            sentences.append(f"{network} in {precision}: {speed / exact:.2f} x float32, {verdict}.")
    return sentences


def fastest(done: dict[str, list[Row]]) -> list[str]:
    """The fastest number of replicas in a stack, and way to train networks for images."""
    sentences = []
    for section, rate in {
        "stacks of tables": "replica steps/s",
        "networks of images": "gradients/s",
    }.items():
        if rows := done.get(section):
            best = max(rows, key=lambda row: row[rate])
            gain = best[rate] / rows[0][rate]
            sentences.append(
                f"{section}: {best['what']} is fastest, {gain:.1f} x {rows[0]['what']}."
            )
    return sentences


def table_of(rows: Sequence[Row]) -> str:
    """Rows as text."""
    return pd.DataFrame(rows).to_string(index=False, float_format=lambda number: f"{number:.3g}")


def main(arguments: Sequence[str] | None = None) -> Path:
    """Measure, print and write; returns the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--toy", action="store_true", help="sizes of seconds")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--to", type=Path, default=Path("build/gpu"))
    options = parser.parse_args(arguments)
    start = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, {ROOT_VARIABLE: folder}),
        threads(1),
    ):
        bench = Bench(options)
        run(bench, options.methods.split(","))
    for section, rows in bench.sections.items():
        print(f"\n{section}\n{table_of(rows)}")
    sentences = advice(bench.sections)
    print("\nWhat to change:", *sentences, sep="\n- ")
    print(f"\n{time.monotonic() - start:.0f} s; left out: {', '.join(bench.left_out) or 'nothing'}")
    options.to.mkdir(parents=True, exist_ok=True)
    path = options.to / "gpu.json"
    content = {"machine": machine(options.device), "sections": bench.sections, "advice": sentences,
               "left out": bench.left_out}  # fmt: skip
    path.write_text(json.dumps(content) + "\n")
    return path


if __name__ == "__main__":
    main()
