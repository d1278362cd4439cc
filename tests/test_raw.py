"""Raw files in the catalog: a handle for nodes, and what Kedro-Viz shows of them."""

import gzip
import hashlib

import pytest
from kedro.io import DataCatalog, DatasetError

from robust_fairness.bench.experiment.experiment import DatasetConfig
from robust_fairness.catalog.raw import RawDataset
from robust_fairness.core.raw_files import Files
from robust_fairness.pipelines.ingestion.nodes import ingest
from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.settings import CONFIG_LOADER_ARGS
from tests.project import shipped_configuration

ADULT = ("adult/adult.data", "adult/adult.test")


def test_the_handle_reads_files_below_the_root_and_writes_none(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBUST_FAIRNESS_DATA", str(tmp_path))
    dataset = RawDataset("adult")
    files = dataset.load()
    assert isinstance(files, Files) and files.root == tmp_path
    assert dataset.load() is not files  # each notes the checksums of one dataset
    with pytest.raises(DatasetError, match="raw files are only read"):
        dataset.save("anything")


def test_a_preview_has_names_bytes_and_checksums(tmp_path, monkeypatch):
    """Of uncompressed bytes, as in manifests; of the size on disk; folders have a size."""
    monkeypatch.setenv("ROBUST_FAIRNESS_DATA", str(tmp_path))
    (tmp_path / "faces" / "inner").mkdir(parents=True)
    for number in range(3):
        (tmp_path / "faces" / "inner" / str(number)).write_bytes(b"x" * 100)
    content = b"39, State-gov" * 1000
    (tmp_path / "adult").mkdir()
    packed = gzip.compress(content)
    (tmp_path / "adult" / "adult.data.gz").write_bytes(packed)
    files = Files(tmp_path)
    assert files.facts("faces/inner") == (300, "")
    assert files.facts("adult/adult.data") == (len(packed), hashlib.sha256(content).hexdigest())
    assert files.facts("adult/none") == (None, "missing")
    shown = RawDataset({"name": "lfw", "images": "faces/inner"}).preview()
    assert shown["columns"] == ["file", "bytes", "SHA-256"]
    assert ["faces/inner", 300, ""] in shown["data"]
    assert RawDataset("diabetes").preview()["data"] == [["(part of a package, or made)", None, ""]]


@pytest.mark.parametrize("environment", ["base", "smoke", "paper"])
def test_the_catalog_names_the_raw_files_of_every_dataset_and_generator(environment):
    loader = ConfigLoader(str(shipped_configuration()), environment, **CONFIG_LOADER_ARGS)
    catalog = DataCatalog.from_config(loader["catalog"])
    experiment = loader.selected_experiment
    sources = {dataset.base: dataset.source for dataset in experiment.datasets}
    sources |= {made.name: made.source for made in experiment.generators if made.source}
    for name, source in sources.items():
        dataset = catalog.get(f"{name}.raw")
        assert dataset.source == {"name": source.name, **source.options}, name
        assert dataset.metadata == {"kedro-viz": {"layer": "raw"}}


def test_a_node_can_be_called_with_what_the_catalog_loads(tmp_path):
    """In a notebook, without a run."""
    loader = ConfigLoader(str(shipped_configuration()), "smoke", **CONFIG_LOADER_ARGS)
    catalog = DataCatalog.from_config(loader["catalog"])
    settings: DatasetConfig = loader["parameters"]["diabetes"]["dataset"]
    samples = ingest(catalog.load("diabetes.raw"), settings)
    assert len(samples) == 442 and samples.sources.keys() == {"scikit-learn/diabetes"}
