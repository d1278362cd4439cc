"""Runs nodes on Dask workers of this machine or of a scheduler."""

import logging
import math
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline
from kedro.runner.task import Task
from pluggy import PluginManager

from robust_fairness.core.errors import Failure, InputError, unknown_name
from robust_fairness.core.escaping import without_credentials
from robust_fairness.runs.runners.fault_tolerant import (
    FAN_IN,
    GPU,
    FaultTolerantRunner,
    ThisThread,
    Unreachable,
    reason_of,
)
from robust_fairness.runs.runners.jobs import (
    PACKAGES,
    SETTINGS,
    CatalogFiles,
    Job,
    NodeFailed,
    WorkerSetup,
    attempt,
    identity,
    require_same_versions,
    require_sendable,
)

logger = logging.getLogger(__name__)

RESOURCE = "GPU"  # of a worker: `dask worker --resources GPU=1`
LOST = "the Dask scheduler is lost"
BACKLOG = 2  # nodes per worker, running or waiting
BACKOFF = 4  # factor between the times of warnings that there are no workers
OPTIONS = ("address", "workers", "threads", "timeout")
SECONDS_BETWEEN_COUNTS = 1.0  # of the workers
# Arguments of the configuration loader, and its attributes that hold them.
LOADER = {"conf_source": "source", "env": "env", "runtime_params": "runtime_params"}
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class DaskRunner(FaultTolerantRunner):
    """Runs nodes on Dask workers, each a process that runs one node at a time.

    Nodes that collect what is in memory, such as the tables of a dataset, run in this process.

    Without an address, workers are started on this machine and stopped with the run: one per GPU,
    or one per core without GPUs. They accept connections only from this machine and with the
    certificate of this run.

    Args:
        is_async: not supported; Kedro always passes it.
        address: address of a running scheduler, such as ``tcp://host:8786``.
        workers: number of workers on this machine.
        threads: CPU threads of each node; default: ``OMP_NUM_THREADS`` or an equal share of the
            cores, and with an address the setting of its workers.
        timeout: seconds to wait for the scheduler and its first worker, and without any worker
            until the first warning.
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
            if value is not None and (type(value) is not int or value < 1):
                raise InputError(
                    f"runner parameter {name}: {value!r}, allowed: a whole number from 1"
                )
        if type(timeout) not in (int, float) or timeout <= 0:
            raise InputError(f"runner parameter timeout: {timeout!r}, allowed: seconds above 0")
        if address is not None and workers is not None:
            raise InputError(
                "runner parameters address and workers exclude each other: a scheduler has workers"
            )
        _require_dask()
        self._address = None if address is None else str(address)
        self._workers, self._threads, self._timeout = workers, threads, float(timeout)
        if self._address is not None:  # checked before the run starts
            with connected(self._address, self._timeout) as client:
                require_fit(client, self._address, self._timeout)

    def _get_executor(self, max_workers: int) -> Executor:
        if self._address is not None:
            client = connected(self._address, self._timeout)
            require_fit(client, self._address, self._timeout)
            self.workers = len(client.nthreads())
            return Workers(client, None, self._timeout)
        devices = visible_gpus()
        count = self.workers = self._workers or len(devices) or os.cpu_count() or 1
        self._threads = self._threads_here(count)
        cluster = local_cluster(count, self._threads, devices)
        return Workers(connected(cluster, self._timeout), cluster, self._timeout)

    def _submit(
        self, executor: Executor, task: Task, missing: Mapping[str, Failure]
    ) -> Future[Any]:
        assert isinstance(executor, Workers)
        node = task.node
        touched = (*node.inputs, *node.outputs)
        if FAN_IN in node.tags and not self._in_memory.isdisjoint(touched):
            return ThisThread().submit(task.execute)
        job = Job.of(node, self._files, task.catalog, missing, task.run_id, self._setup())
        return executor.submit_to(GPU in node.tags, job.run)

    def _capacity(self, executor: Executor) -> int:
        assert isinstance(executor, Workers)
        return executor.capacity

    def _run(
        self,
        pipeline: Pipeline,
        catalog: CatalogProtocol,
        hook_manager: PluginManager | None = None,
        run_id: str | None = None,
    ) -> None:
        self._files, self._setup = CatalogFiles.of(catalog), cache(self._worker_setup)
        require_sendable(pipeline, catalog, self._files)
        # outputs that are no files
        self._in_memory = pipeline.all_outputs() - self._files.catalog.keys()
        super()._run(pipeline, catalog, hook_manager, run_id)

    def _worker_setup(self) -> WorkerSetup:
        from kedro.framework.project import PACKAGE_NAME

        from robust_fairness.runs import configuration
        from robust_fairness.runs.provenance import root

        known = {name: os.environ[name] for name in SETTINGS if name in os.environ}
        # they travel without encryption: workers have credentials from their own environment
        settings = {name: without_credentials(value) for name, value in known.items()}
        loader = None if PACKAGE_NAME is None else configuration.loader()
        arguments: dict[str, Any] = {}
        if loader is not None:
            arguments = {name: getattr(loader, held) for name, held in LOADER.items()}
        return WorkerSetup(root(), PACKAGE_NAME, self._threads, settings, arguments, identity())

    def _threads_here(self, workers: int) -> int:
        variable = os.environ.get("OMP_NUM_THREADS", "")
        number = int(variable) if variable.isdigit() else 0
        return self._threads or number or max(1, (os.cpu_count() or 1) // workers)


def _require_dask() -> None:
    try:
        import distributed
    except ModuleNotFoundError as error:
        raise InputError(
            f"DaskRunner needs {error.name}, which is not installed; install it with: pip install "
            "'robust-fairness[dask]'"
        ) from error
    # Dask logs every connection.
    logging.getLogger(distributed.__name__).setLevel(logging.ERROR)


def visible_gpus() -> list[str]:
    """GPUs that this process may use, as in ``CUDA_VISIBLE_DEVICES``."""
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    variable = os.environ.get("CUDA_VISIBLE_DEVICES")
    return variable.split(",")[:count] if variable else [str(number) for number in range(count)]


def local_cluster(workers: int, threads: int, devices: list[str]) -> Any:
    """A scheduler and workers on this machine that only processes of this run can reach."""
    import dask
    from distributed import Nanny, Scheduler, Security, SpecCluster

    settings = {
        # otherwise Dask does not restart a worker that is missing for seconds after it died
        "deploy.lost-worker-timeout": "10000 hours",
        # it samples the stack of every worker 100 times a second
        "worker.profile.enabled": False,
    }
    dask.config.set({f"distributed.{name}": value for name, value in settings.items()})
    # A scheduler runs the code of every client: only those with this certificate may connect.
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
            "memory_limit": 0,  # Dask holds no data that it could spill
            "silence_logs": logging.ERROR,
            "resources": {RESOURCE: 1} if devices else {},
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
    """A client of a scheduler."""
    from distributed import Client

    try:
        return Client(where, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:  # unknown host, no answer, unknown scheme
        raise InputError(
            f"{where}: no Dask scheduler within {timeout:g} s ({reason_of(error)}); start one "
            "with: dask scheduler"
        ) from error


def require_fit(client: Any, address: str, timeout: float) -> None:
    """Require a scheduler with workers that can run the nodes of this process.

    They run one node at a time, with the same packages, code and project folder.
    """
    try:
        client.wait_for_workers(1, timeout=timeout)
    except TimeoutError as error:
        raise InputError(
            f"{address}: no worker within {timeout:g} s; start one with: dask worker {address} "
            "--nthreads 1"
        ) from error
    here = identity()
    wanted = {name: here[name] for name in ("python", *PACKAGES)}
    versions = client.get_versions(packages=list(PACKAGES))
    for name, process in {"its scheduler": versions["scheduler"], **versions["workers"]}.items():
        release = ".".join(process["packages"]["python"].split(".")[:3])  # of 3.11.7.final.0
        packages = {**process["packages"], "python": release}
        who = name if name == "its scheduler" else f"its worker {name}"
        require_same_versions(wanted, packages, f"{address}: {who}")
    for name, threads in client.nthreads().items():
        if threads != 1:
            raise InputError(
                f"{address}: its worker {name} runs {threads} nodes at the same time, allowed: 1; "
                "start workers with --nthreads 1, "
                "and set the CPU threads of a node by the runner parameter threads"
            )
    _require_same_folder(client, address, here)


def _require_same_folder(client: Any, address: str, here: Mapping[str, str]) -> None:
    """Require workers with the same code that see a file created now."""
    from robust_fairness.runs.provenance import root

    with tempfile.NamedTemporaryFile(dir=_shared_folder(), prefix=".seen_by_workers_") as token:
        for name, (versions, seen) in client.run(inspect_worker, token.name).items():
            require_same_versions(here, versions, f"{address}: its worker {name}")
            if not seen:
                raise InputError(
                    f"{address}: its worker {name} does not see {root()}; "
                    "workers need the shared folder of the project at the same path"
                )


def _shared_folder() -> Path:
    """A folder that workers see as well."""
    from robust_fairness.runs.provenance import root

    folder = root() / "data"
    folder.mkdir(exist_ok=True)
    return folder


def inspect_worker(path: str) -> tuple[dict[str, str], bool]:
    """The worker's identity, and whether it sees a file."""
    return identity(), Path(path).exists()


class Workers(Executor):
    """Dask workers as an executor; shutting it down cancels running calls."""

    def __init__(self, client: Any, cluster: Any, timeout: float) -> None:
        self._client, self._cluster = client, cluster
        self._sent: set[Any] = set()  # Dask drops futures without references
        self._attempts = tempfile.TemporaryDirectory(
            dir=_shared_folder(), prefix=".attempts_", ignore_cleanup_errors=True
        )
        self._counted, self._capacity = -math.inf, BACKLOG
        self._known: set[str] = set()  # addresses of workers
        self._timeout = self._patience = timeout
        self._seen = time.monotonic()

    @property
    def capacity(self) -> int:
        """How many nodes may be submitted: per worker one that runs and one that waits."""
        now = time.monotonic()
        if now - self._counted >= SECONDS_BETWEEN_COUNTS:
            self._counted = now
            with suppress(OSError, RuntimeError):  # ``submit`` reports a lost scheduler
                workers = self._count()
                self._capacity = BACKLOG * max(1, workers)
                self._warn_without(workers, now)
                self._revive()
        return self._capacity

    def _count(self) -> int:
        """The number of workers; says which are gone since the last count."""
        workers = {*self._client.nthreads()}
        for lost in sorted(self._known - workers):
            logger.warning("worker %s is gone; another one repeats what it ran", lost)
        self._known = workers
        return len(workers)

    def _warn_without(self, workers: int, now: float) -> None:
        """Warn that there are no workers, at growing intervals, and when there are some again."""
        address = self._client.scheduler.address
        if workers:
            if self._patience > self._timeout:
                logger.warning("%s: workers are available again, the run continues", address)
            self._patience, self._seen = self._timeout, now
        elif now - self._seen >= self._patience:
            self._patience *= BACKOFF
            advice = (
                f"start one with: dask worker {address} --nthreads 1"
                if self._cluster is None
                else "they should restart automatically"
            )
            logger.warning(
                "%s: no workers for %.0f s, the run waits; %s", address, now - self._seen, advice
            )

    def _revive(self) -> None:
        """Replace workers of this machine that died while starting; Dask restarts the others."""
        if self._cluster is None:
            return
        for name, nanny in list(self._cluster.workers.items()):
            if nanny.status.name in {"closed", "failed"}:
                self._cluster.workers.pop(name, None)
                self._cluster.scale(len(self._cluster.worker_spec))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self.submit_to(False, partial(fn, *args, **kwargs))

    def submit_to(self, gpu: bool, function: Callable[[], Any]) -> Future[Any]:
        """Submit a call, to workers that declare GPUs if it asks for one and there are any."""
        from distributed.protocol.pickle import dumps

        result: Future[Any] = Future()
        try:
            call = dumps(function)
        except Exception as error:  # of any type, raised by pickling
            result.set_exception(NodeFailed(f"cannot be sent to workers ({reason_of(error)})"))
            return result
        begun = Path(self._attempts.name) / uuid.uuid4().hex
        needs = {RESOURCE: 1} if gpu and self._have_gpus() else {}
        self._send(partial(attempt, call, begun), needs, result)
        return result

    def _have_gpus(self) -> bool:
        """Whether a worker declares GPUs as its resource."""
        with suppress(OSError, RuntimeError):  # ``_send`` reports a lost scheduler
            workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
            return any(worker["resources"].get(RESOURCE) for worker in workers)
        return False

    def _send(
        self, node: Callable[[], None], needs: Mapping[str, int], result: "Future[Any]"
    ) -> None:
        try:
            if self._client.status != "running":
                raise OSError(f"its client is {self._client.status}")
            key = f"node-{uuid.uuid4().hex}"
            sent = self._client.submit(node, key=key, resources=needs or None)
        except Exception as error:  # of any type, where the scheduler is lost
            result.set_exception(Unreachable(f"{LOST} ({reason_of(error)})"))
            return
        self._sent.add(sent)
        sent.add_done_callback(partial(self._finish, node=node, needs=needs, result=result))

    def _finish(
        self,
        done: Any,
        node: Callable[[], None],
        needs: Mapping[str, int],
        result: "Future[Any]",
    ) -> None:
        from distributed import KilledWorker

        self._sent.discard(done)
        if result.done():
            return
        if done.status == "finished":
            result.set_result(None)
        elif done.status == "error":
            error = done.exception()
            if isinstance(error, KilledWorker):  # perhaps while it waited: the attempt counts
                self._send(node, needs, result)
            else:
                result.set_exception(error)
        else:
            result.set_exception(Unreachable(f"{LOST} (a node was {done.status})"))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancel running calls, and stop the workers that were started here."""
        with suppress(OSError, RuntimeError):
            self._count()
        self._attempts.cleanup()  # calls that wait for workers of others cannot begin
        self._client.close()
        if self._cluster is not None:
            self._cluster.close()
