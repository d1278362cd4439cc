"""Real MLflow servers, on sqlite and on PostgreSQL, with many writers at once."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mlflow
import pytest
from mlflow import MlflowClient

from robust_fairness.runs import provenance
from robust_fairness.runs.tracking_record import EXPERIMENT
from tests.project import Project, small

WRITERS, CELLS, METRICS = 4, 2, 20
POSTGRES = Path("/usr/lib/postgresql")  # Debian's, a folder a version
# One process imports what it needs and forks: each child is a run of its own with its own client.
WRITER = """
import os, sys
from types import SimpleNamespace
from kedro.io import DataCatalog, MemoryDataset
from robust_fairness.core import tables
from robust_fairness.runs.tracking import MlflowTracking
from tests.test_tracking import SAMPLES, node, settings_of, with_trials
import mlflow, numpy, pandas, requests, sqlalchemy
writers, cells, metrics = map(int, sys.argv[1:])
children = []
for number in range(writers):
    child = os.fork()
    if child:
        children.append(child)
        continue
    run = f"run_{number}"
    hook = MlflowTracking()
    hook.before_pipeline_run({"run_id": run})
    for place in range(cells):
        cell = f"adult.m{place}"
        told = {f"params:{cell}.cell": settings_of(cell), "adult.samples": SAMPLES}
        history = [
            {"trial": "default", "seed": 0, "epoch": k, "quantity": "loss", "value": k + number}
            for k in range(metrics)
        ]
        made = {f"{cell}.history": tables.table(tables.HISTORY, history)}
        trials = with_trials(cell)
        hook.after_node_run(node(cell, "train"), trials, told, made, run)
        plain = {name: 0 if kind != "str" else "" for name, kind in tables.METRICS.items()}
        plain |= {"shift": "none", "trial": "default", "selection": "accuracy", "network": "mlp"}
        rows = [plain | {"metric": f"m{k}", "value": 100 * number + k} for k in range(metrics)]
        made = {f"{cell}.metrics": tables.table(tables.METRICS, rows)}
        hook.after_node_run(node(cell, "evaluate"), trials, told, made, run)
    pipeline = SimpleNamespace(all_outputs=lambda: {"report"})
    catalog = DataCatalog({"report": MemoryDataset(f"<h1>{run}</h1>")})
    hook.after_pipeline_run({"run_id": run}, pipeline, catalog)
    os._exit(bool(hook._without))
sys.exit(sum(os.waitpid(child, 0)[1] != 0 for child in children))
"""


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextmanager
def server(store: str, folder: Path) -> Iterator[str]:
    """The address of an MLflow server on the store; it is stopped at the end."""
    address = f"http://127.0.0.1:{(port := free_port())}"
    silent = {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }
    words = ["--backend-store-uri", store, "--artifacts-destination", str(folder / "artifacts")]
    with (folder / "server.log").open("w") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "mlflow", "server", *words, "-p", str(port), "-w", "1"],
            cwd=folder,
            env=os.environ | silent | {"PYTHONWARNINGS": "ignore"},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        for _ in range(600):
            assert child.poll() is None, (folder / "server.log").read_text()[-2000:]
            try:
                urllib.request.urlopen(f"{address}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.5)
        yield address
    finally:
        if child.poll() is None:
            os.killpg(child.pid, 15)
            child.wait(60)


@pytest.fixture
def postgres() -> Iterator[str]:
    """A new PostgreSQL database of Debian's, reached through a socket in a folder of its own."""
    versions = sorted(POSTGRES.glob("*/bin/initdb"))
    if not versions:
        pytest.skip(f"no PostgreSQL: {POSTGRES}/*/bin/initdb is not there")
    binaries = versions[-1].parent
    # as root, PostgreSQL refuses to run: another user does
    ask: list[str] = []
    if os.geteuid() == 0:
        if not shutil.which("setpriv"):
            pytest.skip("PostgreSQL does not run as root, and there is no setpriv")
        ask = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # short, as addresses of sockets have to be
    if ask:
        shutil.chown(folder, "postgres", "postgres")

    def run(*words: str) -> None:
        subprocess.run([*ask, *words], cwd=folder, check=True, capture_output=True)

    run(str(binaries / "initdb"), "-D", f"{folder}/data", "-U", "mlflow", "--auth=trust", "-N")
    options = f"-k {folder} -c listen_addresses= -c fsync=off"
    start = (str(binaries / "pg_ctl"), "-D", f"{folder}/data", "-w", "-l", f"{folder}/log")
    run(*start, "-o", options, "start")
    try:
        yield f"postgresql+psycopg2://mlflow@/postgres?host={folder}"
    finally:
        run(*start, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def write_at_once(address: str, folder: Path, monkeypatch) -> None:
    """Many runs of a few cells each, all at the same time."""
    monkeypatch.chdir(folder)
    git = {"commit": "abc", "dirty": False}
    for number in range(WRITERS):
        provenance.write_manifest({"run_id": f"run_{number}", "environment": "smoke", "git": git})
    root = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", WRITER, *map(str, (WRITERS, CELLS, METRICS))],
        env=os.environ
        | {
            "MLFLOW_TRACKING_URI": address,
            "ROBUST_FAIRNESS_MLFLOW": "on",
            "PYTHONPATH": f"{root / 'src'}:{root}",
            "PYTHONWARNINGS": "ignore",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def require_everything(client: MlflowClient, folder: Path) -> None:
    """Every run of every writer is there with all of its numbers."""
    experiment = client.get_experiment_by_name(EXPERIMENT)
    logged = client.search_runs([experiment.experiment_id], max_results=1000)
    assert len(logged) == WRITERS * (CELLS + 1)
    assert {run.info.status for run in logged} == {"FINISHED"}
    by_name = {(run.data.tags["kedro.run_id"], run.info.run_name): run for run in logged}
    for number in range(WRITERS):
        parent = by_name[f"run_{number}", f"run_{number}"]
        page = mlflow.artifacts.download_artifacts(
            run_id=parent.info.run_id,
            artifact_path="report.html",
            dst_path=str(folder),
            tracking_uri=client.tracking_uri,
        )
        assert Path(page).read_text(encoding="utf-8") == f"<h1>run_{number}</h1>"
        for place in range(CELLS):
            child = by_name[f"run_{number}", f"adult.m{place}"]
            assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id
            assert child.data.params["protocol.epochs"] == "4"
            told = {k: v for k, v in child.data.metrics.items() if k.startswith("home/")}
            assert told == {f"home/m{k}": 100 * number + k for k in range(METRICS)}
            curve = client.get_metric_history(child.info.run_id, "training/loss")
            assert [point.value for point in curve] == [number + k for k in range(METRICS)]


@pytest.mark.slow
def test_writers_at_once_lose_nothing_on_a_server_with_sqlite(tmp_path, monkeypatch):
    with server(f"sqlite:///{tmp_path}/mlflow.db", tmp_path) as address:
        write_at_once(address, tmp_path, monkeypatch)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        require_everything(MlflowClient(address), tmp_path)


@pytest.mark.slow
def test_writers_at_once_lose_nothing_on_a_server_with_postgresql(tmp_path, monkeypatch, postgres):
    with server(postgres, tmp_path) as address:
        write_at_once(address, tmp_path, monkeypatch)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        require_everything(MlflowClient(address), tmp_path)


def test_writers_at_once_lose_nothing_in_one_file(tmp_path, monkeypatch):
    """Without a server, as the workers of one machine write."""
    write_at_once(f"sqlite:///{tmp_path}/mlflow.db", tmp_path, monkeypatch)
    require_everything(MlflowClient(f"sqlite:///{tmp_path}/mlflow.db"), tmp_path)


@pytest.mark.slow
def test_a_run_leaves_a_model_on_a_server_that_others_load(tmp_path, monkeypatch):
    project = small(Project.copied_to(tmp_path / "project"))
    with server(f"sqlite:///{tmp_path}/mlflow.db", tmp_path) as address:
        on = {"ROBUST_FAIRNESS_MLFLOW": "on", "MLFLOW_TRACKING_URI": address}
        project.kedro("run", "--env=smoke", "--methods=erm", "--run-id=one", **on)
        client = MlflowClient(address)
        experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
        (cell,) = client.search_runs([experiment], "tags.cell = 'diabetes.erm'")
        (logged,) = client.search_logged_models([experiment])
        assert logged.source_run_id == cell.info.run_id
        monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
        model = mlflow.pyfunc.load_model(logged.model_uri)
    shares = model.predict(model.input_example, params={"probabilities": True})
    assert shares.shape == (1, 2) and shares.sum() == pytest.approx(1)
