"""Classifiers that are fitted at once: scikit-learn's own, absent classes, states, training."""

import logging

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from robust_fairness.bench import training
from robust_fairness.bench.compute.checkpoints import Checkpoint
from robust_fairness.bench.estimators import random_forest
from robust_fairness.bench.models.layers import ABSENT
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.training import fitting
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find
from tests.training.conftest import make_cell, make_samples
from tests.training.test_images import make_images

CLASSIFIERS = {
    "logistic_regression": {},
    "rbf_svm": {},
    "k_means": {},
    "random_forest": {"trees": 7},
}


def build(name, inputs, classes, seed=0, **options):
    """A classifier that is yet to be fitted."""
    module = find("network", name)
    randomness = Randomness([seed], "weights")
    return module(module.Parameters(**options), (inputs,), classes, randomness)


def fitted_on(name, x, y, classes, seed=0, **options):
    """A classifier fitted on given rows."""
    network = build(name, x.shape[1], classes, seed, **options)
    network.fit(torch.tensor(x)[None], torch.tensor(y)[None])
    return network


def outputs_of(network, x):
    """Outputs in float64 ``[row, class]``."""
    return network(torch.tensor(x)[None].double())[0].detach().numpy()


def drawn_seed(seed=0):
    """The seed that a classifier hands to scikit-learn."""
    return Randomness([seed], "weights").integer() % 2**32


def digits(classes, rows=300):
    """Real digits in [0, 1], and their classes."""
    data = load_digits(n_class=classes)
    return (data.data[:rows] / 16).astype(np.float32), data.target[:rows]


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("penalty", [1.0, 0.05])
def test_logistic_regression_is_scikit_learns(classes, penalty):
    """Its probabilities, of rows that it has and has not seen."""
    x, y = digits(classes)
    params = {"C": penalty, "max_iter": 1000}
    network = fitted_on("logistic_regression", x[:200], y[:200], classes, params=params)
    expected = LogisticRegression(**params).fit(x[:200].astype(float), y[:200])
    outputs = outputs_of(network, x)
    np.testing.assert_allclose(np.exp(outputs), expected.predict_proba(x), atol=1e-9)
    np.testing.assert_array_equal(outputs.argmax(1), expected.predict(x))


@pytest.mark.parametrize(("classes", "clusters"), [(2, None), (10, None), (3, 17), (10, 4)])
def test_k_means_gives_the_majority_class_of_scikit_learns_cluster(classes, clusters):
    """Logits are minus squared distances to the nearest centroid that has the class."""
    x, y = digits(classes)
    network = fitted_on("k_means", x[:200], y[:200], classes, params={"n_clusters": clusters})
    machine = KMeans(clusters or classes, random_state=drawn_seed()).fit(x[:200].astype(float))
    owner = np.array(
        [
            np.bincount(y[:200][machine.labels_ == number], minlength=classes).argmax()
            for number in range(machine.n_clusters)
        ]
    )
    outputs = outputs_of(network, x)
    np.testing.assert_array_equal(outputs.argmax(1), owner[machine.predict(x.astype(float))])
    squares = ((x[:, None].astype(float) - machine.cluster_centers_) ** 2).sum(-1)
    for number in range(classes):
        of_class = squares[:, owner == number]
        expected = -of_class.min(1) if of_class.shape[1] else np.full(len(x), ABSENT)
        np.testing.assert_allclose(outputs[:, number], expected, atol=1e-9)


def test_k_means_has_no_more_clusters_than_distinct_rows():
    """Three points, seen often, whose classes are then known."""
    x, y = np.eye(3, dtype=np.float32)[np.arange(30) % 3], np.arange(30) % 3
    network = fitted_on("k_means", x, y, 3, params={"n_clusters": 8})
    np.testing.assert_allclose(outputs_of(network, np.eye(3)), 2 * np.eye(3) - 2, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_random_forest_is_scikit_learns(classes):
    """The whole forest's probabilities; a probability of 0 has the least logarithm."""
    x, y = digits(classes)
    network = fitted_on("random_forest", x[:200], y[:200], classes, seed=3, trees=9)
    machine = RandomForestClassifier(9, random_state=drawn_seed(3))
    expected = machine.fit(x[:200], y[:200]).predict_proba(x)
    outputs = outputs_of(network, x)
    np.testing.assert_allclose(np.exp(outputs), expected, atol=1e-12)
    np.testing.assert_allclose(torch.tensor(outputs).softmax(1), expected, atol=1e-12)
    assert (outputs[expected == 0] == np.log(random_forest.LEAST_PROBABILITY)).all()
    assert int((network.offsets.diff() > 0).sum()) == sum(
        tree.get_n_leaves() for tree in machine.estimators_
    )


def test_random_forest_compares_inputs_as_scikit_learn_does():
    """In single precision, on thresholds between neighbouring numbers."""
    x = np.random.default_rng(0).integers(0, 5, (400, 3)) * np.float64(0.1)
    y = np.random.default_rng(1).integers(0, 2, 400)
    network = fitted_on("random_forest", x, y, 2, trees=20)
    machine = RandomForestClassifier(20, random_state=drawn_seed()).fit(x, y)
    nudged = np.concatenate([x, np.nextafter(x, 1), x + 0.05])
    np.testing.assert_allclose(
        np.exp(outputs_of(network, nudged)), machine.predict_proba(nudged), atol=1e-12
    )


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("options", [{}, {"C": 0.1}, {"gamma": 2.0, "C": 7.0}])
def test_support_vector_machine_is_scikit_learns(classes, options):
    """For two classes the difference of the outputs is the decision."""
    x, y = digits(classes, 400)
    network = fitted_on("rbf_svm", x[:200], y[:200], classes, params=options)
    machine = SVC(**options, break_ties=True)
    machine.fit(x[:200].astype(np.float64), y[:200])
    outputs = outputs_of(network, x)
    decisions = outputs if classes > 2 else outputs[:, 1] - outputs[:, 0]
    np.testing.assert_allclose(decisions, machine.decision_function(x), atol=1e-9)
    np.testing.assert_array_equal(outputs.argmax(1), machine.predict(x))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_class_without_rows_is_never_predicted(name, caplog):
    """It is said; the others are as if it did not exist, and all numbers are finite."""
    x, y = digits(4)
    kept = y != 2
    with caplog.at_level(logging.WARNING):
        network = fitted_on(name, x[kept], y[kept], 5, **CLASSIFIERS[name])
    told = f"{name}: 3 of 5 classes are among its {kept.sum()} training rows"
    assert caplog.messages == [f"{told}, the others are never predicted"]
    named = np.array([0, 1, 9, 2])[y[kept]]
    others = fitted_on(name, x[kept], named, 3, **CLASSIFIERS[name])
    outputs = outputs_of(network, x)
    np.testing.assert_array_equal(outputs[:, [0, 1, 3]], outputs_of(others, x))
    assert (outputs[:, [2, 4]] == ABSENT).all()
    single = network(torch.tensor(x)[None])
    assert single.dtype == torch.float32
    assert single.square().isfinite().all()
    assert (single.softmax(-1)[0, :, [2, 4]] == 0).all()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_single_class_is_predicted_everywhere(name):
    """There is nothing to fit."""
    x, _ = digits(3)
    network = fitted_on(name, x, np.full(len(x), 2), 3)
    expected = np.tile([ABSENT, ABSENT, 0], (len(x), 1))
    np.testing.assert_array_equal(outputs_of(network, x), expected)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_rows_that_are_no_numbers_are_refused(name):
    """In one line."""
    x, y = digits(3)
    x[[5, 7], 3] = np.nan, np.inf
    message = f"network {name}: 2 of 300 training rows are not finite"
    with pytest.raises(InputError, match=message):
        fitted_on(name, x, y, 3)


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("present", [[0], [0, 2], [0, 1, 2]])
def test_a_state_holds_everything(name, present):
    """Within another module too, whatever was fitted there before; devices and types stay."""
    x, y = digits(3)
    kept = np.isin(y, present)
    network = fitted_on(name, x[kept], y[kept], 3, **CLASSIFIERS[name])
    for other in (build(name, 64, 3), fitted_on(name, x[:20], y[:20], 3, seed=5)):
        whole = torch.nn.ModuleDict({"head": other})
        state = {f"head.{key}": value for key, value in network.state_dict().items()}
        whole.load_state_dict(state)
        np.testing.assert_array_equal(outputs_of(other, x), outputs_of(network, x))
    with pytest.raises(RuntimeError, match="Unexpected key"):
        other.load_state_dict(network.state_dict() | {"further": torch.zeros(1)})


def test_blocks_of_rows_give_what_all_rows_give(monkeypatch):
    """Memory is bounded by blocks."""
    x, y = digits(3)
    network = fitted_on("random_forest", x, y, 3, trees=7)
    whole = outputs_of(network, x)
    monkeypatch.setattr(random_forest, "NUMBERS_AT_ONCE", 300)
    np.testing.assert_allclose(outputs_of(network, x), whole, rtol=1e-12, atol=1e-12)


MACHINES = {
    "logistic_regression": (LogisticRegression(max_iter=1000), "predict_proba"),
    "rbf_svm": (SVC(), "decision_function"),
    "random_forest": (RandomForestClassifier(7, random_state=drawn_seed()), "predict_proba"),
}


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("samples", [make_samples(classes=3), make_images(160, 8)])
def test_plain_training_fits_a_replicas_own_rows(name, samples):
    """Tables and images, preprocessed as for every network; predictions in float32."""
    cell = make_cell(seeds=(0,), network={"name": name, **CLASSIFIERS[name]}, precision="float32")
    (fitted,), (validation, *_), history, _ = training.train(samples, cell)
    train = samples.rows(fitted.split, "train")
    x = samples.arrays["x"].astype(np.float32)
    x = x / np.float32(255) if x.ndim > 2 else (x - x[train].mean(0)) / x[train].std(0)
    x = x.reshape(len(x), -1)
    machine, decide = MACHINES[name]
    machine.fit(x[train], samples.y[train])
    expected = getattr(machine, decide)(x[validation.rows])
    outputs = validation.outputs if decide != "predict_proba" else np.exp(validation.outputs)
    far = np.abs(outputs - expected).max(1) > (1e-5 if name == "rbf_svm" else 1e-3)
    # a row on a threshold may fall on its other side, since inputs differ by their rounding
    assert far.mean() <= (0.05 if name == "random_forest" else 0)
    assert history["epoch"].unique().tolist() == [0]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_checkpoint_holds_the_classifier(name):
    """A stack that goes on from it has nothing left to do."""
    samples = make_samples(classes=3)
    cell = make_cell(seeds=(0,), network={"name": name, **CLASSIFIERS[name]})
    first, second = (fitting.Stack(samples, cell, cell.replicas()) for _ in range(2))
    checkpoint = Checkpoint("toy", name)
    first.train_to_end(checkpoint)
    second.model.fit = None
    second.train_to_end(checkpoint)
    expected, restored = (stack.fitted(stack.replicas)[0].state for stack in (first, second))
    assert expected.keys() == restored.keys()
    for key, value in expected.items():
        assert value.dtype == restored[key].dtype
        np.testing.assert_array_equal(value, restored[key])


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_heads_are_refused(name):
    with pytest.raises(InputError, match=f"network {name}: has no head to train"):
        build(name, 4, 3).new_head(2, Randomness([0], "heads"))
