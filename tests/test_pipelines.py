"""The pipelines: what they are made of, and what their thin nodes decide."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import numpy as np
import pandas as pd
import pytest
from kedro.io import DataCatalog
from kedro.pipeline import Node, Pipeline
from kedro_viz.data_access.repositories.modular_pipelines import ModularPipelinesRepository
from pydantic import BaseModel

from robust_fairness.bench.datasets.fetch import dataset_files
from robust_fairness.bench.experiment.experiment import GeneratorConfig, TestSet
from robust_fairness.bench.experiment.plugins import Named
from robust_fairness.bench.generation import unet
from robust_fairness.bench.generation.generator import Generator, GeneratorSettings
from robust_fairness.catalog.arrays import SamplesDataset
from robust_fairness.core import tables
from robust_fairness.core.errors import Failure, InputError
from robust_fairness.core.registry import find
from robust_fairness.core.samples import Samples
from robust_fairness.pipeline_registry import register_pipelines
from robust_fairness.pipelines import (
    evaluation,
    generation,
    ingestion,
    reporting,
    shifts,
    training,
)
from robust_fairness.pipelines.builders import fan_in
from robust_fairness.pipelines.generation.nodes import fit as fit_generator
from robust_fairness.pipelines.generation.nodes import read as read_generator
from robust_fairness.pipelines.ingestion.pipeline import _nodes
from robust_fairness.pipelines.reporting.nodes import collect, join, report
from robust_fairness.pipelines.shifts.nodes import shift
from robust_fairness.report.results import TABLES
from robust_fairness.runs.configuration import ConfigLoader
from robust_fairness.runs.hooks import RunRecord
from robust_fairness.settings import CONFIG_LOADER_ARGS

CRIME = "communities_race_all_rows"  # of the default grid
ROOT = Path(__file__).parents[1]


def use(env: str, **grid: str) -> ConfigLoader:
    """Make the grid of an environment, narrowed, that of the next pipelines."""
    return ConfigLoader(
        str(ROOT / "conf"), env, runtime_params={"grid": grid}, **CONFIG_LOADER_ARGS
    )


def row(**fields: object) -> dict:
    """A row of the metrics table."""
    plain = {name: 0 if kind != "str" else "" for name, kind in tables.METRICS.items()}
    return {**plain, "metric": "accuracy", "shift": "none", **fields}


def test_the_end_to_end_pipeline_is_the_others_put_together():
    use("smoke")
    rooms = (generation, ingestion, shifts, training, evaluation, reporting)
    together = {node.name for room in rooms for node in room.create_pipeline().nodes}
    assert {node.name for node in register_pipelines()["robust_fairness"].nodes} == together


def test_synthesis_and_labelling_are_nodes_of_their_own(tmp_path):
    """From a saved file of what ingest reads, they make the samples that ``load`` returns."""
    loader = use("smoke")
    nodes = {node.name: node for node in ingestion.create_pipeline().nodes}
    assert nodes["biased_digits.ingest"].outputs == ["biased_digits.originals"]
    node = nodes["biased_digits.synthesise_images"]
    assert node.outputs == ["biased_digits.samples"]
    dataset = next(each for each in loader.validated_experiment.datasets
                   if each.name == "biased_digits")  # fmt: skip
    read, settings = nodes["biased_digits.ingest"].inputs[0], f"params:{dataset.name}.dataset"
    files = dataset_files(tmp_path)
    (originals,) = nodes["biased_digits.ingest"].run({read: files, settings: dataset}).values()
    stored = SamplesDataset(filepath=str(tmp_path / "originals.safetensors"))
    stored.save(originals)
    (made,) = node.run({node.inputs[0]: stored.load(), settings: dataset}).values()
    whole = find("dataset", "biased_mnist")(dataset.source.parameters).load(files, dataset.seeds)
    for name, samples in (("made", made), ("whole", whole)):
        SamplesDataset(filepath=str(tmp_path / name)).save(samples)
    assert (tmp_path / "made").read_bytes() == (tmp_path / "whole").read_bytes()
    names = {"ingest", "describe_splits", "draw_contact_sheet"}
    named = {"label_skin_tone": {"skin_tone": "aligned"}, "": {}}
    for name, options in named.items():
        source = Named(kind="dataset", name="celeba", options=options)
        made = _nodes(dataset.model_copy(update={"source": source}))
        assert {node.short_name for node in made} == names | {name} - {""}


class Counted(str):
    """A text that counts how often all such texts are hashed."""

    hashed = 0

    def __hash__(self) -> int:
        Counted.hashed += 1
        return super().__hash__()


def hashes(cells: int) -> int:
    """How often the inputs of a collecting node are hashed when its pipeline is made."""
    inputs = {f"c{number}": Counted(f"c{number}") for number in range(cells)}
    node = fan_in(lambda **parts: parts, inputs, "all", "collect", "d")
    before = Counted.hashed
    assert Pipeline([node]).inputs() == set(inputs)
    return Counted.hashed - before


def test_a_pipeline_hashes_the_inputs_of_a_collecting_node_in_linear_time():
    assert hashes(400) <= 2 * hashes(200)


def test_every_node_is_made_once(monkeypatch):
    monkeypatch.setattr("kedro.framework.project.PACKAGE_NAME", "robust_fairness")
    use("smoke")
    made, create = [], Node.__init__

    def counted(self: Node, *arguments: object, **options: object) -> None:
        create(self, *arguments, **options)
        made.append(self.name)

    monkeypatch.setattr(Node, "__init__", counted)
    registered = dict(register_pipelines())
    assert sorted(made) == sorted(node.name for node in registered["__default__"].nodes)


def test_every_node_carries_the_tags_of_its_place():
    use("base")
    for node in register_pipelines()["robust_fairness"].nodes:
        dataset, _, method = (node.namespace or "").partition(".")
        shift = node.name.partition("shift_")[2].rstrip("0123456789_")
        kind = "generator" if dataset == "digits_edm" else "dataset"
        expected = {f"{kind}.{dataset}"} if dataset != "reporting" else set()
        expected |= {f"method.{method}"} if method else set()
        expected |= {f"shift.{shift}"} if shift else set()
        joins = node.name.rpartition(".")[2].startswith(("collect", "diagnose", "join", "report"))
        expected |= {"fan_in"} if joins else set()
        expected |= {"train"} if node.name.endswith(".train") else set()
        trains = node.name.endswith((".train", ".fit", ".train_reference"))
        expected |= {"gpu"} if trains else set()
        assert node.tags == expected, node.name


def test_every_node_takes_one_parameter_of_its_own_namespace_that_is_typed():
    """Kedro checks what is annotated with a model before the first node; nothing else."""
    loader = use("smoke")
    parameters = loader["parameters"]
    for node in register_pipelines()["robust_fairness"].nodes:
        names = [name.removeprefix("params:") for name in node.inputs if "params:" in name]
        last = node.name.rpartition(".")[2]
        without = last.startswith(("collect", "join", "summarise", "draw_sample"))
        assert bool(names) != without, node.name
        models = [
            parameter.annotation
            for parameter in inspect.signature(node.func).parameters.values()
            if isinstance(parameter.annotation, type)
            and issubclass(parameter.annotation, BaseModel)
        ]
        for name, model in zip(names, models, strict=True):
            of_report = node.namespace == "reporting" and name == "experiment"
            assert of_report or name.startswith(f"{node.namespace}.")
            value = parameters
            for key in name.split("."):
                value = value[key]
            model.model_validate(value)


def test_a_narrower_grid_is_a_smaller_pipeline_that_still_ends_in_the_report():
    use("base", datasets=CRIME, methods="cuma", shifts="uniform_noise")
    small = register_pipelines()["robust_fairness"]
    names = {node.name for node in small.nodes}
    assert {node.namespace for node in small.nodes} == {"reporting", CRIME, f"{CRIME}.cuma"}
    assert {f"reporting.{name}" for name in ("join", "summarise", "report")} <= names
    assert not [name for name in names if "gaussian" in name]
    assert "report" in small.outputs()


def test_pipelines_follow_the_configuration_of_their_context(monkeypatch):
    """One after the other, and at once in threads, as requests to a server have them."""
    monkeypatch.setattr("kedro.framework.project.PACKAGE_NAME", "robust_fairness")
    registered = register_pipelines()
    barrier = Barrier(3)

    def trained(methods: str, wait: Callable[[], object]) -> set[str]:
        use("smoke", datasets="diabetes", methods=methods)
        wait()
        return {str(node.namespace) for node in registered["training"].nodes}

    grids = ("erm", "cuma", "erm,cuma")
    expected = [{f"diabetes.{method}" for method in methods.split(",")} for methods in grids]
    use("base")
    whole = len(registered["__default__"].nodes)
    here = copy_context()
    assert [here.run(trained, methods, int) for methods in grids] == expected
    with ThreadPoolExecutor(3) as threads:
        assert [*threads.map(trained, grids, [barrier.wait] * 3)] == expected
    assert len(registered["__default__"].nodes) == whole > 100


def test_lineage_opens_to_few_boxes_that_open_to_datasets_cells_and_nodes():
    """Kedro-Viz shows the children of a namespace, without parameters, and hides those below."""
    use("base")
    pipeline = register_pipelines()["robust_fairness"]
    assert all(node.namespace for node in pipeline.nodes)
    viz = ModularPipelinesRepository()
    viz.populate_tree(pipeline)
    tree = viz.as_dict()
    assert len(tree["__root__"].children) <= 40
    assert {CRIME, "reporting"} <= {box.id for box in tree["__root__"].children}
    cells = {box.id for box in tree[CRIME].children if box.type == "modularPipeline"}
    assert cells == {f"{CRIME}.{name}" for name in ["erm", "adv_debias", "laftr", "cuma"]}
    assert [box.type for box in tree[f"{CRIME}.erm"].children].count("task") == 4


def test_listing_the_pipelines_imports_nothing_heavy():
    code = (
        "import sys; from kedro.framework.startup import bootstrap_project;"
        f"bootstrap_project({str(ROOT)!r});"
        "from kedro.framework.project import pipelines; assert pipelines['__default__'].nodes;"
        "print([name for name in ('mlflow', 'pandas', 'plotly', 'sklearn', 'torch')"
        " if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def pictures_of_two_splits() -> Samples:
    """Twelve pictures, of which two splits test on rows 2, 5 and 11, and on row 7."""
    first, second = ["train"] * 12, ["val"] * 12
    first[2] = first[5] = first[11] = second[7] = "test"
    return Samples(
        x=np.random.default_rng(0).integers(0, 256, (12, 3, 5, 5)).astype(np.uint8),
        y=np.zeros(12, np.int64),
        attributes=pd.DataFrame({"sex": pd.Categorical(["f"] * 12)}),
        id=np.arange(12),
        splits=pd.DataFrame({"a": pd.Categorical(first), "b": pd.Categorical(second)}),
        classes=("only",),
    )


@pytest.mark.parametrize(
    ("name", "features"),
    [
        ("gaussian_noise", False),
        ("gaussian_noise", True),
        ("uniform_noise", False),
        ("uniform_noise", True),
        ("impulse_noise", False),
        ("contrast", False),
    ],
)
def test_shifted_rows_are_those_that_a_split_tests_on_with_the_noise_of_their_places(
    name, features
):
    samples = pictures_of_two_splits()
    if features:
        samples = replace(samples, x=samples.x[:, 0, 0].astype(np.float32))
    test_set = TestSet.model_validate({"shift": {"name": name}, "severity": 0.2})
    shifted = shift(samples, test_set)
    expected = find("shift", name)().apply(samples, 0.2).take(np.array([2, 5, 7, 11]))
    np.testing.assert_equal(shifted.id, [2, 5, 7, 11])
    np.testing.assert_equal(shifted.x, expected.x)
    np.testing.assert_equal(shifted.perturbation, expected.perturbation)
    assert shifted.rows("a", "test").tolist() == [0, 1, 3]


def save_generator(path: Path, classes: tuple[str, ...], shape: tuple[int, int, int]) -> Generator:
    """An untrained generator in a file."""
    network = unet.UNetParameters(channels=(8, 16), groups=4)
    settings = GeneratorSettings(classes=classes, shape=shape, network=network)
    made = Generator(settings, settings.build().unet.state_dict(), "cpu")
    made.save(path)
    return made


def test_a_generator_of_a_file_has_the_classes_and_the_size_of_the_real_images(tmp_path):
    """Else its pictures could not be judged; without real ones it may have any."""
    path, real = tmp_path / "g.safetensors", pictures_of_two_splits()
    settings = GeneratorConfig(name="g", file=path)
    other = save_generator(path, ("one", "two"), (3, 6, 6))
    assert read_generator(settings).fingerprint == other.fingerprint
    with pytest.raises(InputError, match=r"g.safetensors: 2 classes .*, allowed: 1 .only") as told:
        read_generator(settings, real)
    assert "\n" not in str(told.value)
    save_generator(path, ("only",), (3, 6, 6))
    message = r"g.safetensors: images of \(3, 6, 6\), allowed: \(3, 5, 5\)"
    with pytest.raises(InputError, match=message):
        read_generator(settings, real)
    larger = replace(real, x=real.x.repeat(2, axis=2).repeat(2, axis=3)[:, :, :6, :6])
    assert read_generator(settings, larger).classes == ("only",)


@pytest.mark.parametrize("change", [{"classes": ()}, {"x": np.zeros((12, 4), np.float32)}, "dict"])
def test_a_generator_learns_from_images_of_classes_only(change):
    """Tables, continuous outcomes and named sets of arrays are refused in one line."""
    real = pictures_of_two_splits()
    if change == "dict":
        change = {"x": {"ehr": np.zeros((12, 4), np.float32)}}
    if "classes" in change:
        change = {**change, "y": np.zeros(12, np.float32)}
    with pytest.raises(InputError, match="generator g: its source has no images of classes"):
        fit_generator(replace(real, **change), GeneratorConfig(name="g"))


@pytest.mark.parametrize(
    ("saved", "dropped"),
    [
        ("d.erm.models", "d.erm"),
        ("g_reference", "g.reference"),
        ("g_generator", "g_generator"),
        ("d.samples", "d.samples"),
        ("d.shifted.extend_15", "d.shifted.extend_15"),
        ("d_reference.erm.models", "d_reference.erm"),
        ("d_reference.samples", "d_reference.samples"),
        ("d.erm.metrics", None),
    ],
)
def test_what_is_kept_to_go_on_from_goes_with_what_was_made(saved, dropped, tmp_path, monkeypatch):
    """And nothing else does."""
    monkeypatch.setenv("ROBUST_FAIRNESS_CHECKPOINTS", str(tmp_path))
    names = {"d.erm", "g.reference", "g_generator", "d.samples", "d.shifted.extend_15"}
    names |= {"d_reference.erm", "d_reference.samples", "d.reference"}
    for name in names:
        (tmp_path / name).mkdir()
    record = RunRecord()
    record.before_node_run(Node(sorted, "rows", "made", name="make"), {}, DataCatalog(), "one")
    record.after_dataset_saved(saved)
    assert {path.name for path in tmp_path.iterdir()} == names - {dropped}


def scored(dataset: str, method: str) -> pd.DataFrame:
    return tables.METRICS.table([row(dataset=dataset, method=method)])


def test_tables_of_all_datasets_are_joined_without_what_failed():
    """A failed dataset, cell or drawing has no rows; a table without rows has its columns."""
    no = Failure("d.cuma.train", "no memory")
    of_d = collect(
        **{
            "d.erm.metrics": scored("d", "erm"),
            "d.cuma.metrics": no,
            "d.laftr.metrics": scored("d", "laftr"),
            "d.cuma.planes": no,
            "d.erm.history": tables.HISTORY.table([]),
            "d.splits": tables.SPLITS.table([]),
            "d.contact_sheet": Failure("d.draw_contact_sheet", "no"),
        }
    )
    of_e = collect(**{"e.erm.metrics": scored("e", "erm"), "e.contact_sheet": np.eye(3)})
    assert of_d.reasons == {"erm": None, "cuma": "d.cuma.train: no memory", "laftr": None}
    assert (of_d.contact_sheet, of_e.contact_sheet.shape) == (None, (3, 3))
    failed = Failure("f.collect", "disk full")
    joined = join("metrics", "planes", d_results=of_d, f_results=failed, e_results=of_e)
    assert joined["metrics"][["dataset", "method"]].to_numpy().tolist() == [
        ["d", "erm"], ["d", "laftr"], ["e", "erm"],
    ]  # fmt: skip
    assert joined["metrics"].dtypes.equals(scored("d", "erm").dtypes)
    assert joined["planes"].empty
    assert list(joined["planes"]) == list(tables.PLANES)


@pytest.mark.parametrize(
    ("of_dataset", "expected"),
    [
        (collect(**{"diabetes.erm.metrics": scored("diabetes", "erm")}), ("done", "not selected")),
        (collect(**{"diabetes.cuma.metrics": Failure("n", "no")}), ("not selected", "failed")),
        (Failure("diabetes.collect", "disk full"), ("failed", "failed")),
    ],
)
def test_the_page_gets_the_state_of_every_cell_and_the_tables_that_there_are(
    monkeypatch, of_dataset, expected
):
    given = {}

    def page(results, cells, manifest, sections, sheets) -> str:
        given["planes"] = results.planes
        given.update({(cell["dataset"], cell["method"]): cell["state"] for cell in cells})
        return ""

    monkeypatch.setattr("robust_fairness.report.report", page)
    experiment = use("smoke", datasets="diabetes", methods="erm").full_experiment
    planes = tables.PLANES.table([dict.fromkeys(tables.PLANES, "1")])
    parts = {"planes": planes, "splits": Failure("n", "no"), "diabetes_results": of_dataset}
    report(scored("diabetes", "erm"), {}, experiment, **parts)
    assert given.pop("planes")["x"].tolist() == [1.0]
    ours = (given.pop(("diabetes", "erm")), given.pop(("diabetes", "cuma")))
    assert ours == expected
    assert set(given.values()) == {"not selected"}
    assert len(given) == len(experiment.cells) - 2


def with_planes(**grid_of_run: str) -> ConfigLoader:
    """The smoke grid, of which two cells of diabetes are drawn in the plane, narrowed."""
    loader = use("smoke", **grid_of_run)
    for name in ("full_experiment", "selected_experiment"):
        made = getattr(loader, name)
        drawn = {"diabetes": ("cuma", "erm")}
        datasets = tuple(
            dataset.model_copy(update={"embedding_planes": drawn.get(dataset.name, ())})
            for dataset in made.datasets
        )
        loader.__dict__[name] = made.model_copy(update={"datasets": datasets})
    return loader


def test_embeddings_of_the_cells_that_are_named_are_drawn_and_reported():
    """A node a cell, from what training keeps; the report takes all of them."""
    loader = with_planes()
    pipeline = register_pipelines()["robust_fairness"]
    nodes = [node for node in pipeline.nodes if node.name.endswith("draw_planes")]
    assert {node.namespace for node in nodes} == {"diabetes.cuma", "diabetes.erm"}
    for node in nodes:
        cell = node.namespace
        assert set(node.inputs) == {
            "diabetes.samples", f"{cell}.validation", f"{cell}.selection", f"params:{cell}.cell",
        }  # fmt: skip
        assert node.outputs == [f"{cell}.planes"]
        assert node.tags == {"dataset.diabetes", f"method.{cell.partition('.')[2]}"}
    joining = next(node for node in pipeline.nodes if node.name == "diabetes.collect")
    made = [f"diabetes.{label}.planes" for label in ("erm", "cuma")]
    assert set(made) == {name for name in joining.inputs if name.endswith(".planes")}
    assert joining.tags == {"dataset.diabetes", "fan_in"}
    assert joining.outputs == ["diabetes_results"]
    assert not [name for name in joining.inputs if name.endswith("erm.choices")]  # of one trial
    asked = next(node for node in pipeline.nodes if node.name == "reporting.report")
    assert "planes" in asked.inputs
    catalog = DataCatalog.from_config(loader["catalog"])
    files = {str(catalog.get(name)._filepath) for name in (*made, "planes")}
    assert len(files) == 3


def test_a_narrower_grid_draws_only_its_own_cells():
    with_planes(datasets="diabetes", methods="erm")
    drawn = [name for name in (node.name for node in evaluation.create_pipeline().nodes)
             if name.endswith("draw_planes")]  # fmt: skip
    assert drawn == ["diabetes.erm.draw_planes"]


def test_the_report_reads_what_every_dataset_collected_and_the_tables_that_have_rows():
    """One input of a dataset, in memory; a table that no dataset of the run makes is not made."""
    loader = use("base")
    pipeline = reporting.create_pipeline()
    nodes = {node.name: node for node in pipeline.nodes if node.namespace == "reporting"}
    assert nodes.keys() == {
        f"reporting.{name}" for name in ("join", "describe_cells", "report", "summarise")
    }
    results = {f"{dataset.name}_results" for dataset in loader.selected_experiment.datasets}
    assert set(nodes["reporting.join"].inputs) == results
    made = set(nodes["reporting.join"].outputs)
    shown = {"manifest", "cells", "params:experiment", *made}
    assert set(nodes["reporting.report"].inputs) == shown | results
    catalog = DataCatalog.from_config(loader["catalog"])
    assert made <= {*TABLES} - {"cells"}
    assert [name for name in results if name in catalog] == []
    collected = {
        name.rpartition(".")[2]
        for node in pipeline.nodes
        if node.name.endswith(".collect")
        for name in node.inputs
    }
    assert collected == {*made, "contact_sheet", "history"}
    use("base", datasets=CRIME, methods="erm")
    nodes = {node.name: node for node in reporting.create_pipeline().nodes}
    assert set(nodes["reporting.join"].outputs) == {"counts", "metrics", "splits", "trials"}
