"""Models that MLflow keeps: what they predict, and what loading them may not do."""

import json
import os
import pickle
import random
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from importlib.metadata import version

import cloudpickle
import mlflow
import numpy as np
import pandas as pd
import pytest
import torch
from mlflow.exceptions import MlflowException
from scipy.special import softmax

import robust_fairness
from robust_fairness.bench import training
from robust_fairness.core.errors import InputError
from robust_fairness.core.samples import Samples
from robust_fairness.runs import serving
from tests.datasets.loading import load
from tests.faults.counting import flipped, report
from tests.test_project import ROOT
from tests.training.conftest import make_cell, make_samples
from tests.training.test_images import make_images


@pytest.fixture(autouse=True)
def no_telemetry(monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")


def trained(samples: Samples, folder, **options) -> tuple:
    """A saved model, the predictions on test rows that it has to repeat, and what chose it."""
    chosen_by = options.pop("selections", ["accuracy"])
    changes = {"selections": tuple(chosen_by), "metrics": ("accuracy",)}
    cell = make_cell(epochs=2, **options).model_copy(update=changes)
    models, validation, *_ = training.train(samples, cell)
    chosen = training.select(samples, validation, cell)
    assert serving.save(folder, cell, samples, models, chosen)
    return mlflow.pyfunc.load_model(str(folder)), training.predict(
        samples, models, chosen, cell, {}
    )


def test_probabilities_are_those_of_the_chosen_trial_whatever_the_order_of_columns(tmp_path):
    samples = make_samples(classes=3)
    trials = ({"learning_rate": 0.05}, {"learning_rate": 1e-6})
    model, stored = trained(samples, tmp_path / "model", trials=trials, seeds=(3, 1))
    told = tmp_path / "model" / "data" / "replicas" / "model.json"
    about = json.loads(told.read_text())
    assert about["seeds"] == [3, 1] == [model.seed for model in stored]
    assert {model.trial for model in stored} == {about["trial"]}
    names = list(samples.features)
    for place, prediction in enumerate(stored):
        rows = pd.DataFrame(samples.x[prediction.rows], columns=names)[names[::-1]]
        outputs = model.get_raw_model().by_replica(rows)
        assert outputs.shape == (len(rows), 2, 3)
        expected = softmax(prediction.outputs, axis=1)
        np.testing.assert_allclose(outputs[:, place], expected, rtol=1e-5, atol=1e-7)
        shares = model.predict(rows, params={"probabilities": True})
        np.testing.assert_allclose(shares, outputs.mean(axis=1), rtol=1e-6)
        raw = model.get_raw_model().predict(samples.x[prediction.rows])
        assert list(raw) == [samples.classes[k] for k in shares.argmax(1)]
        assert list(model.predict(rows)) == list(raw)
    assert not np.array_equal(stored[0].rows, stored[1].rows)


def test_outcomes_are_in_their_own_units(tmp_path):
    samples = make_samples(classes=0)
    model, stored = trained(samples, tmp_path / "model", selections=["mean_squared_error"])
    rows = stored[0].rows
    table = pd.DataFrame(samples.x[rows], columns=list(samples.features))
    outputs = model.get_raw_model().by_replica(table)
    assert outputs.shape == (len(rows), 3)
    np.testing.assert_allclose(outputs[:, 0], stored[0].outputs[:, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model.predict(table), outputs.mean(1), rtol=1e-6)


@pytest.mark.parametrize("common", [False, True])
def test_a_post_processed_model_is_served_with_its_rule(tmp_path, common):
    """Probabilities of decisions are those of the run, of a frame with the groups."""
    samples = make_samples(600)
    rule = {"name": "equalized_odds", "tolerance": 0.02, "common": common}
    model, stored = trained(
        samples, tmp_path / "model", seeds=(0, 1), fields={"postprocessing": rule}
    )
    names = [] if common else ["kind"]
    table = pd.DataFrame(samples.x.astype(np.float64), columns=list(samples.features))
    table = table.assign(kind=samples.attributes["kind"].astype(str))
    assert model.metadata.get_input_schema().input_names() == [*samples.features, *names]
    shares = model.predict(table, params={"probabilities": True})
    each = model.get_raw_model().by_replica(table)
    for place, prediction in enumerate(stored):
        served = each[prediction.rows, place, 1]
        close = np.isclose(served, prediction.positive, atol=1e-6)
        assert close.mean() > 0.99  # a score at its threshold may round to its other side
    np.testing.assert_allclose(shares, each.mean(1))
    certain = np.isin(shares[:, 1], (0, 1))
    assert certain.any()
    expected = np.array(samples.classes)[shares.argmax(1)]
    assert (model.predict(table) == expected)[certain].all()
    if not common:
        with pytest.raises(InputError, match="group other has no validation rows, allowed"):
            model.get_raw_model().predict(table.assign(kind="other"))
        with pytest.raises(InputError, match="unknown column 'kind'"):
            model.get_raw_model().predict(table.drop(columns="kind"))


@pytest.mark.filterwarnings("ignore")  # of MLflow about pandas and scikit-learn
@pytest.mark.parametrize("classes", [2, 3, 0])
def test_mlflow_evaluates_a_model(tmp_path, monkeypatch, classes):
    """``mlflow.models.evaluate`` scores the classes, or the outcomes, as scikit-learn does."""
    from sklearn.metrics import accuracy_score, mean_absolute_error

    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    mlflow.set_experiment("evaluate")
    samples = make_samples(classes=classes)
    criterion = "accuracy" if classes else "mean_squared_error"
    model, _ = trained(samples, tmp_path / "model", selections=[criterion])
    data = pd.DataFrame(samples.x.astype(np.float64), columns=list(samples.features))
    truth = np.array(samples.classes)[samples.y] if classes else samples.y
    kind, name, score = (
        ("classifier", "accuracy_score", accuracy_score)
        if classes
        else ("regressor", "mean_absolute_error", mean_absolute_error)
    )
    scored = mlflow.models.evaluate(
        str(tmp_path / "model"),
        data.assign(truth=truth),
        targets="truth",
        model_type=kind,
        evaluator_config={"log_model_explainability": False},
    )
    assert scored.metrics[name] == pytest.approx(score(truth, model.predict(data)))


def test_images_of_networks_that_do_not_stack(tmp_path):
    samples = make_images()
    network = {"name": "biased_mnist_cnn", "width": 2}
    model, stored = trained(samples, tmp_path / "model", network=network, seeds=(0, 1))
    outputs = model.get_raw_model().by_replica(samples.x[stored[0].rows])
    for place, prediction in enumerate(stored):
        expected = softmax(prediction.outputs, axis=1)
        np.testing.assert_allclose(outputs[:, place], expected, rtol=1e-5, atol=1e-7)
    assert model.input_example.dtype == np.uint8
    with pytest.raises(MlflowException, match="shape"):
        model.predict(samples.x[:, :, 1:])
    for bad, message in ((samples.x[:, :1], "allowed: .3, 16, 16."), (samples.x / 255, "uint8")):
        with pytest.raises(InputError, match=message):
            model.get_raw_model().predict(bad)


def test_loading_and_predicting_unpickle_nothing(tmp_path, monkeypatch):
    samples = make_samples()
    trained(samples, tmp_path / "model")

    def forbidden(*arguments, **options):
        raise AssertionError("unpickled")

    class Forbidden(pickle.Unpickler):
        __init__ = forbidden

    for module in (pickle, cloudpickle):
        monkeypatch.setattr(module, "load", forbidden)
        monkeypatch.setattr(module, "loads", forbidden)
    monkeypatch.setattr(pickle, "Unpickler", Forbidden)
    monkeypatch.setattr(torch, "load", forbidden)
    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    model = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert model.predict(model.input_example).shape == (1,)
    kept = {path.suffix for path in (tmp_path / "model").rglob("*") if path.is_file()}
    assert kept <= {".safetensors", ".json", ".txt", ".yaml", ".yml", ""}  # MLmodel has none
    assert not list((tmp_path / "model").rglob("*.pkl"))


def test_signature_and_input_example_tell_of_no_row(tmp_path):
    samples = make_samples()
    model, _ = trained(samples, tmp_path / "model")
    assert model.metadata.signature.inputs.input_names() == list(samples.features)
    assert [param.name for param in model.metadata.signature.params.params] == ["probabilities"]
    example = model.input_example.to_numpy()
    assert not (np.abs(samples.x - example) < 1e-3).all(axis=1).any()
    split = samples.rows("split_0", "train")
    np.testing.assert_allclose(example[0], samples.x[split].mean(0), rtol=1e-5)
    assert model.metadata.metadata["method"] == "erm"


def test_bad_rows_are_refused_in_one_line(tmp_path):
    samples = make_samples()
    model, _ = trained(samples, tmp_path / "model")
    frame = pd.DataFrame(samples.x[:4], columns=list(samples.features))
    with pytest.raises(MlflowException, match="missing inputs .*feature 3"):
        model.predict(frame.drop(columns="feature 3"))
    raw = model.get_raw_model()
    with pytest.raises(InputError, match="unknown column 'feature 3': did you mean"):
        raw.predict(frame.drop(columns="feature 3"))
    with pytest.raises(InputError, match=r"rows of shape \(5,\), allowed: \(6,\), as in toy"):
        raw.predict(samples.x[:4, :5])
    frame.loc[2, "feature 1"] = np.nan
    with pytest.raises(InputError, match="row 2, column feature 1: missing, allowed: a finite"):
        model.predict(frame)
    assert raw.by_replica(samples.x[:0]).shape == (0, 3, 2)


@pytest.mark.slow
@pytest.mark.parametrize("network", ["mlp", "lightgbm"])
def test_a_model_is_served_in_an_environment_of_its_requirements(tmp_path, network):
    """A wheel of this checkout, the model's requirements.txt, and a request to its server."""
    samples = make_samples()
    estimator = {"name": "estimator", "estimator": "lightgbm.LGBMClassifier"}
    chosen = {"network": estimator | {"params": {"verbose": -1}}} if network == "lightgbm" else {}
    model, _ = trained(samples, tmp_path / "model", **chosen)
    wheels, environment = tmp_path / "wheels", tmp_path / "environment"
    for source in (ROOT, ROOT / "bundled"):
        run("-m", "build", "--wheel", "--no-isolation", "--outdir", str(wheels), str(source))
    run("-m", "uv", "venv", "--python", sys.executable, str(environment))
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    locked = [line.rstrip(" \\") for line in lines if re.match(r"[\w-]+==", line)]
    (tmp_path / "versions.txt").write_text("\n".join(locked))
    run(
        "-m", "uv", "pip", "install", "--python", str(python), "--find-links", str(wheels),
        "--constraints", str(tmp_path / "versions.txt"),
        "--requirements", str(tmp_path / "model" / "requirements.txt"),
    )  # fmt: skip
    frame = pd.DataFrame(samples.x[:7].astype(np.float64), columns=list(samples.features))
    expected = model.predict(frame, params={"probabilities": True})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    server = subprocess.Popen(
        [python, "-m", "mlflow", "models", "serve", "--model-uri", str(tmp_path / "model"),
         "--env-manager", "local", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"],
        cwd=tmp_path, start_new_session=True,
        env=own | {"PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]])},
    )  # fmt: skip
    try:
        wait_for(f"http://127.0.0.1:{port}/ping")
        content = {"dataframe_split": frame.to_dict("split"), "params": {"probabilities": True}}
        del content["dataframe_split"]["index"]
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/invocations",
            json.dumps(content).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            served = json.load(answer)["predictions"]
    finally:
        os.killpg(server.pid, signal.SIGTERM)  # and its workers
        server.wait()
    np.testing.assert_allclose(served, expected, rtol=1e-5)


def run(*words: str) -> None:
    """Run Python to its end; what it prints is in the error where it fails."""
    index = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    own = {"UV_DEFAULT_INDEX": index} if index else {}
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True, text=True, env=own | os.environ, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def wait_for(address: str) -> None:
    """Wait until a server answers."""
    for _ in range(240):
        try:
            with urllib.request.urlopen(address):
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError(f"{address} does not answer")


@pytest.mark.parametrize(
    ("network", "images", "requirements"),
    [
        ({"name": "mlp"}, False, ["train"]),
        ({"name": "resnet20"}, True, ["images"]),
        ({"name": "rbf_svm", "estimator": "sklearn.svm.SVC"}, False, ["train", "scikit-learn"]),
        ({"name": "embedding", "classifier": "k_means"}, True, ["images", "scikit-learn"]),
        ({"name": "embedding", "classifier": "linear"}, True, ["images"]),
        ({"name": "estimator", "estimator": "xgboost.XGBClassifier"}, False,
         ["train,trees", "scikit-learn"]),
        ({"name": "estimator", "estimator": "sklearn.pipeline.Pipeline",
          "params": {"steps": [["model", {"estimator": "lightgbm.LGBMClassifier"}]]}}, False,
         ["train,trees", "scikit-learn"]),
    ],
)  # fmt: skip
def test_requirements_have_the_extras_that_the_network_needs(network, images, requirements):
    extra, *pinned = requirements
    lines = [f"robust-fairness[{extra}]=={robust_fairness.__version__}"]
    lines += [f"{name}=={version(name)}" for name in pinned]
    assert serving.requirements(network, images) == lines


def test_a_model_with_one_bit_flipped_is_refused(tmp_path):
    """Forty flips of the weights, and ten each of what else belongs to the model."""
    trained(make_samples(), tmp_path / "model", seeds=(0,))
    folder = tmp_path / "model" / "data" / "replicas"
    draw = random.Random(3)
    for name, flips in {"models.safetensors": 40, "model.json": 10, "SHA256SUMS": 10}.items():
        content = (folder / name).read_bytes()
        for _ in range(flips):
            (folder / name).write_bytes(flipped(content, draw))
            with pytest.raises(InputError, match="has changed since the model was saved"):
                mlflow.pyfunc.load_model(str(tmp_path / "model"))
        (folder / name).write_bytes(content)
        report(f"flipped bits of {name} of a logged model", flips, flips, 0)
    assert mlflow.pyfunc.load_model(str(tmp_path / "model"))
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(InputError, match="SHA256SUMS: missing, as in models of version 1"):
        mlflow.pyfunc.load_model(str(tmp_path / "model"))


def test_a_model_of_another_version_says_so(tmp_path):
    trained(make_samples(), tmp_path / "model", seeds=(0,))
    folder = tmp_path / "model" / "data" / "replicas"
    about = (folder / "model.json").read_text()
    (folder / "model.json").write_text(about.replace('"columns"', '"earlier"'))
    (folder / "SHA256SUMS").write_text(serving.checksums(folder))
    with pytest.raises(InputError, match="model.json: of another version; log the model again"):
        mlflow.pyfunc.load_model(str(tmp_path / "model"))


YES_NO = ("yes", "no")


def raw_samples(root, rows: int = 240) -> tuple[Samples, pd.DataFrame]:
    """Samples of a table with whole numbers, codes, text and missing cells, and its rows."""
    rng = np.random.default_rng(11)
    age, job = rng.integers(18, 80, rows), rng.choice(["clerk", "none"], rows)
    frame = pd.DataFrame(
        {
            "age": age,
            "income": rng.normal(30, 5, rows).round(2),
            "COW": rng.choice([1, 2, 7], rows),
            "job": job,
            "sex": rng.choice(["f", "m"], rows),
            "repaid": np.where(
                age + 20 * (job == "clerk") + rng.normal(0, 9, rows) > 55, "yes", "no"
            ),
        }
    )
    frame["income"] = frame["income"].mask(rng.random(rows) < 0.1)
    frame.to_csv(root / "loans.csv", index=False)
    options = {"file": "loans.csv", "target": "repaid", "positive": "yes", "sensitive": ["sex"]}
    options |= {"incomplete": "impute", "types": {"COW": "category"}}
    return load("table", root, splits=2, **options), frame


@pytest.mark.filterwarnings("ignore")  # of MLflow about pandas and scikit-learn
def test_a_model_scores_the_file_that_its_rows_come_from(tmp_path, monkeypatch):
    """Read by pandas, of any types, as JSON of a server, and by ``models.evaluate``."""
    from mlflow.pyfunc.scoring_server import infer_and_parse_data
    from sklearn.metrics import accuracy_score

    samples, frame = raw_samples(tmp_path)
    model, stored = trained(samples, tmp_path / "model", seeds=(0, 1))
    names = ["age", "income", "COW", "job", "sex"]
    assert sorted(model.metadata.signature.inputs.input_names()) == sorted(names)
    read = pd.read_csv(tmp_path / "loans.csv")
    wanted = {"probabilities": True}
    shares = model.predict(read, params=wanted)
    each = model.get_raw_model().by_replica(read)
    for place, prediction in enumerate(stored):
        expected = softmax(prediction.outputs, axis=1)
        np.testing.assert_allclose(each[prediction.rows, place], expected, rtol=1e-5, atol=1e-7)
    schema = model.metadata.get_input_schema()
    content = {"dataframe_split": json.loads(read[names].to_json(orient="split"))}
    forms = {
        "nullable": read.convert_dtypes(),
        "text": pd.read_csv(tmp_path / "loans.csv", dtype=str),
        "another order": read[names[::-1]],
        "JSON": infer_and_parse_data(content, schema),
    }
    for form, rows in forms.items():
        np.testing.assert_array_equal(model.predict(rows, params=wanted), shares, err_msg=form)
    monkeypatch.setattr("mlflow.tracking.fluent._active_experiment_id", None)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    mlflow.set_experiment("evaluate")
    scored = mlflow.models.evaluate(
        str(tmp_path / "model"), read, targets="repaid", model_type="classifier",
        evaluator_config={"log_model_explainability": False},
    )  # fmt: skip
    assert scored.metrics["accuracy_score"] == accuracy_score(frame["repaid"], model.predict(read))
    example = model.input_example
    assert set(example.columns) == {*names}
    assert model.predict(example).shape == (1,)
    with pytest.raises(InputError, match="row 3, column COW: 5, allowed: 1, 2, 7"):
        model.predict(read.assign(COW=[1, 2, 7, 5] * 60))


def test_without_a_criterion_that_chooses_the_first_trial_is_kept(tmp_path):
    samples = make_samples()
    trials = ({"learning_rate": 0.5},)
    selections = ["every", "accuracy"]
    model, _ = trained(samples, tmp_path / "both", trials=trials, selections=selections)
    assert model.metadata.metadata["selection"] == "accuracy"
    only, _ = trained(samples, tmp_path / "every", trials=trials, selections=["every"])
    assert only.metadata.metadata["trial"] == "default"
