"""Support vector machines: scikit-learn's own decisions, rows by seed, and who may train them."""

import logging

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from robust_fairness import training
from robust_fairness.compute.checkpoints import Checkpoint
from robust_fairness.estimators import base as _fitted
from robust_fairness.estimators import rbf_svm
from robust_fairness.models.randomness import Randomness
from robust_fairness.training import fitting, prediction
from robust_fairness.training.records import Fitted, from_arrays, to_arrays
from tests.training.conftest import make_cell, make_samples
from tests.training.test_images import make_images


def make_svm_cell(method="erm", precision="float32", **options):
    """Settings of a cell with this network."""
    return make_cell(
        method, seeds=(0,), network={"name": "rbf_svm", **options}, precision=precision
    )


def fitted_on(x, y, seed=0, **options):
    """A machine fitted on given rows."""
    network = rbf_svm.RbfSvm(
        rbf_svm.RbfSvm.Parameters(**options),
        x.shape[1:],
        int(y.max()) + 1,
        Randomness([seed], "weights"),
    )
    network.fit(torch.tensor(x)[None], torch.tensor(y)[None])
    (generator,) = Randomness([seed], "weights").generators
    used, available = network.rows.tolist()
    return network, torch.randperm(available, generator=generator)[:used].sort().values


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("options", [{}, {"penalty": 0.1}, {"gamma": 2.0, "penalty": 7.0}])
def test_outputs_are_scikit_learns_decision_function(classes, options):
    """Real digits, of which some are not fitted; for two classes the difference is the value."""
    digits = load_digits(n_class=classes)
    x, y = (digits.data[:400] / 16).astype(np.float32), digits.target[:400]
    network, _ = fitted_on(x[:200], y[:200], **options)
    outputs = network(torch.tensor(x)[None].double())[0].numpy()
    names_of = {"penalty": "C", "gamma": "gamma"}
    machine = SVC(**{names_of[name]: value for name, value in options.items()}, break_ties=True)
    machine.fit(x[:200].astype(np.float64), y[:200])
    expected = machine.decision_function(x)
    decisions = outputs if classes > 2 else outputs[:, 1] - outputs[:, 0]
    np.testing.assert_allclose(decisions, expected, atol=1e-9)
    np.testing.assert_array_equal(outputs.argmax(1), machine.predict(x))


@pytest.mark.parametrize("samples", [make_samples(classes=3), make_images(160, 8)])
def test_training_fits_the_replicas_own_rows_once(samples):
    """Preprocessed as for every network; predictions in float32 to 1e-5, curves of one epoch."""
    cell = make_svm_cell()
    (fitted,), (validation, *_), history, _ = training.train(samples, cell)
    train = samples.rows(fitted.split, "train")
    x = samples.arrays["x"].astype(np.float32)
    x = x / 255 if x.ndim > 2 else (x - x[train].mean(0)) / x[train].std(0)
    x = x.reshape(len(x), -1)
    machine = SVC().fit(x[train], samples.y[train])
    rows = samples.rows(fitted.split, "val")
    np.testing.assert_allclose(validation.outputs, machine.decision_function(x[rows]), atol=1e-5)
    assert history["epoch"].unique().tolist() == [0]
    assert fitted.state["model.rows"].tolist() == [len(train), len(train)]


def test_saved_machine_predicts_the_same():
    """From its tensors alone, with the curvature that metrics ask for."""
    samples, cell = make_samples(), make_svm_cell()
    (fitted,), (validation,), *_ = training.train(samples, cell)
    arrays, rest = to_arrays([fitted])
    again = from_arrays(Fitted, load(save(arrays)), rest)
    (seen,) = prediction.predict(samples, again, cell, {"": samples}, "val")
    np.testing.assert_array_equal(seen.outputs, validation.outputs)
    (tested,) = prediction.predict(samples, again, cell, {"": samples})
    assert (tested.values["curvature"] > 0).all()


def test_too_many_rows_are_drawn_by_the_seed_and_it_is_said(caplog):
    """The machine is that of the drawn rows."""
    x, y = load_digits(n_class=3, return_X_y=True)
    with caplog.at_level(logging.WARNING):
        network, places = fitted_on(x, y, max_rows=90)
    assert caplog.messages == [f"rbf_svm: fits 90 of {len(x)} training rows (max_rows)"]
    assert network.rows.tolist() == [90, len(x)]
    assert len(set(places.tolist())) == 90
    expected = SVC().fit(x[places], y[places]).decision_function(x[:50])
    outputs = network(torch.tensor(x[None, :50]))
    np.testing.assert_allclose(outputs[0], expected, atol=1e-9)
    again, other = (fitted_on(x, y, seed=seed, max_rows=90)[0] for seed in (0, 1))
    assert again(torch.tensor(x[None, :50])).equal(outputs)
    assert not other(torch.tensor(x[None, :50])).equal(outputs)
    assert fitted_on(x, y)[1].tolist() == list(range(len(x)))


def test_blocks_of_rows_give_what_all_rows_give(monkeypatch):
    """Memory is bounded by blocks."""
    x, y = load_digits(n_class=3, return_X_y=True)
    network, _ = fitted_on(x[:100], y[:100])
    whole = network(torch.tensor(x[None]))
    monkeypatch.setattr(_fitted, "NUMBERS_AT_ONCE", 7 * len(network.support))
    torch.testing.assert_close(network(torch.tensor(x[None])), whole)


def test_a_checkpoint_holds_the_machine():
    """A stack that goes on from it has nothing left to do."""
    samples, cell = make_samples(), make_svm_cell()
    first, second = (fitting.Stack(samples, cell, cell.replicas()) for _ in range(2))
    checkpoint = Checkpoint("toy", "svm")
    first.train_to_end(checkpoint)
    second.model.fit = None
    second.train_to_end(checkpoint)
    expected, restored = first.state(), second.state()
    assert expected.keys() == restored.keys()
    assert all(expected[key].equal(restored[key]) or key == "history" for key in expected)
    assert first.fitted(first.replicas)[0].state["model.support"].dtype == np.float64
