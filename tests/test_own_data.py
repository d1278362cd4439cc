"""The example of docs/own_data.md, run as it stands there: a table of one's own, end to end."""

import runpy
from contextlib import chdir
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from robust_fairness.bench import training
from robust_fairness.bench.datasets.images import image_folder
from robust_fairness.bench.datasets.tables import table
from robust_fairness.bench.diagnosis import diagnose
from robust_fairness.bench.samples.domains import hold_out_domains
from robust_fairness.core.raw_files import Files
from tests.project import Project, blocks
from tests.training.conftest import make_cell


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A copy in which every named file of the page was written and every command run."""
    made = Project.copied_to(tmp_path_factory.mktemp("project"))
    made.follow("own_data.md")
    return made


def test_every_method_shift_metric_and_the_report_work_on_a_table(project: Project) -> None:
    metrics = project.metrics("loans")
    assert set(metrics["dataset"]) == {"loans"}
    assert set(metrics["method"]) == {"erm", "cuma"}
    assert set(metrics["shift"]) == {"none", "gaussian_noise"}
    tested = metrics[metrics["value"].notna()]
    assert {"accuracy", "delta_dp", "faircocco_dp"} <= set(tested["metric"])
    assert {"sex", "age", "sex & age"} <= set(tested["attribute"])
    assert tested["value"].between(0, 1).all()
    assert "loans" in project.file("report.html", "loans").read_text()
    attributes = project.samples("loans", "loans").table()
    raw = pd.read_csv(project.root / "data" / "01_raw" / "loans" / "loans.csv")
    assert attributes["sex"].tolist() == raw["sex"].tolist()
    assert attributes["y"].tolist() == (raw["repaid"] == "yes").astype(int).tolist()
    parts = attributes["split_0"].groupby(raw["customer"], observed=True).nunique()
    assert (parts == 1).all()


def test_predictions_of_the_table_are_audited(project: Project) -> None:
    rows = pd.read_csv(project.root / "audits" / "loans_audit.csv")
    raw = pd.read_csv(project.root / "data" / "01_raw" / "loans" / "loans.csv")
    rate = (raw["score"] >= 0.5).groupby(raw["sex"]).mean()
    (value,) = rows[(rows["metric"] == "delta_dp") & (rows["attribute"] == "sex")]["value"]
    assert value == pytest.approx(abs(rate["f"] - rate["m"]))
    assert "loans.csv" in (project.root / "audits" / "loans_audit.html").read_text()


def test_every_source_of_the_page_is_accepted() -> None:
    sources = {"table": table.TableOfColumns, "image_folder": image_folder.ImageFolder}
    parameters = {}
    for language, text in blocks("own_data.md"):
        content = yaml.safe_load(text) if language == "yaml" else {}
        for fields in content.get("datasets", {}).values():
            if "source" in fields:
                name = fields.pop("source")
                parameters[name] = sources[name].Parameters(**fields)
    assert set(parameters) == set(sources)
    assert parameters["image_folder"].size == (64, 64)
    assert Path(parameters["table"].file).suffix == ".csv"


PAGES = {"loans": "own_data.md", "visits": "natural_shift.md"}


def example(name: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The table of a page, made by its script, and what the page says of its columns."""
    fields: dict[str, Any] = {}
    for language, text in blocks(PAGES[name]):
        if text.startswith(f"# make_{name}.py"):
            (folder / "make.py").write_text(text)
            with chdir(folder):
                runpy.run_path("make.py")
        elif language == "yaml":
            content = yaml.safe_load(text).get("datasets", {}).get(name, {})
            fields |= content if "source" in content else {}
    fields.pop("source")
    return folder / "data" / "01_raw" / fields["file"], fields


@pytest.mark.parametrize("missing_sensitive", ["no_group", "group"])
@pytest.mark.parametrize(
    ("name", "domain"), [("loans", None), ("loans", "job"), ("visits", "hospital")]
)
def test_missing_values_of_attributes_are_counted_in_every_step(
    name: str, domain: str | None, missing_sensitive: str, tmp_path: Path, caplog: Any
) -> None:
    """From the file to the diagnosis, with group-aware methods; every count by pandas."""
    path, fields = example(name, tmp_path)
    copies = 3 if name == "loans" else 1  # the diagnosis needs 50 rows in distribution
    cells = pd.concat([pd.read_csv(path)] * copies, ignore_index=True)
    for number, column in enumerate(fields["sensitive"]):
        cells.loc[cells.index[20 + number :: len(cells) // 6][:5], column] = None
    cells.to_csv(path, index=False)
    fields |= {"incomplete": "impute", "domain": domain, "missing_sensitive": missing_sensitive}
    samples = table.TableOfColumns(table.TableOfColumns.Parameters(**fields)).load(
        Files(tmp_path / "data" / "01_raw"), 1
    )
    is_group = missing_sensitive == "group"
    for attribute in fields["sensitive"]:
        says = f"column {attribute}: 5 of {len(cells)} rows have no value"
        assert [says in message for message in caplog.messages].count(True) == 1
        assert samples.attributes[attribute].isna().sum() == (0 if is_group else 5)
        assert (samples.attributes[attribute] == "unknown").sum() == (5 if is_group else 0)
    if domain:
        samples = hold_out_domains(samples, sorted(set(cells[domain]))[1:])
    predictions = {}
    for method in ("group_dro", "cuma"):
        cell = make_cell(method, seeds=(0,)).model_copy(
            update={"metrics": ("accuracy", "accuracy_by_group")}
        )
        models, validation, *_ = training.train(samples, cell)
        selected = training.select(samples, validation, cell)
        predictions[method] = training.predict(samples, models, selected, cell, {})
        rows = training.evaluate(samples, predictions[method], selected, cell, {})
        groups = rows[(rows["metric"] == "accuracy_by_group") & (rows["domain"] == "")]
        (tested,) = [part.rows for part in predictions[method] if part.part == "test"]
        for attribute in fields["sensitive"]:
            counted = groups[(groups["attribute"] == attribute)].set_index("group")["n"].to_dict()
            expected = samples.attributes[attribute].iloc[tested].value_counts().to_dict()
            assert counted | expected == counted
            assert sum(counted.values()) == sum(expected.values())
    tables = diagnose(name, samples, predictions)
    if domain:
        shares = tables["shares"].query("label == ''").set_index(["attribute", "group"])
        (away,) = [part.rows for part in predictions["cuma"] if part.part == "ood_test"]
        for attribute in fields["sensitive"]:
            share = shares.loc[(attribute, "unknown" if is_group else "missing"), "away"]
            assert share == cells[attribute].isna()[away].mean()
