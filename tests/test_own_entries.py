"""Entries of a user's own of the types of kedro-datasets, with and without our wrapper."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from openpyxl import load_workbook
from PIL import Image

from robust_fairness.core.files import sha256_of
from tests.project import Project

RUNNERS = {
    "sequential": "",
    "parallel": "--runner=ParallelRunner",
    "dask": "--runner=robust_fairness.runs.runners.DaskRunner --runner-params=workers=1",
}
OURS = {"type": "robust_fairness.catalog.files.FileDataset", "versioned": True}
UTF_8 = {"open_args_load": {"encoding": "utf-8"}, "open_args_save": {"encoding": "utf-8"}}
NO_INDEX = {"save_args": {"index": False}}
TEXT = {"type": "text.TextDataset", "fs_args": UTF_8}


def facts_of(path: Path) -> tuple[str | None, tuple[int, int]]:
    """Format and size of an image."""
    with Image.open(path) as image:
        return image.format, image.size


# By the end of the file's name: where it is configured, the entry, and an independent reader.
ENTRIES: dict[str, tuple[str, dict[str, Any], Callable[[Path], Any]]] = {
    "frame.csv": ("base", {"type": "pandas.CSVDataset", **NO_INDEX}, pd.read_csv),
    "frame_versions.csv": (
        "base",
        {"type": "pandas.CSVDataset", "versioned": True, **NO_INDEX},
        pd.read_csv,
    ),
    "frame_ours.csv": (
        "smoke",
        OURS | {"dataset": {"type": "pandas.CSVDataset", **NO_INDEX}},
        pd.read_csv,
    ),
    "frame.parquet": ("base", {"type": "pandas.ParquetDataset"}, pd.read_parquet),
    "frame.xlsx": (
        "smoke",
        {"type": "pandas.ExcelDataset"},
        lambda path: [*load_workbook(path).active.values],
    ),
    "frame_records.json": ("base", {"type": "pandas.JSONDataset"}, pd.read_json),
    "numbers.json": (
        "base",
        {"type": "json.JSONDataset", "versioned": True},
        lambda path: json.loads(path.read_text()),
    ),
    "numbers_ours.json": (
        "base",
        OURS | {"dataset": {"type": "json.JSONDataset"}},
        lambda path: json.loads(path.read_text()),
    ),
    "numbers.yml": (
        "base",
        {"type": "yaml.YAMLDataset"},
        lambda path: yaml.safe_load(path.read_text()),
    ),
    "text.txt": ("smoke", TEXT, lambda path: path.read_text("utf-8")),
    "text_ours.txt": ("base", OURS | {"dataset": TEXT}, lambda path: path.read_text("utf-8")),
    "figure.json": (
        "base",
        {"type": "plotly.JSONDataset", "versioned": True},
        lambda path: json.loads(path.read_text())["data"][0]["y"],
    ),
    "plot.png": (
        "base",
        {"type": "matplotlib.MatplotlibDataset"},
        lambda path: facts_of(path)[0],
    ),
    "image.png": ("base", {"type": "pillow.ImageDataset"}, lambda path: facts_of(path)[1]),
    "parts": (
        "base",
        {"type": "partitions.PartitionedDataset", "dataset": {"type": "json.JSONDataset"}},
        lambda path: sorted(part.read_text() for part in path.iterdir()),
    ),
}
FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", "ü"]})
EXPECTED = {
    "frame": FRAME,
    "frame.xlsx": [("a", "b"), (1, "x"), (2, "ü")],
    "numbers": {"a": [1, 2.5], "b": "ü"},
    "text": "größer\n",
    "figure": [1, 2],
    "plot": "PNG",
    "image": (3, 2),
    "parts": ["1", "2"],
}
# Types that nodes get.
LOADED = {
    "frame": "DataFrame",
    "numbers": "dict",
    "text": "str",
    "figure": "Figure",
    "image": "Image",
    "parts": "dict",
}
NODES = """
from kedro.pipeline import Node, Pipeline

def frame():
    import pandas as pd
    return pd.DataFrame({"a": [1, 2], "b": ["x", "ü"]})

def numbers():
    return {"a": [1, 2.5], "b": "ü"}

def text():
    return "größer\\n"

def figure():
    from plotly import graph_objects
    return graph_objects.Figure(graph_objects.Scatter(y=[1, 2]))

def plot():
    from matplotlib.figure import Figure
    return Figure()

def image():
    from PIL import Image
    return Image.new("RGB", (3, 2))

def parts():
    return {"one": 1, "two": 2}

def count(made):
    return {"type": type(made).__name__}

MAKERS = {maker.__name__: maker for maker in (frame, numbers, text, figure, plot, image, parts)}

def create_pipeline(**options):
    names = NAMES
    nodes = [Node(MAKERS[name.split("_")[1]], None, name, name=f"make_{name}") for name in names]
    loaded = [name for name in names if "plot" not in name]
    nodes += [Node(count, name, f"{name}_read", name=f"read_{name}") for name in loaded]
    return Pipeline(nodes)
"""


def name_of(file: str) -> str:
    """The entry of a file."""
    return "own_" + file.replace(".", "_")


def place_of(file: str) -> str:
    return f"data/own/{file}"


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    """A pipeline of a node that saves and one that reads each entry, run by every runner."""
    project = Project.copied_to(tmp_path_factory.mktemp("project"))
    folder = project.root / "src/robust_fairness/pipelines/own"
    folder.mkdir()
    (folder / "__init__.py").write_text("from .pipeline import create_pipeline\n")
    names = [name_of(file) for file in ENTRIES]
    (folder / "pipeline.py").write_text(NODES.replace("NAMES", repr(names)))
    read = {"type": "json.JSONDataset", "filepath": "data/own/{name}_read.json"}
    project.configure("base/catalog_own.yml", {"{name}_read": read})
    for file, (environment, entry, _) in ENTRIES.items():
        where = "path" if file == "parts" else "filepath"
        change = {name_of(file): {where: place_of(file), **entry}}
        project.configure(f"{environment}/catalog_own.yml", change)
    words = "run --env=smoke --pipelines=own"
    commands = {
        name: f"{words} --run-id={name} {options}".strip() for name, options in RUNNERS.items()
    }
    # processes of ParallelRunner are forks of one that nothing else has run in
    project.kedro(*commands.pop("parallel").split(), OMP_NUM_THREADS="2")
    project.commands(*commands.values())
    return project


def manifest_of(project: Project, run: str) -> dict[str, Any]:
    text = (project.root / f"data/08_reporting/manifests/{run}.json").read_text()
    manifest: dict[str, Any] = json.loads(text)
    return manifest


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("file", ENTRIES)
def test_an_entry_holds_what_the_node_returned_and_the_manifest_says_if_it_is_checked(
    project, file, runner
):
    _, entry, read = ENTRIES[file]
    manifest, name = manifest_of(project, runner), name_of(file)
    assert manifest["state"] == "finished"
    path = project.root / place_of(file)
    if entry.get("versioned"):
        path = path / runner / file
        assert manifest["outputs"][name]["sha256"] == sha256_of(path)
    assert (name in manifest["unchecked"]) is not entry.get("versioned", False)
    kind = name.split("_")[1]
    expected = EXPECTED.get(file, EXPECTED.get(kind))
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(read(path), expected, check_dtype=False)
    else:
        assert read(path) == expected
    if file != "plot.png":  # which Kedro does not load
        told = json.loads((project.root / f"data/own/{name}_read.json").read_text())
        assert told["type"] == LOADED[kind]


def test_runs_of_own_entries_are_completed_and_repeated(project):
    (project.root / place_of("numbers.json") / "sequential" / "numbers.json").unlink()
    options = ["--env=smoke", "--pipelines=own", "--run-id=sequential", "--only-missing-outputs"]
    project.kedro("run", *options)
    manifest = manifest_of(project, "sequential")
    assert manifest["state"] == "finished" and name_of("numbers.json") in manifest["outputs"]
    said = project.kedro("rerun", "sequential")
    checked = [file for file, (_, entry, _) in ENTRIES.items() if entry.get("versioned")]
    assert f"{len(checked)} outputs, same bits" in said
    assert name_of("frame.csv") in said


PREVIEWS = """
import inspect, json, sys
from pathlib import Path
from kedro.framework.startup import bootstrap_project
bootstrap_project(Path.cwd())
from kedro_viz.data_access.managers import DataAccessManager
from kedro_viz.server import populate_data
from kedro_viz.integrations.kedro import data_loader
from kedro_viz.models.flowchart.node_metadata import DataNodeMetadata
catalog, pipelines, *rest = data_loader.load_data(Path.cwd(), env="smoke", include_hooks=False)
kinds = {}
manager = DataAccessManager()
populate_data(manager, catalog, {"own": pipelines["own"]}, *rest)
for node in manager.nodes.as_list():
    if node.name.startswith("own_") and not node.name.endswith("_read"):
        shown = DataNodeMetadata(data_node=node)
        kinds[node.name] = [shown.preview_type, shown.preview is not None]
print(json.dumps(kinds))
"""


def test_kedro_viz_previews_own_entries(project):
    shown = json.loads(project.python("-c", PREVIEWS).splitlines()[-1])
    kinds = {
        "frame.csv": "TablePreview",
        "frame_ours.csv": "TablePreview",
        "numbers.json": "JSONPreview",
        "numbers_ours.json": "JSONPreview",
        "text_ours.txt": "HTMLPreview",
        "figure.json": "PlotlyPreview",
    }
    for file, kind in kinds.items():
        assert shown[name_of(file)] == [kind, True], file
