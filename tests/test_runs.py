"""Whole runs, as a person starts them: real processes in a copy of the project."""

import json
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlflow import MlflowClient

from robust_fairness.catalog.arrays import ModelsDataset
from robust_fairness.core.errors import InputError
from robust_fairness.papers import VIEWS
from robust_fairness.report import Results
from robust_fairness.runs.rerun import comparison
from robust_fairness.runs.tracking_record import EXPERIMENT
from tests.project import Project, hearing_interrupts, small

SMOKE = ("run", "--env=smoke")
WHOLE = (*SMOKE, "--pipeline=robust_fairness")
SUBSET = (*WHOLE, "--datasets=diabetes", "--methods=erm", "--seeds=2")

BROKEN = """
from robust_fairness.bench.methods.erm import Erm
class Broken(Erm):
    def steps(self, model, batch):
        raise RuntimeError("broken on purpose\\nsecond line")
"""


MENDED = """
from robust_fairness.bench.methods.erm import Erm
class Broken(Erm):
    pass
"""


@pytest.fixture
def project(tmp_path) -> Project:
    """A small project."""
    return small(Project.copied_to(tmp_path))


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    """A small project under git, after the run ``one`` of a part of it; only to be looked at.

    The run was started in a folder of the project, with an MLflow server that does not answer,
    which costs one warning.
    """
    project = small(Project.copied_to(tmp_path_factory.mktemp("finished")))
    (project.root / ".gitignore").write_text("data/\n__pycache__/\n.viz/\n")
    git(project.root, "init", "-q")
    git(project.root, "add", "-A")
    git(project.root, "commit", "-qm", "all")
    dead = {"ROBUST_FAIRNESS_MLFLOW": "on", "MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}
    printed = project.kedro(*SUBSET, "--run-id", "one", folder="conf", **dead)
    assert printed.count("MLflow is not available") == 1 and "Retrying" not in printed
    assert len(project.metrics("one"))
    return project


@pytest.fixture
def after_run(finished, tmp_path) -> Project:
    """A copy of it to go on with."""
    shutil.copytree(finished.root, tmp_path, symlinks=True, dirs_exist_ok=True)
    return Project(tmp_path)


def git(root: Path, *words: str) -> None:
    """Git in the copy."""
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", *identity, *words], cwd=root, check=True, capture_output=True)


def manifest(project: Project, run: str) -> dict:
    """The manifest of a run."""
    path = project.root / "data" / "08_reporting" / "manifests" / f"{run}.json"
    return json.loads(path.read_text())


def contents(project: Project, run: str) -> dict[str, str]:
    """Content hash of every output of a run but the report, which tells the run."""
    outputs = manifest(project, run)["outputs"]
    return {name: output["sha256"] for name, output in outputs.items() if name != "report"}


@pytest.fixture(scope="module")
def failed_run(tmp_path_factory) -> tuple[Project, str]:
    """A small project after a run, in MLflow too, of which a cell failed; what it printed."""
    project = small(Project.copied_to(tmp_path_factory.mktemp("failed")))
    (project.root / "src" / "robust_fairness" / "bench" / "methods" / "broken.py").write_text(
        BROKEN
    )
    project.configure("base/parameters.yml", {"methods": {"broken": {}}})
    project.configure(
        "smoke/experiment.yml", {"datasets": {"diabetes": {"methods": {"broken": {}}}}}
    )
    on = {"ROBUST_FAIRNESS_MLFLOW": "on"}
    return project, project.kedro(*SMOKE, "--run-id", "one", status=1, **on)


def test_failed_cell_fails_alone_and_the_run_can_be_completed(failed_run, tmp_path):
    """The others finish, the report names it, status 1; the mended cell completes the run."""
    shutil.copytree(failed_run[0].root, tmp_path, symlinks=True, dirs_exist_ok=True)
    project, said = Project(tmp_path), failed_run[1]
    method = project.root / "src" / "robust_fairness" / "bench" / "methods" / "broken.py"
    assert "diabetes.broken.train: broken on purpose" in said
    assert "kedro run --env=smoke --run-id one --only-missing-outputs" in said
    assert "Traceback" not in said
    assert set(project.metrics("one")["method"]) == {"erm", "cuma"}
    assert not list((project.root / "data").rglob("broken/*/one/*"))
    page = project.file("report.html", "one").read_text()
    assert "<td>broken</td><td>failed</td>" in page
    assert "broken on purpose" in page
    assert manifest(project, "one")["state"] == "failed"
    untouched = project.file("diabetes/erm/metrics.parquet", "one").stat().st_mtime_ns

    method.write_text(MENDED)
    completion = (*SMOKE, "--run-id", "one", "--only-missing-outputs")
    assert "its code (package) was" in project.kedro(*completion, status=1)
    said = project.kedro(*SMOKE, "--only-missing-outputs", "--accept-changes")
    assert "Completing run one, the newest that did not finish." in said
    assert set(project.metrics("one")["method"]) == {"erm", "cuma", "broken"}
    assert project.file("diabetes/erm/metrics.parquet", "one").stat().st_mtime_ns == untouched
    page = project.file("report.html", "one").read_text()
    assert "failed</td>" not in page
    assert "Completed after changes: its code (package) was" in page
    assert manifest(project, "one")["state"] == "finished"


SESSION = """
from pathlib import Path
from kedro.framework.project import settings
from kedro.framework.startup import bootstrap_project
bootstrap_project(Path.cwd())
from robust_fairness.runs.session import RunInProgress, owned
from robust_fairness.runs.runners import RunFailed
session = settings.SESSION_CLASS.create(env="smoke")
try:
    with owned("held"):
        session.run("held")
except RunInProgress as error:
    print(error)
try:
    session.run("session", to_outputs=["metrics"])
except RunFailed as error:
    print(error.failures)
"""


def test_session_runs_with_the_fault_tolerant_runner_the_lock_and_a_manifest(failed_run):
    """As ``kedro run`` does: another cell is trained, the failed one is in the manifest."""
    project, _ = failed_run
    printed = project.python("-c", SESSION)
    assert "run held is in progress: process" in printed
    assert "broken on purpose" in printed
    recorded = manifest(project, "session")
    assert recorded["state"] == "failed"
    assert [failure.partition(":")[0] for failure in recorded["failed"]] == [
        "diabetes.broken.train"
    ]
    assert {"diabetes.erm.models", "metrics"} <= recorded["outputs"].keys()
    assert not (project.root / "data/08_reporting/manifests/held.json").exists()


def test_subset_ends_in_the_report_of_that_subset(finished):
    """Not selected is told from failed; a run id is not taken twice, nor by another grid."""
    metrics = finished.metrics("one")
    assert set(metrics["method"]) == {"erm"}
    assert set(metrics["seed"]) == {0, 1}
    page = finished.file("report.html", "one").read_text()
    assert "<td>cuma</td><td>not selected</td>" in page
    again = " ".join([*WHOLE, "--run-id", "one"])
    completed = f"{again} --only-missing-outputs --seeds=1"
    said = finished.commands(again, completed, status=1)
    assert "run one exists" in said[again]
    assert "differs: its runtime parameters" in said[completed]


def test_interrupted_and_killed_run_is_completed_under_its_id(project):
    """By its id alone, whatever part of the grid it was, from whatever configuration.

    SIGINT, SIGTERM and SIGKILL in the middle of training; in the end the bits of a whole run.
    """
    protocol = {"tabular": {"epochs": 60, "checkpoint_seconds": 0}}
    project.configure("smoke/parameters.yml", {"protocols": protocol})
    shutil.copytree(project.root / "conf", project.root / "others")
    project.configure("smoke/parameters.yml", {"protocols": {"tabular": {"epochs": 61}}})
    source = ("--datasets=diabetes", "--seeds=1", "--conf-source=others")
    part = (*SMOKE, *source, "--run-id")
    project.kedro(*part, "whole")
    completed = ("run", "--run-id", "stopped", "--only-missing-outputs")
    for how, words in ((signal.SIGINT, (*part, "stopped")), (signal.SIGTERM, completed)):
        said = stop_in_training(project, "diabetes.*", how, *words)
        assert "Interrupted. Continue with: kedro run " in said
        assert manifest(project, "stopped")["state"] == "interrupted"
    stop_in_training(project, "diabetes.cuma", signal.SIGKILL, *completed)
    assert manifest(project, "stopped")["state"] == "running"
    assert not list((project.root / "data").rglob("cuma/models.safetensors/stopped/*"))
    project.kedro(*completed)
    assert manifest(project, "stopped")["state"] == "finished"
    assert contents(project, "stopped") == contents(project, "whole")
    assert not list((project.root / "data" / "checkpoints").rglob("*.safetensors"))


def stop_in_training(project: Project, cell: str, how: signal.Signals, *words: str) -> str:
    """Start ``kedro``, send it a signal once a cell has a new checkpoint; what it printed."""
    pattern = f"{cell}/*/state.safetensors"
    folder = project.root / "data" / "checkpoints"
    before = {path: path.stat().st_mtime_ns for path in folder.glob(pattern)}
    with hearing_interrupts():
        child = project.start(*words)
    deadline = time.monotonic() + 120
    while not new_files(folder, pattern, before):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.01)
    child.send_signal(how)
    return "".join(child.communicate())


def new_files(folder: Path, pattern: str, before: dict[Path, int]) -> list[Path]:
    """Files that are not in the times of before, or have another time."""
    new = []
    for path in folder.glob(pattern):
        with suppress(FileNotFoundError):  # of a cell that has just ended
            if path.stat().st_mtime_ns != before.get(path):
                new.append(path)
    return new


def test_run_is_completed_from_its_own_samples_whatever_ran_since(after_run):
    """Another run with other splits in between does not reach into it."""
    before = after_run.metrics("one")
    fewer = (*SMOKE, "--datasets=diabetes", "--methods=erm", "--seeds=1")
    after_run.kedro(*fewer, "--pipelines=ingestion", "--run-id", "second")
    for folder in ("06_models", "07_model_output", "08_reporting"):
        for version in (after_run.root / "data" / folder).rglob("one"):
            shutil.rmtree(version)
    after_run.kedro(*SUBSET, "--run-id", "one", "--only-missing-outputs")
    pd.testing.assert_frame_equal(after_run.metrics("one"), before)


def test_rerun_gives_the_same_bits_and_finds_a_difference(after_run):
    """Without Git, and after an edit of conf/; every output is compared; other code is named."""
    shutil.rmtree(after_run.root / ".git")
    (after_run.root / "notes.txt").write_text("no source")
    (after_run.root / "conf" / "smoke" / "parameters_more.yml").write_text("seeds: [\n")
    assert "outputs, same bits" in after_run.kedro("rerun", "one")
    told = manifest(after_run, "one")
    (again,) = (after_run.root / "data" / "08_reporting" / "manifests").glob("one-rerun-*.json")
    told["outputs"]["metrics"]["sha256"] = "0" * 64
    with pytest.raises(InputError, match="outputs differ: metrics"):
        comparison(told, json.loads(again.read_text()))

    (after_run.root / "src/robust_fairness/bench/methods/another.py").write_text("")
    said = after_run.commands("rerun one", "rerun onne", status=1)
    assert "its code (package) was" in said["rerun one"]
    assert "git worktree add" in said["rerun one"]
    assert "unknown run 'onne': did you mean 'one'" in said["rerun onne"]


def test_mlflow_holds_a_parent_and_a_child_for_each_cell(failed_run):
    """In sqlite, with flattened parameters, curves and scores; a failed cell's run is closed."""
    project, _ = failed_run
    client = MlflowClient(f"sqlite:///{project.root / 'mlflow.db'}")
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    runs = {run.info.run_id: run for run in client.search_runs([experiment])}
    paths = {}
    for run_id, run in runs.items():
        above = run.data.tags.get("mlflow.parentRunId")
        paths["/".join(runs[each].info.run_name for each in (above, run_id) if each)] = run
    assert set(paths) == {"one", "one/diabetes.erm", "one/diabetes.cuma", "one/diabetes.broken"}
    parent, child = paths["one"], paths["one/diabetes.erm"]
    assert (parent.info.status, child.info.status) == ("FAILED", "FINISHED")
    assert paths["one/diabetes.broken"].info.status == "FAILED"
    assert child.data.params["protocol.epochs"] == "2"
    metrics = project.metrics("one").query("method == 'erm' and metric == 'accuracy'")
    expected = metrics.query("shift == 'gaussian_noise'")["value"].mean()
    assert child.data.metrics["shift/gaussian_noise_0.06 accuracy"] == pytest.approx(expected)
    curve = client.get_metric_history(child.info.run_id, "training/model_loss")
    assert [point.step for point in curve] == [0, 1]
    sections = {name.partition("/")[0] for name in child.data.metrics}
    assert {"home", "shift", "training", "validation"} >= sections


def test_raw_files_that_are_missing_are_listed_before_anything_runs(project):
    grid = "--env=paper", "--datasets=biased_mnist", "--methods=erm", "--seeds=1"
    nothing = str(project.root / "nothing")
    printed = project.kedro("run", *grid, status=1, ROBUST_FAIRNESS_DATA=nothing)
    assert "4 mistakes in the configuration:" in printed and "Traceback" not in printed
    assert "). Download it with `robust-fairness fetch mnist`" in printed
    assert not list((project.root / "data").rglob("*.safetensors"))


def test_table_prints_the_tidy_rows(finished):
    """CSV, JSON lines and Markdown of the newest finished run, or of one by name.

    The run was started in a folder of the project: its files are where they always are.
    """
    assert not (finished.root / "conf" / "data").exists()
    as_csv, as_json, markdown = finished.commands(
        "table --format csv one", "table --format json", "table --format markdown"
    ).values()
    printed = pd.read_csv(StringIO(as_csv), keep_default_na=False, na_values={"value": [""]})
    table = finished.metrics("one")
    assert list(printed.columns) == list(table.columns)
    assert printed["value"].tolist() == pytest.approx(table["value"].tolist(), nan_ok=True)
    assert len([json.loads(line) for line in as_json.splitlines()]) == len(table)
    assert markdown.startswith("| dataset | method |")


def test_the_table_for_methods_has_the_means_of_the_stored_metrics(finished):
    as_csv, as_latex = finished.commands(
        "table --view methods one --against erm --columns accuracy --digits 6 --format csv",
        "table --view methods one --columns accuracy --mean --format latex",
    ).values()
    printed = pd.read_csv(StringIO(as_csv), keep_default_na=False)
    home = printed[printed["tested"] == "home"].set_index(["dataset", "method"])["mean"]
    stored = finished.metrics("one").query(
        "metric == 'accuracy' and shift == 'none' and domain == '' and group == ''"
        " and trial == 'default'"
    )
    by_seed = stored.drop_duplicates(["dataset", "method", "seed"])
    expected = by_seed.groupby(["dataset", "method"])["value"].mean()
    assert home.astype(float).to_dict() == pytest.approx(expected.to_dict(), abs=1e-6)
    assert as_latex.startswith(r"\begin{tabular}{") and "mean under shift" in as_latex
    said = finished.kedro("table", "--against", "erm", status=1)
    assert said.startswith("Error: --against: allowed with --view methods")


def test_table_prints_a_view_as_the_report_shows_it(finished):
    """Of the metrics, and of a further table of the run; others are named."""
    printed, shown = finished.commands(
        "table --view sizes_of_splits one --format=json",
        "table --view survival --format csv",
    ).values()
    splits = finished.samples("diabetes", "one").splits[["split_0", "split_1"]]
    tested, trained = splits == "test", splits == "train"
    crossed = (tested.to_numpy() & trained.to_numpy()[:, ::-1]).sum()
    assert json.loads(printed) == {
        "dataset": "diabetes",
        "splits": 2,
        "trained on": trained["split_0"].sum(),
        "tested": tested["split_0"].sum(),
        "reused": pytest.approx(crossed / tested.to_numpy().sum()),
        "ratio": pytest.approx(tested["split_0"].sum() / trained["split_0"].sum()),
    }
    expected = VIEWS["survival"].rows(Results(finished.metrics("one"))).to_csv(index=False)
    assert shown == expected and len(expected.splitlines()) > 1
    said = finished.kedro("table", "--view", "survivall", status=1)
    assert said.startswith("Error: unknown view 'survivall': did you mean 'survival'? Allowed: ")


def mlflow_parameters(project: Project) -> dict[str, dict[str, str]]:
    """What MLflow was told of every cell, by its label."""
    client = MlflowClient(f"sqlite:///{project.root / 'mlflow.db'}")
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    runs = [run.data for run in client.search_runs([experiment])]
    return {run.tags["method"]: run.params for run in runs if "cell" in run.tags}


def test_cells_of_one_method_are_told_apart_by_their_labels(project):
    """Two networks and an augmentation train on one dataset; every table and page shows labels."""
    sizes = {"draws": 1, "train_rows": 64, "val_rows": 64, "test_rows": 64}
    project.configure("smoke/parameters.yml", {"datasets": {"biased_digits": sizes}})
    project.configure(
        "base/parameters.yml",
        {"networks": {"narrow": {"name": "biased_mnist_cnn", "width": 4}}},
    )
    project.configure(
        "smoke/experiment.yml",
        {
            "datasets": {
                "diabetes": None,
                "biased_digits": {
                    "seeds": 1,
                    "selections": ["accuracy"],
                    "metrics": ["accuracy"],
                    "protocol": "biased_digits",
                    "methods": {
                        "erm": {"network": "narrow"},
                        "wide": {"method": "erm", "network": "biased_mnist_cnn"},
                        "narrow-randaugment": {
                            "method": "erm",
                            "network": "narrow",
                            "settings": {"augmentation": "randaugment"},
                        },
                    },
                },
            }
        },
    )
    project.kedro(*SMOKE, "--run-id", "all", ROBUST_FAIRNESS_MLFLOW="no-models")
    labels = {"erm", "wide", "narrow-randaugment"}
    metrics = project.metrics("all")
    assert set(metrics["method"]) == labels
    assert set(metrics["network"]) == {"biased_mnist_cnn"}
    assert metrics["value"].notna().all()
    page = project.file("report.html", "all").read_text()
    for label in labels:
        assert f"<td>{label}</td><td>done</td>" in page
    told = mlflow_parameters(project)
    assert told.keys() == labels
    assert {params["method.name"] for params in told.values()} == {"erm"}
    assert [told[label]["network.width"] for label in ("erm", "wide")] == ["4", "32"]
    assert told["narrow-randaugment"]["settings.augmentation"] == "randaugment"
    weights = {
        label: ModelsDataset(
            filepath=str(project.file(f"biased_digits/{label}/models.safetensors", "all"))
        )
        .load()[0]
        .state["model.top.layers.weight"]
        for label in labels
    }
    assert weights["wide"].shape[1] == 64
    assert weights["erm"].shape == weights["narrow-randaugment"].shape == (10, 8)
    assert not np.array_equal(weights["erm"], weights["narrow-randaugment"])

    project.kedro(*SMOKE, "--run-id", "one", "--methods", "narrow-randaugment")
    again = project.metrics("one")
    before = metrics[metrics["method"] == "narrow-randaugment"].reset_index(drop=True)
    pd.testing.assert_frame_equal(again, before)
