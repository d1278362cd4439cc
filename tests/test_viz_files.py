"""Sizes of files and times of nodes for Kedro-Viz, whatever ran the nodes."""

import json
import warnings
from pathlib import Path

import pandas as pd
import pytest
from kedro.io import DataCatalog, MemoryDataset
from kedro.io.core import Version
from kedro.pipeline import Node, Pipeline
from kedro_viz.integrations.kedro.hooks_utils import hash_node

from robust_fairness.catalog import files
from robust_fairness.core.errors import Failure
from robust_fairness.runs import provenance
from robust_fairness.runs.hooks import VizFiles
from robust_fairness.runs.runners import RunFailed
from tests.files import text_file

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of FastAPI about a class of responses
    from kedro_viz.api.rest.responses.run_events import transform_events_to_structured_format

TRAIN, REPORT = (
    Node(len, "rows", "metrics", name="train"),
    Node(repr, "metrics", "report", name="report"),
)


@pytest.fixture
def catalog(tmp_path, monkeypatch) -> DataCatalog:
    """A table and a page of a run, whose nodes ran in other processes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool.kedro]\n")
    version = Version("one", "one")
    made = {
        "metrics": files.table("data/metrics.parquet", version=version),
        "report": text_file(filepath="data/report.html", version=version),
    }
    fields = dict.fromkeys(provenance.REQUIRED, "") | {"run_id": "one", "failed": []}
    started = {"started": "2026-01-01T00:00:00+00:00", "outputs": {}}
    provenance.write_manifest(fields | started)
    return DataCatalog({"rows": MemoryDataset([1, 2]), **made})


def written(name: str) -> object:
    return json.loads(Path(".viz", name).read_text(encoding="utf-8"))


def test_files_have_sizes_and_nodes_the_times_of_the_journal(catalog):
    catalog["metrics"].save(pd.DataFrame({"a": [1.0, 2, 3], "b": list("xyz")}))
    catalog["report"].save("größer")
    provenance.record("one", seconds={"train": 1.25})
    provenance.record("one", seconds={"report": 0.5})
    VizFiles().after_pipeline_run({"run_id": "one"}, Pipeline([TRAIN, REPORT]), catalog)
    size = Path("data/metrics.parquet/one/metrics.parquet").stat().st_size
    assert written("stats.json") == {
        "metrics": {"rows": 3, "columns": 2, "file_size": size},
        "report": {"file_size": len("größer".encode())},
    }
    shown = transform_events_to_structured_format(written("kedro_pipeline_events.json"))
    assert shown.pipeline.status.value == "success"
    assert {shown.nodes[hash_node(node)].duration for node in (TRAIN, REPORT)} == {1.25, 0.5}
    assert shown.datasets[hash_node("metrics")].size == size


def test_a_failed_run_shows_which_node_failed_and_what_there_is(catalog):
    catalog["metrics"].save(pd.DataFrame({"a": [1.0]}))
    provenance.record("one", seconds={"train": 1.25})
    error = RunFailed([Failure("report", "no room")], "one")
    pipeline = Pipeline([TRAIN, REPORT])
    VizFiles().on_pipeline_error(error, {"run_id": "one"}, pipeline, catalog)
    assert written("stats.json").keys() == {"metrics"}
    shown = transform_events_to_structured_format(written("kedro_pipeline_events.json"))
    assert shown.pipeline.status.value == "failed"
    states = {node.name: shown.nodes[hash_node(node)].status.value for node in (TRAIN, REPORT)}
    assert states == {"train": "success", "report": "failed"}
