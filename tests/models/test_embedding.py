"""Embeddings: pieces, classifiers of frozen embeddings, rebalancing, states, descriptions."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from torch.nn import functional

from robust_fairness.bench.models.embeddings import embedding
from robust_fairness.bench.models.layers import ABSENT
from robust_fairness.bench.models.randomness import DropoutNoise, Randomness
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find

SMALL = {"name": "resnet20", "widths": (4, 8), "blocks": 1}
FITTED = ("logistic_regression", "rbf_svm", "k_means", "random_forest")
REBALANCINGS = ("none", "oversampling", "domain_independent")


def build(shape=(3, 8, 8), outputs=3, seed=0, backbone=SMALL, **options):
    """A network of few dimensions."""
    parameters = embedding.Embedding.Parameters(backbone=backbone, **{"dimensions": 5} | options)
    return embedding.Embedding(parameters, shape, outputs, Randomness([seed], "weights"))


def rows(shape=(3, 8, 8), count=6, seed=0):
    """Noise in [0, 1]."""
    return torch.rand(1, count, *shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(
    ("backbone", "shape", "width"),
    [
        (SMALL, (3, 8, 8), 8),
        ("resnet18", (3, 16, 16), 256),
        ("resnet50", (3, 40, 40), 2048),
        ({"name": "vision_transformer", "width": 8, "heads": 2, "depth": 2}, (1, 8, 8), 8),
        ({"name": "mlp", "hidden": 12, "features": 7}, (4,), 7),
        ("linear", (4,), 4),
    ],
)
def test_pieces_fit_together(backbone, shape, width):
    """Whatever the backbone: its features are averaged, projected and of length 1."""
    network, x = build(shape, backbone=backbone).eval(), rows(shape, 3)
    shared, features = network.shared(x), network.features(x)
    assert shared.shape == (1, 3, width)
    assert network.shared_width == width
    below = network.backbone.features(x)
    torch.testing.assert_close(shared, below if below.ndim == 3 else below.mean((-1, -2)))
    weight, bias = network.projection.layers.weight, network.projection.layers.bias
    expected = functional.normalize(shared @ weight.T + bias, dim=-1)
    torch.testing.assert_close(network.embed(shared), expected)
    torch.testing.assert_close(features, expected)
    torch.testing.assert_close(network.late(network.early(x)), expected)
    assert features.shape == (1, 3, network.feature_width)
    torch.testing.assert_close(network(x), network.head(features))
    assert network.early(x).shape[2] == network.early_width
    other = network.new_projection(Randomness([1], "heads"))
    torch.testing.assert_close(
        network.embed(shared, other), functional.normalize(other(shared), dim=-1)
    )
    plain = build(shape, backbone=backbone, normalised=False).eval()
    torch.testing.assert_close(plain.features(x), shared @ weight.T + bias)


def test_gradients_reach_every_weight_and_none_is_idle():
    """The backbone's own head is not there."""
    network = build(dimensions=4)
    outputs = network(rows(count=12), DropoutNoise(Randomness([0], "dropout")))[0]
    functional.cross_entropy(outputs, torch.arange(12) % 3).backward()
    assert [name for name, weight in network.named_parameters() if not weight.grad.any()] == []
    assert not [name for name, _ in network.named_parameters() if name.startswith("backbone.top")]


def test_initial_weights_do_not_depend_on_the_classifier():
    """Trials that differ in it start and end with the same embedding."""
    linear, other = build().state_dict(), build(classifier="k_means").state_dict()
    assert {name for name in linear if name not in other} == {
        "top.layers.weight",
        "top.layers.bias",
    }
    assert all(linear[name].equal(value) for name, value in other.items())
    assert not linear["projection.layers.weight"].equal(
        build(seed=1).state_dict()["projection.layers.weight"]
    )


def test_metrics_read_embeddings_of_any_length_where_the_network_says_so():
    """Otherwise of length 1."""
    network, x = build(normalised=False).eval(), rows()
    torch.testing.assert_close(network.embedding(x), network.features(x))
    assert (network.embedding(x).norm(dim=-1) - 1).abs().max() > 0.1
    lengths = build().eval().embedding(x).norm(dim=-1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths))


def test_piecewise_linear_only_where_it_is():
    """Without normalisation, with the linear layer."""
    assert build(normalised=False).piecewise_linear
    assert not build().piecewise_linear
    assert build(normalised=False, classifier="k_means").piecewise_linear is None


def problem(classes=3, count=150):
    """Real digits as embeddings, classes, and groups that lean on them; some are missing."""
    x, y = load_digits(n_class=classes, return_X_y=True)
    group = (y + (np.arange(len(y)) % 3 == 0)) % 2
    group[::11] = -1
    x = torch.tensor(x[None, :count] / 16)
    return x, torch.tensor(y[None, :count]), torch.tensor(group[None, :count])


def fitted(classes=3, seed=0, data=None, **options):
    """A network whose classifier is fitted on digits, as if these were embeddings."""
    network = build(outputs=classes, seed=seed, dimensions=64, **options).double()
    network.fit_classifier(*(data or problem(classes)))
    return network


@pytest.mark.parametrize("name", FITTED)
def test_classifier_is_the_network_of_that_name(name):
    """With its defaults, on these rows."""
    x, y, group = problem()
    module = find("network", name)
    alone = module(module.Parameters(), (64,), 3, Randomness([0], "heads"))
    alone.fit(x, y)
    network = fitted(classifier=name)
    assert network.head(x).equal(alone.head(x))
    assert (network.head(x).argmax(-1) == y).double().mean() > 0.8
    kept = network.top
    network.fit_classifier(x, y, group)
    assert network.top is not kept
    assert network.head(x).equal(alone.head(x))


def test_outputs_before_the_fit_are_refused():
    """So that no method of steps trains without a head."""
    network, x = build(classifier="rbf_svm"), rows()
    assert not network.has_outputs
    assert network.features(x).shape == (1, 6, 5)
    message = "classifier rbf_svm is fitted on the embeddings of a trained network .*: linear"
    with pytest.raises(InputError, match=message):
        network(x)
    assert build().has_outputs
    assert fitted(classifier="rbf_svm").has_outputs


def test_oversampling_makes_groups_equal():
    """All rows are kept, only their own are drawn again, and rows without a group stand once."""
    group = torch.tensor([0] * 50 + [2] * 7 + [-1] * 5 + [1] * 20)
    (places,) = embedding.rebalanced("oversampling", group, Randomness([0], "heads"))
    counts = {int(number): int((group[places] == number).sum()) for number in group.unique()}
    assert counts == {-1: 5, 0: 50, 1: 50, 2: 50}
    assert set(places.tolist()) == set(range(len(group)))
    seen = places.bincount()
    assert (seen[group <= 0] == 1).all()
    assert len(seen[group == 2].unique()) > 1
    (again,) = embedding.rebalanced("oversampling", group, Randomness([0], "heads"))
    (other,) = embedding.rebalanced("oversampling", group, Randomness([1], "heads"))
    assert again.equal(places)
    assert not other.equal(places)


def test_oversampled_classifier_is_scikit_learns_of_these_rows():
    """The logistic regression of the rows that were drawn."""
    x, y, group = problem()
    network = fitted(classifier="logistic_regression", rebalancing="oversampling")
    (places,) = embedding.rebalanced("oversampling", group[0], Randomness([0], "heads"))
    machine = LogisticRegression(max_iter=1000).fit(x[0, places], y[0, places])
    np.testing.assert_allclose(network.head(x)[0].exp(), machine.predict_proba(x[0]), atol=1e-9)
    assert len(network.top) == 1


def test_domain_independent_sums_over_groups():
    """scikit-learn's regressions of every group, of whose rows those without one are none."""
    x, y, group = problem()
    network = fitted(classifier="logistic_regression", rebalancing="domain_independent")
    assert len(network.top) == 2
    expected = sum(
        LogisticRegression(max_iter=1000)
        .fit(x[0, group[0] == number], y[0, group[0] == number])
        .predict_log_proba(x[0])
        for number in (0, 1)
    )
    np.testing.assert_allclose(network.head(x)[0], expected, atol=1e-9)


def test_a_class_that_a_group_lacks_has_its_lowest_output():
    """So that the order of classes does not hang on a number added to a group's outputs."""
    x, y, _ = problem(5, 250)
    y[y == 4] = 3
    group = (y == 2).long() + (y == 1).long()  # classes 1 and 2 against 0 and 3; none has 4
    network = fitted(
        5, data=(x, y, group), classifier="logistic_regression", rebalancing="domain_independent"
    )
    outputs, parts = network.head(x)[0].numpy(), []
    for number, present in ((0, [0, 3]), (1, [1, 2])):
        chosen = group[0] == number
        half = LogisticRegression(max_iter=1000).fit(x[0, chosen], y[0, chosen])
        logits = half.predict_log_proba(x[0])
        part = np.tile(logits.min(1, keepdims=True), (1, 5))
        part[:, present] = logits
        parts.append(part)
    np.testing.assert_allclose(outputs[:, :4], sum(parts)[:, :4], atol=1e-9)
    assert (outputs[:, 4] == ABSENT).all()
    assert (outputs.argmax(1) == y[0].numpy()).mean() > 0.6


def test_a_class_that_a_group_lacks_may_have_no_probability():
    """Posteriors of scikit-learn's regressions, summed, with 0 for the classes that they lack."""
    x, y, _ = problem(4, 250)
    group = (y == 2).long() + (y == 1).long()
    network = fitted(
        4, data=(x, y, group), classifier="logistic_regression",
        rebalancing="domain_independent", absent_classes="no_probability",
    )  # fmt: skip
    expected = np.zeros((x.shape[1], 4))
    for number, present in ((0, [0, 3]), (1, [1, 2])):
        chosen = group[0] == number
        machine = LogisticRegression(max_iter=1000).fit(x[0, chosen], y[0, chosen])
        expected[:, present] += machine.predict_proba(x[0]) / 2
    np.testing.assert_allclose(network.head(x)[0].exp(), expected, atol=1e-7)


@pytest.mark.parametrize("rebalancing", REBALANCINGS[1:])
def test_groups_that_nobody_knows_are_refused(rebalancing):
    """In one line."""
    x, y, group = problem()
    with pytest.raises(InputError, match=f"rebalancing {rebalancing} needs rows of a known group"):
        fitted(data=(x, y, group * 0 - 1), classifier="k_means", rebalancing=rebalancing)


def test_another_classifier_after_the_same_training():
    """Equals the one of a network that was built for it."""
    data = problem()
    network = fitted(classifier="rbf_svm")
    wanted = network.hparams.model_copy(
        update={"classifier": "k_means", "rebalancing": "oversampling"}
    )
    network.hparams = wanted
    network.fit_classifier(*data)
    expected = fitted(classifier="k_means", rebalancing="oversampling")
    assert network.head(data[0]).equal(expected.head(data[0]))
    (state,), (other,) = network.replica_states(), expected.replica_states()
    assert state.keys() == other.keys()
    assert all(value.equal(other[name]) for name, value in state.items())


def test_a_checkpoint_holds_as_many_classifiers_as_were_fitted():
    """Taken by a network that has none, or another number."""
    x, _, _ = problem()
    options = {"classifier": "logistic_regression"}
    fits = [fitted(**options, rebalancing=name) for name in REBALANCINGS]
    states = [
        {key: value.clone() for key, value in network.state_dict().items()} for network in fits
    ]
    outputs = [network.head(x) for network in fits]
    for other in (*fits, build(outputs=3, dimensions=64, **options).double()):
        for state, expected in zip(states, outputs, strict=True):
            other.load_state_dict(state)
            assert other.head(x).equal(expected)
    assert not outputs[0].equal(outputs[1])


def test_a_continuous_outcome_has_the_linear_layer():
    assert build(outputs=1)(rows()).shape == (1, 6, 1)
    with pytest.raises(InputError, match="network resnet20: rows have shape"):
        build((5,))
