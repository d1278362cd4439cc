"""Whole runs on Dask workers, as a person starts them: the same bits as one node after another."""

import json
import os
import re
import signal
import time
from pathlib import Path

import psutil
import pytest

from tests.project import Project, small
from tests.test_runs import BROKEN, MENDED, SMOKE, contents, manifest
from tests.test_tracking_server import server

DASK = ("--runner=robust_fairness.runs.runners.DaskRunner", "--runner-params=workers=2,threads=1")
THREADS = {"OMP_NUM_THREADS": "1"}


@pytest.fixture
def project(tmp_path) -> Project:
    """A small project."""
    return small(Project.copied_to(tmp_path))


def with_broken_method(project: Project) -> Path:
    """One more method, which fails; its file."""
    method = project.root / "src" / "robust_fairness" / "bench" / "methods" / "broken.py"
    method.write_text(BROKEN)
    project.configure("base/parameters.yml", {"methods": {"broken": {}}})
    project.configure(
        "smoke/experiment.yml",
        {"datasets": {"diabetes": {"methods": {"broken": {}, "cuma": None}}}},
    )
    return method


def test_two_workers_give_the_bits_of_the_sequential_run_and_fail_alone(project):
    """All files but the report; a failed cell fails alone and is named, in no folder of Dask's.

    Mended, it is completed without workers.
    """
    method = with_broken_method(project)
    project.kedro(*SMOKE, "--run-id", "one_by_one", status=1, **THREADS)
    said = project.kedro(*SMOKE, *DASK, "--run-id", "dask", status=1, **THREADS)
    assert "diabetes.broken.train: broken on purpose" in said
    assert f"{' '.join(DASK)} --run-id dask --only-missing-outputs" in said
    assert "Traceback" not in said
    assert "distributed" not in said
    assert "Unable to" not in said  # as Kedro-Viz's hook says that missed the catalog
    assert contents(project, "dask") == contents(project, "one_by_one")
    assert len(contents(project, "dask")) > 10
    assert manifest(project, "dask")["inputs"] == manifest(project, "one_by_one")["inputs"]
    page = project.file("report.html", "dask").read_text()
    assert "broken on purpose" in page
    assert "<td>broken</td><td>failed</td>" in page
    assert not list(project.root.glob("dask-*"))

    method.write_text(MENDED)
    untouched = project.file("diabetes/erm/metrics.parquet", "dask").stat().st_mtime_ns
    project.kedro(*SMOKE, "--run-id", "dask", "--only-missing-outputs", "--accept-changes")
    assert set(project.metrics("dask")["method"]) == {"erm", "broken"}
    assert project.file("diabetes/erm/metrics.parquet", "dask").stat().st_mtime_ns == untouched
    assert manifest(project, "dask")["state"] == "finished"


def workers_of(parent: int) -> list[psutil.Process]:
    """Processes that run nodes."""
    return [
        child
        for child in psutil.Process(parent).children(recursive=True)
        if child.is_running() and "spawn_main" in " ".join(child.cmdline())
    ]


@pytest.mark.slow
def test_a_worker_killed_in_training_changes_no_bit(project):
    """SIGKILL to the process that trains; its checkpoint is what another goes on from."""
    protocol = {"tabular": {"epochs": 300, "checkpoint_seconds": 0}}
    project.configure("smoke/parameters.yml", {"protocols": protocol})
    project.kedro(*SMOKE, "--run-id", "whole", **THREADS)
    child = project.start(*SMOKE, *DASK, "--run-id", "killed", **THREADS)
    checkpoints = project.root / "data" / "checkpoints"
    deadline = time.monotonic() + 240
    while not list(checkpoints.glob("diabetes.cuma/*/state.safetensors")):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.01)
    for worker in workers_of(child.pid):
        os.kill(worker.pid, signal.SIGKILL)
    out, err = child.communicate(timeout=300)
    assert child.returncode == 0, out + err
    assert contents(project, "killed") == contents(project, "whole")


@pytest.mark.slow
def test_an_mlflow_server_that_dies_costs_a_warning_a_process(project, tmp_path_factory):
    """It is killed while a cell trains, after the run was opened there; no bit changes."""
    protocol = {"tabular": {"epochs": 40, "checkpoint_seconds": 0}}
    project.configure("smoke/parameters.yml", {"protocols": protocol})
    project.kedro(*SMOKE, "--run-id", "without", **THREADS)
    folder = tmp_path_factory.mktemp("mlflow")
    with server(f"sqlite:///{folder}/mlflow.db", folder) as address:
        tracking = {"ROBUST_FAIRNESS_MLFLOW": "on", "MLFLOW_TRACKING_URI": address}
        child = project.start(*SMOKE, *DASK, "--run-id", "dies", **THREADS, **tracking)
        checkpoints = project.root / "data" / "checkpoints"
        deadline = time.monotonic() + 240
        while not list(checkpoints.glob("diabetes.cuma/*/state.safetensors")):
            assert time.monotonic() < deadline and child.poll() is None
            time.sleep(0.01)
    out, err = child.communicate(timeout=300)
    assert child.returncode == 0, out + err
    # one a worker, and one of the process that closes the run
    assert 1 <= (out + err).count("MLflow is not available") <= 3
    assert "Traceback" not in out + err
    assert contents(project, "dies") == contents(project, "without")


@pytest.mark.slow
def test_the_catalog_alone_moves_the_data_to_another_store(project, tmp_path_factory):
    """Every file of a run on workers lies there, with the bits that it has here."""
    project.kedro(*SMOKE, "--run-id", "here", **THREADS)
    store = tmp_path_factory.mktemp("store")
    catalog = (project.root / "conf" / "base" / "catalog.yml").read_text()
    place = f"\\1fs_args: {{path: {store}, target_protocol: file}}\n\\1filepath: dir://"
    moved = re.sub(r"^( +)filepath: data/", place, catalog, flags=re.MULTILINE)
    (project.root / "conf" / "base" / "catalog.yml").write_text(moved)
    project.kedro(*SMOKE, *DASK, "--run-id", "there", **THREADS)
    assert contents(project, "there") == contents(project, "here")
    for output in manifest(project, "there")["outputs"].values():
        assert output["path"].startswith("dir://")
    assert len([path for path in store.rglob("*") if path.is_file()]) == len(
        manifest(project, "there")["outputs"]
    )
    printed = project.kedro("table", "there", "--format", "json")
    assert len([json.loads(line) for line in printed.splitlines()]) == len(project_rows(store))


def project_rows(store: Path) -> "list[object]":
    """Rows of the tidy table in the store."""
    import pandas as pd

    return list(pd.read_parquet(next(store.rglob("metrics.parquet/there/metrics.parquet"))).index)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("workers=none", "Error: runner parameter workers: 'none', allowed: a whole number from 1"),
        ("address=tcp://127.0.0.1:9,timeout=1", "Error: tcp://127.0.0.1:9: no Dask scheduler"),
    ],
)
def test_mistakes_are_one_line_and_begin_no_run(project, words, message):
    said = project.kedro(*SMOKE, DASK[0], f"--runner-params={words}", "--run-id", "one", status=1)
    assert message in said
    assert "Traceback" not in said
    assert not (project.root / "data").exists()
