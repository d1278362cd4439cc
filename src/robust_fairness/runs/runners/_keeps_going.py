"""The loop over nodes that goes on past failed ones, and the runner that is nothing else."""

import logging
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from heapq import heappop, heappush
from itertools import chain
from pathlib import Path
from typing import Any

import click
from kedro.io import AbstractVersionedDataset, CatalogProtocol, DatasetError
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node
from kedro.runner import AbstractRunner
from kedro.runner.task import Task
from pluggy import PluginManager

from robust_fairness.catalog._atomic import AtomicDataset
from robust_fairness.core.errors import Failure

logger = logging.getLogger(__name__)

SECONDS_OF_WAITING = 1.0  # for a node to end, until the executor is looked at again
FAN_IN = "fan_in"  # tag of nodes that take failed inputs and name them


class RunFailed(click.ClickException):
    """Some nodes failed; all that did not need them has run.

    Attributes:
        failures: one a failed node, in the order in which they failed.
    """

    def __init__(self, failures: list[Failure], run_id: str | None) -> None:
        self.failures = failures
        lines = [f"{len(failures)} failed:", *(f"  {failure}" for failure in failures)]
        lines.append(f"Everything else is done. To complete the run: {completion(run_id)}")
        super().__init__("\n".join(lines))


class Stopped(click.ClickException):
    """The run cannot go on, whatever its nodes say; what has finished is kept.

    Attributes:
        failures: one a failed node, in the order in which they failed.
    """

    def __init__(self, reason: str, failures: list[Failure], run_id: str | None) -> None:
        self.failures = failures
        lines = [*(f"  {failure}" for failure in failures)]
        lines.append(f"What has finished is kept. To complete the run: {completion(run_id)}")
        super().__init__("\n".join([reason, *lines]))


class Unreachable(Exception):
    """What runs the nodes is gone: no further node can be run; the message is one line."""


def completion(run_id: str | None) -> str:
    """The command that runs what is missing of a run, with the options of this one."""
    given = iter(sys.argv[sys.argv.index("run") + 1 :] if "run" in sys.argv else [])
    options = []
    for word in given:
        if word == "--run-id":
            next(given, None)
        elif word != "--only-missing-outputs" and not word.startswith("--run-id="):
            options.append(word)
    words = ["kedro", "run", *options, "--run-id", str(run_id), "--only-missing-outputs"]
    return shlex.join(words)


def first_line(error: BaseException) -> str:
    """What an error says in one line; Kedro's errors of datasets give the reason in a second."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    shown = lines[: 2 if isinstance(error, DatasetError) else 1]
    return " ".join(shown) or type(error).__name__


def remove(dataset: Any) -> None:
    """Delete the file of a dataset with versions, where it exists."""
    if not isinstance(dataset, AbstractVersionedDataset) or not dataset.exists():
        return
    if isinstance(dataset, AtomicDataset):
        dataset.remove()
    else:
        Path(dataset._get_load_path()).unlink()


class Ledger:
    """What has failed so far, and what that means for the nodes to come.

    Failures are held in memory only: a file in the place of an output would look finished.
    """

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        self._outputs: dict[str, Failure] = {}

    def inputs(self, node: Node) -> dict[str, Failure]:
        """The failures that stand in the place of a node's inputs."""
        return {name: self._outputs[name] for name in node.inputs if name in self._outputs}

    def failed(self, node: Node, error: BaseException) -> None:
        """Note a node's own failure."""
        failure = Failure(node.name, first_line(error))
        self.failures.append(failure)
        self.skipped(node, failure)
        logger.error("%s", failure)
        logger.debug("%s", node.name, exc_info=error)

    def skipped(self, node: Node, failure: Failure) -> None:
        """Note that a node's outputs do not exist because of a failure."""
        self._outputs |= dict.fromkeys(node.outputs, failure)


class WithFailures:
    """A catalog that hands out failures in the place of the datasets that do not exist.

    Args:
        catalog: the catalog of everything else.
        failures: failures by name of the dataset.
    """

    def __init__(self, catalog: Any, failures: Mapping[str, Failure]) -> None:
        self._catalog, self._failures = catalog, failures

    def load(self, name: str) -> Any:
        """The data, or the failure."""
        return self._failures[name] if name in self._failures else self._catalog.load(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # pickle asks for these before there is a catalog
            raise AttributeError(name)
        return getattr(self._catalog, name)


class Queue:
    """The nodes of a pipeline that wait for nothing any more, first those that it names first.

    Attributes:
        ready: their places in the pipeline, a heap.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._nodes = pipeline.nodes
        places = {node.name: place for place, node in enumerate(self._nodes)}
        needs = pipeline.node_dependencies
        self._left = {node.name: len(needs[node]) for node in self._nodes}
        self._behind: dict[str, list[int]] = {name: [] for name in places}
        for node in self._nodes:
            for one in needs[node]:
                self._behind[one.name].append(places[node.name])
        self.ready = [places[name] for name, count in self._left.items() if count == 0]

    def take(self) -> Node:
        """The first one."""
        return self._nodes[heappop(self.ready)]

    def settle(self, node: Node) -> None:
        """Note that nothing waits for a node any more."""
        for place in self._behind[node.name]:
            name = self._nodes[place].name
            self._left[name] -= 1
            if self._left[name] == 0:
                heappush(self.ready, place)


class Uses:
    """Which datasets within a pipeline nobody will read any more.

    Kedro's own bookkeeping asks the pipeline for its inputs after each node, which takes minutes
    with thousands of nodes.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self._counts = Counter(chain.from_iterable(node.inputs for node in pipeline.nodes))
        self._kept = pipeline.inputs() | pipeline.outputs()

    def no_more(self, node: Node) -> list[str]:
        """Those that a node was the last to read, or made for nobody."""
        self._counts.subtract(node.inputs)
        names = (*node.inputs, *node.outputs)
        return [name for name in names if self._counts[name] < 1 and name not in self._kept]


class KeepsGoing(AbstractRunner):
    """The loop over nodes that goes on past failed ones, on any executor.

    A runner says where nodes run by ``_get_executor``, how many at once by ``_places``, and what
    is done there by ``_work``.
    """

    def _places(self, executor: Executor, pipeline: Pipeline) -> int:
        """How many nodes may be under way; asked again before each, and while all wait."""
        return self._get_required_workers_count(pipeline)

    def _work(
        self,
        node: Node,
        catalog: Any,
        missing: Mapping[str, Failure],
        hook_manager: PluginManager | None,
        run_id: str | None,
    ) -> Callable[[], Any]:
        """What the executor calls to run a node.

        Args:
            node: the node.
            catalog: the catalog of the run.
            missing: failures in the place of inputs.
            hook_manager: hooks of this process.
            run_id: id of the run.
        """
        seen: Any = WithFailures(catalog, missing) if missing else catalog
        return Task(node, seen, self._is_async, hook_manager, run_id).execute

    def _run(
        self,
        pipeline: Pipeline,
        catalog: CatalogProtocol,
        hook_manager: PluginManager | None = None,
        run_id: str | None = None,
    ) -> None:
        """Run all nodes that can run.

        Raises:
            RunFailed: a node has failed.
            Stopped: nodes cannot be run any more.
        """
        ledger = Ledger()
        queue, uses = Queue(pipeline), Uses(pipeline)
        running: dict[Future[Any], Node] = {}
        executor = self._get_executor(self._get_required_workers_count(pipeline))
        assert executor is not None
        with executor:
            while queue.ready or running:
                places = self._places(executor, pipeline)
                if queue.ready and len(running) < places:
                    node = queue.take()
                    missing = ledger.inputs(node)
                    if missing and FAN_IN not in node.tags:
                        ledger.skipped(node, next(iter(missing.values())))
                        queue.settle(node)
                        continue
                    work = self._work(node, catalog, missing, hook_manager, run_id)
                    running[executor.submit(work)] = node
                    continue
                for future in wait(running, SECONDS_OF_WAITING, FIRST_COMPLETED).done:
                    node = running.pop(future)
                    queue.settle(node)
                    error = future.exception()
                    if isinstance(error, Unreachable):
                        raise Stopped(str(error), ledger.failures, run_id)
                    if error is None:
                        logger.info("%s done", node.name)
                    else:
                        ledger.failed(node, error)
                    for name in uses.no_more(node):
                        catalog.release(name)
        if ledger.failures:
            raise RunFailed(ledger.failures, run_id)

    def _filter_pipeline_for_missing_outputs(
        self, pipeline: Pipeline, catalog: CatalogProtocol
    ) -> Pipeline:
        """Nodes with missing outputs and everything behind them.

        What stands behind a missing output is stale, so it is deleted and made again; a version
        may not be saved twice.
        """
        missing = super()._filter_pipeline_for_missing_outputs(pipeline, catalog)
        if not missing.nodes:
            return missing
        behind = pipeline.from_nodes(*(node.name for node in missing.nodes))
        for name in behind.all_outputs():
            remove(catalog.get(name))
        return super()._filter_pipeline_for_missing_outputs(pipeline, catalog)


class Here(Executor):
    """Runs what is submitted at once, in this thread; an interrupt passes through."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The result or the error, both there already."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # whatever a node raises, the others go on
            future.set_exception(error)
        return future


class SequentialRunner(KeepsGoing):
    """One node after the other."""

    def _get_executor(self, max_workers: int) -> Executor:
        return Here()
