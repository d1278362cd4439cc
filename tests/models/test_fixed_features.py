"""Networks with one linear head on fixed features."""

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import rbf_kernel

from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.models.tables import kernel_features, linear
from robust_fairness.bench.training import train
from tests.training.conftest import make_cell, make_samples

NETWORKS = {"linear": linear.LinearNetwork, "kernel_features": kernel_features.KernelFeatures}


def build(name, seeds=(3, 4, 3), **options):
    """A stack of networks on five inputs."""
    module = NETWORKS[name]
    randomness = Randomness(seeds, "weights")
    return module(module.Parameters(**options), (5,), 2, randomness)


def rows(count=6):
    """Inputs of a stack of three, the same for all."""
    x = torch.randn(count, 5, generator=torch.Generator().manual_seed(0))
    return x.expand(3, count, 5)


def test_linear_network_is_an_affine_map():
    """Of the inputs, which are its features."""
    network, x = build("linear"), rows()
    assert network.features(x).equal(x)
    expected = x[1] @ network.top.weight[1] + network.top.bias[1]
    torch.testing.assert_close(network(x)[1], expected)
    assert network.early_width == network.feature_width == 5


@pytest.mark.parametrize("width", [None, 1.3])
def test_inner_products_of_features_approximate_the_gaussian_kernel(width):
    """scikit-learn's kernel; the width is the root mean squared distance unless given."""
    network, x = build("kernel_features", features=40000, width=width), rows()
    features = network.features(x)[1].detach().numpy()
    gamma = 1 / (2 * (width or np.sqrt(10)) ** 2)
    np.testing.assert_allclose(features @ features.T, rbf_kernel(x[1], gamma=gamma), atol=0.03)


def test_features_depend_on_the_seed_and_are_not_trained():
    """Replicas of one seed share them; only the head has parameters."""
    network = build("kernel_features", features=20)
    assert network.frequencies[0].equal(network.frequencies[2])
    assert not network.frequencies[0].equal(network.frequencies[1])
    assert {name for name, _ in network.named_parameters()} == {"top.weight", "top.bias"}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("classes", [0, 3])
@pytest.mark.parametrize("method", ["erm", "adv_debias", "cuma"])
def test_other_methods_train_and_predict_with_them(name, classes, method):
    """A stack is its replicas one by one, and its saved replicas predict."""
    samples = make_samples(classes=classes)
    options = {"network": {"name": name}, "epochs": 2}
    fitted, validation, _, _ = train(samples, make_cell(method, seeds=(0, 1), **options))
    for replica in fitted:
        (alone,), _, _, _ = train(samples, make_cell(method, seeds=(replica.seed,), **options))
        assert (
            max(np.abs(replica.state[key] - alone.state[key]).max() for key in replica.state) < 1e-9
        )
    assert all(np.isfinite(scored.outputs).all() for scored in validation)
