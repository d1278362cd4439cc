"""The catalog's dataset classes: what goes in comes out, and a crash leaves nothing half."""

import base64
import inspect
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from kedro.io import DatasetError
from kedro.io.core import Version
from safetensors.numpy import load_file, save, save_file

from robust_fairness.bench.training.records import Fitted
from robust_fairness.catalog.arrays import ModelsDataset, SamplesDataset
from robust_fairness.catalog.files import PictureDataset, table
from robust_fairness.catalog.mapping import TYPES, mapped
from robust_fairness.catalog.schemas import Schema
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import HOST
from robust_fairness.core.samples import Samples
from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.settings import CONFIG_LOADER_ARGS
from tests.files import figure_file, text_file
from tests.project import shipped_configuration
from tests.training.conftest import make_samples


def equal(a: Samples, b: Samples) -> None:
    """Assert that two samples are the same in every part."""
    for name in ("features", "classes", "sensitive", "sources"):
        assert getattr(a, name) == getattr(b, name)
    for name in ("attributes", "splits"):
        pd.testing.assert_frame_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_equal({"x": a.x, "y": a.y, "id": a.id}, {"x": b.x, "y": b.y, "id": b.id})
    np.testing.assert_equal(a.perturbation, b.perturbation)
    assert (a.downstream is None) == (b.downstream is None)
    if a.downstream is not None:
        pd.testing.assert_frame_equal(a.downstream, b.downstream)


def test_samples_come_back_as_they_were(tmp_path):
    """Categories, missing values, text ids, named arrays, perturbation."""
    rows = 6
    samples = Samples(
        x={
            "image": np.arange(rows * 4, dtype=np.uint8).reshape(rows, 1, 2, 2),
            "z": np.ones((rows, 2), np.float32),
        },
        y=np.arange(rows) % 2,
        attributes=pd.DataFrame(
            {
                "kind": pd.Categorical(["a", None, "b", "a", "b", "a"], ["b", "a", "never"]),
                "age": np.linspace(20, 70, rows),
            }
        ),
        id=np.array(["zürich", "a", "bb", "c", "d", "e"]),
        splits=pd.DataFrame(
            {
                "s": pd.Categorical(
                    ["train", "val", "test", None, "test", "val"], ["train", "val", "test"]
                )
            }
        ),
        classes=("no", "yes"),
        sensitive=("kind",),
        sources={"file": "0" * 64},
        downstream=pd.DataFrame({"s": [True, False, False, True, False, True]}),
    )
    dataset = SamplesDataset(filepath=str(tmp_path / "samples.safetensors"))
    dataset.save(samples)
    equal(dataset.load(), samples)
    plain = make_samples(classes=0)
    dataset.save(plain)
    equal(dataset.load(), plain)


@given(
    state=st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=8),
        st.sampled_from(["float32", "float64", "int64", "uint8", "bool"]).flatmap(
            lambda dtype: arrays(dtype, array_shapes(min_dims=0, min_side=0, max_dims=3))
        ),
        min_size=1,
        max_size=3,
    ),
    order=st.sampled_from("CF"),
)
def test_weights_of_any_shape_and_layout_come_back_as_they_were(tmp_path_factory, state, order):
    """Scalars, empty arrays, columns first in memory."""
    laid = {name: np.asarray(array, order=order) for name, array in state.items()}
    model = Fitted("default", 0, "split", {"name": "mlp"}, "none", laid)
    dataset = ModelsDataset(filepath=str(tmp_path_factory.mktemp("models") / "models.safetensors"))
    dataset.save([model])
    (loaded,) = dataset.load()
    assert loaded.state.keys() == state.keys()
    for name, array in state.items():
        np.testing.assert_array_equal(loaded.state[name], array, strict=True)


def test_what_replicas_share_is_stored_once(tmp_path):
    """Large arrays that are equal; others, and small ones, are their own."""
    weights = np.random.default_rng(0).normal(size=(200, 100)).astype(np.float32)
    other = weights.copy()
    other[-1, -1] += 1
    heads = [np.full(3, value) for value in (1.0, 2.0, 2.0)]
    states = [
        {"model.features": values, "model.head": head}
        for values, head in zip((weights, weights.copy(), other), heads, strict=True)
    ]
    models = [
        Fitted(f"classifier={number}", 0, "split", {"name": "embedding"}, "none", state)
        for number, state in enumerate(states)
    ]
    dataset = ModelsDataset(filepath=str(tmp_path / "models.safetensors"))
    dataset.save(models)
    assert 2 < (tmp_path / "models.safetensors").stat().st_size / weights.nbytes < 2.1
    for loaded, model in zip(dataset.load(), models, strict=True):
        assert loaded.trial == model.trial
        np.testing.assert_equal(loaded.state, model.state)


@given(id=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)))
def test_text_ids_come_back_as_they_were(tmp_path_factory, id):  # noqa: A002 - the field's name
    """Of any length and script, none at all included."""
    samples = Samples(
        x=np.zeros((len(id), 1), np.float32),
        y=np.zeros(len(id), np.int64),
        attributes=pd.DataFrame(index=range(len(id))),
        id=np.array(id, dtype=str),
        splits=pd.DataFrame(index=range(len(id))),
        classes=("only",),
    )
    dataset = SamplesDataset(filepath=str(tmp_path_factory.mktemp("ids") / "samples.safetensors"))
    dataset.save(samples)
    assert dataset.load().id.tolist() == id


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=8).filter(lambda s: s != "__metadata__"),
        st.sampled_from(sorted(TYPES.values())).flatmap(
            lambda dtype: arrays(dtype, array_shapes(min_dims=0, min_side=0, max_dims=3))
        ),
        min_size=1,
        max_size=4,
    ),
    st.dictionaries(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8"))),
)
def test_mapped_arrays_are_those_of_the_library(tmp_path_factory, state, told):
    """Bit for bit, of every type and shape; torch takes them without a warning or a copy."""
    path = tmp_path_factory.mktemp("mapped") / "some.safetensors"
    save_file(state, path, told)
    arrays, metadata = mapped(path)
    expected = load_file(path)
    assert metadata == told
    assert arrays.keys() == expected.keys() == state.keys()
    for name, array in expected.items():
        assert type(arrays[name]) is np.ndarray
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        assert arrays[name].tobytes() == array.tobytes() == state[name].tobytes()
        assert arrays[name].flags.aligned and arrays[name].flags.writeable
        tensor = torch.from_numpy(arrays[name])
        assert tensor.data_ptr() == (arrays[name].ctypes.data if arrays[name].size else 0)


def framed(header: bytes, data: bytes = b"") -> bytes:
    """A safetensors file of any header."""
    return len(header).to_bytes(8, "little") + header + data


def header_of(dtype: str = "U8", shape: object = (4,), offsets: object = (0, 4)) -> bytes:
    """A header of one array."""
    return json.dumps({"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"1234567",
        b"\x80\x04" + framed(header_of(), b"1234")[2:],
        framed(header_of(), b"1234")[:20],
        framed(b"{}")[:-1],
        framed(b"no JSON"),
        framed(b"\xff\xfe"),
        framed(b"[]"),
        (2**63).to_bytes(8, "little") + b"{}",
        framed(header_of(), b"123"),
        framed(header_of(), b"12345"),
        framed(header_of(offsets=(1, 5)), b"12345"),
        framed(header_of(offsets=(4, 0)), b"1234"),
        framed(header_of(shape=(5,)), b"1234"),
        framed(header_of(shape=(-4,)), b"1234"),
        framed(header_of("F32", (2,)), b"1234"),
        framed(header_of("F128", (4,)), b"1234"),
        framed(header_of("BF16", (2,)), b"1234"),
    ],
)
def test_what_cannot_be_mapped_is_named_in_one_line(tmp_path, content):
    """Cut anywhere, no header, a header of other data, a type that numpy has not."""
    path = tmp_path / "samples.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        mapped(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)
    with pytest.raises(DatasetError) as reported:
        SamplesDataset(filepath=str(path)).load()
    assert str(reported.value) == str(error.value)


@pytest.mark.parametrize(
    ("change", "metadata", "message"),
    [
        (2, None, r"corrupted file \(samples: y is between"),  # a label is none of the classes
        (0, {}, "corrupted file .* lacks robust_fairness"),  # arrays of something else
    ],
)
def test_a_whole_file_of_other_content_is_named(tmp_path, change, metadata, message):
    path = tmp_path / "samples.safetensors"
    dataset = SamplesDataset(filepath=str(path))
    dataset.save(make_samples())
    arrays, ours = mapped(path)
    told = ours if metadata is None else metadata
    save_file(arrays | {"y": arrays["y"] + change}, tmp_path / "aside", told)
    (tmp_path / "aside").replace(path)
    with pytest.raises(DatasetError, match=rf"samples\.safetensors: {message}"):
        dataset.load()


@given(st.data())
def test_a_damaged_header_is_an_error_or_harmless(tmp_path_factory, data):
    """Any byte of it changed, or the file cut anywhere: never another error, never a crash."""
    whole = save({"a": np.arange(6, dtype=np.int16), "b": np.zeros((2, 3))}, {"some": "text"})
    place = data.draw(st.integers(0, 8 + int.from_bytes(whole[:8], "little") - 1))
    byte = data.draw(st.integers(0, 255))
    damaged = whole[:place] + bytes([byte]) + whole[place + 1 :]
    path = tmp_path_factory.mktemp("damaged") / "some.safetensors"
    path.write_bytes(damaged[: data.draw(st.integers(0, len(whole)) | st.just(len(whole)))])
    try:
        arrays, _ = mapped(path)
    except InputError as error:
        assert str(error).startswith(f"{path}: ")
    else:
        assert sum(array.nbytes for array in arrays.values()) == 60


def test_an_array_at_an_odd_address_is_aligned(tmp_path):
    """Other writers need not pad the header; torch reads in whole numbers."""
    path = tmp_path / "some.safetensors"
    header = header_of("F64", (2,), (0, 16))
    header += b" " * (1 - len(header) % 2)
    path.write_bytes(framed(header, np.array([1.5, -2.5]).tobytes()))
    array = mapped(path)[0]["a"]
    assert array.flags.aligned
    assert torch.from_numpy(array).tolist() == [1.5, -2.5]


def pictures(value: int, rows: int = 1000) -> Samples:
    """Pictures of one grey value, 3 kB each."""
    return replace(make_samples(rows=rows), x=np.full((rows, 3, 32, 32), value, np.uint8))


def test_what_was_loaded_and_the_file_do_not_change_each_other(tmp_path):
    """Neither by writing to an array nor by saving again."""
    dataset = SamplesDataset(filepath=str(tmp_path / "samples.safetensors"))
    dataset.save(pictures(1))
    first, second = dataset.load(), dataset.load()
    first.x[:] = 2
    assert (second.x == 1).all()
    assert (dataset.load().x == 1).all()
    dataset.save(pictures(3))
    assert (first.x == 2).all()
    assert (second.x == 1).all()
    assert (dataset.load().x == 3).all()
    taken = second.take(np.array([5, 5, 0]))
    taken.x[:] = 9
    assert (second.x == 1).all()


def test_inputs_that_trainings_of_a_design_share_are_stored_once(tmp_path):
    """Their files name the samples of the same run; changed ones are refused."""

    def dataset(name: str, run: str = "run") -> SamplesDataset:
        path = tmp_path / name / "samples.safetensors"
        return SamplesDataset(filepath=str(path), version=Version(run, run))

    dataset("whole").save(pictures(1))
    whole = dataset("whole").load()
    splits = whole.splits.iloc[::-1].reset_index(drop=True)
    taken = whole.take(np.arange(len(whole)))
    sizes = {}
    for name, run, samples in (
        ("training", "run", replace(whole, splits=splits)),
        ("other", "run", replace(whole, x=whole.x + 1)),
        ("copied", "run", taken),
        ("later", "later_run", whole),
    ):
        dataset(name, run).save(samples)
        equal(dataset(name, run).load(), samples)
        sizes[name] = Path(dataset(name, run).place).stat().st_size
    assert (
        sizes["training"] < whole.x.nbytes < min(sizes[name] for name in set(sizes) - {"training"})
    )
    file = Path(dataset("whole").place)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(DatasetError, match="has its inputs and was changed"):
        dataset("training").load()


LOADING = """
import re, sys
from pathlib import Path
from robust_fairness.catalog.arrays import SamplesDataset
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
small, large = (SamplesDataset(filepath=path) for path in sys.argv[1:])
small.load()
before = peak()
samples = large.load()
loaded = peak()
part = samples.take(range(10)).x.sum()
some = peak()
whole = samples.x.sum()
print(loaded - before, some - before, peak() - before, whole, "torch" in sys.modules)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak")
def test_loading_a_large_file_does_not_read_it(tmp_path):
    """Its pages become resident when they are looked at, and torch is not needed for it."""
    paths = [str(tmp_path / name) for name in ("small.safetensors", "large.safetensors")]
    for path, rows in zip(paths, (12, 20_000), strict=True):
        SamplesDataset(filepath=path).save(pictures(1, rows))
    done = subprocess.run(
        [sys.executable, "-c", LOADING, *paths], capture_output=True, text=True, check=True
    )
    loaded, some, all_, total, torch_needed = done.stdout.split()
    size = 20_000 * 3 * 32 * 32
    assert int(loaded) < size / 4
    assert int(some) < size / 4
    assert int(all_) > size * 3 / 4
    assert int(total) == size
    assert torch_needed == "False"


def test_failed_save_leaves_the_old_version_newest(tmp_path):
    """No half file, and nothing that counts as a version."""
    path = str(tmp_path / "models.safetensors")
    ModelsDataset(filepath=path, version=Version(None, "1")).save([])
    broken = ModelsDataset(filepath=path, version=Version(None, "2"))
    with pytest.raises(DatasetError):
        broken.save([object()])
    newest = ModelsDataset(filepath=path, version=Version(None, None))
    assert newest.resolve_load_version() == "1"
    assert not list(tmp_path.rglob("*.part"))


def test_tables_and_figures_have_previews(tmp_path):
    """For Kedro-Viz: the first rows, the figure's JSON, a page."""
    import plotly.graph_objects as go

    frame = pd.DataFrame({"a": range(5)})
    rows = table(filepath=str(tmp_path / "t.parquet"))
    rows.save(frame)
    assert rows.preview(2)["data"] == [[0], [1]]
    rows.save(frame[:0])
    assert rows.preview() == {"index": [], "columns": ["a"], "data": []}
    figure = figure_file(filepath=str(tmp_path / "f.json"))
    figure.save(go.Figure(go.Scatter(y=[1, 2])))
    assert figure.preview()["data"][0]["type"] == "scatter"
    assert list(figure.load().data[0].y) == [1, 2]
    page = text_file(filepath=str(tmp_path / "p.html"))
    page.save("<h1>Report</h1>")
    assert page.preview() == "<h1>Report</h1>"
    # Kedro-Viz chooses how to show a preview by the name of its type
    picture = PictureDataset(filepath=str(tmp_path / "sheet.png"))
    returned = [
        inspect.signature(dataset.preview).return_annotation
        for dataset in (rows, figure, page, picture)
    ]
    names = [getattr(kind, "__name__", kind) for kind in returned]
    assert names == ["TablePreview", "PlotlyPreview", "HTMLPreview", "ImagePreview"]


def test_schema_refuses_other_columns_and_types():
    """Strict: a missing column, a further one, a wrong type, a missing seed."""
    good = tables.table(tables.METRICS, [dict.fromkeys(tables.METRICS, "1") | {"value": None}])
    assert Schema("metrics").validate(good) is not None
    for bad in (
        good.drop(columns="note"),
        good.assign(further=1),
        good.astype({"seed": "str"}),
    ):
        with pytest.raises(Exception, match="column|type|expected"):
            Schema("metrics").validate(bad)


def test_every_table_of_the_catalog_is_checked_by_its_declaration():
    """Only the summary, made for reading, and the curve of a generator have no schema."""
    entries = ConfigLoader(str(shipped_configuration()), "base", **CONFIG_LOADER_ARGS)["catalog"]
    checked = {
        name: entry["validator"]["options"]["table"]
        for name, entry in entries.items()
        if "options" in entry.get("validator", {})
    }
    made = {
        name
        for name, entry in entries.items()
        if entry.get("dataset", {}).get("type") == "pandas.ParquetDataset"
    }
    assert made - checked.keys() == {"summary", "{generator}.loss"}
    assert all(name.rpartition(".")[2] == table for name, table in checked.items())
    assert {*checked.values()} == tables.TABLES.keys()


def test_no_pickle_on_any_load_path():
    """Nothing in the package can execute what a file holds."""
    source = Path(__file__).parents[1] / "src"
    for path in source.rglob("*.py"):
        text = path.read_text()
        for danger in (
            "import pickle\n",
            "read_pickle",
            "allow_pickle=True",
            "joblib.load",
        ):
            assert danger not in text, f"{path.name}: {danger}"
        # torch's own reader of tensors, which executes nothing, is for published networks only
        for line in text.splitlines():
            assert "torch.load(" not in line or "weights_only=True" in line, f"{path.name}: {line}"


def test_images_come_back_and_preview_as_png(tmp_path):
    """Pixel by pixel; the preview is the file itself as text."""
    picture = np.random.default_rng(0).integers(0, 256, (7, 5, 3)).astype(np.uint8)
    dataset = PictureDataset(filepath=str(tmp_path / "sheet.png"))
    dataset.save(picture)
    assert np.array_equal(dataset.load(), picture)
    assert base64.b64decode(dataset.preview()) == (tmp_path / "sheet.png").read_bytes()


def test_a_killed_save_leaves_the_old_file_and_what_it_left_is_removed_by_the_next(tmp_path):
    """Of a real process that was killed; what a living one writes aside stays."""
    path = tmp_path / "page.html"
    text_file(filepath=str(path)).save("old")
    code = (
        "import os, signal, sys\n"
        "from robust_fairness.catalog.files import FileDataset\n"
        "class Killed(FileDataset):\n"
        "    def write(self, data, path):\n"
        "        super().write(data, path)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "Killed(filepath=sys.argv[1], dataset={'type': 'text.TextDataset'}).save('half')\n"
    )
    child = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert child.returncode == -signal.SIGKILL
    assert text_file(filepath=str(path)).load() == "old"
    assert len(list(tmp_path.glob(".page.html.*.part"))) == 1
    living = tmp_path / f".page.html.{HOST}.{os.getppid()}.part"
    living.touch()
    text_file(filepath=str(path)).save("whole")
    assert path.read_text() == "whole"
    assert list(tmp_path.glob(".*.part")) == [living]
