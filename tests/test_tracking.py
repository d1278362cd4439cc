"""What MLflow is told, on its own sqlite store."""

import logging
from functools import partialmethod
from types import SimpleNamespace

import mlflow
import pytest
from kedro.io import DataCatalog, MemoryDataset
from mlflow import MlflowClient

from robust_fairness import training
from robust_fairness.core import tables
from robust_fairness.core.errors import Failure
from robust_fairness.experiment.experiment import Cell
from robust_fairness.runs import provenance
from robust_fairness.runs.runners import RunFailed
from robust_fairness.runs.tracking import EXPERIMENT, SWITCH, MlflowTracking, key
from tests.training.conftest import make_cell, make_samples

PARAMS = {"run_id": "one"}
SETTINGS = make_cell(seeds=(0, 1)).model_copy(
    update={"facets": {"long": "x" * 7000}, "selections": ("every", "accuracy")}
)
PIPELINE = SimpleNamespace(all_outputs=lambda: {"report"})


HISTORY = tables.table(
    tables.HISTORY,
    [
        {"trial": "alpha=0.1", "seed": seed, "epoch": epoch, "quantity": "loss", "value": value}
        for seed, epoch, value in ((0, 0, 1.0), (1, 0, 3.0), (0, 1, 0.5), (1, 1, 0.7))
    ],
)


def scores(*rows: dict) -> object:
    """A metrics table."""
    plain = {name: 0 if kind != "str" else "" for name, kind in tables.METRICS.items()}
    common = {"metric": "accuracy", "shift": "none", "trial": "default", "selection": "accuracy"}
    common["network"] = "mlp"
    return tables.table(tables.METRICS, [{**plain, **common, **row} for row in rows])


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory) -> bytes:
    """A store with all its tables and no run: making one takes seconds."""
    path = tmp_path_factory.mktemp("store") / "mlflow.db"
    MlflowClient(f"sqlite:///{path}").get_experiment_by_name(EXPERIMENT)
    return path.read_bytes()


@pytest.fixture
def client(tmp_path, monkeypatch, empty_store) -> MlflowClient:
    """The store of a project that has one run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv(SWITCH, "on")
    (tmp_path / "mlflow.db").write_bytes(empty_store)
    git = {"commit": "abc", "dirty": False}
    provenance.write_manifest({"run_id": "one", "environment": "smoke", "git": git})
    return MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")


def runs(client: MlflowClient) -> dict:
    """All runs by name."""
    experiment = client.get_experiment_by_name(EXPERIMENT)
    found = [] if experiment is None else client.search_runs([experiment.experiment_id])
    return {run.info.run_name: run for run in found}


def settings_of(cell: str) -> Cell:
    """The settings of a cell of this name."""
    dataset, label = cell.split(".")
    return SETTINGS.model_copy(update={"dataset": dataset, "label": label})


def node(cell: str, step: str) -> SimpleNamespace:
    return SimpleNamespace(namespace=cell, short_name=step)


def train(hook: MlflowTracking, cell: str) -> None:
    """A training node has run."""
    given = {f"params:{cell}.cell": settings_of(cell)}
    hook.after_node_run(node(cell, "train"), given, {f"{cell}.history": HISTORY}, "one")


def evaluate(hook: MlflowTracking, cell: str, *rows: dict) -> None:
    """An evaluation node has run."""
    given = {f"params:{cell}.cell": settings_of(cell)}
    hook.after_node_run(node(cell, "evaluate"), given, {f"{cell}.metrics": scores(*rows)}, "one")


def catalog() -> DataCatalog:
    """The report is there."""
    return DataCatalog({"report": MemoryDataset("<h1>Report</h1>")})


def test_parent_and_children_hold_parameters_curves_and_scores(client):
    hook = MlflowTracking()
    hook.before_pipeline_run(PARAMS)
    assert runs(client)["one"].info.status == "RUNNING"
    train(hook, "adult.cuma")
    evaluate(
        hook,
        "adult.cuma",
        {"seed": 0, "value": 0.5},
        {"seed": 1, "value": 1.0},
        {"seed": 1, "value": 1.0, "selection": "every"},
        {"seed": 1, "value": 0.0, "selection": "every", "trial": "alpha=0.1"},
        {"metric": "delta_eo", "attribute": "sex", "value": 0.25},
        {"metric": "delta_er", "attribute": "sex", "value": float("nan")},
        {"metric": "accuracy_by_group", "attribute": "sex", "group": "f", "value": 0.125},
        {"shift": "gaussian_noise", "severity": 0.06, "value": 0.75},
    )
    hook.after_pipeline_run(PARAMS, PIPELINE, catalog())
    found = runs(client)
    assert found.keys() == {"one", "adult.cuma"}
    parent, child = found["one"], found["adult.cuma"]
    assert (parent.info.status, child.info.status) == ("FINISHED", "FINISHED")
    tags = {
        "kedro.run_id": "one",
        "kedro.env": "smoke",
        "mlflow.source.git.commit": "abc",
        "mlflow.parentRunId": parent.info.run_id,
        "cell": "adult.cuma",
        "dataset": "adult",
        "method": "cuma",
        "network": "mlp",
        "shifts": "none, gaussian_noise",
        "selection": "accuracy",
        "trial": "default",
    }
    assert tags.items() <= child.data.tags.items()
    told = {"protocol.epochs": "4", "network.name": "mlp", "method.name": "erm"}
    assert (told | {"facets.long": "x" * 6000}).items() <= child.data.params.items()
    assert child.data.metrics == pytest.approx(
        {
            "loss/alpha_0.1": 0.6,
            "accuracy/none_0/default": 0.75,  # a replica that is chosen twice counts once
            "delta_eo/sex/none_0/default": 0.25,
            "accuracy/gaussian_noise_0.06/default": 0.75,
            "accuracy/none_0/alpha_0.1": 0.0,
            # what one table compares over methods, whatever trial was chosen
            "chosen/accuracy/none_0": 0.75,
            "chosen/delta_eo/sex/none_0": 0.25,
            "chosen/accuracy/gaussian_noise_0.06": 0.75,
        }
    )
    curve = client.get_metric_history(child.info.run_id, "loss/alpha_0.1")
    assert {point.step: point.value for point in curve} == pytest.approx({0: 2.0, 1: 0.6})
    assert client.list_artifacts(parent.info.run_id) == []


def test_the_report_is_sent_to_other_stores_than_that_of_the_project(client, monkeypatch, tmp_path):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    client.create_experiment(EXPERIMENT, (tmp_path / "elsewhere").as_uri())
    hook = MlflowTracking()
    hook.before_pipeline_run(PARAMS)
    hook.after_pipeline_run(PARAMS, PIPELINE, catalog())
    (page,) = (tmp_path / "elsewhere").rglob("report.html")
    assert page.read_text() == "<h1>Report</h1>"


def test_a_copied_project_writes_nothing_into_the_original(client, tmp_path, caplog):
    client.create_experiment(EXPERIMENT, (tmp_path / "original" / "mlruns").as_uri())
    hook = MlflowTracking()
    hook.before_pipeline_run(PARAMS)
    train(hook, "adult.erm")
    hook.after_pipeline_run(PARAMS, PIPELINE, catalog())
    (warning,) = caplog.messages
    assert "as this project was moved or copied; move mlflow.db away, or set" in warning
    assert runs(client) == {} and not (tmp_path / "original").exists()


def predict(hook: MlflowTracking, cell: str) -> None:
    """A prediction node has run, after a real training."""
    samples = make_samples()
    settings = settings_of(cell).model_copy(update={"trials": ({"epochs": 1},)})
    models, validation, *_ = training.train(samples, settings)
    given = {
        f"params:{cell}.cell": settings,
        "adult.samples": samples,
        f"{cell}.models": models,
        f"{cell}.selection": training.select(samples, validation, settings),
    }
    hook.after_node_run(node(cell, "predict"), given, {}, "one")


def test_the_model_is_kept_once_a_cell_and_left_out_on_demand(client, monkeypatch, tmp_path):
    monkeypatch.setenv("ROBUST_FAIRNESS_CHECKPOINTS", str(tmp_path / "checkpoints"))
    hook = MlflowTracking()
    hook.before_pipeline_run(PARAMS)
    predict(hook, "adult.erm")
    run = runs(client)["adult.erm"].info.run_id
    assert [file.path for file in client.list_artifacts(run)] == ["model"]
    mlflow.set_tracking_uri(client.tracking_uri)
    model = mlflow.pyfunc.load_model(f"runs:/{run}/model")
    assert model.predict(model.input_example).shape == (1, 2, 2)  # two seeds, one of two trials
    version = mlflow.register_model(f"runs:/{run}/model", "adult")
    assert mlflow.pyfunc.load_model(f"models:/adult/{version.version}").metadata.signature

    monkeypatch.setenv(SWITCH, "no-models")
    train(hook, "adult.cuma")
    predict(hook, "adult.cuma")
    assert not client.list_artifacts(runs(client)["adult.cuma"].info.run_id)


def test_failed_cells_are_closed_with_their_reason_and_finished_when_completed(client):
    hook = MlflowTracking()
    hook.before_pipeline_run(PARAMS)
    for cell in ("adult.erm", "adult.cuma"):
        train(hook, cell)
    evaluate(hook, "adult.erm", {"value": 1})
    cells = {cell: settings_of(cell) for cell in ("adult.cuma", "german.erm")}
    failures = [
        Failure("adult.cuma.select", "no score", "adult.cuma"),
        Failure("german.erm.train", "no rows", "german.erm"),
        Failure("german.ingest", "no file", "german"),
    ]
    parameters = {f"params:{cell}.cell": MemoryDataset(one) for cell, one in cells.items()}
    hook.on_pipeline_error(RunFailed(failures, "one"), PARAMS, PIPELINE, DataCatalog(parameters))
    found = runs(client)
    states = {name: run.info.status for name, run in found.items()}
    failed = dict.fromkeys(("one", "adult.cuma", "german.erm"), "FAILED")
    assert states == {"adult.erm": "FINISHED", **failed}
    assert found["german.erm"].data.tags["mlflow.note.content"] == "german.erm.train: no rows"

    again = MlflowTracking()
    again.before_pipeline_run({**PARAMS})
    assert runs(client)["one"].info.status == "RUNNING"
    train(again, "german.erm")
    for cell in ("adult.cuma", "german.erm"):
        evaluate(again, cell, {"value": 1})
    again.after_pipeline_run(PARAMS, PIPELINE, catalog())
    done = runs(client)
    assert {name: run.info.run_id for name, run in done.items()} == {
        name: run.info.run_id for name, run in found.items()
    }
    assert {run.info.status for run in done.values()} == {"FINISHED"}
    assert not any(run.data.tags["mlflow.note.content"] for run in done.values())


def test_a_run_that_breaks_off_leaves_nothing_open(client):
    hook = MlflowTracking()
    hook.before_pipeline_run(PARAMS)
    train(hook, "adult.erm")
    hook.on_pipeline_error(MemoryError("all gone"), PARAMS, PIPELINE, DataCatalog())
    found = runs(client)
    assert {run.info.status for run in found.values()} == {"FAILED"}
    assert found["one"].data.tags["mlflow.note.content"] == ": all gone"


def test_runs_on_further_pages_are_closed_as_well(client, monkeypatch):
    """A server gives 1,000 runs at once; here it gives one."""
    search = MlflowClient.search_runs
    hook = MlflowTracking()
    hook.before_pipeline_run(PARAMS)
    for number in range(3):
        train(hook, f"adult.m{number}")
    one = partialmethod(search, max_results=1)
    with monkeypatch.context() as paged:
        paged.setattr(MlflowClient, "search_runs", one)
        hook.after_pipeline_run(PARAMS, PIPELINE, DataCatalog())
    assert [run.info.status for run in runs(client).values()] == ["FINISHED"] * 4


def test_a_run_that_only_trains_finishes_its_cells(client):
    """No evaluation ends them, so the end of the run does."""
    hook = MlflowTracking()
    hook.before_pipeline_run(PARAMS)
    train(hook, "adult.erm")
    assert runs(client)["adult.erm"].info.status == "RUNNING"
    hook.after_pipeline_run(PARAMS, SimpleNamespace(all_outputs=set), DataCatalog())
    assert {name: run.info.status for name, run in runs(client).items()} == {
        "one": "FINISHED",
        "adult.erm": "FINISHED",
    }


def test_a_node_may_have_run_in_another_process(client):
    """A hook that has never heard of the run finds its parent."""
    MlflowTracking().before_pipeline_run(PARAMS)
    train(MlflowTracking(), "adult.erm")
    evaluate(MlflowTracking(), "adult.erm", {"value": 1})
    MlflowTracking().after_pipeline_run(PARAMS, PIPELINE, DataCatalog())
    found = runs(client)
    assert found.keys() == {"one", "adult.erm"}
    assert {run.info.status for run in found.values()} == {"FINISHED"}


def test_more_points_than_a_server_takes_at_once_arrive_all(client):
    hook = MlflowTracking()
    rows = ({"trial": f"t{k}", "value": k, "selection": "every"} for k in range(1001))
    evaluate(hook, "adult.erm", *rows)
    child = runs(client)["adult.erm"]
    assert child.data.metrics == {f"accuracy/none_0/t{k}": k for k in range(1001)}


def test_a_dead_server_costs_one_warning(client, monkeypatch, caplog):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:hunter2@127.0.0.1:9")
    logging.getLogger("urllib3.connectionpool").setLevel(logging.WARNING)  # as a process begins
    hook = MlflowTracking()
    with caplog.at_level(logging.WARNING, "robust_fairness"):
        hook.before_pipeline_run(PARAMS)
        train(hook, "adult.erm")
        evaluate(hook, "adult.erm", {"value": 1})
        hook.after_pipeline_run(PARAMS, PIPELINE, catalog())
    (said,) = caplog.records  # of any library, its client's retries included
    assert said.getMessage().startswith("MLflow is not available, the run continues without it")
    assert "hunter2" not in caplog.text
    assert not runs(client)


def test_a_server_that_dies_costs_one_warning(client, monkeypatch, caplog):
    hook = MlflowTracking()
    hook.before_pipeline_run(PARAMS)

    def gone(*arguments, **options):
        raise ConnectionError("gone\nfor good")

    monkeypatch.setattr(MlflowClient, "log_batch", gone)
    with caplog.at_level(logging.WARNING, "robust_fairness"):
        train(hook, "adult.erm")
        evaluate(hook, "adult.erm", {"value": 1})
        hook.after_pipeline_run(PARAMS, PIPELINE, catalog())
    said = [record.getMessage() for record in caplog.records]
    assert said == ["MLflow is not available, the run continues without it: gone"]


def test_it_can_be_switched_off(client, monkeypatch):
    monkeypatch.setenv(SWITCH, "off")
    hook = MlflowTracking()
    hook.before_pipeline_run(PARAMS)
    train(hook, "adult.erm")
    hook.after_pipeline_run(PARAMS, PIPELINE, catalog())
    assert not runs(client)


def test_names_of_metrics_are_those_that_mlflow_takes():
    assert key("loss", "", "alpha=0.1,h=é") == "loss/alpha_0.1_h_é"
