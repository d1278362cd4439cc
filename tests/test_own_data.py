"""The example of docs/own_data.md, run as it stands there: a table of one's own, end to end."""

from pathlib import Path

import pandas as pd
import pytest
import yaml

from robust_fairness.datasets.images import image_folder
from robust_fairness.datasets.tables import table
from tests.project import Project, blocks


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
    attributes = pd.read_parquet(project.file("loans/attributes.parquet", "loans"))
    raw = pd.read_csv(project.root / "data" / "01_raw" / "loans" / "loans.csv")
    assert attributes["sex"].tolist() == raw["sex"].tolist()
    assert attributes["y"].tolist() == (raw["repaid"] == "yes").astype(int).tolist()
    parts = attributes["split_0"].groupby(raw["customer"], observed=True).nunique()
    assert (parts == 1).all()


def test_predictions_of_the_table_are_audited(project: Project) -> None:
    rows = pd.read_csv(project.root / "audits" / "loans_audit.csv")
    raw = pd.read_csv(project.root / "data" / "01_raw" / "loans" / "loans.csv")
    rate = (raw["score"] >= 0.5).groupby(raw["sex"]).mean()
    (found,) = rows[(rows["metric"] == "delta_dp") & (rows["attribute"] == "sex")]["value"]
    assert found == pytest.approx(abs(rate["f"] - rate["m"]))
    assert "loans.csv" in (project.root / "audits" / "loans_audit.html").read_text()


def test_every_source_of_the_page_is_accepted() -> None:
    sources = {"table": table.Table, "image_folder": image_folder.ImageFolder}
    found = {}
    for language, text in blocks("own_data.md"):
        content = yaml.safe_load(text) if language == "yaml" else {}
        for fields in content.get("datasets", {}).values():
            if "source" in fields:
                name = fields.pop("source")
                found[name] = sources[name].Parameters(**fields)
    assert set(found) == set(sources)
    assert found["image_folder"].size == (64, 64)
    assert Path(found["table"].file).suffix == ".csv"
