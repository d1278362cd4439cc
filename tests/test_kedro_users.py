"""What users of Kedro and MLflow try, in real processes: all right, or one line.

Rows that other tests run are in docs/kedro.md, with the names of those tests.
"""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

import robust_fairness
from robust_fairness.runs import project as projects
from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.settings import CONFIG_LOADER_ARGS
from tests.project import ROOT, Project, copy_configuration

GRID = "--env=smoke --datasets=diabetes --methods=erm --seeds=1"
FAILS = GRID.replace("diabetes", "failing")
FAILING = '''
from robust_fairness.bench.datasets.tables.diabetes import Diabetes

class Failing(Diabetes):
    """It fails."""

    name = "failing"

    def read(self, files, splits):
        raise OSError("no answer from the ward")
'''
RUNNERS = "robust_fairness.runs.runners"
# Command, and what its last line has.
ONE_LINE = {
    "registry describe nope": "'nope' pipeline not found. Existing pipelines: .__default__",
    "catalog describe-datasets --pipeline=nope": "unknown pipeline 'nope'",
    "catalog resolve-patterns --pipeline=nope": "unknown pipeline 'nope'",
    "run --pipelines=trianing": "^Error: unknown pipeline 'trianing': did you mean 'training'",
    "run --pipeline=training --pipelines=training": "cannot be used together",
    **dict.fromkeys(
        ("run --env=papr", "check --env=papr"),
        "^Error: unknown environment 'papr': did you mean 'paper'\\? Allowed: base, cross, demo, "
        "digits_full, estimators, local, natural, paper, reduced, secret, smoke$",
    ),
    "run --nodes=nope": "unknown node 'nope'",
    "run --env=smoke --from-nodes=diabetes.erm.trian": (
        "^Error: unknown node 'diabetes.erm.trian': did you mean 'diab"
    ),
    "run --tags=nope": "unknown tag 'nope'",
    "run --env=smoke --tags=method.erm --namespaces=diabetes.cuma": (
        "^Error: the pipelines and filters of this run"
    ),
    "run --env=smoke --namespaces=diabets": (
        "^Error: unknown namespace 'diabets': did you mean 'diabetes'"
    ),
    "run --from-inputs=nope": "unknown dataset 'nope'",
    "run --env=smoke --to-outputs=diabetes.sample": (
        "^Error: unknown dataset 'diabetes.sample': did you mean 'diabe"
    ),
    "run --params=protocol.tabular.epochs=2": (
        "^Error: unknown runtime parameter 'protocol': did you mean"
    ),
    "run --env=smoke --params=protocols.tabular.epoch=3": "epoch",
    "run --env=smoke --params=methods.cuma.gamma=-1": (
        "gamma of method 'cuma': Input should be greater than or equal"
    ),
    "run --env=smoke --methods=cumma": ("unknown method of the grid 'cumma': did you mean 'cuma'"),
    "run --datasets=adlut": "unknown dataset of the grid 'adlut'",
    "run --seeds=0": "seeds: 0, allowed: a whole number from 1 to 10,000",
    "table": "no finished run",
    "fetch adlut": "did you mean 'adult'",
    "run --only-missing-outputs": (
        "^Error: data/08_reporting/manifests: no unfinished run to complete"
    ),
    f"run {GRID} --nodes=diabetes.erm.train --load-versions=diabetes.samples:lost": (
        "^Error: diabetes.samples: no versi"
    ),
    "run --config=versions.yml": (
        "^Error: diabetes.samples: no version 'lost', allowed: the id of a run"
    ),
    "run --params=run_id=a/b": "run id 'a/b': allowed: letters",
    "run --runner=NopeRunner": "^Error: unknown runner 'NopeRunner', allowed: robust_fairness",
    "run --runner=SequentialRunner --runner-params=nope=1": "unknown parameter of the runner",
    "run --runner-params=max_workers=2": (
        "^Error: unknown parameter of the runner robust_fairness.runs."
    ),
    "run --only-missing-outputs --run-id=nope": "^Error: unknown run 'nope'",
    "rerun nope": "unknown run 'nope'",
    f"run {GRID} --load-versions=diabetes.erm.models:x": "this run makes it",
    f"run {GRID} --load-versions=nope:x": "keys .nope. are not found in the catalog",
    f"run {GRID} --from-nodes=diabetes.erm.select": "no version yet",
    f"run {GRID} --from-nodes=reporting.report": (
        "diabetes_results: kept in memory only .* for example by --pipelines=reporting"
    ),
    "run --env=secret --pipelines=ingestion --datasets=diabetes": (
        "Unable to find credentials 'bucket'"
    ),
    f"run {FAILS} --runner=ThreadRunner": (
        r"OSError: no answer from the ward \(.*failing.py:10, in read\); ThreadRunner stops at a "
        f"failed node, --runner={RUNNERS}.SequentialRunner"
    ),
    f"run {FAILS} --runner=ParallelRunner": f"{RUNNERS}.DaskRunner",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    project = Project.copied_to(tmp_path_factory.mktemp("project"))
    (project.root / "plugins" / "datasets").mkdir(parents=True)
    (project.root / "plugins" / "datasets" / "failing.py").write_text(FAILING)
    path = project.root / "conf" / "smoke" / "experiment.yml"
    grid = yaml.safe_load(path.read_text())
    grid["datasets"]["failing"] = grid["datasets"]["diabetes"]
    path.write_text(yaml.safe_dump(grid, sort_keys=False))
    bucket = {"type": "json.JSONDataset", "filepath": "s3://b/x.json", "credentials": "bucket"}
    (project.root / "conf" / "secret").mkdir()
    project.configure("secret/catalog.yml", {"kept": bucket})
    shutil.copy(path, project.root / "conf" / "secret" / "experiment.yml")
    chosen = {"nodes": "diabetes.erm.train", "load_versions": "diabetes.samples:lost"}
    options = chosen | {"env": "smoke", "datasets": "diabetes", "methods": "erm"}
    (project.root / "versions.yml").write_text(yaml.safe_dump({"run": options}))
    return project


@pytest.fixture(scope="module")
def refused(project) -> dict[str, str]:
    """What each command printed; all end with status 1, and nothing is made."""
    before = {*project.root.rglob("*.safetensors")}
    printed = project.commands(*ONE_LINE, status=1)
    assert {*project.root.rglob("*.safetensors")} == before
    return printed


@pytest.mark.parametrize("command", ONE_LINE)
def test_a_mistake_is_one_line(refused, command):
    lines = refused[command].splitlines()
    assert lines[-1].startswith("Error: ")
    assert re.search(ONE_LINE[command], lines[-1])
    assert "Traceback" not in refused[command]
    assert "NoneType" not in refused[command]


def test_a_run_joins_what_ended_last_and_says_what_differs(project):
    """The run of another configuration source is repeated from its manifest, without the source."""
    conf, source = project.root / "conf", project.root / "others"
    shutil.copytree(conf, source)
    written = (conf / "smoke" / "parameters.yml").read_text()
    for folder, epochs in ((source, 1), (conf, 3)):
        text = re.sub("tabular: {epochs: 2}", f"tabular: {{epochs: {epochs}}}", written)
        (folder / "smoke" / "parameters.yml").write_text(text)
    project.kedro("run", *GRID.split(), f"--conf-source={source}", "--run-id=first")
    made = project.root / "data" / "08_reporting" / "manifests"
    first = json.loads((made / "first.json").read_text())
    assert first["configuration_files"]["others/smoke/parameters.yml"]
    shutil.rmtree(source)
    assert "outputs, same bits" in project.kedro("rerun", "first")
    (again,) = made.glob("first-rerun-*.json")
    assert json.loads(again.read_text())["configuration"] == first["configuration"]
    for path in (project.root / "data").rglob("first/*"):  # as copies of the files have
        os.utime(path)
    read = [*GRID.split(), "--from-nodes=diabetes.collect"]
    printed = project.kedro("run", *read, "--run-id=joined")
    told = f"diabetes.erm of run {again.stem} (protocol.epochs 1, now 3)"
    assert f"cells of other settings are joined: {told}\n" in printed
    joined = json.loads((made / "joined.json").read_text())
    assert joined["joined"] == [told]
    assert set(joined["loaded"].values()) == {again.stem}
    assert told in project.file("report.html", "joined").read_text()
    same = project.kedro("run", *read, "--params=protocols.tabular.epochs=1", "--run-id=same")
    assert "cells of other settings" not in same


def test_conf_local_is_read_in_every_environment(tmp_path):
    """Parameters, entries of the catalog, credentials, MLflow's settings and globals."""
    kinds = {
        "parameters": {"mine": {"a": 1, "b": 1}},
        "catalog": {"kept": {"type": "json.JSONDataset", "filepath": "local.json"}},
        "credentials": {"bucket": {"key": "local"}},
        "mlflow": {"tracking": {"experiment": {"name": "local"}}},
        "globals": {"folder": "local"},
    }
    others = {"parameters": {"mine": {"a": 2}}, "credentials": {"other": {"key": "smoke"}}}
    conf = copy_configuration(tmp_path)
    for folder, written in (("local", kinds), ("smoke", others)):
        for kind, content in written.items():
            name = f"{kind}.yml" if kind == "globals" else f"{kind}_of_mine.yml"
            (conf / folder / name).write_text(yaml.safe_dump(content))
    for env in (None, "local", "base", "smoke"):
        loader = ConfigLoader(conf, env, **CONFIG_LOADER_ARGS)
        assert loader["catalog"]["kept"]["filepath"] == "local.json"
        assert loader["credentials"]["bucket"] == {"key": "local"}
        assert ("other" in loader["credentials"]) == (env == "smoke")
        assert loader["mlflow"] == kinds["mlflow"]
        assert loader["globals"] == kinds["globals"]
        mine = {"a": 2 if env == "smoke" else 1, "b": 1}
        assert loader.written_parameters["mine"] == mine


def test_a_list_is_json_and_nothing_else_outside_of_a_project(tmp_path):
    words = [sys.executable, "-m", "robust_fairness", "list", "datasets", "--format=json"]
    printed = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "adult" in {row["name"] for row in json.loads(printed.stdout)}
    assert printed.stderr == ""


def test_git_ignores_credentials_and_local_files_of_a_new_project(tmp_path):
    projects.create(tmp_path / "mine")
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path / "mine", check=True)
    ignored = [
        "conf/bucket/credentials.yml", "conf/base/more/my_credentials.yml", "conf/local/any.yml",
        "src/mine/__pycache__/a.pyc", ".venv/bin/python", "data/01_raw/own.csv", "mlflow.db",
    ]  # fmt: skip
    kept = ["conf/base/catalog.yml", "conf/local/.gitkeep", "requirements.txt", ".telemetry"]
    listed = subprocess.run(
        ["git", "check-ignore", *ignored, *kept],
        cwd=tmp_path / "mine", capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert listed.stdout.split() == ignored
    needed = (tmp_path / "mine" / "requirements.txt").read_text()
    assert f"robust-fairness[all]=={robust_fairness.__version__}" in needed


def test_every_row_of_the_page_names_a_test():
    rows = re.findall(r"^\| .* \| `(test_\w+)` \|$", (ROOT / "docs/kedro.md").read_text(), re.M)
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
    }
    assert [name for name in rows if name not in defined] == []
    assert len(rows) > 50
