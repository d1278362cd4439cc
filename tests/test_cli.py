"""The command line, as a person uses it: real processes in a copy of the project."""

import base64
import json
import sys
from pathlib import Path

import pytest
import yaml

from robust_fairness import __version__
from tests.project import Project


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    """A copy that these tests only look at."""
    return Project.copied_to(tmp_path_factory.mktemp("project"))


def nodes(listing: str) -> set[str]:
    """Names of the nodes in what ``kedro registry describe`` printed."""
    return {entry.partition(" (")[0] for entry in yaml.safe_load(listing)["Nodes"]}


def test_the_environment_variable_chooses_the_grid(project):
    small = nodes(project.kedro("registry", "describe", "training", KEDRO_ENV="smoke"))
    large = nodes(project.kedro("registry", "describe", "training", KEDRO_ENV="paper"))
    assert "diabetes.cuma.train" in small
    assert "adult.cuma.train" in large
    assert not small & large
    printed = project.kedro("registry", "list", status=1, KEDRO_ENV="papr")
    assert printed.startswith("Error: unknown environment 'papr': did you mean 'paper'? Allowed: ")
    assert len(printed.splitlines()) == 1


def test_wrong_files_of_options_are_one_line(project):
    wrong = {
        "run: {method: erm}": "unknown option in {} 'method'",
        "run: {methods: [erm": "{}: section `run` with options of the command: ",
        "methods: erm": "{}: section `run` with options of the command: not found",
    }
    files = {}
    for number, text in enumerate(wrong):
        path = project.root / f"wrong_{number}.yml"
        path.write_text(text)
        files[f"run --config={path.name}"] = wrong[text].format(path)
    for command, printed in project.commands(*files, status=2).items():
        assert files[command] in " ".join(printed.split()), printed
        assert "Traceback" not in printed


def test_options_of_a_run_come_from_a_file_from_main_and_from_the_module(tmp_path):
    """Those of the project and those of Kedro; the command line wins over the file."""
    project = Project.copied_to(tmp_path)
    run = {"env": "smoke", "datasets": "diabetes", "pipelines": "ingestion", "run-id": "file"}
    (tmp_path / "run.yml").write_text(yaml.safe_dump({"run": run}))
    project.kedro("run", "--config=run.yml")
    project.kedro("run", "--config=run.yml", "--datasets=diabetes_continuous", "--run-id=line")
    options = ["--env=smoke", "--datasets=diabetes", "--pipelines=ingestion"]
    code = "from robust_fairness.__main__ import main; main({}, standalone_mode=False)"
    project.python("-c", code.format([*options, "--run-id=main"]))
    project.python("-m", "robust_fairness", *options, "--run-id=module")
    manifests = tmp_path / "data" / "08_reporting" / "manifests"
    names = ("file", "line", "main", "module")
    made = {name: json.loads((manifests / f"{name}.json").read_text()) for name in names}
    datasets = {"file": "diabetes", "line": "diabetes_continuous"}
    for name, manifest in made.items():
        assert manifest["state"] == "finished"
        assert manifest["environment"] == "smoke"
        assert f"{datasets.get(name, 'diabetes')}.samples" in manifest["outputs"], name


def test_a_mistake_in_the_grid_is_one_line_in_commands_of_kedro(tmp_path):
    project = Project.copied_to(tmp_path)
    project.configure("smoke/experiment.yml", {"datasets": {"diabetes": {"methods": {"emr": {}}}}})
    said = project.kedro("registry", "list", status=1, KEDRO_ENV="smoke")
    assert said.startswith(
        "Error: Unknown method 'emr' for dataset 'diabetes' (conf/smoke/experiment.yml:"
    )
    assert said.rstrip().endswith("Did you mean 'erm'?")
    assert len(said.splitlines()) == 1


def test_a_part_runs_by_the_name_of_its_pipeline_old_option_and_new(tmp_path):
    project = Project.copied_to(tmp_path)
    samples = tmp_path / "data" / "02_samples" / "diabetes"
    only = ("--env=smoke", "--datasets=diabetes")
    project.kedro("run", *only, "--pipeline=ingestion")
    files = sorted(path.name for path in samples.rglob("*") if path.is_file())
    assert files == ["samples.safetensors", "splits.parquet"]
    project.kedro("run", *only, "--pipelines=shifts")
    assert list(samples.glob("shifted/gaussian_noise_0_06.safetensors/*/*.safetensors"))
    assert not (tmp_path / "data" / "06_models").exists()


def test_the_console_script_has_the_same_commands(project):
    listed = project.console("--help")
    assert all(command in listed for command in ("fetch", "rerun", "run", "table"))
    wrong = ("run", "--env=smoke", "--methods=cumma")
    printed = project.console(*wrong)
    assert printed == project.kedro(*wrong, status=1)
    assert "did you mean 'cuma'" in printed


def test_outside_a_project_the_console_script_has_the_default_configuration(project, tmp_path):
    printed = project.console("run", "--env=smok", folder=str(tmp_path))
    assert printed.startswith("Error: unknown environment 'smok': did you mean 'smoke'")
    assert len(printed.splitlines()) == 1
    version = project.console("--version", folder=str(tmp_path))
    assert version == f"robust-fairness, version {__version__}\n"


def no_constant(name: str) -> None:
    """NaN and the infinities are no JSON."""
    raise AssertionError(name)


def shows_samples(node: dict) -> bool:
    """Whether a node of the site is a preview of samples."""
    return bool(node.get("preview")) and (node["filepath"] or "").endswith("/samples.safetensors")


def test_the_site_shows_layers_previews_and_times_and_nothing_of_the_machine(tmp_path):
    project = Project.copied_to(tmp_path)
    only = ("--datasets=diabetes,biased_digits", "--methods=erm", "--seeds=1")
    project.kedro("run", "--env=smoke", *only)
    other = tmp_path / "build" / "site" / "api" / "index.html"  # the documentation, say
    other.parent.mkdir(parents=True)
    other.write_text(str(tmp_path))
    project.kedro("site", KEDRO_ENV="smoke")
    assert other.read_text() == str(tmp_path)
    other.unlink()
    pages = {path: path.read_bytes() for path in (tmp_path / "build").rglob("*") if path.is_file()}
    for place in (tmp_path, Path.home() / "x", Path(sys.prefix), Path.cwd()):
        told = str(place).removesuffix("x").encode()
        telling = [path for path, page in pages.items() if told in page]
        assert told == b"/" or not telling, (told, telling)
    index = (tmp_path / "build" / "index.html").read_text()
    assert "https://" not in index
    assert index.index("localStorage.setItem") < index.index("<script type")
    served = tmp_path / "build" / "api"
    main = json.loads((served / "main").read_text(), parse_constant=no_constant)
    assert main["layers"] == [
        "raw",
        "originals",
        "samples",
        "shifted samples",
        "models",
        "predictions",
        "metrics",
        "report",
    ]
    top = [child["id"] for child in main["modular_pipelines"]["__root__"]["children"]]
    assert {"diabetes", "diabetes_continuous", "biased_digits"} <= set(top)
    names = {box["id"]: box["name"] for box in main["nodes"] if box["type"] == "data"}
    # of a cell nothing stands beside the box of its dataset
    assert not [names[box] for box in top if names.get(box, "").count(".") > 1]
    ran = json.loads((served / "run-status").read_text())["nodes"].values()
    assert {event["status"] for event in ran} == {"success"}
    assert sum(event["duration"] for event in ran) > 0
    nodes = [
        json.loads(path.read_text(), parse_constant=no_constant)
        for path in (served / "nodes").iterdir()
    ]
    previews = {
        node["filepath"].rpartition("/")[2]: node["preview"]
        for node in nodes
        if node.get("preview") and node["filepath"]  # raw files have none
    }
    assert previews["summary.parquet"]["columns"][:2] == ["dataset", "method"]
    assert {"data", "layout"} <= set(previews["trade_off.json"])
    assert base64.b64decode(previews["contact_sheet.png"]).startswith(b"\x89PNG")
    labels = [node["preview"]["columns"] for node in nodes if shows_samples(node)]
    assert any("digit_color" in columns for columns in labels)
    assert previews["counts.parquet"]["columns"][:2] == ["dataset", "method"]
