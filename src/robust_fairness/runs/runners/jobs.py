"""Nodes as jobs of other processes.

A job contains the node, the catalog configuration and versions of the datasets that it reads and
saves, and its parameters. Data are not sent: a worker reads and writes the files itself.
"""

import logging
import os
import platform
import threading
from collections.abc import Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from traceback import format_exception
from typing import Any

from kedro.io import CatalogProtocol, DataCatalog, MemoryDataset
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node
from kedro.runner.task import Task
from pluggy import PluginManager

from robust_fairness.core.code import code
from robust_fairness.core.errors import Failure, InputError
from robust_fairness.core.escaping import without_credentials
from robust_fairness.runs.runners.fault_tolerant import (
    FAN_IN,
    CatalogWithFailures,
    reason_of,
    remove,
)

# Environment variables of the process that starts a run, passed on to workers.
SETTINGS = (
    "ROBUST_FAIRNESS_ALLOW_MODIFIED_DATA",
    "ROBUST_FAIRNESS_DATA",
    "ROBUST_FAIRNESS_CHECKPOINTS",
    "ROBUST_FAIRNESS_MLFLOW",
    "MLFLOW_TRACKING_URI",
    "MLFLOW_EXPERIMENT_NAME",
)
PACKAGES = ("robust_fairness", "torch", "numpy", "kedro", "distributed")
DEATHS = 4  # of workers while they run a node, after which the node has failed
LARGEST_VALUE = 2**20  # bytes of a parameter or of the manifest, sent with a node
_lock = threading.Lock()  # torch's threads and the current folder belong to the process


class NodeFailed(Exception):
    """The error of a node in one line, which its traceback may follow."""


@dataclass(frozen=True)
class WorkerSetup:
    """How a worker has to be set up for the nodes of a run.

    Attributes:
        folder: the project's folder.
        package: the project's package, whose hooks are called; None for no hooks.
        threads: CPU threads of a node; None leaves them unchanged.
        settings: environment variables.
        configuration: arguments of the project's configuration loader.
        identity: ``identity()`` of the process that starts the run.
    """

    folder: Path
    package: str | None
    threads: int | None
    settings: dict[str, str] = field(hash=False)
    configuration: dict[str, Any] = field(hash=False)
    identity: dict[str, str] = field(hash=False)


@dataclass(frozen=True)
class CatalogFiles:
    """Configuration of the file datasets of a run, and the versions to load."""

    catalog: Mapping[str, dict[str, Any]]
    credentials: Mapping[str, Any]
    versions: Mapping[str, str]

    @classmethod
    def of(cls, catalog: Any) -> "CatalogFiles":
        configuration, credentials, *_ = catalog.to_config()
        pinned = {name: getattr(catalog.get(name), "_version", None) for name in configuration}
        versions = {
            name: version.load for name, version in pinned.items() if version and version.load
        }
        return cls(configuration, credentials, versions)

    def only(self, names: set[str]) -> "CatalogFiles":
        catalog = {name: self.catalog[name] for name in sorted(names & self.catalog.keys())}
        credentials = {
            entry["credentials"] for entry in catalog.values() if entry.get("credentials")
        }
        return CatalogFiles(
            catalog,
            {name: self.credentials[name] for name in sorted(credentials)},
            {name: self.versions[name] for name in catalog if name in self.versions},
        )

    def to_catalog(self, run_id: str | None) -> DataCatalog:
        files = dict(self.catalog), dict(self.credentials), dict(self.versions)
        return DataCatalog.from_config(*files, save_version=run_id)


@dataclass(frozen=True)
class Job:
    """A node that another process can run."""

    node: Node
    files: CatalogFiles
    values: Mapping[str, Any]
    missing: Mapping[str, Failure]
    run_id: str | None
    setup: WorkerSetup

    @classmethod
    def of(
        cls,
        node: Node,
        files: CatalogFiles,
        catalog: CatalogProtocol,
        missing: Mapping[str, Failure],
        run_id: str | None,
        setup: WorkerSetup,
    ) -> "Job":
        inputs = set(node.inputs) - missing.keys()
        # Not a difference of sets, which would visit all files of the grid for each node.
        in_memory = (name for name in sorted(inputs) if name not in files.catalog)
        values = {name: catalog.load(name) for name in in_memory}
        return cls(node, files.only(inputs | set(node.outputs)), values, missing, run_id, setup)

    def run(self) -> str | None:
        """Run the node; returns None, or the error in one line followed by its traceback."""
        with _lock:
            try:
                hooks, context = set_up(self.setup)
                catalog = self.files.to_catalog(self.run_id)
                for name, value in self.values.items():
                    catalog[name] = MemoryDataset(value)
                for name in self.node.outputs:  # a version cannot be saved twice
                    if self.files.versions.get(name) == self.run_id:
                        remove(catalog.get(name))  # of a worker that died
                inputs: Any = (
                    CatalogWithFailures(catalog, self.missing) if self.missing else catalog
                )
                context.run(Task(self.node, inputs, False, hooks, self.run_id).execute)
            except (Exception, SystemExit) as error:
                return "\n".join([reason_of(error), *format_exception(error)])
        return None


def attempt(call: bytes, begun: Path) -> None:
    """Make a call of a node, unless it has ended before or too many workers died in it.

    Dask also blames a death on calls that were only waiting for that worker. The count is a file
    in the shared folder, written before the call is unpickled, since the imports of the call may
    exceed the memory.

    Dask repeats a call that has ended if its worker dies before the result arrived; other nodes
    may read the output files by then, so that an ended call is not repeated here.

    Args:
        call: pickled call that returns None or an error. An error is raised, because a returned
            value would stay on the worker.
        begun: file with one byte per attempt; renamed when an attempt succeeds.
    """
    from distributed.protocol.pickle import loads

    logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)  # it prints errors
    ended = begun.with_suffix(".ended")
    if ended.exists():
        return
    with begun.open("ab") as file:
        file.write(b".")
    if begun.stat().st_size > DEATHS:
        raise NodeFailed(
            f"the worker that ran it died, {DEATHS} times "
            "(out of memory, or killed by another process)"
        )
    try:
        failed = loads(call)()
    except Exception as error:
        failed = reason_of(error)
    if failed is not None:
        raise NodeFailed(failed)
    begun.rename(ended)


@lru_cache(maxsize=1)  # a worker may serve one run after another
def set_up(setup: WorkerSetup) -> tuple[Any, Context]:
    """Set up this process as a worker.

    Returns:
        The manager of the hooks, and the context of the nodes, which has the configuration loader.
    """
    from kedro.framework.hooks import specs
    from kedro.framework.project import configure_project, settings
    from kedro.framework.startup import bootstrap_project
    from kedro.utils import is_kedro_project
    from threadpoolctl import threadpool_limits

    require_same_versions(setup.identity, identity(), f"worker on {platform.node()}")
    logging.getLogger("distributed").setLevel(logging.ERROR)
    for name, value in setup.settings.items():
        if without_credentials(os.environ.get(name, "")) != value:  # its own has credentials
            os.environ[name] = value
    os.chdir(setup.folder)
    if setup.threads is not None:
        import torch

        torch.set_num_threads(setup.threads)
        threadpool_limits(setup.threads)
    hooks, context = PluginManager("kedro"), copy_context()
    for kind in (specs.NodeSpecs, specs.DatasetSpecs):
        hooks.add_hookspecs(kind)
    if setup.package is not None:
        if is_kedro_project(setup.folder):
            bootstrap_project(setup.folder)
        else:
            configure_project(setup.package)
        options = setup.configuration | settings.CONFIG_LOADER_ARGS
        context.run(settings.CONFIG_LOADER_CLASS, **options)
        # Hooks of plugins expect events of the process that started the run.
        packages = ("robust_fairness", setup.package)
        for hook in settings.HOOKS:
            if type(hook).__module__.startswith(packages):
                hooks.register(hook)
    return hooks, context


@cache
def identity() -> dict[str, str]:
    """Versions of Python, packages and code, which must be equal on all workers of a run."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        "code of robust_fairness": code()["package"][:12],
    }


def require_same_versions(
    here: Mapping[str, str], there: Mapping[str, str | None], who: str
) -> None:
    """Require a process with the versions of this one."""
    for name, wanted in here.items():
        installed = there.get(name)
        if installed is None:
            raise InputError(f"{who} lacks {name}, here it is {wanted}; install it there")
        if installed != wanted:
            raise InputError(
                f"{who} has {name} {installed}, here it is {wanted}; install the same version"
            )


def require_sendable(pipeline: Pipeline, catalog: CatalogProtocol, files: CatalogFiles) -> None:
    """Require datasets that other processes can read; nodes that collect run in this one."""
    collected = pipeline.only_nodes_with_tags(FAN_IN).all_outputs()
    kept = sorted(pipeline.all_outputs() - files.catalog.keys() - collected)
    kept += sorted(
        name
        for name in pipeline.datasets() & files.catalog.keys()
        if str(files.catalog[name].get("filepath", "")).startswith("memory://")
    )
    if kept:
        raise InputError(
            f"{', '.join(kept)}: in memory, which workers do not share; "
            "give each a file in the catalog"
        )
    import cloudpickle  # used by Dask

    for name in sorted(pipeline.inputs() - files.catalog.keys()):
        try:
            size = len(cloudpickle.dumps(catalog.load(name)))
        except Exception as error:
            raise InputError(f"{name}: cannot be sent to workers ({reason_of(error)})") from error
        if size > LARGEST_VALUE:
            raise InputError(
                f"{name}: {size:,} bytes in memory, allowed to be sent to workers: "
                f"{LARGEST_VALUE:,}; give it a file in the catalog"
            )
