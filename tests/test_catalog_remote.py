"""Files that lie elsewhere: in memory, and in a folder that is reached by fsspec alone."""

import uuid
from collections.abc import Iterator

import fsspec
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from kedro.io import DatasetError
from kedro.io.core import Version

from robust_fairness.catalog.arrays import SamplesDataset
from robust_fairness.catalog.atomic import LOCAL, OBJECT_STORES
from robust_fairness.catalog.files import FileDataset, PictureDataset, table
from robust_fairness.cli.commands import cli
from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from robust_fairness.runs import provenance
from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.settings import CONFIG_LOADER_ARGS
from tests.files import figure_file, text_file
from tests.project import ROOT

CATALOG = """
metrics:
  type: robust_fairness.catalog.files.FileDataset
  dataset: {type: pandas.ParquetDataset}
  filepath: dir://metrics.parquet
  versioned: true
  credentials: store
  fs_args: {target_protocol: file}
"""


def test_what_a_run_left_is_reached_as_its_environment_tells(tmp_path, monkeypatch):
    """The manifest has the URL alone; the rest, which may be secret, has the catalog."""
    texts = {"base/catalog.yml": CATALOG, "base/credentials.yml": f"store: {{path: {tmp_path}}}"}
    for name, text in texts.items():
        path = tmp_path / "conf" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "conf" / "away").mkdir()
    frame = pd.DataFrame({"value": [0.25, 0.5]})
    place = tmp_path / "metrics.parquet" / "one" / "metrics.parquet"
    place.parent.mkdir(parents=True)
    frame.to_parquet(place)
    monkeypatch.chdir(tmp_path)
    told = {"path": "dir://metrics.parquet/one/metrics.parquet", "content": "x"}
    manifest = {"run_id": "one", "state": "finished", "started": "", "environment": "away"}
    provenance.write_manifest(manifest | {"outputs": {"metrics": told}, "loaded": {}})
    done = CliRunner().invoke(cli, ["table", "one"])
    assert (done.exit_code, done.stdout) == (0, "value\n0.25\n0.5\n"), done.output
    place.unlink()
    done = CliRunner().invoke(cli, ["table", "one"])
    assert done.exit_code == 1 and "dir://metrics.parquet/one" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_catalog_alone_tells_where_files_are(tmp_path):
    written = (ROOT / "conf" / "base" / "catalog.yml").read_text()
    (tmp_path / "base").mkdir()
    path = tmp_path / "base" / "catalog.yml"
    path.write_text(written.replace("filepath: data/", "filepath: dir://"))
    entries = ConfigLoader(tmp_path, **CONFIG_LOADER_ARGS)["catalog"]
    assert {"metrics", "{dataset}.{method}.metrics", "{dataset}.samples"} <= set(entries)
    others = ("MemoryDataset", "robust_fairness.catalog.raw.RawDataset")  # local, or none
    places = [entry["filepath"] for entry in entries.values() if entry["type"] not in others]
    assert all(place.startswith("dir://") for place in places)


@pytest.fixture(params=["memory", "local"])
def store(request, tmp_path) -> Iterator[str]:
    """A URL below which files may lie."""
    if request.param == "local":
        yield f"local://{tmp_path}/store"
        return
    name = f"memory://{uuid.uuid4().hex}"
    yield name
    system = fsspec.filesystem("memory")
    if system.exists(name):
        system.rm(name, recursive=True)


def files(store: str) -> set[str]:
    """Names of all files of the store."""
    system, path = fsspec.core.url_to_fs(store)
    return {place.rpartition("/")[2] for place in system.find(path)}


def samples() -> Samples:
    """Pictures of three rows with an attribute of words."""
    return Samples(
        x=np.arange(3 * 4, dtype=np.float32).reshape(3, 4),
        y=np.array([0, 1, 1]),
        id=np.array(["a", "b", "ü"]),
        features=tuple("wxyz"),
        classes=("no", "yes"),
        attributes=pd.DataFrame({"sex": pd.Categorical(["f", "m", "f"])}),
        splits=pd.DataFrame({"0": pd.Categorical(["train", "val", "test"])}),
        sensitive=("sex",),
        sources={"toy.csv": "aa"},
    )


def test_samples_come_back_and_outlive_the_copy_they_are_mapped_from(store):
    dataset = SamplesDataset(filepath=f"{store}/samples.safetensors")
    given = samples()
    assert not dataset.exists()
    dataset.save(given)
    assert dataset.exists()
    loaded = dataset.load()
    assert np.array_equal(loaded.x, given.x)
    assert loaded.id.tolist() == given.id.tolist()
    pd.testing.assert_frame_equal(loaded.attributes, given.attributes)
    loaded.x[:] = 0  # writable, and the file's own values stay
    assert np.array_equal(dataset.load().x, given.x)
    assert files(store) == {"samples.safetensors"}


def test_tables_texts_images_and_figures_come_back(store):
    from plotly import graph_objects

    frame = pd.DataFrame({"a": [1.5, 2], "b": ["x", "y"]})
    rows = table(filepath=f"{store}/table.parquet")
    rows.save(frame)
    pd.testing.assert_frame_equal(rows.load(), frame)
    assert rows.preview(1)["data"] == [[1.5, "x"]]
    text = text_file(filepath=f"{store}/page.html")
    text.save("größer")
    assert text.load() == "größer"
    pixels = np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3)
    picture = PictureDataset(filepath=f"{store}/sheet.png")
    picture.save(pixels)
    assert np.array_equal(picture.load(), pixels)
    assert picture.preview()
    figure = figure_file(filepath=f"{store}/figure.json")
    figure.save(graph_objects.Figure(graph_objects.Scatter(y=[1, 2])))
    assert figure.preview()["data"][0]["y"] == list(figure.load().data[0].y) == [1, 2]


def test_the_newest_version_is_the_one_saved_last_and_each_is_saved_once(store):
    path = f"{store}/page.html"
    for run in ("b", "a"):
        text_file(filepath=path, version=Version(None, run)).save(run)
    newest = text_file(filepath=path, version=Version(None, None))
    assert newest.load() == "a"
    assert newest.place == f"{fsspec_form(path)}/a/page.html"
    old = text_file(filepath=path, version=Version("b", "b"))
    assert old.load() == "b"
    with pytest.raises(DatasetError, match="must not exist"):
        old.save("again")
    old.remove()
    assert not old.exists()
    assert newest.exists()


def fsspec_form(url: str) -> str:
    """The URL as the file system itself writes it."""
    system, path = fsspec.core.url_to_fs(url)
    return system.unstrip_protocol(path)


class Breaks(FileDataset):
    """Writes half."""

    def write(self, data, path):
        path.write_text(data[: len(data) // 2])
        raise OSError(28, "No space left on device")


def test_a_failed_write_leaves_what_was_there(store):
    path = f"{store}/page.html"
    text_file(filepath=path).save("first")
    with pytest.raises(DatasetError, match="No space left"):
        Breaks(filepath=path, dataset=text_file.keywords["dataset"]).save("second")
    assert text_file(filepath=path).load() == "first"
    assert files(store) == {"page.html"}


@pytest.mark.parametrize("kind", ["upload", "move"])
def test_a_failed_transfer_leaves_what_was_there(store, monkeypatch, kind):
    path = f"{store}/page.html"
    text_file(filepath=path).save("first")
    dataset = text_file(filepath=path)
    system = dataset.system

    def half(here: str, there: str, **options) -> None:
        with system.open(there, "wb") as file:
            file.write(b"hal")
        raise ConnectionError("gone")

    def none(here: str, there: str, **options) -> None:
        raise ConnectionError("gone")

    monkeypatch.setattr(system, *(("put_file", half) if kind == "upload" else ("mv", none)))
    with pytest.raises(DatasetError, match="gone"):
        dataset.save("second")
    monkeypatch.undo()
    assert text_file(filepath=path).load() == "first"
    assert files(store) == {"page.html"}


def test_object_stores_get_one_upload_and_no_move(monkeypatch):
    """There a move is a copy, and an object is there whole or not at all."""
    assert {"s3", "gs", "abfs"} <= OBJECT_STORES
    dataset = text_file(filepath="memory://bucket/key")
    monkeypatch.setattr(dataset, "protocol", "s3")
    calls = []
    for name in ("put_file", "mv"):
        monkeypatch.setattr(
            dataset.system, name, lambda *words, called=name, **options: calls.append(called)
        )
    dataset.save("whole")
    assert calls == ["put_file"]


def test_errors_name_the_url(store):
    path = f"{store}/table.parquet"
    with pytest.raises(DatasetError) as error:
        table(filepath=path).load()
    assert str(error.value) == f"{fsspec_form(path)}: no such file"
    text_file(filepath=path).save("no table")
    with pytest.raises(DatasetError) as error:
        table(filepath=path).load()
    assert str(error.value).startswith(f"{fsspec_form(path)}: corrupted file (")
    samples_of = SamplesDataset(filepath=path)
    with pytest.raises(DatasetError, match="corrupted file") as error:
        samples_of.load()
    assert str(error.value).startswith(f"{fsspec_form(path)}: corrupted file (")
    assert "robust_fairness_" not in str(error.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s4://bucket/key", "unknown protocol 's4': did you mean"),
        ("s3://bucket/key", "s3://: Install s3fs to access S3"),
    ],
)
def test_file_systems_that_are_not_there_are_one_line(path, message, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    with pytest.raises(InputError, match=message):
        text_file(filepath=path)


def test_a_path_of_this_machine_is_no_other_file_system(tmp_path):
    for path in (f"{tmp_path}/a.txt", f"file://{tmp_path}/a.txt"):
        dataset = text_file(filepath=path)
        dataset.save("text")
        assert dataset.protocol == LOCAL
        assert dataset.place == f"{tmp_path}/a.txt"
        with dataset.local() as local:
            assert local == tmp_path / "a.txt"
