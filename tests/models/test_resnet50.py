"""ResNet-50: torchvision's own outputs, weights of files, frozen normalisation, bad files."""

from functools import cache

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torchvision.models import resnet50 as published
from torchvision.transforms.v2 import functional

from robust_fairness.bench.models.images import resnet50
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.core.errors import InputError


@cache
def theirs():
    """torchvision's network with statistics of its own."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = published(num_classes=7)
        for layer in net.modules():
            if isinstance(layer, nn.BatchNorm2d):
                nn.init.uniform_(layer.running_mean, -0.1, 0.1)
                nn.init.uniform_(layer.running_var, 0.8, 1.2)
    return net.eval()


@pytest.fixture(scope="module", params=["safetensors", "pth", "bare"])
def file(request, tmp_path_factory):
    """The same weights in three forms; one lacks the classifier and the counts of batches."""
    folder = tmp_path_factory.mktemp("weights")
    state = theirs().state_dict()
    if request.param == "safetensors":
        save_file(state, folder / "net.safetensors")
        return folder / "net.safetensors"
    if request.param == "bare":
        state = {
            name: weight
            for name, weight in state.items()
            if name[:3] != "fc." and not name.endswith("num_batches_tracked")
        }
    torch.save(state, folder / "net.pth")
    return folder / "net.pth"


def build(shape=(3, 40, 40), seed=0, **options):
    """A network of four classes."""
    parameters = resnet50.ResNet50.Parameters(**options)
    return resnet50.ResNet50(parameters, shape, 4, Randomness([seed], "weights"))


def rows(count=2, side=40):
    """Images in [0, 1]."""
    generator = torch.Generator().manual_seed(1)
    return torch.rand(1, count, 3, side, side, generator=generator)


def test_features_are_torchvisions_of_normalised_images(file):
    """From every form of file; the classifier of the file is not taken."""
    network, x = build(weights=file).eval(), rows()
    inputs = functional.normalize(x[0], [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    net = theirs()
    kept, net.fc = net.fc, nn.Identity()
    expected = net(inputs)
    net.fc = kept
    early, features = network.early(x), network.features(x)
    assert early.shape[:3] == (1, 2, network.early_width)
    assert features.shape == (1, 2, network.feature_width)
    torch.testing.assert_close(features[0], expected, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(network.head(network.late(early)), network(x))
    assert network(x).shape == (1, 2, 4)


def test_normalisation_is_an_option():
    """0.5 for both, as for faces, is [-1, 1]."""
    default, other, x = build().eval(), build(mean=[0.5] * 3, deviation=[0.5] * 3).eval(), rows()
    scaled = (2 * x - 1) * default.deviation + default.mean
    torch.testing.assert_close(other(x), default(scaled), rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="deviation.*\n.*greater than 0"):
        resnet50.ResNet50.Parameters(deviation=(0.1, 0.0, 1.0))


def test_statistics_of_a_file_stay_as_they_are(file):
    """Also in training; scales and shifts have gradients. Without a file batches are normalised."""
    frozen, free, x = build(weights=file).train(), build().train(), rows()
    for network in (frozen, free):
        network(x)
        network(x)
    names = [name for name in free.net.state_dict() if "running" in name]
    state = theirs().state_dict()
    assert all(frozen.net.state_dict()[name].equal(state[name]) for name in names)
    fresh = build().net.state_dict()
    assert not any(free.net.state_dict()[name].equal(fresh[name]) for name in names)
    torch.testing.assert_close(frozen(x), frozen.eval()(x))
    frozen.train()(x).sum().backward()
    assert frozen.net.bn1.weight.grad.any()
    assert frozen.top.layers.training


def test_trained_weights_need_no_file(tmp_path):
    """A saved model predicts where the file is gone."""
    path = tmp_path / "net.pth"
    torch.save(theirs().state_dict(), path)
    network, x = build(weights=path).eval(), rows()
    expected = network(x)
    states = network.replica_states()
    path.unlink()
    again = build(weights=path, seed=1).eval()
    with pytest.raises(InputError, match=r"net.pth: cannot be read: No such file"):
        again(x)
    again.load_replica_states(states)
    assert again(x).equal(expected)


def test_small_images_are_allowed_where_no_batch_is_normalised():
    build((3, 32, 64), weights="net.pth")


def test_second_derivatives_exist():
    """That curvature takes."""
    network, x = build().eval(), rows(1, 33).requires_grad_()
    (gradient,) = torch.autograd.grad(network(x).square().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), x)
    assert second.isfinite().all()
    assert second.any()


def test_bad_files_are_refused(tmp_path):
    """In one line; what readers of weights refuse: generation/test_conversion.py."""
    whole = {name: weight for name, weight in theirs().state_dict().items() if name[:3] != "fc."}
    without = {name: weight for name, weight in whole.items() if name != "layer1.0.conv1.weight"}
    narrow = whole | {"conv1.weight": torch.zeros(64, 1, 7, 7)}
    told = {
        "text.pth": (b"no weights", "is truncated or damaged, allowed: a plain"),
        "text.safetensors": (b"no weights", "corrupted safetensors file"),
        "nested.pth": ({"state_dict": whole}, "must be a dictionary of weights by name"),
        "without.pth": (
            without,
            "1 weights are missing, first layer1.0.conv1.weight; allowed: the",
        ),
        "unknown.pth": (
            whole | {"layer9.bias": torch.zeros(1)},
            "1 weights are unknown, first layer9.bias",
        ),
        "narrow.pth": (narrow, r"conv1.weight has shape \(64, 1, 7, 7\), allowed: \(64, 3, 7, 7\)"),
    }
    network = build(weights="absent.pth")
    for name, (content, message) in told.items():
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            torch.save(content, path)
        network.unread = path
        before = network.net.conv1.weight.clone()
        with pytest.raises(InputError, match=f"{name}: .*{message}") as caught:
            network(rows())
        assert "\n" not in str(caught.value)
        assert network.net.conv1.weight.equal(before)
    with pytest.raises(ValueError, match=r"allowed: a name that ends in .safetensors, .pth, .pt"):
        resnet50.ResNet50.Parameters(weights="net.pkl")
