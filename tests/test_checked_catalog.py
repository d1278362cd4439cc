"""Files that changed since a run saved them are refused by the catalog of a notebook."""

from pathlib import Path

import pandas as pd
import pytest
from kedro.io.core import Version

from robust_fairness.catalog import files
from robust_fairness.core.errors import InputError
from robust_fairness.runs import provenance
from robust_fairness.runs.session import CheckedCatalog


@pytest.fixture
def saved(tmp_path, monkeypatch) -> Path:
    """A table that a run saved and recorded."""
    monkeypatch.chdir(tmp_path)
    dataset = files.table("data/metrics.parquet", version=Version("one", "one"))
    dataset.save(pd.DataFrame({"value": [0.25, 0.5]}))
    recorded = {"path": dataset.place, "sha256": dataset.sha256}
    fields = dict.fromkeys(provenance.REQUIRED, "") | {"run_id": "one", "failed": []}
    provenance.write_manifest(fields | {"outputs": {"metrics": recorded}})
    return Path(dataset.place)


def catalog() -> CheckedCatalog:
    entry = {
        "type": "robust_fairness.catalog.files.FileDataset",
        "dataset": files.PARQUET,
        "filepath": "data/metrics.parquet",
        "versioned": True,
    }
    return CheckedCatalog.from_config({"metrics": entry})


@pytest.mark.parametrize("version", [None, "one"])
def test_any_flipped_bit_is_refused_in_one_line(saved, version):
    content = bytearray(saved.read_bytes())
    assert catalog().load("metrics", version)["value"].tolist() == [0.25, 0.5]
    for place in range(0, len(content), 97):
        flipped = bytearray(content)
        flipped[place] ^= 1
        saved.write_bytes(flipped)
        with pytest.raises(InputError, match="changed since run one saved it") as error:
            catalog().load("metrics", version)
        assert "\n" not in str(error.value)


def test_a_run_compares_once_and_what_no_manifest_has_is_loaded(saved):
    frame = pd.DataFrame({"value": [0.25, 1.0]})
    frame.to_parquet(saved, index=False)
    data = catalog()
    data.is_checked = True
    assert data.load("metrics").equals(frame)
    provenance.write_manifest(provenance.load_manifest("one") | {"outputs": {}})
    assert catalog().load("metrics").equals(frame)
    provenance.manifest_path("one").unlink()
    assert catalog().load("metrics").equals(frame)


@pytest.mark.filterwarnings("ignore:Accessing the 'model_fields'")  # by Kedro
def test_kedro_gives_notebooks_such_a_catalog(monkeypatch):
    """As does a session, from which they get it."""
    from kedro.framework.startup import bootstrap_project

    from robust_fairness.runs.session import Session
    from tests.project import ROOT

    monkeypatch.chdir(ROOT)
    bootstrap_project(ROOT)
    context = Session.create(project_path=ROOT, env="smoke").load_context()
    assert isinstance(context.catalog, CheckedCatalog)
    assert "diabetes.raw" in context.catalog
