"""Every command of Kedro, in real processes in a copy of the project."""

import json
import shutil
import socket
import subprocess
import sys
import tarfile
import time
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distribution
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pytest
import yaml
from kedro.io import DataCatalog, MemoryDataset
from kedro.pipeline import Node, Pipeline
from nbclient import NotebookClient

from robust_fairness.catalog import names
from robust_fairness.runs import notebooks, provenance
from tests.project import COMMANDS, ROOT, Project

SMOKE = {"KEDRO_ENV": "smoke"}
SAMPLES = "robust_fairness.catalog.arrays.SamplesDataset"


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    return Project.copied_to(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="module")
def printed(project) -> dict[str, str]:
    """What the commands that only read printed, after one that adds a pipeline."""
    project.kedro("pipeline", "create", "added")
    return project.commands(
        "registry list",
        "registry describe training",
        "catalog list-patterns",
        "catalog describe-datasets --pipeline=ingestion",
        "catalog resolve-patterns --pipeline=ingestion",
        **SMOKE,
    )


def test_the_registry_lists_pipelines_and_their_nodes(printed):
    assert {*yaml.safe_load(printed["registry list"])} == {
        "__default__", "added", "evaluation", "generation", "ingestion", "reporting",
        "robust_fairness", "shifts", "training",
    }  # fmt: skip
    nodes = yaml.safe_load(printed["registry describe training"])["Nodes"]
    assert "diabetes.cuma.train (train)" in nodes


def test_the_catalog_lists_its_patterns(printed):
    assert "{dataset}.samples" in yaml.safe_load(printed["catalog list-patterns"])


def test_the_catalog_describes_the_datasets_of_a_pipeline(printed):
    described = yaml.safe_load(printed["catalog describe-datasets --pipeline=ingestion"])
    assert "diabetes.samples" in described["ingestion"]["factories"][SAMPLES]


def test_the_catalog_resolves_patterns(printed):
    resolved = printed["catalog resolve-patterns --pipeline=ingestion"]
    assert "/diabetes/samples.safetensors" in resolved[resolved.index("diabetes.samples:") :]


def test_commands_that_only_list_do_not_import_torch(project):
    """In a process of their own, over the whole default grid."""
    commands = ("--help", "registry list", "catalog list-patterns", "catalog describe-datasets")
    words = json.dumps([command.split() for command in commands])
    code = f"{COMMANDS}\nprint('imported:', {{'torch', 'sklearn', 'mlflow'}} & sys.modules.keys())"
    ended = subprocess.run(
        [sys.executable, "-c", code, words, "0"],
        cwd=project.root,
        env=project.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "biased_digits_color.group_dro.models" in ended.stdout  # of the grid
    assert ended.stdout.endswith("imported: set()\n")


def test_runs_take_every_filter_of_kedro(project):
    archive = project.root / "conf.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(project.root / "conf", "conf")
    runs = {
        "tag": "--pipelines=ingestion --tags=dataset.diabetes",
        "namespace": "--namespaces=diabetes.erm --to-nodes=diabetes.erm.select",
        "node": "--nodes=diabetes.shift_gaussian_noise_0_06",
        "from_node": "--from-nodes=diabetes.erm.select --to-outputs=diabetes.erm.selection",
        "from_input": "--from-inputs=diabetes.erm.selection --to-nodes=diabetes.erm.predict",
        "params": "--pipelines=ingestion --params=grid.datasets=diabetes_continuous",
        "archive": f"--pipelines=ingestion --datasets=diabetes --conf-source={archive}",
    }
    project.commands(*(f"run --run-id={name} {words}" for name, words in runs.items()), **SMOKE)
    manifests = project.root / "data" / "08_reporting" / "manifests"
    made = {
        name: set(json.loads((manifests / f"{name}.json").read_text())["outputs"]) for name in runs
    }
    selected = made.pop("from_node")
    assert "diabetes.erm.selection" in selected
    assert "diabetes.erm.models" not in selected
    samples = {"diabetes.samples", "diabetes.splits"}
    training = {"models", "history", "validation", "trials", "selection"}
    assert made == {
        "tag": samples,
        "namespace": {f"diabetes.erm.{name}" for name in training},
        "node": {"diabetes.shifted.gaussian_noise_0_06"},
        "from_input": {"diabetes.erm.predictions"},
        "params": {name.replace("diabetes", "diabetes_continuous") for name in samples},
        "archive": samples,
    }


def test_describing_all_datasets_prints_nothing_else(project):
    command = ("catalog", "describe-datasets", "--pipeline=__default__")
    out, err = project.start(*command, **SMOKE).communicate(timeout=300)
    assert "factories" in yaml.safe_load(out)["__default__"]
    assert err == ""


LOAD_NODES = """
from pathlib import Path
from kedro.framework.startup import bootstrap_project
bootstrap_project(Path.cwd())
from kedro.framework.project import pipelines, settings
from kedro.ipython import _load_node
from robust_fairness.runs.notebooks import code_of, is_variadic
settings.SESSION_CLASS.create(project_path=Path.cwd(), env="smoke").load_context()
for node in pipelines["__default__"].nodes:
    code = [code_of(node)] if is_variadic(node) else _load_node(node.name, pipelines)
    compile("\\n".join(code), node.name, "exec")
    print(node.name)
"""


def test_load_node_writes_code_for_every_node(project):
    loaded = project.python("-c", LOAD_NODES).splitlines()
    names = {name.rpartition(".")[2] for name in loaded}
    assert {"ingest", "train", "select", "predict", "evaluate", "collect", "report"} <= names


def test_load_node_runs_nodes_whose_inputs_kedro_cannot_bind(monkeypatch):
    texts: list[str] = []
    nodes = [
        Node(lambda **parts: sum(parts.values()), {"a": "first", "b": "second"}, "y", name="add"),
        Node(abs, "y", "z", name="last"),
    ]
    pipelines = {"__default__": Pipeline(nodes)}
    monkeypatch.setattr("kedro.framework.project.pipelines", pipelines)
    monkeypatch.setattr("kedro.ipython.magic_load_node", texts.append)
    shell = SimpleNamespace(set_next_input=texts.append)
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    for line in ("add ", "last", "none"):
        notebooks.load_node(line)
    code, *kedros = texts
    assert kedros == ["last", "none"]
    catalog = DataCatalog({"first": MemoryDataset(1), "second": MemoryDataset(2)})
    names: dict[str, Any] = {"catalog": catalog, "pipelines": pipelines}
    exec(code, names)
    assert names["outputs"] == {"y": 3}


def test_ipython_has_the_catalog_and_the_session_and_all_pipelines_after_a_run(project):
    code = """
print(sorted(pipelines)[-1], "diabetes.samples" in catalog, type(session).__name__)
count = len(pipelines["__default__"].nodes)
session.run(pipeline_names=["ingestion"], runtime_params={"grid": {"datasets": "diabetes"}})
print(count == len(pipelines["__default__"].nodes))
"""
    printed = project.kedro("ipython", "-c", code, **SMOKE)
    before, after = printed.split("training True Session\n")
    assert "True\n" in after


def trained_by(project: Project, run_id: str) -> set[str]:
    """Labels of the cells of which a run saved models."""
    outputs = provenance.read_manifest(manifest(project, run_id))["outputs"]
    return {names.parse(name).label for name in outputs if name.endswith("models")}


def manifest(project: Project, run_id: str) -> Path:
    return project.root / "data" / "08_reporting" / "manifests" / f"{run_id}.json"


def test_jupyter_says_in_one_line_what_is_missing(project):
    """jupyterlab is in the extra ``notebooks``, which the environment of the tests lacks."""
    printed = project.kedro("jupyter", "lab", status=1)
    command = 'pip install "robust-fairness[notebooks]"'
    assert printed == f"Error: this command needs jupyterlab: {command}\n"


@pytest.mark.slow
def test_a_notebook_has_the_catalog(project, monkeypatch):
    kernels = project.root / "jupyter"
    project.kedro("jupyter", "setup", JUPYTER_DATA_DIR=str(kernels))
    for name, value in (project.environment | SMOKE).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("JUPYTER_PATH", str(kernels))
    cell = nbformat.v4.new_code_cell("print('diabetes.samples' in catalog)")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(
        notebook,
        kernel_name="kedro_robust_fairness",
        resources={"metadata": {"path": str(project.root)}},
    ).execute()
    assert notebook.cells[0].outputs[-1].text == "True\n"


@pytest.mark.slow
def test_a_notebook_keeps_the_environment_that_it_reloads(project, monkeypatch):
    """Each cell may have a context of its own."""
    project.kedro("jupyter", "setup", JUPYTER_DATA_DIR=str(project.root / "jupyter"))
    for name, value in project.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("JUPYTER_PATH", str(project.root / "jupyter"))
    run = "session.run('cell', pipeline_names=['ingestion'], runtime_params={'grid': {'datasets': "
    lines = (
        "%reload_kedro --env=smoke",
        "before = sorted({node.namespace for node in pipelines['training'].nodes})",
        f"{run}'diabetes'}}}})",
        "print(before == sorted({node.namespace for node in pipelines['training'].nodes}))",
        "print(before)",
    )
    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, lines)])
    place = {"metadata": {"path": str(project.root)}}
    NotebookClient(notebook, kernel_name="kedro_robust_fairness", resources=place).execute()
    same, cells = (cell.outputs[-1].text for cell in notebook.cells[3:])
    assert same == "True\n"
    assert "digits_extend.rbf_svm" in cells


def test_requests_to_the_server_at_once_train_what_each_asked_for(project):
    """With log, lock and run id, as all runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"

    def answer(path: str, **content: Any) -> dict[str, Any]:
        body = json.dumps(content).encode() if content else None
        asked = urllib.request.Request(address + path, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked) as answered:
            told: dict[str, Any] = json.load(answered)
        return told

    def trained(method: str) -> dict[str, Any]:
        grid = {"datasets": "diabetes", "methods": method, "seeds": 1}
        return answer(
            "/run",
            pipeline_names=["ingestion", "training"],
            params={"run_id": f"asked_{method}", "grid": grid},
            runner="robust_fairness.runs.runners.SequentialRunner",
        )

    server = project.start("server", "start", "--env=smoke", f"--port={port}")
    try:
        wait_for(f"{address}/health")
        with ThreadPoolExecutor(4) as clients:
            seen = clients.submit(answer, "/snapshot?params=grid.datasets%3Ddiabetes_continuous")
            told = [*clients.map(trained, ("erm", "cuma", "erm"))]
        whole = answer("/snapshot")
    finally:
        server.terminate()
        server.communicate()
    assert sorted(run["status"] for run in told) == ["failure", "success", "success"], told
    (refused,) = (run for run in told if run["status"] == "failure")
    assert refused["error"]["message"].startswith("run asked_erm exists")
    for method in ("erm", "cuma"):
        assert trained_by(project, f"asked_{method}") == {method}
        assert "run asked" in manifest(project, f"asked_{method}").with_suffix(".log").read_text()
    nodes = [
        {node["name"] for pipeline in made["pipelines"] for node in pipeline["nodes"]}
        for made in (seen.result(), whole)
    ]
    assert nodes[0] < nodes[1]
    assert "digits_extend.rbf_svm.train" in nodes[1] - nodes[0]


def wait_for(address: str) -> None:
    """Wait until a server answers."""
    for _ in range(600):
        try:
            urllib.request.urlopen(address).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(address)


@pytest.mark.slow
def test_the_packaged_project_runs_in_an_empty_folder(tmp_path):
    project = Project.copied_to(tmp_path / "project")
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, project.root)
    project.configure("local/credentials.yml", {"secret": "x"})
    for name in BUILD:
        write_wheel(name, tmp_path)
    project.kedro("package", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    (wheel,) = (project.root / "dist").glob("*.whl")
    archive = project.root / "dist" / "conf-robust_fairness.tar.gz"
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if "credentials" in name]
    site, empty = tmp_path / "site", tmp_path / "empty"
    pip = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site, wheel)
    subprocess.run([sys.executable, *pip], check=True)
    empty.mkdir()
    for options in ([], [f"--conf-source={archive}"]):
        words = ["run", "--env=smoke", "--datasets=diabetes", "--pipelines=ingestion", *options]
        subprocess.run(
            [sys.executable, "-m", "robust_fairness", *words],
            cwd=empty,
            env=project.environment | {"PYTHONPATH": str(site)},
            check=True,
        )
    assert len(list(empty.rglob("samples.safetensors/*/samples.safetensors"))) == 2


# What builds the package.
BUILD = ("hatchling", "packaging", "pathspec", "pluggy", "tomlkit", "trove_classifiers")


def write_wheel(name: str, folder: Path) -> None:
    """Write the wheel of an installed package into a folder, for builds without a network."""
    package = distribution(name)
    with zipfile.ZipFile(folder / f"{name}-{package.version}-py3-none-any.whl", "w") as wheel:
        for file in package.files or ():
            path = Path(str(file.locate()))
            if path.is_file() and ".." not in file.parts:
                wheel.write(path, str(file))
