"""What is sent to another process to run a node there, and what that process does with it.

A node travels with its name and function, the configuration of the datasets that it reads and
saves, the versions that the run pinned them to, and the parameters it asks for. Data do not: a
worker reads and writes the catalog's files itself.
"""

import hashlib
import logging
import os
import platform
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kedro.io import AbstractVersionedDataset, DataCatalog, MemoryDataset
from kedro.io.core import Version
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node
from kedro.runner.task import Task

import robust_fairness
from robust_fairness.core.errors import Failure, InputError
from robust_fairness.runs.runners._keeps_going import WithFailures, first_line, remove

logger = logging.getLogger(__name__)

# Settings of the process that starts a run which hold on workers, too.
SETTINGS = (
    "ROBUST_FAIRNESS_DATA",
    "ROBUST_FAIRNESS_CHECKPOINTS",
    "ROBUST_FAIRNESS_MLFLOW",
    "MLFLOW_TRACKING_URI",
)
PACKAGES = ("robust_fairness", "torch", "numpy", "kedro", "distributed")
DEATHS = 4  # of workers in the midst of a node, after which it counts as failed
LARGEST_VALUE = 2**20  # bytes of a value that is sent with a node: a parameter, the manifest
_one_at_a_time = threading.Lock()  # torch's threads and the current folder are the process's


class NodeFailed(Exception):
    """An error of a node, as a line of text."""


@dataclass(frozen=True)
class Place:
    """Where and how nodes of a run are run.

    Attributes:
        folder: the project's folder.
        package: name of the project's package, whose hooks are called; None for none.
        threads: CPU threads of a node; None leaves them as they are.
        settings: environment variables.
        configuration: arguments of the project's configuration loader, which knows the grid.
        identity: what the process that starts the run is.
    """

    folder: Path
    package: str | None
    threads: int | None
    settings: dict[str, str] = field(hash=False)
    configuration: dict[str, Any] = field(hash=False)
    identity: dict[str, str] = field(hash=False)


@dataclass(frozen=True)
class Files:
    """The datasets of a run that are files, as configuration.

    Attributes:
        catalog: configuration by name.
        credentials: those that it refers to.
        versions: load and save versions by name.
    """

    catalog: Mapping[str, dict[str, Any]]
    credentials: Mapping[str, Any]
    versions: Mapping[str, Version]

    @classmethod
    def of(cls, catalog: Any) -> "Files":
        """All files of a catalog."""
        configuration, credentials, *_ = catalog.to_config()
        found = {name: catalog.get(name) for name in configuration}
        versions = {
            name: dataset._version
            for name, dataset in found.items()
            if isinstance(dataset, AbstractVersionedDataset) and dataset._version is not None
        }
        return cls(configuration, credentials, versions)

    def only(self, names: set[str]) -> "Files":
        """Those of these names."""
        some = {name: self.catalog[name] for name in sorted(names & self.catalog.keys())}
        asked = {one["credentials"] for one in some.values() if one.get("credentials")}
        return Files(
            some,
            {name: self.credentials[name] for name in sorted(asked)},
            {name: self.versions[name] for name in some if name in self.versions},
        )

    def opened(self) -> DataCatalog:
        """A catalog of them."""
        catalog = DataCatalog.from_config(dict(self.catalog), dict(self.credentials))
        for name, pinned in self.versions.items():
            dataset = catalog.get(name)
            assert isinstance(dataset, AbstractVersionedDataset)
            dataset._version = pinned
        return catalog


@dataclass(frozen=True)
class Job:
    """A node that another process can run.

    Attributes:
        node: the node.
        files: the files that it reads and saves.
        values: parameters and what else it reads that is no file.
        missing: failures in the place of inputs.
        run_id: id of the run.
        place: where and how to run it.
    """

    node: Node
    files: Files
    values: Mapping[str, Any]
    missing: Mapping[str, Failure]
    run_id: str | None
    place: Place

    @classmethod
    def of(
        cls,
        node: Node,
        files: Files,
        catalog: Any,
        missing: Mapping[str, Failure],
        run_id: str | None,
        place: Place,
    ) -> "Job":
        """The job of a node; what the catalog holds in memory is looked up now."""
        there = set(node.inputs) - missing.keys()
        # No difference of sets: it would go through all files of the grid for each node.
        held = sorted(name for name in there if name not in files.catalog)
        values = {name: catalog.load(name) for name in held}
        return cls(node, files.only(there | set(node.outputs)), values, missing, run_id, place)

    def run(self) -> str | None:
        """Run the node here; None, or the error in one line."""
        with _one_at_a_time:
            try:
                hooks = ready(self.place)
                catalog = self.files.opened()
                for name, value in self.values.items():
                    catalog[name] = MemoryDataset(value)
                self._forget_attempts(catalog)
                seen: Any = WithFailures(catalog, self.missing) if self.missing else catalog
                Task(self.node, seen, False, hooks, self.run_id).execute()
            except Exception as error:
                logger.debug("%s", self.node.name, exc_info=error)
                return first_line(error)
        return None

    def _forget_attempts(self, catalog: DataCatalog) -> None:
        """Delete what a worker that died had saved of this node; a version is saved once only."""
        for name in self.node.outputs:
            pinned = self.files.versions.get(name)
            if pinned is not None and pinned.load == pinned.save:
                remove(catalog.get(name))


@dataclass(frozen=True)
class Attempt:
    """A call that notes that it has begun, so that it stops after a few workers' deaths.

    Dask blames a death on all that waited for the worker, too. The note is on the shared folder,
    where it outlives the worker, and is made before the call is opened: what that imports may
    need more memory than there is.

    Dask also runs a node again that has ended, if its worker dies before that is known to all;
    others may read the node's files by then.

    Attributes:
        call: pickled; it gives None, or an error in one line.
        begun: file with a byte for each attempt; it is renamed when one succeeds.
    """

    call: bytes
    begun: Path

    @classmethod
    def at(cls, call: Callable[[], str | None], begun: Path) -> "Attempt":
        """The attempts at a call."""
        from distributed.protocol.pickle import dumps

        return cls(dumps(call), begun)

    def run(self) -> None:
        """Call, unless that was done, or has killed too many workers.

        What is raised travels with the news of the end, what is returned would lie on the worker.

        Raises:
            NodeFailed: the error; those of libraries may not travel.
        """
        logging.getLogger("distributed.worker").setLevel(logging.CRITICAL)  # it prints errors
        try:
            failed = self._outcome()
        except Exception as error:
            logger.debug("%s", self.begun.name, exc_info=error)
            failed = first_line(error)
        if failed is not None:
            raise NodeFailed(failed)

    def _outcome(self) -> str | None:
        from distributed.protocol.pickle import loads

        ended = self.begun.with_suffix(".ended")
        if ended.exists():
            return None
        with self.begun.open("ab") as file:
            file.write(b".")
        if self.begun.stat().st_size > DEATHS:
            return (
                f"the worker that ran it died, {DEATHS} times "
                "(out of memory, or killed from outside)"
            )
        failed: str | None = loads(self.call)()
        if failed is None:
            self.begun.rename(ended)
        return failed


@lru_cache(maxsize=1)  # a worker may serve one run after another
def ready(place: Place) -> Any:
    """Make this process one that runs nodes of a place; hooks to call around them.

    Raises:
        InputError: the process has other code or packages than the one that started the run.
    """
    from kedro.framework.hooks.manager import _create_hook_manager, _register_hooks
    from kedro.framework.project import configure_project, settings
    from threadpoolctl import threadpool_limits

    require_alike(place.identity, identity(), f"worker on {platform.node()}")
    logging.getLogger("distributed").setLevel(logging.ERROR)
    os.environ.update(place.settings)
    os.chdir(place.folder)
    if place.threads is not None:
        import torch

        torch.set_num_threads(place.threads)
        threadpool_limits(place.threads)
    hooks = _create_hook_manager()
    if place.package is not None:
        configure_project(place.package)
        settings.CONFIG_LOADER_CLASS(**place.configuration, **settings.CONFIG_LOADER_ARGS)
        # Those of others would miss what happened before in the process that started the run.
        own = (hook for hook in settings.HOOKS if _is_of(place.package, hook))
        _register_hooks(hooks, own)
    return hooks


def _is_of(package: str, hook: Any) -> bool:
    return type(hook).__module__.partition(".")[0] == package


@cache
def identity() -> dict[str, str]:
    """What must be the same wherever nodes of a run are run."""
    folder = Path(robust_fairness.__file__).parent
    digest = hashlib.sha256()
    for source in sorted(folder.rglob("*.py")):
        digest.update(source.relative_to(folder).as_posix().encode() + source.read_bytes())
    versions = {name: version(name) for name in PACKAGES}
    return {
        "python": platform.python_version(),
        **versions,
        "code of robust_fairness": digest.hexdigest()[:12],
    }


def require_alike(here: Mapping[str, str], there: Mapping[str, str | None], who: str) -> None:
    """Refuse a process that is not like this one.

    Raises:
        InputError: a package is missing there, or of another version.
    """
    for name, wanted in here.items():
        found = there.get(name)
        if found is None:
            raise InputError(f"{who} lacks {name}, here it is {wanted}; install it there")
        if found != wanted:
            raise InputError(f"{who} has {name} {found}, here it is {wanted}; make them the same")


def require_sendable(pipeline: Pipeline, catalog: Any, files: Files) -> None:
    """Refuse what other processes could not read.

    Raises:
        InputError: an output stays in memory, or something in memory cannot be sent.
    """
    kept = sorted(pipeline.all_outputs() - files.catalog.keys())
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
    import cloudpickle  # what Dask sends with

    for name in sorted(pipeline.inputs() - files.catalog.keys()):
        try:
            size = len(cloudpickle.dumps(catalog.load(name)))
        except Exception as error:
            raise InputError(f"{name}: cannot be sent to workers ({first_line(error)})") from error
        if size > LARGEST_VALUE:
            raise InputError(
                f"{name}: {size:,} bytes in memory, allowed to be sent to workers: "
                f"{LARGEST_VALUE:,}; give it a file in the catalog"
            )
