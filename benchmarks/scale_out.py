"""What a grid costs beside its numbers, and what two workers gain.

Cells of four empty nodes (train, select, predict, evaluate), each saving a file, at 10, 100 and
1,000 cells, without MLflow: milliseconds a cell, one node after another and on two Dask workers,
of the loop over nodes alone (the start of the workers apart). Then equal cells that compute: two
workers against one node after another, in turns, so that what else runs on the machine weighs on
both; the ratio of the medians.
"""

import argparse
import logging
import statistics
import tempfile
import time
from pathlib import Path

from kedro.framework.hooks.manager import _create_hook_manager
from kedro.io import DataCatalog, MemoryDataset
from kedro.io.core import Version
from kedro.pipeline import Node, Pipeline

from robust_fairness.catalog.files import TextDataset
from robust_fairness.runs.runners import DaskRunner, FaultTolerantRunner, SequentialRunner
from robust_fairness.runs.runners.dask_runner import connected, local_cluster

STEPS = ("models", "selection", "predictions", "metrics")
TARGET_MILLISECONDS, TARGET_RATIO = 150, 1.6


def spend(seconds: float) -> None:
    """Use this much CPU time of this process: a cell that trains, whatever else runs."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))


def cells(count: int, seconds: float) -> Pipeline:
    """Chains of four nodes, of which the first computes."""

    def train(text: str) -> str:
        spend(seconds)
        return text

    def empty(text: str) -> str:
        return text

    nodes = []
    for cell in range(count):
        before = "raw"
        for step in STEPS:
            name = f"c{cell}_{step}"
            nodes.append(Node(train if before == "raw" else empty, before, name, name=name))
            before = name
    return Pipeline(nodes)


def seconds_of(runner: FaultTolerantRunner, pipeline: Pipeline) -> float:
    """Wall time of a run in an empty folder."""
    with tempfile.TemporaryDirectory() as folder:
        files = {
            name: TextDataset(filepath=str(Path(folder) / name), version=Version("one", "one"))
            for name in pipeline.all_outputs()
        }
        catalog = DataCatalog({"raw": MemoryDataset("rows"), **files})
        begun = time.perf_counter()
        runner.run(pipeline, catalog, _create_hook_manager(), run_id="one")
        return time.perf_counter() - begun


class Shared(DaskRunner):
    """On a cluster that is there already, so that its start is not measured."""

    cluster = None

    def _get_executor(self, max_workers: int):
        from robust_fairness.runs.runners.dask_runner import Workers

        return Workers(connected(self.cluster, 60), None, 60)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument(
        "--seconds", type=float, default=2.0, help="CPU time of a cell that computes"
    )
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    with local_cluster(2, 1, []) as cluster:
        Shared.cluster = cluster
        with connected(cluster, 60) as client:
            client.wait_for_workers(2)
        seconds_of(Shared(workers=2, threads=1), cells(4, 0))  # imports
        print("cells  sequential ms/cell  two workers ms/cell")
        for count in options.cells:
            pipeline = cells(count, 0)
            times = [
                seconds_of(runner, pipeline)
                for runner in (SequentialRunner(), Shared(workers=2, threads=1))
            ]
            print(f"{count:5d}", *(f"{1000 * one / count:19.1f}" for one in times))
        print(f"target: under {TARGET_MILLISECONDS} ms a cell at 1,000 cells")
        pipeline, found = cells(8, options.seconds), []
        for _ in range(options.repeats):
            one_by_one = seconds_of(SequentialRunner(), pipeline)
            found.append((one_by_one, seconds_of(Shared(workers=2, threads=1), pipeline)))
        sequential, dask = (statistics.median(times) for times in zip(*found, strict=True))
        print(
            f"8 equal cells of {options.seconds:g} s: {sequential:.1f} s, two workers {dask:.1f} s"
        )
        print(f"{sequential / dask:.2f} times as fast; target: {TARGET_RATIO}")


if __name__ == "__main__":
    main()
