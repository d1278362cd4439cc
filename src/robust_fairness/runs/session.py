"""The session that Kedro's commands run in: its catalog, its lock, its log and its environment."""

import json
import logging
import os
import platform
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any, NoReturn, Protocol, runtime_checkable

from filelock import FileLock, Timeout
from kedro.framework.context import CatalogCommandsMixin, KedroContext, compose_classes
from kedro.framework.project import pipelines, settings
from kedro.framework.session import KedroServiceSession
from kedro.io import DataCatalog
from kedro.io.core import Version
from kedro.runner import ParallelRunner

from robust_fairness.catalog.atomic import AtomicDataset
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.escaping import hidden
from robust_fairness.core.files import boot, namespace
from robust_fairness.runs import provenance
from robust_fairness.runs.runners import FaultTolerantRunner, SequentialRunner, reason_of
from robust_fairness.runs.runners.fault_tolerant import completion, tracebacks

# Options of ``run``, and the environment variables by which every process of a run knows them.
SWITCHES = {
    "accept_changes": provenance.ACCEPT_CHANGES,
    "allow_modified_data": provenance.ALLOW_MODIFIED_DATA,
}
# Folders of the project, by their variables; a plug-in may leave the folder they are relative to.
FOLDERS = {
    "ROBUST_FAIRNESS_CHECKPOINTS": "data/checkpoints",
    "ROBUST_FAIRNESS_PLUGINS": "plugins",
}
# Environment variables, the current folder and torch's threads belong to the process.
ONE_RUN = threading.RLock()
RUN_ID = re.compile(r"\w[\w.-]*", re.ASCII)  # part of file names


class CheckedCatalog(DataCatalog):
    """Kedro's catalog that compares a file with its checksum in the manifest of its run.

    Attributes:
        is_checked: whether a run has compared its inputs before its first node.
    """

    is_checked = False

    def load(self, ds_name: str, version: str | None = None) -> Any:
        if not self.is_checked:
            self._require_unchanged(ds_name, version)
        return super().load(ds_name, version)

    def _require_unchanged(self, name: str, version: str | None) -> None:
        dataset = self.get(name, version=Version(version, None) if version else None)
        if not isinstance(dataset, AtomicDataset) or not dataset.exists():
            return
        run_id = dataset.resolve_load_version()
        if run_id is None or not provenance.manifest_path(run_id).exists():
            return
        recorded = provenance.load_manifest(run_id)["outputs"].get(name)
        if recorded:
            with dataset.local() as path:
                provenance.require_unchanged(run_id, recorded, path)


class Context(KedroContext):
    """Kedro's context with such a catalog, which Kedro's setting gives to runs only."""

    @property
    def catalog(self) -> Any:
        catalog = super().catalog
        catalog.__class__ = compose_classes(CheckedCatalog, CatalogCommandsMixin)
        return catalog


class Session(KedroServiceSession):
    """Kedro's session with run ids set by the runtime parameter ``run_id``."""

    @classmethod
    def create(  # type: ignore[override]
        cls, session_id: str | None = None, *, save_on_close: bool = False, **options: Any
    ) -> "Session":
        """Create a session; ``save_on_close``, passed by ``kedro catalog``, has no effect."""
        session = super().create(session_id, **options)
        assert isinstance(session, cls)
        return session

    def run(  # type: ignore[override]
        self,
        run_id: str | None = None,
        *,
        runtime_params: dict[str, Any] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Run pipelines as the owner of the run id; the manifest of an interrupted run says so.

        Runs of a process, as of ``kedro server``, wait for each other. Each has a configuration and
        pipelines of its own.
        """
        parameters = dict(runtime_params or {})
        run_id = parameters.pop("run_id", run_id)
        if run_id is not None and not RUN_ID.fullmatch(str(run_id)):
            raise InputError(
                f"run id {run_id!r}: allowed: letters, digits, '_', and after the first '.' and '-'"
            )
        run_id = provenance.new_run_id() if run_id is None else str(run_id)
        chosen = {
            name: str(Path(os.environ.get(name) or folder).absolute())
            for name, folder in FOLDERS.items()
        }
        chosen |= {SWITCHES[name]: "yes" for name in SWITCHES if parameters.pop(name, False)}
        options["runner"] = options.get("runner") or SequentialRunner()
        with (
            ONE_RUN,
            interrupted_once(),
            owned(run_id),
            environment(chosen),
            logged(run_id),
            only_regular_exits(),
        ):
            return copy_context().run(self._run_alone, run_id, parameters, options)

    def _run_alone(
        self, run_id: str, parameters: dict[str, Any], options: dict[str, Any]
    ) -> dict[str, Any]:
        try:
            return super().run(run_id, runtime_params=parameters, **options)
        except Exception as error:
            if isinstance(error, ValueError):
                _require_known(options)
                if "contains no nodes" in str(error):
                    raise InputError(
                        "the pipelines and filters of this run have no node in common; `kedro "
                        "registry describe PIPELINE` lists nodes"
                    ) from None
            runner = options["runner"]
            if isinstance(runner, FaultTolerantRunner) or not provenance.has_failed(run_id):
                raise
            tracebacks.debug("%s", run_id, exc_info=error)
            better = "DaskRunner" if isinstance(runner, ParallelRunner) else "SequentialRunner"
            raise InputError(
                f"{hidden(reason_of(error))}; {type(runner).__name__} stops at a failed node, "
                f"--runner=robust_fairness.runs.runners.{better} runs the others"
            ) from error
        except KeyboardInterrupt:  # Kedro calls no hook for it
            if not provenance.manifest_path(run_id).exists():
                raise
            ended = {"state": "interrupted", "ended": provenance.now()}
            provenance.write_manifest(provenance.load_manifest(run_id) | ended)
            note = f"Continue with: {completion(run_id)}"
            for hook in settings.HOOKS:
                if isinstance(hook, ClosesInterrupted):
                    hook.interrupted(run_id, note)
            raise KeyboardInterrupt(note) from None


class RunInProgress(InputError):
    """Another process owns the run."""


@contextmanager
def owned(run_id: str) -> Iterator[None]:
    """Own a run id until the block or this process ends, however it ends.

    The lock is one of the kernel; its file names the holder. A file system that does not pass
    locks on to other machines is recognised by a holder elsewhere whose lock is free.

    Raises:
        InputError: another process owns it, or the file cannot be written or locked.
    """
    path = provenance.manifest_path(run_id).with_name(f".{run_id}.lock")
    lock = FileLock(path, timeout=0.1, poll_interval=0.01, fallback_to_soft=False)
    here: dict[str, Any] = {"host": platform.node(), "boot": boot(), "namespace": namespace()}
    here |= {"process": os.getpid(), "started": provenance.now()}
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock)
        except Timeout:
            raise RunInProgress(
                f"run {run_id} is in progress: {_described(_holder(path))}; wait for it, or choose "
                "another --run-id"
            ) from None
        except OSError as error:
            raise InputError(f"{path}: cannot be locked: {error.strerror}") from error
        holder = _holder(path)
        # the same kernel would still hold the lock, and an earlier one has ended
        if holder and not any(holder.get(name) == here[name] for name in ("boot", "host")):
            raise RunInProgress(
                f"run {run_id} is in progress, or ended without notice: {_described(holder)}; if "
                f"that process has ended, delete {provenance.relative(path)}"
            )
        path.write_text(json.dumps(here), encoding="utf-8")
        stack.callback(path.unlink, missing_ok=True)  # while it is locked
        yield


def _holder(path: Path) -> dict[str, Any]:
    """The process that a lock file names; empty if it names none."""
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, FileNotFoundError):  # of a process that was killed, or has just ended
        return {}
    return holder if isinstance(holder, dict) else {}


def _described(holder: dict[str, Any]) -> str:
    known = {"process": "?", "host": "?", "started": "?", **holder}
    return "process {process} on {host}, since {started}".format(**known)


@runtime_checkable
class ClosesInterrupted(Protocol):
    """A hook that closes what it has opened for a run that is interrupted."""

    def interrupted(self, run_id: str, note: str) -> None:
        """Close it; ``note`` says how to continue the run."""


def change_server() -> None:
    """Let ``kedro server`` run pipelines in our session, if this process is one.

    It imports the settings of the project when it starts, of which it ignores ``SESSION_CLASS``.
    """
    server = sys.modules.get("kedro.server.http_server")
    if server is not None:
        server.KedroServiceSession = Session  # type: ignore[attr-defined]


@contextmanager
def interrupted_once() -> Iterator[None]:
    """Ctrl-C and SIGTERM end the block once; further ones are ignored while it closes its files."""
    process = os.getpid()

    def interrupt(number: int, frame: Any) -> None:
        if os.getpid() != process:  # a child, which is ended
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        for each in handlers:
            signal.signal(each, signal.SIG_IGN)
        signal.default_int_handler(number, frame)

    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {
        number: handler
        for number, handler in usual.items()
        if is_main and signal.getsignal(number) is handler
    }
    for number in handlers:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


class _WithoutSecrets(logging.Formatter):
    """Lines of a log without credentials."""

    def format(self, record: logging.LogRecord) -> str:
        return str(hidden(super().format(record)))


@contextmanager
def logged(run_id: str) -> Iterator[None]:
    """Write the messages of the block, with tracebacks of failed nodes, into the run's log file."""
    path = provenance.manifest_path(run_id).with_name(f"{run_id}.log")
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)
    handler.setFormatter(_WithoutSecrets("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("robust_fairness")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        handler.close()


@contextmanager
def only_regular_exits() -> Iterator[None]:
    """A plug-in that ends this process in the block ends it with a message and never with 0."""
    process, leave = os.getpid(), os._exit

    def refuse(status: int) -> NoReturn:
        if os.getpid() == process:  # a child process may end as it likes
            print("Error: a plug-in ended the process by os._exit", file=sys.stderr, flush=True)
            status = status or 1
        leave(status)

    os._exit = refuse
    try:
        yield
    except SystemExit as error:
        raise RuntimeError(f"a plug-in ended the run by SystemExit: {error.code}") from error
    finally:
        os._exit = leave


def _require_known(options: Mapping[str, Any]) -> None:
    """Name the pipeline that there is not, or the node, tag or dataset that no pipeline has."""
    chosen = options.get("pipeline_names") or ("__default__",)
    for name in chosen:
        if name not in pipelines:
            raise unknown_name("pipeline", name, pipelines)
    every = [pipelines[name] for name in chosen]
    nodes = [node for pipeline in every for node in pipeline.nodes]
    filters: list[tuple[str, set[str], tuple[str, ...]]] = [
        ("node", {node.name for node in nodes}, ("node_names", "from_nodes", "to_nodes")),
        ("tag", {tag for node in nodes for tag in node.tags}, ("tags",)),
        (
            "namespace",
            {prefix for node in nodes for prefix in node.namespace_prefixes if prefix},
            ("namespaces",),
        ),
        (
            "dataset",
            set().union(*(pipeline.datasets() for pipeline in every)),
            ("from_inputs", "to_outputs"),
        ),
    ]
    for kind, allowed, keys in filters:
        for key in keys:
            for name in options.get(key) or ():
                if name not in allowed:
                    raise unknown_name(kind, name, allowed)


@contextmanager
def environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for the block."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
