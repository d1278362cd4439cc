"""Estimators as networks: scikit-learn's own predictions, stored without pickle, and refusals."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch
from lightgbm import LGBMClassifier
from safetensors.numpy import load, save
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    AdaBoostClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from robust_fairness.bench import training
from robust_fairness.bench.compute import checkpoints
from robust_fairness.bench.estimators.estimator import ScikitLearn
from robust_fairness.bench.experiment.experiment import Cell
from robust_fairness.bench.methods.base import Method
from robust_fairness.bench.methods.erm import Erm
from robust_fairness.bench.training import prediction
from robust_fairness.bench.training.records import Fitted, Prediction, from_arrays, to_arrays
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find, names
from robust_fairness.core.samples import Samples
from tests.training.conftest import make_cell, make_samples

TREES = "sklearn.ensemble.HistGradientBoostingClassifier"
SMALL = {"max_iter": 5, "early_stopping": False}
STUMP = {"estimator": "sklearn.tree.DecisionTreeClassifier", "params": {"max_depth": 1}}
PIPELINE = {
    "steps": [
        ["scale", {"estimator": "sklearn.preprocessing.StandardScaler"}],
        ["model", {"estimator": "sklearn.linear_model.LogisticRegression"}],
    ],
    "model__C": 0.1,
}


def estimator_cell(estimator=TREES, params=SMALL, method="erm", **options) -> Cell:
    network = {"name": "estimator", "estimator": estimator, "params": params}
    return make_cell(method, network=network, **{"seeds": (0,), **options})


def rows_of(samples: Samples, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Standardised inputs and labels of a part of the first split."""
    train, rows = (samples.rows("split_0", name) for name in ("train", part))
    x = samples.x.astype(np.float64)
    return (x[rows] - x[train].mean(0)) / x[train].std(0), samples.y[rows]


def assert_probabilities(scored: Prediction, expected: np.ndarray) -> None:
    """The softmax of the outputs is what is expected."""
    np.testing.assert_allclose(torch.tensor(scored.outputs).softmax(1), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "params", "machine"),
    [
        (TREES, SMALL, HistGradientBoostingClassifier(**SMALL)),
        (
            "sklearn.pipeline.Pipeline",
            PIPELINE,
            make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
        ),
        (
            "sklearn.ensemble.AdaBoostClassifier",
            {"estimator": STUMP, "n_estimators": 4, "random_state": 3},
            AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=4, random_state=3),
        ),
        (
            "sklearn.calibration.CalibratedClassifierCV",
            {"estimator": STUMP | {"params": {"max_depth": 2, "random_state": 0}}},
            CalibratedClassifierCV(DecisionTreeClassifier(max_depth=2, random_state=0)),
        ),
    ],
)
def test_probabilities_are_scikit_learns_and_survive_saving(name, params, machine):
    """From its tensors alone, which are the same bytes when trained again."""
    samples, cell = make_samples(classes=3), estimator_cell(name, params)
    (fitted,), (validation,), *_ = training.train(samples, cell)
    checkpoints.drop(cell.name)
    (twin,), *_ = training.train(samples, cell)
    assert save(to_arrays([twin])[0]) == save(to_arrays([fitted])[0])
    machine.fit(*rows_of(samples, "train"))
    expected = machine.predict_proba(rows_of(samples, "val")[0])
    assert_probabilities(validation, expected)
    arrays, rest = to_arrays([fitted])
    again = from_arrays(Fitted, load(save(arrays)), rest)
    (seen,) = prediction.predict(samples, again, cell, {"": samples}, "val")
    np.testing.assert_array_equal(seen.outputs, validation.outputs)
    assert seen.network == name.rpartition(".")[2]


def with_categories(samples: Samples) -> tuple[Samples, np.ndarray]:
    """The samples with a column of four categories as indicators, and the rows with its codes."""
    codes = np.random.default_rng(0).integers(4, size=len(samples))
    y = np.where(codes == 2, 1 - samples.y, samples.y)
    wide = np.hstack([samples.x, np.eye(4, dtype=np.float32)[codes]])
    columns = (*samples.features, *["kind of row"] * 4)
    features = (*samples.features, *[f"kind of row={code}" for code in range(4)])
    changed = replace(samples, x=wide, y=y, features=features, columns=columns)
    return changed, np.column_stack([samples.x, codes]).astype(np.float64)


@pytest.mark.parametrize("preprocessing", ["none", "standardise"])
@pytest.mark.parametrize(
    ("name", "params", "machine", "options"),
    [
        (TREES, SMALL, HistGradientBoostingClassifier(**SMALL, categorical_features=[6]), {}),
        (
            "lightgbm.LGBMClassifier",
            {"n_estimators": 5, "verbose": -1},
            LGBMClassifier(n_estimators=5, verbose=-1),
            {"categorical_feature": [6]},
        ),
    ],
)
def test_categories_are_those_of_the_table(name, params, machine, options, preprocessing):
    """Probabilities of the package itself for codes that are named as categories, also saved."""
    samples, rows = with_categories(make_samples())
    network = {"name": "estimator", "estimator": name, "params": params, "categories": True}
    cell = make_cell(network=network, seeds=(0,), preprocessing=preprocessing)
    (fitted,), (validation,), *_ = training.train(samples, cell)
    train, held_out = (samples.rows("split_0", part) for part in ("train", "val"))
    if preprocessing == "standardise":  # the six numbers
        rows[:, :6] = (rows[:, :6] - rows[train, :6].mean(0)) / rows[train, :6].std(0)
    machine.fit(rows[train], samples.y[train], **options)
    assert_probabilities(validation, machine.predict_proba(rows[held_out]))
    (seen,) = prediction.predict(samples, [fitted], cell, {"": samples}, "val")
    np.testing.assert_array_equal(seen.outputs, validation.outputs)
    with pytest.raises(InputError, match="categories need the columns of a table, allowed: pre"):
        training.train(samples, make_cell(network=network, seeds=(0,), preprocessing="pca"))


def test_missing_values_reach_an_estimator_that_takes_them():
    """With imputation none: scikit-learn's own probabilities; others are refused."""
    samples = make_samples()
    x = samples.x.copy()
    x[::3, 1] = np.nan
    samples = replace(samples, x=x)
    options = {"imputation": "none", "preprocessing": "none"}
    _, (validation,), *_ = training.train(samples, estimator_cell(**options))
    train, held_out = (samples.rows("split_0", part) for part in ("train", "val"))
    machine = HistGradientBoostingClassifier(**SMALL)
    machine.fit(x[train].astype(np.float64), samples.y[train])
    expected = machine.predict_proba(x[held_out].astype(np.float64))
    assert_probabilities(validation, expected)
    for cell in (
        make_cell(imputation="none"),
        estimator_cell("sklearn.linear_model.LogisticRegression", {}, imputation="none"),
        estimator_cell(imputation="none", preprocessing="pca"),
    ):
        with pytest.raises(InputError, match="imputation.* none.*, allowed: "):
            training.train(samples, cell)


def test_a_regressor_predicts_outcomes_in_their_units():
    samples = make_samples(classes=0)
    name = "sklearn.ensemble.HistGradientBoostingRegressor"
    _, (validation,), *_ = training.train(samples, estimator_cell(name))
    x, y = rows_of(samples, "train")
    mean, deviation = y.mean(dtype=np.float64), y.std(dtype=np.float64)
    machine = HistGradientBoostingRegressor(**SMALL).fit(x, (y - mean) / deviation)
    expected = machine.predict(rows_of(samples, "val")[0]) * deviation + mean
    np.testing.assert_allclose(validation.outputs[:, 0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("lightgbm.LGBMClassifier", {"n_estimators": 5, "verbose": -1}),
        ("xgboost.XGBClassifier", {"n_estimators": 5}),
    ],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_boosted_trees_of_other_packages(name, params, classes):
    """In their own formats; a trial changes a parameter by its own name."""
    package = pytest.importorskip(name.partition(".")[0])
    samples = make_samples(classes=classes)
    cell = estimator_cell(name, params, trials=({"n_estimators": 3},))
    _, validation, *_ = training.train(samples, cell)
    machine = getattr(package, name.partition(".")[2])(**params)
    for scored, trees in zip(validation, (5, 3), strict=True):
        machine.set_params(n_estimators=trees).fit(*rows_of(samples, "train"))
        if name.startswith("lightgbm"):
            expected = machine.booster_.predict(rows_of(samples, "val")[0])
            expected = np.stack([1 - expected, expected], 1) if classes == 2 else expected
        else:
            expected = machine.predict_proba(rows_of(samples, "val")[0])
        assert_probabilities(scored, expected)


def test_curvature_is_not_applicable_and_says_why():
    samples, cell = make_samples(), estimator_cell()
    fitted, validation, *_ = training.train(samples, cell)
    chosen = training.select(samples, validation, cell)
    predictions = training.predict(samples, fitted, chosen, cell, {})
    table = training.evaluate(samples, predictions, chosen, cell, {}).set_index("metric")
    note = "not applicable: needs curvature (of a network with derivatives)"
    assert (table.loc[["delta_er"], "note"] == note).all()
    assert table.loc["accuracy", "value"] > 0.6


def test_seeds_and_weights_of_a_method_reach_the_estimator():
    """Weights with mean 1; the same seed gives the same bits, another one another forest."""
    samples = make_samples()
    name, params = "sklearn.ensemble.ExtraTreesClassifier", {"n_estimators": 3, "max_depth": 2}

    def outputs(seed, method="erm"):
        cell = estimator_cell(name, params, method, seeds=(seed,))
        return training.train(samples, cell)[1][0].outputs

    np.testing.assert_array_equal(outputs(0), outputs(0))
    assert not np.array_equal(outputs(0), outputs(3))  # of the same split
    train = samples.rows("split_0", "train")
    group, y = samples.attributes["kind"].cat.codes.to_numpy()[train], samples.y[train]
    counts = np.bincount(2 * group + y)
    x, _ = rows_of(samples, "train")
    tree = "sklearn.tree.DecisionTreeClassifier"
    cell = estimator_cell(tree, {"max_depth": 3, "random_state": 0}, "group_upweighting")
    _, (validation,), *_ = training.train(samples, cell)
    machine = DecisionTreeClassifier(max_depth=3, random_state=0)
    machine.fit(x, y, sample_weight=len(y) / len(counts) / counts[2 * group + y])
    expected = machine.predict_proba(rows_of(samples, "val")[0])
    assert_probabilities(validation, expected)


def test_methods_that_only_reweight_train_as_plain_training_does():
    """What the flag says is true of the class."""
    for name in names("method"):
        method = find("method", name)
        if method.estimators == "also":
            assert method.steps is Erm.steps, name
            assert method.start_epoch is Method.start_epoch, name


def test_a_model_of_another_version_or_of_other_types_is_refused(monkeypatch):
    samples, cell = make_samples(), estimator_cell()
    (fitted,), *_ = training.train(samples, cell)
    monkeypatch.setattr("robust_fairness.bench.estimators._scikit_learn.TRUSTED", frozenset())
    with pytest.raises(InputError, match="Untrusted types found.*TreePredictor"):
        prediction.predict(samples, [fitted], cell, {"": samples})
    fitted.state["model.package"] = np.array(list(b"scikit-learn 0.1"), dtype=np.uint8)
    with pytest.raises(InputError, match="was fitted with scikit-learn 0.1, installed is"):
        prediction.predict(samples, [fitted], cell, {"": samples})


def test_warnings_are_logged_and_a_single_class_is_predicted(caplog):
    samples = make_samples()
    name = "sklearn.linear_model.LogisticRegression"
    with caplog.at_level(logging.WARNING):
        training.train(samples, estimator_cell(name, {"max_iter": 1}))
    assert "network estimator: sklearn.linear_model.LogisticRegression: lbfgs" in caplog.text
    constant = estimator_cell().network.parameters
    network = find("network", "estimator")(constant, (2,), 3, prediction.Randomness([0], "weights"))
    assert isinstance(network, ScikitLearn)
    network.fit(torch.randn(1, 4, 2), torch.ones(1, 4, dtype=torch.long))
    assert network(torch.randn(1, 5, 2)).argmax(-1).tolist() == [[1] * 5]
