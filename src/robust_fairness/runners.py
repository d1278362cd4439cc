"""Runners that keep going: a failed cell fails alone, and the run can be completed later."""

import logging
import shlex
import sys
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import click
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node
from kedro.runner import SequentialRunner as KedroSequentialRunner
from kedro.runner.task import Task
from pluggy import PluginManager

from robust_fairness.errors import Failure

logger = logging.getLogger(__name__)

FAN_IN = "fan_in"  # tag of nodes that take failed inputs and name them


class RunFailed(click.ClickException):
    """Some nodes failed; all that did not need them has run."""


class Ledger:
    """What has failed so far, and what that means for the nodes to come.

    Failures are held in memory only: a file in the place of an output would look finished.
    """

    def __init__(self) -> None:
        self.errors: list[Failure] = []
        self.outputs: dict[str, Failure] = {}

    def blocking(self, node: Node) -> Failure | None:
        """The failure that keeps a node from running; a fan-in node takes failures as inputs."""
        if FAN_IN in node.tags:
            return None
        return next((self.outputs[name] for name in node.inputs if name in self.outputs), None)

    def failed(self, node: Node, error: Exception) -> None:
        """Note a node's own failure."""
        message = (str(error).splitlines() or [type(error).__name__])[0]
        failure = Failure(node.name, message)
        self.errors.append(failure)
        self.skipped(node, failure)
        logger.error("%s", failure)
        logger.debug("%s", node.name, exc_info=error)

    def skipped(self, node: Node, failure: Failure) -> None:
        """Note that a node's outputs do not exist because of a failure."""
        self.outputs |= dict.fromkeys(node.outputs, failure)

    def conclude(self, run_id: str | None) -> None:
        """Raise one error that lists all failures and says how to complete the run.

        Raises:
            RunFailed: a node has failed.
        """
        if self.errors:
            lines = [f"{len(self.errors)} failed:", *(f"  {failure}" for failure in self.errors)]
            lines.append(f"Everything else is done. To complete the run: {completion(run_id)}")
            raise RunFailed("\n".join(lines))


def completion(run_id: str | None) -> str:
    """The command that runs what is missing of a run, with the options of this one."""
    options = [option for option in sys.argv[1:] if option != "--only-missing-outputs"]
    if "--run-id" in options:
        place = options.index("--run-id")
        del options[place : place + 2]
    given = options[1:] if options[:1] == ["run"] else []
    words = ["kedro", "run", *given, "--run-id", str(run_id), "--only-missing-outputs"]
    return shlex.join(words)


class _WithFailures:
    """A catalog that hands out failures in the place of the outputs that do not exist."""

    def __init__(self, catalog: Any, ledger: Ledger) -> None:
        self._catalog, self._ledger = catalog, ledger

    def load(self, name: str) -> Any:
        """The data, or the failure."""
        return self._ledger.outputs.get(name) or self._catalog.load(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)


class SequentialRunner(KedroSequentialRunner):
    """Kedro's sequential runner, which goes on past failed nodes."""

    def _run(
        self,
        pipeline: Pipeline,
        catalog: CatalogProtocol,
        hook_manager: PluginManager | None = None,
        run_id: str | None = None,
    ) -> None:
        ledger = Ledger()
        seen: Any = _WithFailures(catalog, ledger)
        load_counts = Counter(chain.from_iterable(node.inputs for node in pipeline.nodes))
        for node in pipeline.nodes:
            failure = ledger.blocking(node)
            if failure is not None:
                ledger.skipped(node, failure)
                continue
            try:
                Task(node, seen, self._is_async, hook_manager, run_id).execute()
                logger.info("%s done", node.name)
            except Exception as error:  # whatever a node raises, the others go on
                ledger.failed(node, error)
            self._release_datasets(node, catalog, load_counts, pipeline)
        ledger.conclude(run_id)

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
            dataset = catalog.get(name)
            if dataset is not None and dataset.exists():
                _delete(dataset)
        return super()._filter_pipeline_for_missing_outputs(pipeline, catalog)


def _delete(dataset: Any) -> None:

    if hasattr(dataset, "_get_load_path"):
        Path(dataset._get_load_path()).unlink(missing_ok=True)
    else:
        dataset.release()
