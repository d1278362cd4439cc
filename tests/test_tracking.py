"""What MLflow is told, on its own sqlite store."""

import json
import logging
import os
import time
from functools import partialmethod
from types import SimpleNamespace

import mlflow
import pytest
from kedro.io import DataCatalog, MemoryDataset
from mlflow import MlflowClient

from robust_fairness.bench import training
from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.core import tables
from robust_fairness.core.errors import Failure, InputError
from robust_fairness.runs import provenance
from robust_fairness.runs.runners import RunFailed
from robust_fairness.runs.tracked_values import digest_of, headlines, key
from robust_fairness.runs.tracking import SWITCH, MlflowTracking
from robust_fairness.runs.tracking_record import EXPERIMENT, EXPERIMENT_NAME
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


SAMPLES = make_samples()


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


@pytest.fixture
def hook(client) -> MlflowTracking:
    """The hook in its run."""
    hook = MlflowTracking()
    hook.before_pipeline_run(PARAMS)
    return hook


PATTERNS = {"mlflow": ["mlflow*"]}


def runs(client: MlflowClient) -> dict:
    """All runs by name."""
    experiment = client.get_experiment_by_name(EXPERIMENT)
    logged = [] if experiment is None else client.search_runs([experiment.experiment_id])
    return {run.info.run_name: run for run in logged}


def settings_of(cell: str) -> Cell:
    """The settings of a cell of this name."""
    dataset, label = cell.split(".")
    return SETTINGS.model_copy(update={"dataset": dataset, "label": label})


def node(cell: str, step: str) -> SimpleNamespace:
    return SimpleNamespace(namespace=cell, short_name=step)


def train(hook: MlflowTracking, cell: str) -> None:
    """A training node has run."""
    given = {f"params:{cell}.cell": settings_of(cell), f"{cell.partition('.')[0]}.samples": SAMPLES}
    made = {f"{cell}.history": HISTORY}
    hook.after_node_run(node(cell, "train"), with_trials(cell), given, made, "one")


def evaluate(hook: MlflowTracking, cell: str, *rows: dict) -> None:
    """An evaluation node has run."""
    given = {f"params:{cell}.cell": settings_of(cell), f"{cell.partition('.')[0]}.samples": SAMPLES}
    made = {f"{cell}.metrics": scores(*rows)}
    hook.after_node_run(node(cell, "evaluate"), with_trials(cell), given, made, "one")


def with_trials(cell: str, *trials: dict) -> DataCatalog:
    """The trials of a cell, by default one."""
    plain = {name: 0 if kind != "str" else "" for name, kind in tables.TRIALS.items()}
    usual = plain | {"trial": "default", "score": float("nan")}
    settings = [trial.pop("hparams", {}) for trial in trials] or [{}]
    rows = [usual | trial for trial in trials] or [usual]
    return DataCatalog({f"{cell}.trials": MemoryDataset(tables.TRIALS.table(rows, settings))})


def catalog() -> DataCatalog:
    """The report is there."""
    return DataCatalog({"report": MemoryDataset("<h1>Report</h1>")})


def test_parent_and_children_hold_parameters_curves_and_scores(client, hook):
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
    logged = runs(client)
    seeds = {f"adult.cuma, seed {seed}": seed for seed in (0, 1)}
    assert logged.keys() == {"one", "adult.cuma", *seeds}
    parent, child = logged["one"], logged["adult.cuma"]
    for name, seed in seeds.items():
        assert logged[name].data.tags["mlflow.parentRunId"] == child.info.run_id
        assert logged[name].data.params == {"seed": str(seed), "trial": "default"}
        assert logged[name].data.metrics["home/accuracy"] == (0.5, 1.0)[seed]
    (used,) = child.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest) == ("adult", digest_of(SAMPLES))
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
            "training/loss alpha_0.1": 0.6,
            "home/accuracy": 0.75,  # of the selected trial
            "home/delta_eo sex": 0.25,
            "shift/gaussian_noise_0.06 accuracy": 0.75,  # MLflow's section is before the last "/"
        }
    )
    curve = client.get_metric_history(child.info.run_id, "training/loss alpha_0.1")
    assert {point.step: point.value for point in curve} == pytest.approx({0: 2.0, 1: 0.6})
    artifacts = {file.path for file in client.list_artifacts(parent.info.run_id)}
    assert artifacts == {"manifest.json", "report.html"}
    assert parent.data.params["environment"] == "smoke"


CHANGED = {"alpha": 0.1, "learning_rate": 0.5}


def test_a_search_is_compared_by_its_trials(client, hook):
    """Hyperparameters as parameters, the validation score and the scores as metrics.

    The default trial has the values of the cell: parallel coordinates leave out runs without.
    """
    cell = "adult.cuma"
    rows = [
        {"trial": "default", "criterion": "accuracy", "score": 0.7},
        {"trial": "alpha=0.1", "criterion": "accuracy", "score": 0.8, "hparams": CHANGED},
    ]
    made = {f"{cell}.metrics": scores({"trial": "alpha=0.1", "value": 0.75})}
    given = {f"params:{cell}.cell": settings_of(cell), "adult.samples": SAMPLES}
    hook.after_node_run(node(cell, "evaluate"), with_trials(cell, *rows), given, made, "one")
    again = MlflowTracking()
    again.after_node_run(node(cell, "evaluate"), with_trials(cell, *rows), given, made, "one")
    logged = runs(client)
    assert logged.keys() == {"one", cell, f"{cell}, default", f"{cell}, alpha=0.1"}
    best = logged[f"{cell}, alpha=0.1"].data
    assert best.params == {"trial": "alpha=0.1", "alpha": "0.1", "learning_rate": "0.5"}
    usual = {"trial": "default", "learning_rate": str(SETTINGS.protocol.learning_rate)}
    assert logged[f"{cell}, default"].data.params == usual
    assert best.metrics == {"validation/accuracy": 0.8, "home/accuracy": 0.75}
    assert logged[f"{cell}, default"].data.metrics == {"validation/accuracy": 0.7}


def test_headlines_are_accuracy_and_the_worst_gap_of_every_dataset_and_attribute():
    gap = {"metric": "equalized_odds_difference", "attribute": "sex"}
    rows = scores(
        {"value": 0.5, "seed": 0},
        {"value": 0.7, "seed": 1},
        {"value": 0.4, "shift": "domain", "domain": "NE"},
        {**gap, "value": 0.1, "seed": 0},
        {**gap, "value": 0.3, "seed": 1},
        {**gap, "value": 0.1, "method": "cuma"},
        {**gap, "value": 0.4, "shift": "domain", "domain": "NE"},
        {**gap, "value": 0.6, "shift": "domain", "domain": "RI"},
        {**gap, "value": 0.9, "attribute": "race"},
        {"value": 0.9, "dataset": "digits"},
    )
    assert headlines(rows) == pytest.approx(
        {
            "home/accuracy": 0.6,
            "home/accuracy digits": 0.9,
            "home/worst_gap sex": 0.2,
            "home/worst_gap race": 0.9,
            "away/accuracy": 0.4,
            "away/worst_gap sex": 0.6,
        }
    )


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        (None, "tracking: {experiment: {name: mine}}", "mine"),
        ("theirs", "tracking: {experiment: {name: mine}}", "theirs"),
        (None, None, EXPERIMENT),
        (None, "tracking: {experimnt: {name: mine}}", EXPERIMENT),
        (None, "tracking: {experiment: {name: mine, restore_if_deleted: true}}", "mine"),
        (None, "server: {request_header_provider: {type: null}}\nui: {port: 5000}", EXPERIMENT),
        (None, "server: {mlflow_tracking_uri: 3}", "mlflow.yml: server.mlflow_tracking_uri"),
    ],
)
def test_mlflow_yml_and_the_environment_name_the_experiment(
    client, monkeypatch, tmp_path, caplog, variable, text, expected
):
    from kedro.config import OmegaConfigLoader

    monkeypatch.setenv(EXPERIMENT_NAME, variable or "")
    if not variable:
        monkeypatch.delenv(EXPERIMENT_NAME)
    (tmp_path / "conf" / "base").mkdir(parents=True)
    if text:
        (tmp_path / "conf" / "base" / "mlflow.yml").write_text(text)
    loader = OmegaConfigLoader(
        str(tmp_path / "conf"), base_env="base", default_run_env="base", config_patterns=PATTERNS
    )
    hook = MlflowTracking()
    if "mlflow.yml" in expected:
        with pytest.raises(InputError, match=expected):
            hook.after_context_created(SimpleNamespace(config_loader=loader))
        return
    hook.after_context_created(SimpleNamespace(config_loader=loader))
    hook.before_pipeline_run(PARAMS)
    assert client.get_experiment_by_name(expected) is not None
    ignored = [name for name in ("experimnt", "restore", "request_header") if name in (text or "")]
    assert [name for name in ignored if name not in caplog.text] == []
    assert len(caplog.messages) == bool(ignored)


def test_the_next_run_of_a_process_has_its_own_mlflow_yml(monkeypatch, tmp_path):
    """And what the user has set in the environment stays."""
    from kedro.config import OmegaConfigLoader

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///mine.db")
    monkeypatch.delenv(EXPERIMENT_NAME, raising=False)
    hook, named = MlflowTracking(), []
    for name in ("first", "second", ""):
        folder = tmp_path / f"conf{name}" / "base"
        folder.mkdir(parents=True)
        server = {"mlflow_tracking_uri": "sqlite:///other.db"}
        experiment = {"experiment": {"name": name}} if name else {}
        text = json.dumps({"server": server, "tracking": experiment})
        (folder / "mlflow.yml").write_text(text)
        loader = OmegaConfigLoader(
            str(folder.parent), base_env="base", default_run_env="base", config_patterns=PATTERNS
        )
        hook.after_context_created(SimpleNamespace(config_loader=loader))
        named.append((os.environ[EXPERIMENT_NAME], os.environ["MLFLOW_TRACKING_URI"]))
    assert named == [(name, "sqlite:///mine.db") for name in ("first", "second", EXPERIMENT)]
    monkeypatch.delenv(EXPERIMENT_NAME)


def test_system_metrics_are_logged_where_mlflow_is_told_to(client, monkeypatch):
    monkeypatch.setenv("MLFLOW_ENABLE_SYSTEM_METRICS_LOGGING", "true")
    monkeypatch.setenv("MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL", "0.1")
    hook = MlflowTracking()
    hook.before_pipeline_run(PARAMS)
    for _ in range(100):
        if any(name.startswith("system/") for name in runs(client)["one"].data.metrics):
            break
        time.sleep(0.2)
    hook.after_pipeline_run(PARAMS, SimpleNamespace(all_outputs=set), DataCatalog())
    assert any(name.startswith("system/") for name in runs(client)["one"].data.metrics)


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
    hook.after_node_run(node(cell, "predict"), with_trials(cell), given, {}, "one")


def test_the_model_is_kept_once_a_cell_and_left_out_on_demand(client, monkeypatch, tmp_path):
    monkeypatch.setenv("ROBUST_FAIRNESS_CHECKPOINTS", str(tmp_path / "checkpoints"))
    hook = MlflowTracking()
    hook.before_pipeline_run(PARAMS)
    predict(hook, "adult.erm")
    run = runs(client)["adult.erm"]
    experiment = client.get_experiment_by_name(EXPERIMENT).experiment_id
    (logged,) = client.search_logged_models([experiment])
    assert (logged.name, logged.source_run_id) == ("adult_erm-one", run.info.run_id)
    assert [output.model_id for output in run.outputs.model_outputs] == [logged.model_id]
    evaluate(hook, "adult.erm", {"value": 0.75})
    assert [metric.value for metric in client.get_logged_model(logged.model_id).metrics] == [0.75]
    mlflow.set_tracking_uri(client.tracking_uri)
    model = mlflow.pyfunc.load_model(logged.model_uri)
    assert model.predict(model.input_example).shape == (1,)
    version = mlflow.register_model(logged.model_uri, "adult")
    assert mlflow.pyfunc.load_model(f"models:/adult/{version.version}").metadata.signature

    monkeypatch.setenv(SWITCH, "no-models")
    train(hook, "adult.cuma")
    predict(hook, "adult.cuma")
    assert not runs(client)["adult.cuma"].outputs.model_outputs


def test_failed_cells_are_closed_with_their_reason_and_finished_when_completed(client, hook):
    for cell in ("adult.erm", "adult.cuma"):
        train(hook, cell)
    evaluate(hook, "adult.erm", {"value": 1})
    cells = {cell: settings_of(cell) for cell in ("adult.cuma", "german.erm")}
    failures = [
        Failure("adult.cuma.select", "no score", "adult.cuma"),
        Failure("german.erm.train", "no rows", "german.erm"),
        Failure("german.ingest", "no file", "german"),
    ]
    parameters = {
        f"params:{cell}.cell": MemoryDataset(settings) for cell, settings in cells.items()
    }
    hook.on_pipeline_error(RunFailed(failures, "one"), PARAMS, PIPELINE, DataCatalog(parameters))
    logged = runs(client)
    states = {name: run.info.status for name, run in logged.items()}
    failed = dict.fromkeys(("one", "adult.cuma", "german.erm"), "FAILED")
    assert states == {"adult.erm": "FINISHED", **failed}
    assert logged["german.erm"].data.tags["mlflow.note.content"] == "german.erm.train: no rows"

    again = MlflowTracking()
    again.before_pipeline_run({**PARAMS})
    assert runs(client)["one"].info.status == "RUNNING"
    train(again, "german.erm")
    for cell in ("adult.cuma", "german.erm"):
        evaluate(again, cell, {"value": 1})
    again.after_pipeline_run(PARAMS, PIPELINE, catalog())
    done = runs(client)
    assert {name: run.info.run_id for name, run in done.items()} == {
        name: run.info.run_id for name, run in logged.items()
    }
    assert {run.info.status for run in done.values()} == {"FINISHED"}
    assert not any(run.data.tags["mlflow.note.content"] for run in done.values())


def test_an_interrupted_run_is_killed_and_continued_without_a_value_twice(client, hook):
    """As where a process was killed after it logged, and before it saved its output."""
    rows = [{"seed": seed, "value": 0.5} for seed in (0, 1)]
    train(hook, "adult.erm")
    evaluate(hook, "adult.erm", *rows)
    train(hook, "adult.cuma")
    hook.interrupted("one", "Continue with: kedro run")
    states = {name: run.info.status for name, run in runs(client).items()}
    assert (states["one"], states["adult.cuma"]) == ("KILLED", "KILLED")
    assert runs(client)["one"].data.tags["mlflow.note.content"] == "Continue with: kedro run"
    again = MlflowTracking()
    again.before_pipeline_run(PARAMS)
    for cell in ("adult.erm", "adult.cuma"):
        train(again, cell)
        evaluate(again, cell, *rows)
    again.after_pipeline_run(PARAMS, PIPELINE, catalog())
    logged = runs(client)
    assert {run.info.status for run in logged.values()} == {"FINISHED"}
    for run in logged.values():
        for name in run.data.metrics:
            steps = [point.step for point in client.get_metric_history(run.info.run_id, name)]
            assert len(steps) == len(set(steps)), (run.info.run_name, name)


def test_data_that_another_process_logs_meanwhile_cost_no_run(client, monkeypatch, hook):
    """A server of a database refuses the later of two that add the same data at once."""
    log, calls = MlflowClient.log_inputs, []

    def refused_once(self: MlflowClient, run_id: str, datasets: list) -> None:
        calls.append(run_id)
        if len(calls) == 1:
            raise mlflow.MlflowException("UNIQUE constraint failed: datasets.experiment_id")
        log(self, run_id, datasets)

    with monkeypatch.context() as busy:
        busy.setattr(MlflowClient, "log_inputs", refused_once)
        train(hook, "adult.m")
    assert len(calls) == 3
    assert len(runs(client)["adult.m"].inputs.dataset_inputs) == 1


def test_runs_on_further_pages_are_closed_as_well(client, monkeypatch, hook):
    """A server gives 1,000 runs at once; here it gives one."""
    search = MlflowClient.search_runs
    for number in range(3):
        train(hook, f"adult.m{number}")
    single = partialmethod(search, max_results=1)
    with monkeypatch.context() as paged:
        paged.setattr(MlflowClient, "search_runs", single)
        hook.after_pipeline_run(PARAMS, PIPELINE, DataCatalog())
    assert [run.info.status for run in runs(client).values()] == ["FINISHED"] * 4


def of_another_process(hook: MlflowTracking) -> None:
    """A hook that has never heard of the run finds its parent."""
    train(MlflowTracking(), "adult.erm")
    evaluate(MlflowTracking(), "adult.erm", {"value": 1})
    MlflowTracking().after_pipeline_run(PARAMS, PIPELINE, DataCatalog())


def breaks_off(hook: MlflowTracking) -> None:
    train(hook, "adult.erm")
    hook.on_pipeline_error(MemoryError("all gone"), PARAMS, PIPELINE, DataCatalog())


def only_trains(hook: MlflowTracking) -> None:
    """No evaluation ends its cells, so the end of the run does."""
    train(hook, "adult.erm")
    hook.after_pipeline_run(PARAMS, SimpleNamespace(all_outputs=set), DataCatalog())


@pytest.mark.parametrize(
    ("ends", "state", "note"),
    [
        (of_another_process, "FINISHED", ""),
        (breaks_off, "FAILED", ": all gone"),
        (only_trains, "FINISHED", ""),
    ],
)
def test_a_run_that_ended_leaves_nothing_open(client, hook, ends, state, note):
    ends(hook)
    logged = runs(client)
    assert {name: run.info.status for name, run in logged.items()} == dict.fromkeys(
        ("one", "adult.erm"), state
    )
    assert logged["one"].data.tags["mlflow.note.content"] == note


def test_more_points_than_a_server_takes_at_once_arrive_all(client):
    hook = MlflowTracking()
    evaluate(hook, "adult.erm", *({"metric": f"m{k}", "value": k} for k in range(1001)))
    child = runs(client)["adult.erm"]
    assert child.data.metrics == {f"home/m{k}": k for k in range(1001)}


def whole_run(hook: MlflowTracking) -> None:
    """A run with one cell."""
    hook.before_pipeline_run(PARAMS)
    train(hook, "adult.erm")
    evaluate(hook, "adult.erm", {"value": 1})
    hook.after_pipeline_run(PARAMS, PIPELINE, catalog())


def test_the_report_is_sent_to_the_store_that_is_named(client, monkeypatch, tmp_path):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    client.create_experiment(EXPERIMENT, (tmp_path / "elsewhere").as_uri())
    whole_run(MlflowTracking())
    (page,) = (tmp_path / "elsewhere").rglob("report.html")
    assert page.read_text() == "<h1>Report</h1>"


MISSING = "MLflow is not available, the run continues without it"


@pytest.mark.parametrize(
    ("variable", "value", "warning"),
    [
        (SWITCH, "off", None),
        ("MLFLOW_TRACKING_URI", "http://me:hunter2@127.0.0.1:9", MISSING),
        (None, "original", "as this project was moved or copied; move mlflow.db away, or set"),
    ],
)
def test_without_a_store_a_run_logs_nothing_and_has_one_warning(
    client, monkeypatch, caplog, tmp_path, variable, value, warning
):
    """Of any library, retries of the client included; a copied project leaves the original."""
    logging.getLogger("urllib3.connectionpool").setLevel(logging.WARNING)  # as a process begins
    if variable:
        monkeypatch.setenv(variable, value)
    else:
        client.create_experiment(EXPERIMENT, (tmp_path / value / "mlruns").as_uri())
    with caplog.at_level(logging.WARNING, "robust_fairness"):
        whole_run(MlflowTracking())
    assert len(caplog.messages) == (warning is not None)
    assert all(warning in message for message in caplog.messages)
    assert "hunter2" not in caplog.text
    assert not runs(client) and not (tmp_path / "original").exists()


def test_a_server_that_dies_costs_one_warning(client, monkeypatch, caplog, hook):
    def gone(*arguments, **options):
        raise ConnectionError("gone\nfor good")

    monkeypatch.setattr(MlflowClient, "log_batch", gone)
    with caplog.at_level(logging.WARNING, "robust_fairness"):
        whole_run(hook)
    assert caplog.messages == [f"{MISSING}: gone"]


def test_names_of_metrics_are_those_that_mlflow_takes():
    assert key("loss", "", "alpha=0.1,h=é") == "loss/alpha_0.1_h_é"
