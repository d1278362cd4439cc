"""The examples of the documents, run as they stand there."""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from sklearn.datasets import load_wine
from torch.nn import functional

from robust_fairness.bench import training
from robust_fairness.bench.compute import checkpoints
from robust_fairness.bench.experiment.experiment import Experiment
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.training import fitting
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.core.registry import find
from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.settings import CONFIG_LOADER_ARGS
from studies import papers, settings
from studies.audit import tables as audit
from studies.bias_mitigation import papers_size
from studies.bias_mitigation import tables as bias_mitigation
from studies.estimators import tables as estimators
from studies.natural_shift import tables as natural_shift
from tests.modules import module
from tests.project import ROOT, Project
from tools import benchmark_tables, plugin_tables

DOCUMENTS = ROOT / "docs"
PLUGINS = Path("plugins")


def blocks(pages: list[Path]) -> list[tuple[str, str]]:
    """Language and text of every block of code."""
    texts = [page.read_text() for page in pages]
    return [block for text in texts for block in re.findall(r"```(\w+)\n(.*?)```", text, re.S)]


def written(folder: Path, pages: list[Path]) -> Project:
    """A copy of the project with every file that the pages name."""
    made = Project.copied_to(folder)
    for _, text in blocks(pages):
        named = re.match(r"# (\S+\.(?:py|yml))\n", text)
        if named:
            path = made.root / named[1]
            assert not path.exists(), f"{path} is there already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return made


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The project with what docs/adding adds."""
    pages = sorted((DOCUMENTS / "adding").glob("*.md"))
    made = written(tmp_path_factory.mktemp("added"), pages)
    (command,) = [text for language, text in blocks(pages) if language == "sh"]
    kedro, *words = shlex.split(command)
    assert kedro == "kedro"
    made.kedro(*words)
    return made


@pytest.fixture(scope="module")
def rows(added: Project) -> pd.DataFrame:
    """What its run found."""
    return added.metrics("examples")


def test_what_was_added_is_in_the_table(rows):
    assert set(rows["dataset"]) == {"wine", "digits"}
    assert set(rows["shift"]) == {"none", "gaussian_noise", "posterise"}
    wine = rows[rows["dataset"] == "wine"]
    assert set(wine["method"]) == {"erm", "focal"}
    assert set(wine["network"]) == {"quadratic"}
    assert set(wine["group"]) == {"", "light", "strong"}
    plain = wine[(wine["metric"] == "accuracy") & (wine["shift"] == "none")]
    assert (plain["value"] > 0.8).all()


def test_focal_loss_without_focus_is_plain_training(rows):
    wine = rows[(rows["dataset"] == "wine") & (rows["metric"] == "accuracy")]
    keys = ["seed", "shift", "severity"]
    plain = wine[wine["method"] == "erm"].set_index(keys)["value"]
    unfocused = wine[wine["trial"] == "focus=0.0"].set_index(keys)["value"]
    assert len(plain) == 4
    pd.testing.assert_series_equal(plain, unfocused)


def test_geometric_mean_is_over_classes(rows):
    digits = rows[rows["dataset"] == "digits"]
    keys = ["shift", "severity"]
    by_class = digits[(digits["metric"] == "accuracy_by_group") & (digits["attribute"] == "class")]
    assert (by_class.groupby(keys)["group"].nunique() == 10).all()
    means = digits[digits["metric"] == "geometric_mean_recall"].set_index(keys)["value"]
    expected = by_class.groupby(keys)["value"].prod() ** 0.1
    pd.testing.assert_series_equal(means.sort_index(), expected.sort_index(), check_names=False)


def test_aggregations_apply_to_the_metric(rows):
    worst = rows[rows["metric"] == "worst_group_geometric_mean_recall"]
    assert worst[worst["dataset"] == "wine"]["value"].between(0, 1).all()


def test_images_without_bits_are_all_predicted_alike(rows):
    """All are black, so the recall of nine of the ten classes is 0."""
    digits = rows[rows["dataset"] == "digits"].set_index(["metric", "severity"])["value"]
    assert digits["geometric_mean_recall", 8.0] == 0
    assert digits["accuracy", 8.0] < 0.2
    assert digits["accuracy", 0.0] > 0.5


def test_posterise_sets_bits_to_zero_and_refuses_other_severities(added):
    shift = module(added.root / PLUGINS / "shifts/posterise.py").Posterise()
    samples = find("dataset", "digits")().load(Files(added.root), 1)
    for bits in range(9):
        expected = samples.x.astype(int) // 2**bits * 2**bits
        np.testing.assert_array_equal(shift.apply(samples, bits).x, expected)
    for severity in (-1, 0.5, 9):
        with pytest.raises(InputError, match="allowed: 0, 1, ... 8"):
            shift.check(severity)
    wines = module(added.root / PLUGINS / "datasets/wine.py").Wine().load(Files(added.root), 1)
    with pytest.raises(InputError, match="posterise is not applicable"):
        shift.apply(wines, 1)


def test_wines_are_those_of_the_library(added):
    samples = module(added.root / PLUGINS / "datasets/wine.py").Wine().load(Files(added.root), 2)
    raw = load_wine()
    np.testing.assert_array_equal(samples.x, raw.data.astype(np.float32))
    np.testing.assert_array_equal(samples.y, raw.target)
    strong = raw.data[:, 0] > np.median(raw.data[:, 0])
    assert (samples.attributes["strength"] == np.where(strong, "strong", "light")).all()
    assert list(samples.splits) == ["split_0", "split_1"]


def test_quadratic_network_is_an_affine_map_of_inputs_and_squares(added):
    network = module(added.root / PLUGINS / "models/quadratic.py").Quadratic
    model = network(network.Parameters(), (3,), 2, Randomness([0, 1], "weights"))
    x = torch.randn(2, 5, 3)
    for replica in range(2):
        weights = model.top.weight[replica].detach()
        both = torch.cat([x[replica], x[replica] ** 2], 1)
        expected = functional.linear(both, weights.T, model.top.bias[replica, 0].detach())
        torch.testing.assert_close(model(x)[replica].detach(), expected)


FINDS = """
from robust_fairness.core.registry import find
from robust_fairness.metrics import find_metric

for kind, name in (("method", "focal"), ("dataset", "wine"), ("shift", "posterise"),
                   ("network", "quadratic")):
    print(find(kind, name).__module__)
print(find_metric("worst_group_geometric_mean_recall").definition.function.__module__)
"""


@pytest.fixture(scope="module")
def installed(added, tmp_path_factory) -> tuple[Project, str]:
    """A project without plug-ins, and a path with the examples as an installed package."""
    site = tmp_path_factory.mktemp("site")
    package = site / "fairness_extras"
    package.mkdir()
    (package / "__init__.py").touch()
    for path in (added.root / PLUGINS).rglob("*.py"):
        shutil.copy(path, package)
    (text,) = [text for kind, text in blocks([DOCUMENTS / "adding" / "index.md"]) if kind == "toml"]
    project = tomllib.loads(text)["project"]
    metadata = site / "fairness_extras-0.1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    groups = (
        "\n".join([f"[{group}]", *(f"{name} = {place}" for name, place in names.items())])
        for group, names in project["entry-points"].items()
    )
    (metadata / "entry_points.txt").write_text("\n".join(groups))
    made = Project.copied_to(tmp_path_factory.mktemp("installed"))
    shutil.copytree(added.root / "conf" / "local", made.root / "conf" / "local", dirs_exist_ok=True)
    return made, os.pathsep.join([made.environment["PYTHONPATH"], str(site)])


def test_plug_ins_of_an_installed_package_are_found(installed):
    project, path = installed
    done = subprocess.run(
        [sys.executable, "-c", FINDS],
        cwd=project.root,
        env=project.environment | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = ("focal", "wine", "posterise", "quadratic", "recalls")
    assert done.stdout.split() == [f"fairness_extras.{name}" for name in names]


def test_the_library_is_used_as_the_first_page_says(capsys):
    """The example prints the scores of three replicas."""
    (text,) = [
        text for kind, text in blocks([DOCUMENTS / "getting_started.md"]) if kind == "python"
    ]
    left: dict = {}
    exec(compile(text, "getting_started.md", "exec"), left)
    scores = left["scores"]
    assert set(scores["seed"]) == {0, 1, 2}
    assert set(scores["metric"]) == {"accuracy", "delta_eo"}
    assert scores[scores["metric"] == "accuracy"]["value"].between(0.5, 1).all()
    assert "accuracy" in capsys.readouterr().out


@pytest.mark.parametrize("page", ["library.md", "repair.md"])
def test_a_page_prints_what_it_says(page):
    text = "\n".join(text for kind, text in blocks([DOCUMENTS / page]) if kind == "pycon")
    examples = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    result = runner.run(examples, out=said.append)
    assert (result.failed, "".join(said)) == (0, "")
    assert result.attempted > 15


def test_the_search_of_the_page_runs(tmp_path):
    """Twelve pairs, then three values with the best of them; all of it in the table of trials."""
    project = written(tmp_path, [DOCUMENTS / "search.md"])
    loader = ConfigLoader(str(project.root / "conf"), "local", **CONFIG_LOADER_ARGS)
    cell = loader["parameters"]["diabetes"]["adv_debias"]["cell"]
    short = cell.protocol.model_copy(update={"epochs": 3})
    cell = cell.model_copy(update={"protocol": short})
    samples = find("dataset", "diabetes")().load(Files(project.root), 2)
    trials = training.train(samples, cell)[3]
    assert trials.groupby("stage").size().to_dict() == {0: 1, 1: 12, 2: 3}
    first = trials[(trials["stage"] == 1) & (trials["state"] == "complete")]
    best = set(first.loc[first["score"].idxmax(), "trial"].split(","))
    later = [set(trial.split(",")) for trial in trials[trials["stage"] == 2]["trial"]]
    assert [changes - best for changes in later] == [{"alpha=0.25"}, {"alpha=0.5"}, {"alpha=2.0"}]
    assert all(best < changes for changes in later)
    rates = [float(re.search(r"learning_rate=([^,]+)", changes)[1]) for changes in first["trial"]]
    assert all(1e-4 <= rate <= 0.1 for rate in rates)


@pytest.mark.parametrize(
    "page",
    [*papers.PAGES, *estimators.PAGES, *natural_shift.PAGES, *audit.PAGES, *benchmark_tables.PAGES,
     *plugin_tables.PAGES],
    ids=lambda page: f"{page.path.parent.name}-{page.path.stem}",
)  # fmt: skip
def test_a_page_is_that_of_the_data_beside_it(page):
    """Page, tables and figures; each is shown or linked, and no table is left over."""
    assert_up_to_date(page)
    stems = [path.stem for path in page.csv("*").parent.glob(page.csv("*").name)]
    text = page.path.read_text()
    assert all(f"tables/{stem}.csv" in text for stem in stems)
    left = {*stems} - {page.csv(name).stem for name in page.tables}
    assert not {stem for stem in left if not stem.endswith("_older")}


def assert_up_to_date(page) -> None:
    """The script would leave the page, its tables and figures as they are, and all are shown."""
    text = page.path.read_text()
    for path, expected in page.files().items():
        assert path.read_text() == expected, path
        assert path == page.path or path.name in text, path


def test_tuned_settings_are_those_with_the_best_validation_score():
    """Of the tables of the tuning beside the page of bias mitigation."""
    made = bias_mitigation
    best = made.best_trials(made.STUDY.results)
    written = yaml.safe_load((ROOT / "conf" / "reduced" / "experiment.yml").read_text())
    tried, tuned = (written["datasets"][name]["methods"] for name in (made.TRIED, made.TUNED))
    assert set(best.index) == set(tuned)
    for method, trial in best.items():
        named = {"default": {}} | {
            ",".join(f"{name}={value}" for name, value in changes.items()): changes
            for changes in tried[method]["trials"]
        }
        expected = tried[method].get("settings", {}) | named[trial]
        assert (tuned[method] or {}).get("settings", {}) == expected, method


@pytest.fixture(scope="module")
def paper() -> Experiment:
    """The experiment of ``conf/paper``, which takes seconds to read."""
    return settings.configured()


@pytest.fixture
def paper_slice(paper, monkeypatch) -> ModuleType:
    """The slice at the papers' size with two methods."""
    made = papers_size
    monkeypatch.setenv(checkpoints.ROOT_VARIABLE, "")  # which it sets
    monkeypatch.setattr(
        made, "datasets", lambda: {dataset.name: dataset for dataset in paper.datasets}
    )
    monkeypatch.setattr(made, "FIRST", made.FIRST[:2])
    return made


def test_slice_of_the_papers_stops_and_continues(paper_slice, tmp_path, monkeypatch):
    """No epoch is trained twice, and the scores are those of a training without a stop."""
    trained, run_epoch = [], fitting.Stack.run_epoch

    def stopped(stack):
        if len(trained) == 3:
            raise paper_slice.OutOfTime
        trained.append(stack.cell.label)
        run_epoch(stack)

    once, twice = tmp_path / "once", tmp_path / "twice"
    assert paper_slice.run(once, 60, toy=True)
    with monkeypatch.context() as changed:
        changed.setattr(fitting.Stack, "run_epoch", stopped)
        assert not paper_slice.run(twice, 60, toy=True)
        assert trained == ["erm", "erm", "lff"]
        changed.setattr(
            fitting.Stack, "run_epoch", lambda fitted: trained.append(0) or run_epoch(fitted)
        )
        assert paper_slice.run(twice, 60, toy=True)
    assert trained[3:] == [0]
    together = tmp_path / "together"
    command = [sys.executable, "-m", papers_size.__name__, together, "--toy", "--workers", "2"]
    subprocess.run(command, check=True, cwd=ROOT)
    for path, folder in product(once.glob("*.parquet"), (twice, together)):
        pd.testing.assert_frame_equal(pd.read_parquet(path), pd.read_parquet(folder / path.name))
    with pytest.raises(paper_slice.OutOfTime), paper_slice.limited(0.01):
        threading.Event().wait()
    with pytest.raises(InputError, match="scores of a toy"):
        paper_slice.main([str(once), "--merge"])
    scores = tmp_path / "scores.parquet"
    paper_slice.merge(once, scores)
    lff = pd.read_parquet(once / "biased_mnist.lff.0.parquet")
    (value,) = lff.query("metric == 'unbiased_accuracy'")["value"].unique()
    table = paper_slice.TABLES["biased_mnist_at_the_papers_size"](paper_slice.known(scores))
    (row,) = table.query("method == 'lff'").to_dict("records")
    assert (row["published"], row["ours"], row["seeds"]) == ("56.6", f"{100 * value:.1f}", 1)
    paper_slice.merge(once, scores)  # adds nothing
    assert len(pd.read_parquet(scores)) == sum(map(len, map(pd.read_parquet, once.glob("*.pa*"))))


def test_tables_at_the_papers_size_are_those_of_the_print():
    """Explicit methods beside the runs of Table A4 with the same variable, read off the print."""
    known, written = papers_size.known(), papers_size.TABLES
    accuracies = written["biased_mnist_at_the_papers_size"](known).set_index("method")
    printed = {"erm": "42.0", "group_upweighting": "21.5", "group_dro": "25.2", "rubi": "34.5",
               "irmv1": "38.3", "lff": "56.6", "spectral_decoupling": "41.3"}  # fmt: skip
    assert accuracies["published"].to_dict() == printed
    differences = written["by_variable_at_the_papers_size"](known).set_index("variable")
    assert [text.rpartition(" ")[2] for text in differences["erm"]] == [
        "(31.2)", "(35.9)", "(6.7)", "(30.0)", "(29.5)", "(30.3)", "(25.5)"
    ]  # fmt: skip
    for method, name in product(printed, differences.index):
        ours = known.query(
            "method == @method and attribute == @name and metric == 'majority_minority_difference'"
        )
        assert differences.loc[name, method].startswith(f"{100 * ours['value'].mean():.1f} ")


def test_the_slice_has_cells_of_the_papers(paper):
    cells = {(cell.dataset, cell.label) for cell in paper.cells}
    assert {(dataset, method) for dataset, method, _ in papers_size.SLICE} <= cells


def test_settings_of_papers_are_fields_of_the_configuration(paper):
    assert settings.value_at(paper, "adult.source.train_rows") == 37_500
    with pytest.raises(AttributeError):
        settings.value_at(paper, "adult.source.rows")
