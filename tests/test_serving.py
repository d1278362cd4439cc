"""Models that MLflow keeps: what they predict, and what loading them may not do."""

import json
import pickle

import cloudpickle
import mlflow
import numpy as np
import pandas as pd
import pytest
import torch
from mlflow.exceptions import MlflowException
from scipy.special import softmax

from robust_fairness import training
from robust_fairness.core.errors import InputError
from robust_fairness.runs import serving
from robust_fairness.samples import Samples
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
    with pytest.raises(InputError, match="row 2, column feature 1: not finite"):
        model.predict(frame)
    assert raw.by_replica(samples.x[:0]).shape == (0, 3, 2)


def test_a_broken_model_names_its_file(tmp_path):
    trained(make_samples(), tmp_path / "model")
    about = tmp_path / "model" / "data" / "replicas" / "model.json"
    about.write_text(about.read_text().replace('"seeds"', '"sedes"'))
    with pytest.raises(InputError, match="model.json: cannot be read"):
        mlflow.pyfunc.load_model(str(tmp_path / "model"))


def test_without_a_criterion_that_chooses_the_first_trial_is_kept(tmp_path):
    samples = make_samples()
    trials = ({"learning_rate": 0.5},)
    selections = ["every", "accuracy"]
    model, _ = trained(samples, tmp_path / "both", trials=trials, selections=selections)
    assert model.metadata.metadata["selection"] == "accuracy"
    only, _ = trained(samples, tmp_path / "every", trials=trials, selections=["every"])
    assert only.metadata.metadata["trial"] == "default"
