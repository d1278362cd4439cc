"""The commands of the first hour: list, check, new and init, in a folder with nothing in it."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from contextlib import chdir
from pathlib import Path
from zipfile import ZipFile

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner, Result
from kedro.framework.project import configure_project
from kedro.framework.startup import bootstrap_project

from robust_fairness import __version__
from robust_fairness.bench.datasets.tables.table import TableOfColumns
from robust_fairness.cli.commands import cli
from robust_fairness.core.files import CONF
from robust_fairness.core.raw_files import Files
from robust_fairness.runs import configuration
from robust_fairness.settings import CONFIG_LOADER_ARGS
from tests.project import ROOT, Project, copy_configuration

ROWS = 60


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a command of ``robust-fairness`` in an empty folder."""
    monkeypatch.delenv("ROBUST_FAIRNESS_DATA", raising=False)
    configure_project("robust_fairness")

    def call(*words: str, status: int = 0, folder: Path = tmp_path) -> Result:
        with chdir(folder):
            done = CliRunner().invoke(cli, words)
        assert done.exit_code == status, done.output
        return done

    return call


def visits(rows: int = ROWS) -> pd.DataFrame:
    """Patients of two hospitals with missing numbers and a date."""
    rng = np.random.default_rng(0)
    ages = rng.integers(18, 90, rows).astype(object)
    ages[::7] = "NA"
    return pd.DataFrame(
        {
            "patient_id": [f"p{number:03d}" for number in rng.integers(0, 40, rows)],
            "hospital": np.where(np.arange(rows) % 2, "north", "south"),
            "sex": rng.choice(["f", "m"], rows),
            "age": ages,
            "weight": [f"{40 + number % 50} kg" for number in range(rows)],
            "seen": pd.date_range("2020-01-01", periods=rows, freq="7D").strftime("%Y-%m-%d"),
            "note": [f"note {number}" for number in range(rows)],
            "ill": rng.choice(["yes", "no"], rows),
        }
    )


@pytest.mark.parametrize("place", [".venv/site", "a b/Müller", "~/.local/lib", "plain"])
def test_the_packages_configuration_is_found_wherever_it_is_installed(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / place
    installed.mkdir(parents=True)
    conf = copy_configuration(installed)
    for name in (".ipynb_checkpoints/parameters-checkpoint.yml", "parameters/.#draft.yml"):
        hidden = conf / "demo" / name
        hidden.parent.mkdir(exist_ok=True)
        hidden.write_text("hidden: true\n")
    monkeypatch.setattr(configuration, "CONF", conf)
    loader = configuration.ConfigLoader(tmp_path / "conf", "demo", **CONFIG_LOADER_ARGS)
    assert [dataset.name for dataset in loader.validated_experiment.datasets]
    assert "tables" not in loader["catalog"]
    assert "hidden" not in loader["parameters"]
    assert loader.unreadable_files() == []


def test_lists_have_the_names_that_the_grid_may_use(run) -> None:
    rows = json.loads(run("list", "datasets", "--format", "json").output)
    descriptions = {row["name"]: row["description"] for row in rows}
    assert "Heart disease of 920 patients" in descriptions["heart"]
    assert descriptions["acs_income"].startswith("acs ")
    metrics = run("list", "metrics").output.splitlines()
    assert any(line.startswith("equalized_odds_difference ") for line in metrics)


@pytest.mark.parametrize(("encoding", "named"), [("utf-8", None), ("cp1252", "cp1252")])
def test_a_table_as_spreadsheets_write_it_is_drafted_and_read(
    run, tmp_path: Path, encoding: str, named: str | None
) -> None:
    """Decimal commas, semicolons, an old encoding; a data root elsewhere is asked about."""
    source, root = tmp_path / "elsewhere" / "excel.csv", tmp_path / "data" / "01_raw"
    source.parent.mkdir()
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["männlich", "weiblich"], ROWS), "value": rng.random(ROWS).round(3),
            "paid": rng.choice(["ja", "nein"], ROWS),
        }
    )  # fmt: skip
    source.write_bytes(frame.to_csv(index=False, sep=";", decimal=",").encode(encoding))
    run("init", str(source), "--target=paid", "--positive=ja", "--sensitive=sex")
    written = yaml.safe_load((tmp_path / "conf/local/parameters_excel.yml").read_text())
    fields = written["datasets"]["excel"]
    assert (fields["decimal"], fields.get("encoding")) == (",", named)
    assert "drop" not in fields and fields.pop("source") == "table"
    samples = TableOfColumns(TableOfColumns.Parameters(**fields)).load(Files(root), 2)
    np.testing.assert_array_equal(samples.x[:, 0], frame["value"].astype(np.float32))
    assert {*samples.attributes["sex"]} == {"männlich", "weiblich"}


def test_a_table_is_not_copied_into_a_shared_data_root_without_a_word(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, root = tmp_path / "elsewhere" / "visits.csv", tmp_path.parent / f"{tmp_path.name}_root"
    source.parent.mkdir()
    visits().to_csv(source, index=False)
    monkeypatch.setenv("ROBUST_FAIRNESS_DATA", str(root))
    said = run("init", str(source), status=1).output
    assert "is outside the data root" in said and "--copy" in said
    assert not root.exists()
    run("init", str(source), "--copy")
    assert (root / "visits.csv").read_bytes() == source.read_bytes()


def test_a_drafted_table_is_read_with_the_roles_that_its_columns_have(run, tmp_path: Path) -> None:
    source = tmp_path / "elsewhere" / "visits.csv"
    source.parent.mkdir()
    visits().to_csv(source, index=False, sep=";")
    said = run("init", str(source)).output
    assert said.rstrip().endswith("robust-fairness run --datasets visits")
    assert "not used (text)" in said
    assert "numbers in kg" in said
    written = yaml.safe_load((tmp_path / "conf/local/parameters_visits.yml").read_text())
    fields = written["datasets"]["visits"]
    assert fields.pop("source") == "table"
    samples = TableOfColumns(TableOfColumns.Parameters(**fields)).load(
        Files(tmp_path / "data" / "01_raw"), 2
    )
    assert samples.classes == ("no", "yes")
    assert samples.domain == "hospital"
    assert samples.units is not None
    assert samples.features == (
        "age", "age=missing", "weight", "seen", "sex=f", "sex=m",
    )  # fmt: skip
    assert np.isnan(samples.x[:, 0]).sum() == samples.x[:, 1].sum() == len(range(0, ROWS, 7))
    assert list(samples.x[:2, 2]) == [40, 41]  # kg
    assert list(samples.x[:2, 3]) == [18262, 18269]  # days since 1970
    grid = yaml.safe_load((tmp_path / "conf/local/experiment_visits.yml").read_text())
    domains = {"train": "all_but_each", "names": ["north", "south"]}
    assert grid["datasets"]["visits"]["domains"] == domains
    said = run("check", "--datasets", "visits", status=1).output  # a part has too few rows
    assert "visits_without_north: erm, group_dro, cuma; 5 seeds, test sets: 1 other domain" in said
    assert "hint" not in said
    again = run("init", str(source), status=1).output
    assert "exists, allowed: another --name, or --force" in again
    run("init", str(source), "--force", "--domain", "none", "--sensitive", "sex,hospital")
    place = tmp_path / "conf/local/experiment_visits.yml"
    grid = yaml.safe_load(place.read_text())
    assert "gaussian_noise" in grid["datasets"]["visits"]["shifts"]
    said = run("check", "--datasets", "visits").output
    assert "Checked 1 dataset with 3 cells" in said
    assert said.rstrip().endswith("A run trains 15 models.")
    place.write_text(yaml.safe_dump(grid | {"budget": 4}))
    assert run("check", "--datasets", "visits").output.rstrip().endswith("A run trains 60 models.")


@pytest.mark.parametrize(("rows", "epochs"), [(19_999, 50), (20_000, 38), (60_000, 13)])
def test_the_drafted_protocol_takes_about_as_many_steps_for_any_large_table(
    run, tmp_path: Path, rows: int, epochs: int
) -> None:
    """1,800 steps of 256 rows from 20,000 rows on, of which 60 % train."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], rows), "x": rng.random(rows).round(3)})
    table.assign(y=rng.integers(0, 2, rows)).to_csv(tmp_path / "many.csv", index=False)
    said = run("init", "many.csv", "--target", "y", "--sensitive", "sex").output
    assert ("--runner=" in said) == (rows >= 20_000)
    with chdir(tmp_path):
        loader = configuration.loader_of(None, {"datasets": "many"})
        cells = loader.validated_experiment.cells
    protocols = [cell.protocol for cell in cells]
    assert [protocol.epochs for protocol in protocols] == [epochs] * 3
    batch = protocols[0].batch_size
    assert rows < 20_000 or abs(epochs * 0.6 * rows / batch / 1_800 - 1) < 0.05


def test_init_reads_percentages_and_hints_at_dates_and_at_two_names_of_a_value(
    run, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    rates = [f"{rate:.1f}%" for rate in rng.uniform(1, 9, 300)]
    days = pd.date_range("2023-12-01", periods=300)
    table = pd.DataFrame(
        {
            "sex": rng.choice(["F", "female", "M"], 300),
            "rate": np.where(np.arange(300) % 9, rates, "n/a"),
            "share": rates,
            "admitted": days.strftime("%d.%m.%Y"),
            "either": (days[:1].strftime("%m/%m/%Y")).repeat(300).where(days.day > 9, "11/11/2023"),
            "seen": days.strftime("%Y%m%d"),
            "grade": rng.choice(["a", "b", "c"], 300),
            "x": rng.random(300),
            "y": rng.integers(0, 2, 300),
        }
    )
    table.loc[0, "either"] = "10/10/2023"
    table.to_csv(tmp_path / "rates.csv", index=False)
    said = run("init", "rates.csv").output.splitlines()
    hints = [line.removeprefix("  hint: ") for line in said if "hint" in line]
    assert [hint.partition(":")[0] for hint in hints] == ["sex", "admitted", "either", "seen"]
    assert hints[0].endswith('values: {sex: {"female": ["F"]}}')
    assert "dates: {admitted: quarter} and date_format: '%d.%m.%Y'," in hints[1]
    assert "date_format: '%d/%m/%Y' or date_format: '%m/%d/%Y'," in hints[2]
    assert "date_format: '%Y%m%d'," in hints[3]
    path = tmp_path / "conf/local/parameters_rates.yml"
    fields = yaml.safe_load(path.read_text())["datasets"]["rates"]
    assert fields["suffixes"] == {"rate": "%", "share": "%"}
    assert fields.pop("source") == "table"
    # what the hints say is read
    fields |= {
        "dates": {"admitted": "number"}, "date_format": "%d.%m.%Y", "drop": ["either", "seen"],
        "values": {"sex": {"female": ["F"]}},
    }  # fmt: skip
    samples = TableOfColumns(TableOfColumns.Parameters(**fields)).load(
        Files(tmp_path / "data" / "01_raw"), 1
    )
    columns = dict(zip(samples.features, samples.x.T, strict=True))
    numbers = [np.nan if text == "n/a" else float(text[:-1]) for text in table["rate"]]
    np.testing.assert_allclose(columns["rate"], numbers, rtol=1e-6)
    assert columns["admitted"][0] == (days[0] - pd.Timestamp(0)).days
    assert {*samples.attributes["sex"]} == {"female", "M"}


def test_a_table_without_suggestions_asks_for_options(run, tmp_path: Path) -> None:
    (tmp_path / "bare.csv").write_text("target\n1\n0\n")
    said = run("init", "bare.csv", status=1).output.splitlines()[-1]
    assert said == "Error: Sensitive attributes: the table suggests none, allowed: --sensitive NAME"
    said = run("init", "absent.csv", status=1).output
    assert said.endswith("absent.csv: No such file or directory\n")
    assert not (tmp_path / "conf").exists()


def test_all_mistakes_are_reported_at_once_with_file_and_line(run, tmp_path: Path) -> None:
    local, raw = tmp_path / "conf" / "local", tmp_path / "data" / "01_raw"
    local.mkdir(parents=True)
    raw.mkdir(parents=True)
    visits().to_csv(raw / "visits.csv", index=False)
    (local / "parameters.yml").write_text(
        "datasets:\n  visits:\n    {source: table, file: visits.csv, target: ill, "
        "positive: ill, sensitive: [sex], types: {hospital: number}, missing: NA}\n"
    )
    grid = "datasets:\n  visits:\n    protocol: tabular\n    network: mlp\n    methods:\n"
    (local / "experiment.yml").write_text(
        f"{grid}      emr:\n      cumma: {{settings: {{a: 1}}}}\n"
    )
    names = json.loads(run("check", "--datasets", "visits", "--format", "json", status=1).output)
    assert [(mistake["place"], mistake["hint"]) for mistake in names["mistakes"]] == [
        ("conf/local/experiment.yml:6", "Did you mean 'erm'?"),
        ("conf/local/experiment.yml:7", "Did you mean 'cuma'?"),
    ]
    (local / "experiment.yml").write_text(f"{grid}      erm:\n")
    said = run("check", "--datasets", "visits", status=1).output
    assert said.count("conf/local/parameters.yml:2: error: visits: visits.csv") == 3
    assert "row 1: age is missing" in said
    assert "column hospital, row 1: 'south', allowed: a finite number" in said
    assert "unknown positive value 'ill'" in said
    assert "3 mistakes. Nothing was trained." in said
    (local / "parameters.yml").write_text(
        "datasets:\n  visits:\n    {source: table, file: visits.csv, target: ill, positive: 'yes', "
        "sensitive: 'sex, age', domain: hospital, missing: NA, incomplete: impute}\n"
    )
    assert (
        "sensitive of dataset 'visits': several names are a list, write [sex, age]"
        in run("check", "--datasets", "visits", status=1).output
    )
    place = local / "parameters.yml"
    place.write_text(place.read_text().replace("'sex, age'", "[sex]"))
    domains = "    domains:\n      train: all_but_each\n      names:\n        - north\n"
    (local / "experiment.yml").write_text(f"{grid}      erm:\n")
    assert (
        "hint: visits: 2 domains (hospital) and none is held out; `domains: {test: ["
        in run("check", "--datasets", "visits").output
    )
    (local / "experiment.yml").write_text(f"{grid}      erm:\n    shifts: {{group_mix: [0.5]}}\n")
    assert (
        "Field required. An example: {attribute: ATTRIBUTE, group: GROUP}"
        in run("check", "--datasets", "visits", status=1).output
    )
    text = f"{grid}      erm:\n{domains}        - south\n        - soutth\n"
    (local / "experiment.yml").write_text(text)
    said = run("check", "--datasets", "visits", status=1).output
    assert "conf/local/experiment.yml:12: error: visits: unknown domain (hospital) 'soutth'" in said
    assert "1 mistake. Nothing was trained." in said  # of three trainings
    (local / "experiment.yml").write_text(f"{grid}      erm: [\n")
    (local / "parameters.yml").write_text("datasets: {visits: {source: table}\n")
    said = run("check", status=1).output
    assert said.count(": error: not YAML: ") == 2
    assert "conf/local/experiment.yml:7:1: error" in said
    assert "unknown environment" in run("check", "--env", "papr", status=1).output


def test_a_new_project_is_a_project_of_kedro_with_the_packages_pipelines(
    run, tmp_path: Path
) -> None:
    run("new", "mine")
    metadata = bootstrap_project(tmp_path / "mine")
    assert (metadata.package_name, metadata.project_name) == ("mine", "mine")
    assert (tmp_path / "mine" / ".telemetry").read_text() == "consent: false\n"
    read, used = (
        yaml.safe_load((folder / name).read_text(encoding="utf-8"))
        for folder, name in (
            (tmp_path / "mine" / "conf", "default_grid.yml"), (CONF, "base/experiment.yml")
        )
    )  # fmt: skip
    assert read == used
    nbformat.read(tmp_path / "mine" / "notebooks" / "first_look.ipynb", 4)
    assert "exists, allowed: a new or empty folder" in run("new", "mine", status=1).output


@pytest.mark.slow
def test_the_installed_wheel_works_in_an_empty_folder(tmp_path: Path) -> None:
    """Without the repository: its own environment, which sees the libraries of this one."""
    source, built = tmp_path / "source", tmp_path / "built"
    empty = tmp_path / "Jörg's .work"
    home = empty / ".venv"
    Project.copied_to(source)
    for name in ("README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    data = shutil.copytree(ROOT / "bundled", tmp_path / "bundled")
    pip = [sys.executable, "-m", "pip", "--quiet"]
    offline = ["--no-deps", "--no-index"]
    build = ["wheel", *offline, "--no-build-isolation", "--wheel-dir", built]
    subprocess.run([*pip, *build, source, data], check=True)
    (wheel,) = built.glob("robust_fairness-*.whl")
    assert not [name for name in ZipFile(wheel).namelist() if "conf/local/e" in name]
    venv.create(home, with_pip=False)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n")
    into = ["--python", home / "bin" / "python", "install", "--ignore-installed"]
    subprocess.run([*pip, *into, *offline, *built.iterdir()], check=True)
    left = ("PYTHONPATH", "ROBUST_FAIRNESS_DATA")
    environment = {name: value for name, value in os.environ.items() if name not in left}

    def said(*words: str, folder: Path = empty, script: str = "robust-fairness") -> str:
        command = [home / "bin" / script, *words]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert said("--version") == f"robust-fairness, version {__version__}\n"
    assert "offline" in said("demo", "--help")
    frame = pd.DataFrame(
        {"y": [0, 1] * 50, "p": [0, 1, 1, 1] * 25, "sex": ["f", "m", "f", "f"] * 25}
    )
    frame.to_csv(empty / "predictions.csv", index=False)
    words = ["--target", "y", "--prediction", "p", "--attributes", "sex"]
    assert "accuracy" in said("audit", "predictions.csv", *words)
    assert "Report: demo/report.html" in said("demo")
    assert (empty / "demo" / "report.html").exists()
    said("new", "study")
    study = empty / "study"
    assert "3 cells" in said("check", "--env", "demo", folder=study)
    patients = visits(rows=600).drop(columns="patient_id")
    patients.loc[:4, "sex"] = None
    patients.to_csv(empty / "visits.csv", index=False)
    said("init", "../visits.csv", folder=study)
    assert "no mistakes" in said("check", "--datasets", "visits", folder=study)
    part = ["--datasets", "visits", "--methods", "erm", "--seeds", "1"]
    assert "Report: data/" in said("run", *part, folder=study)
    assert Path(study, said("report", folder=study).strip()).exists()
    assert said("table", folder=study).startswith("dataset,")
    listed = said("-m", "kedro", "registry", "list", folder=study, script="python")
    assert "robust_fairness" in yaml.safe_load(listed)


def test_a_pipeline_of_the_users_own_runs_beside_those_of_the_package(run, tmp_path: Path) -> None:
    run("new", "ours")
    project = Project(tmp_path / "ours")
    project.kedro("pipeline", "create", "extra")
    (project.root / "src/ours/pipelines/extra/pipeline.py").write_text(
        "from kedro.pipeline import Node, Pipeline\n\n\ndef create_pipeline(**options):\n"
        '    return Pipeline([Node(" ".join, "params:words", "sentence", name="join")])\n'
    )
    project.configure("base/parameters_extra.yml", {"words": ["a", "b"]})
    entry = {"type": "text.TextDataset", "filepath": "data/08_reporting/sentence.txt"}
    project.configure("base/catalog_extra.yml", {"sentence": entry})
    listed = set(yaml.safe_load(project.kedro("registry", "list")))
    assert {"__default__", "extra", "robust_fairness", "training"} <= listed
    project.kedro("run", "--pipelines=extra", "--run-id=counted")
    assert (project.root / "data/08_reporting/sentence.txt").read_text() == "a b"
    with (project.root / "src/ours/pipelines/extra/pipeline.py").open("a") as file:
        file.write("# changed\n")
    said = project.kedro("rerun", "counted", status=1)
    assert "the code differs from that of run counted (its code (project) was " in said
