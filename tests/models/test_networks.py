"""What every network promises: weights by the seed, parameters in JSON, rows that do not fit."""

import json

import pytest
import torch

from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find

from .test_embedding import SMALL as BACKBONE
from .test_fitted_classifiers import CLASSIFIERS
from .test_image_networks import CONVOLUTIONAL, SMALL, TRANSFORMERS
from .test_updn import SHAPE, SIZES

IMAGES = (1, 8, 8)
NETWORKS = {
    **{name: (options, IMAGES) for name, options in SMALL.items()},
    "resnet50": ({}, (3, 40, 40)),
    "embedding": ({"backbone": BACKBONE}, IMAGES),
    "kernel_features": ({}, (5,)),
    "updn": (SIZES, SHAPE),
}
GLOVE = {"word_vectors": "some/glove.txt"}
PRETRAINED = {"weights": "some/net.pth", "mean": (0.5, 0.5, 0.5)}
BAD_ROWS = r"rows have shape \(5,\), allowed: channels"


def build(name, shape, options, outputs=3, seed=0):
    network = find("network", name)
    return network(network.Parameters(**options), shape, outputs, Randomness([seed], "weights"))


@pytest.mark.parametrize("name", NETWORKS)
def test_initial_weights_come_from_the_seed_alone(name):
    """Whatever torch's own generator did before."""
    options, shape = NETWORKS[name]
    first = build(name, shape, options).state_dict()
    torch.rand(7)
    again, other = (build(name, shape, options, seed=seed).state_dict() for seed in (0, 1))
    assert all(first[key].equal(again[key]) for key in first)
    changed = {key for key in first if not first[key].equal(other[key])}
    assert {key.startswith("top.") for key in changed} == {True, False}
    if name == "updn":
        assert {"fuse.words.weight", "top.linear.bias"} <= changed
        assert not first["fuse.words.weight"][0].any()


@pytest.mark.parametrize(
    ("name", "options", "description", "files"),
    [
        ("linear", {}, "linear", []),
        ("resnet50", {}, "resnet50", []),
        ("resnet50", PRETRAINED, "resnet50, pretrained", ["some/net.pth"]),
        ("updn", SIZES, "updn", []),
        ("updn", SIZES | GLOVE, "updn, pretrained words", ["some/glove.txt"]),
        ("embedding", {}, "embedding of resnet20", []),
        (
            "embedding",
            {"backbone": {"name": "resnet50", **PRETRAINED}},
            "embedding of resnet50, pretrained",
            ["some/net.pth"],
        ),
    ],
)
def test_parameters_go_through_json(name, options, description, files):
    """As the file of a model keeps them."""
    network = find("network", name)
    parameters = network.Parameters(**options)
    kept = json.loads(json.dumps(parameters.model_dump()))
    assert network.Parameters.model_validate(kept) == parameters
    assert network.describe(parameters) == description
    assert [str(path) for path in network.files(parameters)] == files
    with pytest.raises(ValueError, match="extra"):
        network.Parameters(unknown=2)


@pytest.mark.parametrize(
    ("name", "shape", "options", "message"),
    [
        *((name, (5,), options, BAD_ROWS) for name, options in SMALL.items()),
        *(
            (name, (1, 8, 3), SMALL[name], "images of 8 x 3, allowed .* of 4 and")
            for name in CONVOLUTIONAL
        ),
        *((name, IMAGES, {"patch": 3}, "images of 8 x 8 and patch 3") for name in TRANSFORMERS),
        *((name, (1, 9, 9), {}, "images of 9 x 9 and patch 2") for name in TRANSFORMERS),
        ("vision_transformer", (1, 8, 16), {}, "images of 8 x 16, allowed: square images"),
        ("resnet50", (5,), {}, BAD_ROWS),
        ("resnet50", (1, 64, 64), {}, "images of 1 channels, allowed: 3"),
        ("resnet50", (3, 32, 64), {}, "images of 32 x 64, .*sides of 33 and more"),
        ("linear", (3, 8, 8), {}, r"rows have shape \(3, 8, 8\), allowed: one axis of features"),
        ("kernel_features", (3, 8, 8), {}, r"rows have shape \(3, 8, 8\), allowed: one axis of"),
        ("updn", (6,), SIZES, "rows are other rows, allowed: questions on im"),
    ],
)
def test_rows_that_do_not_fit_are_refused(name, shape, options, message):
    with pytest.raises(InputError, match=f"network {name}: {message}") as caught:
        build(name, shape, options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [
        *((name, (4,), {}) for name in CLASSIFIERS),
        ("updn", SHAPE, SIZES),
        ("embedding", IMAGES, {"backbone": BACKBONE, "classifier": "k_means"}),
    ],
)
def test_continuous_outcomes_are_refused(name, shape, options):
    message = (
        f"network {name}: (classifier k_means: |.*)(not applicable to|regressor of) a continuous"
    )
    with pytest.raises(InputError, match=message):
        build(name, shape, options, outputs=1)
