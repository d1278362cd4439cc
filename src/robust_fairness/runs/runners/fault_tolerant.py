"""Runners that continue after a failed node, and how long their trainings will take."""

import logging
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import chdir
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from itertools import chain
from pathlib import Path
from statistics import mean
from traceback import walk_tb
from typing import Any

import click
from kedro.io import AbstractVersionedDataset, CatalogProtocol, DatasetError
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node
from kedro.runner import AbstractRunner
from kedro.runner.task import Task
from pluggy import PluginManager

from robust_fairness.catalog.atomic import AtomicDataset
from robust_fairness.core import errors
from robust_fairness.core.errors import Failure, InputError
from robust_fairness.core.escaping import hidden
from robust_fairness.core.registry import find, is_outside
from robust_fairness.runs import provenance

logger = logging.getLogger(__name__)
tracebacks = logging.getLogger(f"{__name__}.tracebacks")
tracebacks.setLevel(logging.DEBUG)  # for the log file of a run, whatever the console shows

POLL_SECONDS = 1.0
TRAINS = "train"  # tag of nodes that train a cell; their inputs are samples and the cell
SECONDS, SHARE = 1.0, 0.01  # a trial ends after so much CPU time, or that share of the expected
GPU = "gpu"  # tag of nodes that train networks
FAN_IN = "fan_in"  # tag of nodes that accept failed inputs and name them


class RunFailed(click.ClickException):
    """Some nodes failed; all nodes that do not depend on them have run."""

    outcome = "All other nodes have run."

    def __init__(self, failures: list[Failure], run_id: str | None, reason: str = "") -> None:
        self.failures = failures
        lines = [reason or f"{len(failures)} failed:", *(f"  {failure}" for failure in failures)]
        lines.append(f"{self.outcome} To complete the run: {completion(run_id)}")
        super().__init__("\n".join(lines))


class Stopped(RunFailed):
    """The run had to stop early; finished outputs are kept."""

    outcome = "Finished outputs are kept."


class Unreachable(Exception):
    """The executor is lost and no further node can run; the message is one line."""


def completion(run_id: str | None) -> str:
    """The command that completes a run, with the options of this one."""
    arguments = iter(sys.argv[sys.argv.index("run") + 1 :] if "run" in sys.argv else [])
    options = []
    for word in arguments:
        if word == "--run-id":
            next(arguments, None)
        elif word != "--only-missing-outputs" and not word.startswith("--run-id="):
            options.append(word)
    return shlex.join(["kedro", "run", *options, "--run-id", str(run_id), "--only-missing-outputs"])


def reason_of(error: BaseException) -> str:
    """An error's message in one line, with its type and place if a plug-in raised it.

    The second line of a ``DatasetError`` is its reason.
    """
    lines = [line for line in str(error).splitlines() if line.strip()]
    if lines and isinstance(error, DatasetError):
        return " ".join(lines[:2])
    message = errors.first_line(error)
    if isinstance(error, InputError):
        return message
    places = [
        f" ({frame.f_code.co_filename}:{line}, in {frame.f_code.co_name})"
        for frame, line in walk_tb(error.__traceback__)
        if is_outside(frame.f_globals.get("__name__", ""))
    ]
    if not places and not isinstance(error, SystemExit):
        return message
    return f"{type(error).__name__}: {message}{places[-1] if places else ''}"


def remove(dataset: Any) -> None:
    """Delete the file or folder of a versioned dataset, if it exists."""
    if not isinstance(dataset, AbstractVersionedDataset) or not dataset.exists():
        return
    if isinstance(dataset, AtomicDataset):
        dataset.remove()
        return
    path = Path(
        dataset._get_load_path()
    )  # of a type of the user's own, perhaps not on this machine
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class CatalogWithFailures:
    """A catalog that returns a failure instead of each missing dataset."""

    def __init__(self, catalog: CatalogProtocol, failures: Mapping[str, Failure]) -> None:
        self._catalog, self._failures = catalog, failures

    def load(self, name: str) -> Any:
        return self._failures[name] if name in self._failures else self._catalog.load(name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # pickle looks these up before there is a catalog
            raise AttributeError(name)
        return getattr(self._catalog, name)


class Forecast:
    """Logs the expected time before the first training, and the time left after every one.

    Some steps of cells are tried, of one cell of every dataset first. Estimators, and cells for
    which no time is left, take as long a training as the mean of those tried; of estimators alone
    nothing is expected before the first is fitted. Beside busy processes all take longer, by the
    ratio of the trial's wall-clock time to its CPU time.
    """

    def __init__(self, pipeline: Pipeline, catalog: CatalogProtocol) -> None:
        nodes = [node for node in pipeline.nodes if TRAINS in node.tags]
        self._cells = {node.name: catalog.load(node.inputs[1]) for node in nodes}
        self._samples = {node.name: node.inputs[0] for node in nodes}
        self._catalog, self._seconds = catalog, dict[str, float]()
        self._start, self._done, self._tried = 0.0, 0.0, False

    def before(self, node: Node, workers: int) -> None:
        """Log how long all trainings will take, before the first one."""
        if node.name not in self._cells or self._seconds:
            return
        self._seconds = self._expected()
        if self._tried:
            logger.info(
                "training %d models of %d cells takes about %s on %d %s",
                sum(cell.budget * len(cell.seeds) for cell in self._cells.values()),
                len(self._cells),
                in_words(sum(self._seconds.values()) / workers),
                workers,
                "workers" if workers > 1 else "core",
            )
        self._start = time.monotonic()

    def after(self, node: Node) -> None:
        """Log how long the trainings that are left will take, at the speed of those done."""
        if node.name not in self._seconds:
            return
        self._done += self._seconds.pop(node.name)
        if self._seconds:
            left = (time.monotonic() - self._start) * sum(self._seconds.values()) / self._done
            logger.info("%d cells left to train, about %s", len(self._seconds), in_words(left))

    def _expected(self) -> dict[str, float]:
        """Seconds by node."""
        from robust_fairness.bench.estimators.base import Estimator
        from robust_fairness.bench.training import expected_seconds

        turns: dict[str, int] = {}
        for name, samples in self._samples.items():
            turns[name] = sum(self._samples[other] == samples for other in turns)
        tried: dict[str, float] = {}
        start, started = time.process_time(), time.perf_counter()
        for name in sorted(turns, key=turns.__getitem__):
            if time.process_time() - start > max(SECONDS, SHARE * sum(tried.values())):
                break
            if issubclass(find("network", self._cells[name].network.name), Estimator):
                continue  # a trial would be all of its training
            try:
                with chdir("."):  # a plug-in may leave it
                    samples = self._catalog.load(self._samples[name])
                    tried[name] = expected_seconds(samples, self._cells[name])
            except (Exception, SystemExit):  # the node itself reports it
                logger.debug("%s: not tried", name, exc_info=True)
        spent = time.process_time() - start
        slower = max(1.0, (time.perf_counter() - started) / spent) if spent else 1.0
        self._tried = bool(tried)
        sizes = {name: cell.budget * len(cell.seeds) for name, cell in self._cells.items()}
        usual = mean(tried[name] / sizes[name] for name in tried) if tried else 1.0
        return {name: slower * tried.get(name, usual * size) for name, size in sizes.items()}


def in_words(seconds: float) -> str:
    """A duration in seconds or minutes.

    >>> in_words(41.4), in_words(200)
    ('41 s', '3 minutes')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} minutes"


class FaultTolerantRunner(AbstractRunner):
    """Runs every node that does not depend on a failed one, on any executor.

    Subclasses define the executor (``_get_executor``), how many nodes run at the same time
    (``_capacity``) and how the executor gets a node (``_submit``).
    """

    workers = 1

    def run(
        self,
        pipeline: Pipeline,
        catalog: CatalogProtocol,
        hook_manager: PluginManager | None = None,
        run_id: str | None = None,
        only_missing_outputs: bool = False,
    ) -> dict[str, Any]:
        """Run the pipeline, or the nodes with missing outputs and all downstream of them."""
        if only_missing_outputs:
            missing = {
                name
                for name in pipeline.all_outputs()
                if isinstance(catalog.get(name), AbstractVersionedDataset)
                and not catalog.exists(name)
            }
            makers = [node.name for node in pipeline.nodes if missing & {*node.outputs}]
            for name in pipeline.from_nodes(*makers).all_outputs() if makers else ():
                remove(catalog.get(name))  # Kedro makes what is missing only
        return super().run(pipeline, catalog, hook_manager, run_id, only_missing_outputs)

    def _submit(
        self, executor: Executor, task: Task, missing: Mapping[str, Failure]
    ) -> Future[Any]:
        """Hand a node to the executor, with failures instead of its missing inputs."""
        return executor.submit(task.execute)

    def _capacity(self, executor: Executor) -> int:
        """How many nodes may be submitted; read again before each one."""
        return self.workers

    def _failure(self, node: Node, error: BaseException, run_id: str | None) -> Failure:
        """The failure of a node, which is recorded and logged."""
        failure = Failure(node.name, hidden(reason_of(error)), node.namespace or "")
        provenance.record(str(run_id), failed=[str(failure)])
        logger.error("%s", failure)
        tracebacks.debug("%s", node.name, exc_info=error)
        return failure

    @staticmethod
    def _release_datasets(
        node: Node, catalog: CatalogProtocol, load_counts: dict[str, int], pipeline: Pipeline
    ) -> None:
        """Release what no other node reads; inputs and outputs of the pipeline count once more.

        Kedro's own looks through all inputs of the pipeline: minutes with thousands of nodes.
        """
        for name in node.inputs:
            load_counts[name] -= 1
        for name in (*node.inputs, *node.outputs):
            if load_counts[name] < 1:
                catalog.release(name)

    def _run(
        self,
        pipeline: Pipeline,
        catalog: CatalogProtocol,
        hook_manager: PluginManager | None = None,
        run_id: str | None = None,
    ) -> None:
        places = {node.name: place for place, node in enumerate(pipeline.nodes)}
        waiting = TopologicalSorter(pipeline.node_dependencies)
        waiting.prepare()
        inputs_of_nodes = chain.from_iterable(node.inputs for node in pipeline.nodes)
        uses = Counter([*inputs_of_nodes, *pipeline.inputs(), *pipeline.outputs()])
        failures: list[Failure] = []
        lost: dict[str, Failure] = {}  # missing outputs; files of them would look finished
        forecast = Forecast(pipeline, catalog)
        ready: list[tuple[int, Node]] = []
        running: dict[Future[Any], Node] = {}
        executor = self._get_executor(self.workers)
        assert executor is not None
        with executor:
            while waiting.is_active():
                for node in waiting.get_ready():
                    heappush(ready, (places[node.name], node))
                if len(running) < self._capacity(executor) and ready:
                    _, node = heappop(ready)
                    missing = {name: lost[name] for name in node.inputs if name in lost}
                    if missing and FAN_IN not in node.tags:
                        lost |= dict.fromkeys(node.outputs, next(iter(missing.values())))
                        waiting.done(node)
                        forecast.after(node)
                        continue
                    forecast.before(node, self.workers)
                    inputs: Any = CatalogWithFailures(catalog, missing) if missing else catalog
                    task = Task(node, inputs, self._is_async, hook_manager, run_id)
                    running[self._submit(executor, task, missing)] = node
                    continue
                for future in wait(running, POLL_SECONDS, FIRST_COMPLETED).done:
                    node = running.pop(future)
                    waiting.done(node)
                    error = future.exception()
                    if isinstance(error, Unreachable):
                        raise Stopped(failures, run_id, str(error))
                    if error is None:
                        logger.info("%s done", node.name)
                    else:
                        failures.append(self._failure(node, error, run_id))
                        lost |= dict.fromkeys(node.outputs, failures[-1])
                    forecast.after(node)
                    self._release_datasets(node, catalog, uses, pipeline)
        if failures:
            raise RunFailed(failures, run_id)


class ThisThread(Executor):
    """Runs each call immediately in this thread; an interrupt is not caught."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except (Exception, SystemExit) as error:  # of a node, of any type
            future.set_exception(error)
        return future


class SequentialRunner(FaultTolerantRunner):
    """Runs one node after the other."""

    def _get_executor(self, max_workers: int) -> Executor:
        return ThisThread()
