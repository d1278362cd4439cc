"""Nodes on Dask workers: of this machine, one a GPU where there are GPUs, or of a scheduler."""

import logging
import math
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline
from kedro.pipeline.node import Node
from pluggy import PluginManager

from robust_fairness.core.errors import Failure, InputError, unknown_name
from robust_fairness.runs.runners._jobs import (
    PACKAGES,
    SETTINGS,
    Attempt,
    Files,
    Job,
    NodeFailed,
    Place,
    identity,
    require_alike,
    require_sendable,
)
from robust_fairness.runs.runners._keeps_going import KeepsGoing, Unreachable, first_line

logger = logging.getLogger(__name__)

GONE = "the Dask scheduler is gone"
BACKLOG = 2  # nodes under way or waiting at each worker
RARER = 4  # each further warning of a run without workers comes so many times later
OPTIONS = ("address", "workers", "threads", "timeout")
SECONDS_BETWEEN_COUNTS = 1.0  # of workers, which come and go
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class DaskRunner(KeepsGoing):
    """Nodes on Dask workers, each in a process that runs one node at a time.

    Without an address, workers are started on this machine and stopped with the run: one a GPU
    where there are GPUs, else one a core. They listen on this machine only, to processes that hold
    the certificate of this run.

    Args:
        is_async: not supported; Kedro always passes it.
        address: of a scheduler that runs, ``tcp://host:8786``, or its name in Dask's form.
        workers: number of workers on this machine.
        threads: CPU threads of each node. On this machine ``OMP_NUM_THREADS``, or the share of the
            cores, unless given; of an address, as its workers were started.
        timeout: seconds to wait for the scheduler and its first worker, and without workers
            until that is told.

    Raises:
        InputError: an option is unknown or does not fit, Dask is not installed, the scheduler
            cannot be reached, or its workers are not like this process.
    """

    def __init__(
        self,
        is_async: bool = False,
        address: Any = None,
        workers: Any = None,
        threads: Any = None,
        timeout: Any = 30,
        **unknown: Any,
    ) -> None:
        super().__init__(is_async=False)
        for name in unknown:
            raise unknown_name("runner parameter", name, OPTIONS)
        if is_async:
            raise InputError("runner parameter is_async: True, allowed with Dask: False")
        for name, value in (("workers", workers), ("threads", threads)):
            if value is not None and (not _is_whole(value) or value < 1):
                raise InputError(
                    f"runner parameter {name}: {value!r}, allowed: a whole number from 1"
                )
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0:
            raise InputError(f"runner parameter timeout: {timeout!r}, allowed: seconds above 0")
        if address is not None and workers is not None:
            raise InputError(
                "runner parameters address and workers exclude each other: a scheduler has workers"
            )
        _require_dask()
        self._address = None if address is None else str(address)
        self._workers, self._threads, self._timeout = workers, threads, float(timeout)
        self._files: Files | None = None
        self._place: Place | None = None
        if self._address is not None:  # before a run is begun
            with connected(self._address, self._timeout) as client:
                require_fit(client, self._address, self._timeout)

    def _run(
        self,
        pipeline: Pipeline,
        catalog: CatalogProtocol,
        hook_manager: PluginManager | None = None,
        run_id: str | None = None,
    ) -> None:
        """Run all nodes that can run; see ``KeepsGoing``.

        Raises:
            InputError: something is in memory that workers would need.
        """
        self._files, self._place = Files.of(catalog), None
        require_sendable(pipeline, catalog, self._files)
        super()._run(pipeline, catalog, hook_manager, run_id)

    def _get_executor(self, max_workers: int) -> Executor:
        if self._address is not None:
            client = connected(self._address, self._timeout)
            require_fit(client, self._address, self._timeout)
            return Workers(client, None, self._timeout)
        devices = visible_gpus()
        count = self._workers or len(devices) or os.cpu_count() or 1
        self._threads = self._threads_here(count)
        cluster = local_cluster(count, self._threads, devices)
        return Workers(connected(cluster, self._timeout), cluster, self._timeout)

    def _places(self, executor: Executor, pipeline: Pipeline) -> int:
        assert isinstance(executor, Workers)
        return executor.places

    def _work(
        self,
        node: Node,
        catalog: Any,
        missing: Mapping[str, Failure],
        hook_manager: PluginManager | None,
        run_id: str | None,
    ) -> Callable[[], Any]:
        assert self._files is not None
        self._place = self._place or self._place_of_run()  # the same for all nodes
        return Job.of(node, self._files, catalog, missing, run_id, self._place).run

    def _place_of_run(self) -> Place:
        from kedro.framework.project import PACKAGE_NAME

        from robust_fairness.runs.provenance import root

        settings = {name: os.environ[name] for name in SETTINGS if name in os.environ}
        configuration: dict[str, Any] = {} if PACKAGE_NAME is None else _configuration()
        return Place(root(), PACKAGE_NAME, self._threads, settings, configuration, identity())

    def _threads_here(self, workers: int) -> int:
        given = os.environ.get("OMP_NUM_THREADS", "")
        wanted = int(given) if given.isdigit() else 0
        return self._threads or wanted or max(1, (os.cpu_count() or 1) // workers)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _configuration() -> dict[str, Any]:
    """What makes the configuration loader of this run again: nodes ask it for the grid."""
    from robust_fairness.runs import configuration

    loader = configuration.loader()
    return {
        "conf_source": loader.conf_source,
        "env": loader.env,
        "runtime_params": loader.runtime_params,
    }


def _require_dask() -> None:
    """Refuse to go on without Dask, which is an extra.

    Raises:
        InputError: it is not installed.
    """
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise InputError(
            f"DaskRunner needs {error.name}, which is not installed; "
            "install it by: pip install 'robust-fairness[dask]'"
        ) from error
    # Dask tells of every connection; what matters is said here, in one line.
    logging.getLogger(distributed.__name__).setLevel(logging.ERROR)


def visible_gpus() -> list[str]:
    """Names, as ``CUDA_VISIBLE_DEVICES`` has them, of the GPUs that this process may use."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    return given.split(",")[:count] if given else [str(number) for number in range(count)]


def local_cluster(workers: int, threads: int, devices: list[str]) -> Any:
    """A scheduler and workers on this machine, open to this run's own processes only.

    Args:
        workers: number of workers; each runs one node at a time.
        threads: CPU threads of a node.
        devices: GPUs that workers take in turn; none for none.
    """
    import dask
    from distributed import Nanny, Scheduler, Security, SpecCluster

    # Dask would stop for good a worker that is missing some seconds after another of its deaths.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "10000 hours"})
    # Whoever reaches a scheduler can run code: it talks to holders of this certificate only.
    security = Security.temporary()
    here = {"host": "127.0.0.1", "protocol": "tls://", "security": security, "dashboard": False}

    def worker(number: int) -> dict[str, Any]:
        environment = dict.fromkeys(THREADS, str(threads))
        if devices:
            environment["CUDA_VISIBLE_DEVICES"] = devices[number % len(devices)]
        options = {
            **here,
            "nthreads": 1,
            "env": environment,
            "memory_limit": 0,  # data are never Dask's to spill
            "silence_logs": logging.ERROR,
        }
        return {"cls": Nanny, "options": options}

    return SpecCluster(
        scheduler={
            "cls": Scheduler,
            "options": {**here, "dashboard_address": "127.0.0.1:0", "port": 0},
        },
        workers={number: worker(number) for number in range(workers)},
        security=security,
        silence_logs=logging.ERROR,
    )


def connected(where: Any, timeout: float) -> Any:
    """A client of a scheduler.

    Args:
        where: its address, or a cluster of this process.
        timeout: seconds to wait.

    Raises:
        InputError: it cannot be reached.
    """
    from distributed import Client

    try:
        return Client(where, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:  # no such host, nobody there, no such scheme
        raise InputError(
            f"{where}: no Dask scheduler can be reached there within {timeout:g} s "
            f"({first_line(error)}); start one by: dask scheduler"
        ) from error


def require_fit(client: Any, address: str, timeout: float) -> None:
    """Refuse a scheduler whose workers cannot run the nodes of this process.

    Args:
        client: its client.
        address: its address, for messages.
        timeout: seconds to wait for its first worker.

    Raises:
        InputError: there is no worker, one runs several nodes at once, or one has other packages,
            other code or another project folder.
    """
    try:
        client.wait_for_workers(1, timeout=timeout)
    except TimeoutError as error:
        raise InputError(
            f"{address}: no worker within {timeout:g} s; "
            f"start some by: dask worker {address} --nthreads 1"
        ) from error
    here = identity()
    wanted = {name: here[name] for name in ("python", *PACKAGES)}
    found = client.get_versions(packages=list(PACKAGES))
    for name, told in {"its scheduler": found["scheduler"], **found["workers"]}.items():
        packages = {**told["packages"], "python": _release(told["packages"]["python"])}
        who = name if name == "its scheduler" else f"its worker {name}"
        require_alike(wanted, packages, f"{address}: {who}")
    for name, threads in client.nthreads().items():
        if threads != 1:
            raise InputError(
                f"{address}: its worker {name} runs {threads} nodes at once, allowed: 1; "
                "start workers with --nthreads 1, "
                "and give a node more CPU threads by the runner parameter threads"
            )
    _require_same_folder(client, address, here)


def _require_same_folder(client: Any, address: str, here: Mapping[str, str]) -> None:
    """Refuse workers with other code, or that do not see a file made here and now."""
    from robust_fairness.runs.provenance import root

    with tempfile.NamedTemporaryFile(dir=_shared_folder(), prefix=".seen_by_workers_") as token:
        for name, (code, seen) in client.run(look, token.name).items():
            require_alike(here, code, f"{address}: its worker {name}")
            if not seen:
                raise InputError(
                    f"{address}: its worker {name} does not see {root()}; "
                    "workers need the project's folder, shared, at the same path"
                )


def _shared_folder() -> Path:
    """A folder that workers see, too."""
    from robust_fairness.runs.provenance import root

    folder = root() / "data"
    folder.mkdir(exist_ok=True)
    return folder


def look(path: str) -> tuple[dict[str, str], bool]:
    """What a worker is, and whether it sees a file."""
    return identity(), Path(path).exists()


def _release(python: str) -> str:
    """``3.11.7`` of ``3.11.7.final.0``."""
    return ".".join(python.split(".")[:3])


class Workers(Executor):
    """Dask workers as an executor; the end of it is the end of what still runs.

    Args:
        client: a client of their scheduler.
        cluster: what to stop in the end; None where it is somebody else's.
        timeout: seconds without workers until that is told.
    """

    def __init__(self, client: Any, cluster: Any, timeout: float) -> None:
        self._client, self._cluster = client, cluster
        self._sent: set[Any] = set()  # Dask forgets what nobody holds
        self._attempts = tempfile.TemporaryDirectory(
            dir=_shared_folder(), prefix=".attempts_", ignore_cleanup_errors=True
        )
        self._counted, self._places = -math.inf, BACKLOG
        self._timeout = self._patience = timeout
        self._seen = time.monotonic()

    @property
    def places(self) -> int:
        """How many nodes may be sent: one for each worker, and one that waits."""
        now = time.monotonic()
        if now - self._counted >= SECONDS_BETWEEN_COUNTS:
            self._counted = now
            with suppress(OSError, RuntimeError):  # a scheduler that is gone is told by ``submit``
                workers = len(self._client.nthreads())
                self._places = BACKLOG * max(1, workers)
                self._tell_of(workers, now)
                self._revive()
        return self._places

    def _tell_of(self, workers: int, now: float) -> None:
        """Say that there are no workers, more and more rarely, and that there are some again."""
        address = self._client.scheduler.address
        if workers:
            if self._patience > self._timeout:
                logger.warning("%s: workers again, the run goes on", address)
            self._patience, self._seen = self._timeout, now
        elif now - self._seen >= self._patience:
            self._patience *= RARER
            advice = (
                f"start some by: dask worker {address} --nthreads 1"
                if self._cluster is None
                else "they should start again by themselves"
            )
            logger.warning(
                "%s: no workers for %.0f s, the run waits; %s", address, now - self._seen, advice
            )

    def _revive(self) -> None:
        """Start workers of this machine in the place of those that died as they started.

        Dask starts the others again.
        """
        if self._cluster is None:
            return
        for name, nanny in list(self._cluster.workers.items()):
            if nanny.status.name in {"closed", "failed"}:
                self._cluster.workers.pop(name, None)
                self._cluster.scale(len(self._cluster.worker_spec))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Send a call; its outcome arrives in what is returned."""
        told: Future[Any] = Future()
        begun = Path(self._attempts.name) / uuid.uuid4().hex
        try:
            attempt = Attempt.at(partial(fn, *args, **kwargs), begun)
        except Exception as error:  # whatever there is that cannot be sent
            told.set_exception(NodeFailed(f"cannot be sent to workers ({first_line(error)})"))
            return told
        self._send(attempt, told)
        return told

    def _send(self, attempt: Attempt, told: "Future[Any]") -> None:
        try:
            if self._client.status != "running":
                raise OSError(f"its client is {self._client.status}")
            sent = self._client.submit(attempt.run, key=f"node-{uuid.uuid4().hex}")
        except Exception as error:  # whatever a scheduler that went away makes of it
            told.set_exception(Unreachable(f"{GONE} ({first_line(error)})"))
            return
        self._sent.add(sent)
        sent.add_done_callback(partial(self._tell, attempt=attempt, told=told))

    def _tell(self, done: Any, attempt: Attempt, told: "Future[Any]") -> None:
        """Pass on how a call has ended."""
        from distributed import KilledWorker

        self._sent.discard(done)
        if told.done():
            return
        if done.status == "finished":
            told.set_result(None)
        elif done.status == "error":
            error = done.exception()
            if isinstance(error, KilledWorker):  # perhaps it only waited; the attempt knows
                self._send(attempt, told)
            else:
                told.set_exception(NodeFailed(first_line(error)))
        else:
            told.set_exception(Unreachable(f"{GONE} (a node was {done.status})"))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Drop what still runs, and stop the workers that were started here."""
        self._attempts.cleanup()  # what still waits for somebody else's workers cannot begin
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()
