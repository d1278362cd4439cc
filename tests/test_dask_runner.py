"""Nodes on real Dask workers: processes of this machine, some of which are killed."""

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dask
import psutil
import pytest
from distributed import LocalCluster
from distributed.protocol.pickle import dumps
from kedro.framework.hooks.manager import _create_hook_manager
from kedro.io import DataCatalog, MemoryDataset
from kedro.io.core import Version
from kedro.pipeline import Node, Pipeline

from robust_fairness import __version__
from robust_fairness.core.errors import Failure, InputError
from robust_fairness.runs.runners import GPU, DaskRunner, RunFailed, Stopped, dask_runner
from robust_fairness.runs.runners.jobs import (
    DEATHS,
    CatalogFiles,
    Job,
    NodeFailed,
    WorkerSetup,
    attempt,
    identity,
    set_up,
)
from tests.files import text_file
from tests.project import ROOT
from tests.test_runners import CELLS, OUTPUTS, catalog, pipeline, table, written

SECONDS = 120  # to wait for something that takes a second on a machine with nothing else to do


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """A scheduler of somebody else's with two workers."""
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
        memory_limit=0,
    ) as started:
        yield started


@contextmanager
def process(*words: str, **environment: str) -> Iterator[subprocess.Popen]:
    """A process of Dask's, killed in the end."""
    child = subprocess.Popen(
        [sys.executable, "-m", "dask", *words],
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()


def wait_for(what: Callable[[], Any]) -> Any:
    """What a call gives as soon as it gives something."""
    deadline = time.monotonic() + SECONDS
    while not (value := what()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def run(what: Pipeline, data: DataCatalog, address: str, **options: bool) -> None:
    """Run a pipeline under the id "one"."""
    DaskRunner(address=address).run(what, data, _create_hook_manager(), run_id="one", **options)


def test_a_failed_cell_fails_alone_and_the_run_can_be_completed(cluster, tmp_path):
    data = catalog(tmp_path, "one")
    with pytest.raises(RunFailed) as error:
        run(pipeline("adult.cuma"), data, cluster.scheduler_address)
    assert error.value.failures == [Failure("adult.cuma.train", "adult.cuma does not converge")]
    assert written(tmp_path) == OUTPUTS - {"adult.cuma.models", "adult_cuma_metrics"}
    assert "adult_cuma=adult.cuma.train: adult.cuma does not converge;" in data.load("report")
    assert "german_erm=GERMAN.ERM ON ROWS" in data.load("report")

    again = catalog(tmp_path, "one")
    run(pipeline(), again, cluster.scheduler_address, only_missing_outputs=True)
    assert "adult_cuma=ADULT.CUMA ON ROWS" in again.load("report")


def test_a_file_that_cannot_be_saved_is_a_failure_with_its_reason(cluster, tmp_path):
    (tmp_path / "adult.erm.models").write_text("a file where a folder must be")
    with pytest.raises(RunFailed) as error:
        run(pipeline(), catalog(tmp_path, "one"), cluster.scheduler_address)
    (failure,) = error.value.failures
    assert failure.node == "adult.erm.train"
    assert "adult.erm.models" in failure.message
    assert "german_cuma_metrics" in written(tmp_path)


def large(*scores: str) -> str:
    """A megabyte."""
    return "text" * 2**18


def too_large(folder: Path, address: str) -> str:
    """Run four cells of which one has a model of a megabyte; why it failed, alone.

    The others are done by then: nothing else is written while the disk is full.
    """
    data = catalog(folder, "one")
    others = [f"{cell}_metrics" for cell in ("adult_erm", "german_erm", "german_cuma")]
    what = Pipeline(
        [
            *(node for node in pipeline().nodes if node.name != "adult.cuma.train"),
            Node(large, others, "adult.cuma.models", name="large", namespace="adult.cuma"),
        ]
    )
    with pytest.raises(RunFailed) as error:
        run(what, data, address)
    (failure,) = error.value.failures
    assert failure.node == "adult.cuma.large"
    assert "\n" not in failure.message
    assert written(folder) == OUTPUTS - {"adult.cuma.models", "adult_cuma_metrics"}
    assert f"adult_cuma=adult.cuma.large: {failure.message};" in data.load("report")
    run(pipeline(), catalog(folder, "one"), address, only_missing_outputs=True)
    assert written(folder) == OUTPUTS
    return failure.message


def limit(size: int) -> None:
    """Let this process write files of this size at most."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_a_worker_that_cannot_write_fails_the_node_that_needs_it(cluster, tmp_path):
    """As a full disk does, where no disk can be mounted."""
    with dask_runner.connected(cluster.scheduler_address, SECONDS) as client:
        client.run(limit, 2**16)
        try:
            message = too_large(tmp_path, cluster.scheduler_address)
        finally:
            client.run(limit, resource.RLIM_INFINITY)
    assert "adult.cuma.models" in message
    assert "File too large" in message


@pytest.fixture
def begun(tmp_path) -> Path:
    """A folder in which nodes say that they have begun."""
    folder = tmp_path / "begun"
    folder.mkdir()
    return folder


def waits(folder: Path) -> Callable[[str], str]:
    """A function that tells its process and goes on when a file is there."""

    def node(text: str) -> str:
        (folder / str(os.getpid())).touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
        return f"{text} by {os.getpid()}"

    return node


def test_nodes_that_train_run_on_workers_with_gpus_if_there_are_any(cluster, tmp_path):
    """Resources are declared: these workers have no GPU."""

    def where(text: str) -> str:
        from distributed import get_worker

        return str(get_worker().name)

    names = sorted(name for name in OUTPUTS if "." not in name)
    tags = {name: [GPU] if number % 2 else [] for number, name in enumerate(names)}
    what = Pipeline([Node(where, "raw", name, name=name, tags=tags[name]) for name in names])
    trained = [name for name in names if tags[name]]
    without, data = catalog(tmp_path / "without", "one"), catalog(tmp_path / "with", "one")
    run(what, without, cluster.scheduler_address)
    assert "with_gpu" not in {without.load(name) for name in names}
    options = ("--resources", "GPU=1", "--nthreads", "1", "--no-dashboard", "--no-nanny")
    with process("worker", cluster.scheduler_address, "--name", "with_gpu", *options):
        wait_for(lambda: len(cluster.scheduler_info["workers"]) == 3)
        run(what, data, cluster.scheduler_address)
        assert {data.load(name) for name in trained} == {"with_gpu"}
    wait_for(lambda: len(cluster.scheduler_info["workers"]) == 2)


def test_a_killed_workers_node_runs_again_elsewhere(cluster, tmp_path, begun, caplog):
    """One line says so."""

    def kill() -> None:
        (first,) = wait_for(lambda: list(begun.iterdir()))
        os.kill(int(first.name), signal.SIGKILL)
        wait_for(lambda: len(list(begun.iterdir())) > 1)
        (begun / "go").touch()

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    what = Pipeline(
        [
            Node(waits(begun), "raw", "adult_erm_metrics", name="long"),
            Node(str.upper, "adult_erm_metrics", "report", name="after"),
        ]
    )
    data = catalog(tmp_path, "one")
    run(what, data, cluster.scheduler_address)
    killer.join()
    (line,) = [text for text in caplog.messages if "is gone" in text]
    assert re.fullmatch(r"worker tcp://\S+ is gone; another one repeats what it ran", line)
    first, second = sorted(
        (path for path in begun.iterdir() if path.name != "go"),
        key=lambda path: path.stat().st_mtime,
    )
    assert data.load("report") == f"ROWS BY {second.name}"
    assert not psutil.pid_exists(int(first.name))


def test_an_attempt_is_made_a_few_times_and_never_again_after_success(tmp_path):
    begun, made = tmp_path / "attempts", tmp_path / "made"
    begun.write_bytes(b"." * (DEATHS - 1))  # of workers that died
    with pytest.raises(NodeFailed, match="Ran out of input"):  # which ends the fourth attempt
        attempt(b"", begun)
    with pytest.raises(NodeFailed, match="the worker that ran it died, 4 times"):
        attempt(dumps(made.touch), begun)
    begun.write_bytes(b"")
    for _ in range(2):  # the first worker died before all knew that it had succeeded
        attempt(dumps(partial(made.touch, exist_ok=False)), begun)
    assert made.exists()
    for _ in range(2):
        with pytest.raises(NodeFailed, match="^no$"):
            attempt(dumps(partial(str, "no")), tmp_path / "refused")


class OnTwoWorkers(DaskRunner):
    """On workers of this machine that do not import torch, which takes seconds at each start."""

    def _get_executor(self, max_workers: int) -> Executor:
        started = dask_runner.local_cluster(2, 1, [])
        return dask_runner.Workers(dask_runner.connected(started, SECONDS), started, SECONDS)


@pytest.mark.slow
def test_only_nodes_that_kill_their_workers_fail_not_those_that_waited_there(tmp_path, begun):
    """Even where Dask gives up, at the first death, whatever the worker had been assigned."""

    def deadly(name: str) -> Callable[[str], str]:
        def node(text: str) -> str:
            (begun / f"{name}.{os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)
            return text

        return node

    harmless = ["report", *map(table, CELLS)]
    what = Pipeline(
        [
            Node(deadly("first"), "raw", "first", name="a_first"),
            Node(deadly("second"), "raw", "second", name="a_second"),
            *(Node(str.upper, "raw", name, name=name) for name in harmless),
        ]
    )
    data = catalog(tmp_path, "one")
    for name in ("first", "second"):
        version = Version("one", "one")
        data[name] = text_file(filepath=str(tmp_path / name), version=version)
    runner = OnTwoWorkers(workers=2)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        pytest.raises(RunFailed) as error,
    ):
        runner.run(what, data, _create_hook_manager(), run_id="one")
    assert {failure.node for failure in error.value.failures} == {"a_first", "a_second"}
    for failure in error.value.failures:
        assert failure.message.startswith("the worker that ran it died, 4 times")
    assert written(tmp_path) - {path.name for path in begun.iterdir()} == set(harmless)
    attempts = Counter(path.stem for path in begun.iterdir())
    assert attempts == {"first": DEATHS, "second": DEATHS}
    assert not list((ROOT / "data").glob(".attempts_*"))


def test_what_cannot_be_sent_fails_alone(cluster, tmp_path):
    lock = threading.Lock()
    what = Pipeline(
        [
            Node(lambda text: f"{text} {lock}", "raw", "adult_erm_metrics", name="locked"),
            Node(str.upper, "raw", "report", name="harmless"),
        ]
    )
    with pytest.raises(RunFailed) as error:
        run(what, catalog(tmp_path, "one"), cluster.scheduler_address)
    (failure,) = error.value.failures
    assert failure.node == "locked"
    assert failure.message.startswith("cannot be sent to workers (")
    assert written(tmp_path) == {"report"}


def test_what_a_dead_worker_had_saved_of_a_node_is_replaced(tmp_path):
    """A version may not be saved twice; another run's version is left alone."""
    names = {"a", "b"}
    for run_id in ("one", "zero"):
        for name in names:
            version = Version(run_id, run_id)
            text_file(filepath=str(tmp_path / name), version=version).save("half")
    data = DataCatalog(
        {
            "raw": MemoryDataset("rows"),
            **{
                name: text_file(filepath=str(tmp_path / name), version=Version("one", "one"))
                for name in names
            },
        }
    )
    node = Node(lambda text: (text, text), "raw", ["a", "b"], name="both")
    setup = WorkerSetup(tmp_path, None, None, {}, {}, identity())
    here = Path.cwd()
    try:
        assert Job.of(node, CatalogFiles.of(data), data, {}, "one", setup).run() is None
    finally:
        os.chdir(here)
    assert data.load("a") == data.load("b") == "rows"
    assert (tmp_path / "a" / "zero" / "a").read_text() == "half"


def test_a_node_that_collects_in_memory_runs_in_the_process_of_the_run(cluster, tmp_path):
    data = catalog(tmp_path, "one")
    data["report"] = MemoryDataset()
    with pytest.raises(RunFailed):
        run(pipeline("adult.cuma"), data, cluster.scheduler_address)
    assert "adult_cuma=adult.cuma.train: adult.cuma does not converge;" in data.load("report")
    assert "german_erm=GERMAN.ERM ON ROWS" in data.load("report")


def test_what_stays_in_memory_is_refused_before_anything_runs(cluster, tmp_path):
    data = DataCatalog({"raw": MemoryDataset("rows"), "report": MemoryDataset()})
    with pytest.raises(InputError, match=r"adult.cuma.models, .*metrics: in memory, .*give each"):
        run(pipeline(), data, cluster.scheduler_address)
    data = catalog(tmp_path, "one")
    data["raw"] = MemoryDataset("r" * 2**21)
    with pytest.raises(InputError, match=r"raw: 2,097,\d+ bytes in memory, allowed .* 1,048,576"):
        run(pipeline(), data, cluster.scheduler_address)
    data["raw"] = MemoryDataset(threading.Lock(), copy_mode="assign")
    with pytest.raises(InputError, match="raw: cannot be sent to workers"):
        run(pipeline(), data, cluster.scheduler_address)
    assert not written(tmp_path)


def test_a_scheduler_that_dies_ends_the_run_and_keeps_what_has_finished(tmp_path, begun):
    options = ("--nthreads=1", "--no-dashboard", "--no-nanny")
    with scheduler(tmp_path) as (address, child), process("worker", address, *options):

        def kill() -> None:
            wait_for(lambda: list(begun.iterdir()))
            child.kill()

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        what = Pipeline(
            [
                Node(str.upper, "raw", "adult_erm_metrics", name="short"),
                Node(waits(begun), "adult_erm_metrics", "report", name="long"),
            ]
        )
        with (
            dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
            pytest.raises(Stopped) as error,
        ):
            run(what, catalog(tmp_path, "one"), address)
        killer.join()
    assert "the Dask scheduler is lost" in error.value.message
    assert "--run-id one --only-missing-outputs" in error.value.message
    assert written(tmp_path / "adult_erm_metrics") == {"adult_erm_metrics"}
    assert not (tmp_path / "report").exists()


@contextmanager
def scheduler(folder: Path) -> Iterator[tuple[str, subprocess.Popen]]:
    """A scheduler in a process of its own, with its address."""
    told = folder / "scheduler.json"
    options = ("--host=127.0.0.1", "--port=0", "--no-dashboard", f"--scheduler-file={told}")
    with process("scheduler", *options) as child:
        wait_for(told.exists)
        yield json.loads(wait_for(told.read_text))["address"], child


def test_a_run_whose_workers_are_gone_says_so_and_goes_on_with_a_new_one(tmp_path, caplog, begun):
    options = ("--nthreads=1", "--no-dashboard", "--no-nanny")
    data = catalog(tmp_path, "one")

    def told() -> list[str]:
        return [text for text in caplog.messages if "workers" in text]

    with (
        ThreadPoolExecutor() as threads,  # ends last: a run ends with its scheduler
        scheduler(tmp_path) as (address, _),
        process("worker", address, *options) as worker,
    ):
        with dask_runner.connected(address, SECONDS) as client:
            client.wait_for_workers(1, timeout=SECONDS)
        what = Pipeline([Node(waits(begun), "raw", "report", name="long")])
        runner = DaskRunner(address=address, timeout=3)
        hooks = _create_hook_manager()
        running = threads.submit(runner.run, what, data, hooks, run_id="one")
        wait_for(lambda: list(begun.iterdir()))
        assert told() == []
        worker.kill()
        wait_for(told)
        assert not running.done()
        with process("worker", address, *options) as another:
            wait_for((begun / str(another.pid)).exists)
            wait_for(lambda: told()[-1].endswith("again, the run continues"))
            (begun / "go").touch()
            running.result(SECONDS)
    first, *_, last = told()
    assert first.startswith(f"{address}: no workers for ")
    assert first.endswith(f" s, the run waits; start one with: dask worker {address} --nthreads 1")
    assert last == f"{address}: workers are available again, the run continues"
    assert data.load("report") == f"rows by {another.pid}"


def test_the_longer_there_are_no_workers_the_rarer_that_is_told(tmp_path, caplog, monkeypatch):
    monkeypatch.chdir(tmp_path)
    now, workers = 0.0, 0
    client = SimpleNamespace(
        nthreads=lambda: {str(number): 1 for number in range(workers)},
        scheduler=SimpleNamespace(address="tcp://here:1"),
        close=lambda: None,
    )
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with dask_runner.Workers(client, None, timeout=30) as executor:
        times = []
        for second in range(10_000):
            now, before = float(second), len(caplog.records)
            assert executor.capacity == dask_runner.BACKLOG
            times += [second] * (len(caplog.records) - before)
        assert times == [30, 120, 480, 1920, 7680]
        now, workers = 10_000.0, 3
        assert executor.capacity == 3 * dask_runner.BACKLOG
        assert (
            caplog.records[-1].getMessage()
            == "tcp://here:1: workers are available again, the run continues"
        )
        for second in range(10_001, 10_029):
            now, workers = float(second), 0
            assert executor.capacity == dask_runner.BACKLOG
        assert len([text for text in caplog.messages if "is gone" not in text]) == len(times) + 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"worker": 2}, "unknown runner parameter 'worker': did you mean 'workers'"),
        ({"workers": 0}, "workers: 0, allowed: a whole number from 1"),
        ({"threads": "two"}, "threads: 'two', allowed: a whole number from 1"),
        ({"timeout": 0}, "timeout: 0, allowed: seconds above 0"),
        ({"is_async": True}, "is_async: True, allowed with Dask: False"),
        ({"address": "tcp://127.0.0.1:9", "workers": 2}, "exclude each other"),
        ({"address": "tcp://127.0.0.1:9", "timeout": 0.5}, "no Dask scheduler within"),
        ({"address": "nonsense://here", "timeout": 0.5}, "no Dask scheduler within"),
    ],
)
def test_mistakes_are_one_line(options, message):
    with pytest.raises(InputError, match=message) as error:
        DaskRunner(**options)
    assert "\n" not in str(error.value)


def test_workers_are_sent_no_credentials(monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://me:hunter2@host/runs")
    settings = DaskRunner()._worker_setup().settings
    assert settings["MLFLOW_TRACKING_URI"] == "postgresql://host/runs"
    assert "hunter2" not in str(settings)


def test_without_dask_the_command_that_installs_it_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'robust-fairness\[dask\]'"):
        DaskRunner()


LACKS = """
import importlib.metadata as metadata
found = metadata.version
def version(name):
    if name == "robust_fairness":
        raise metadata.PackageNotFoundError(name)
    return found(name)
metadata.version = version
"""
OLD = LACKS.replace("raise metadata.PackageNotFoundError(name)", 'return "0.0.1"')


@pytest.mark.parametrize(
    ("customised", "words", "message"),
    [
        (LACKS, (), f"lacks robust_fairness, here it is {__version__}; install it there"),
        (OLD, (), f"has robust_fairness 0.0.1, here it is {__version__}; install the same version"),
        (
            "",
            ("--nthreads=2",),
            "runs 2 nodes at the same time, allowed: 1; start workers with --nthreads 1",
        ),
        (None, (), "has code of robust_fairness"),
    ],
)
def test_workers_that_differ_are_refused(tmp_path, customised, words, message):
    code = tmp_path / "code"
    code.mkdir()
    if customised is None:
        source = ROOT / "src" / "robust_fairness"
        shutil.copytree(source, code / "robust_fairness")
        with (code / "robust_fairness" / "errors.py").open("a") as file:
            file.write("# changed\n")
    else:
        (code / "sitecustomize.py").write_text(customised)
    path = f"{code}{os.pathsep}{ROOT / 'src'}"
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50) as scheduler:
        options = ("--no-dashboard", "--no-nanny", *(words or ("--nthreads=1",)))
        address = scheduler.scheduler_address
        with (
            process("worker", address, *options, PYTHONPATH=path),
            pytest.raises(InputError, match=message) as error,
        ):
            DaskRunner(address=address, timeout=SECONDS)
    assert "\n" not in str(error.value)


def test_a_scheduler_without_workers_is_told():
    with (
        LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50) as scheduler,
        pytest.raises(InputError, match="no worker within 0.2 s; start one with: dask worker tcp:"),
    ):
        DaskRunner(address=scheduler.scheduler_address, timeout=0.2)


def threads_of_libraries(threads: int) -> set[int]:
    """How many threads NumPy's linear algebra and torch use in a process that runs nodes."""
    import torch
    from threadpoolctl import threadpool_info

    set_up(WorkerSetup(Path.cwd(), None, threads, {}, {}, identity()))
    return {torch.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info())}


def test_a_cluster_of_this_machine_is_open_to_this_run_only():
    """No port but on the loopback device, no client without the certificate."""
    with dask_runner.local_cluster(2, 3, ["4", "7"]) as started:
        with dask_runner.connected(started, SECONDS) as client:
            client.wait_for_workers(2, timeout=SECONDS)
            devices = client.run(os.getenv, "CUDA_VISIBLE_DEVICES")
            threads = client.run(threads_of_libraries, 3)
            policies = client.run(os.getenv, "OMP_WAIT_POLICY")
            assert set(client.nthreads().values()) == {1}
        here = psutil.Process()
        listening = {
            connection.laddr.ip
            for process in (here, *here.children(recursive=True))
            for connection in process.net_connections()
            if connection.status == psutil.CONN_LISTEN
        }
        with pytest.raises(InputError, match="no Dask scheduler within"):
            dask_runner.connected(started.scheduler_address.replace("tls://", "tcp://"), 1)
    assert listening == {"127.0.0.1"}
    assert sorted(devices.values()) == ["4", "7"]
    assert list(threads.values()) == [{3}, {3}]
    assert list(policies.values()) == ["passive", "passive"]
