"""What every network promises: weights by the seed, parameters in JSON, rows that do not fit."""

import json

import numpy as np
import pytest
import torch

from robust_fairness.bench import training
from robust_fairness.bench.models.randomness import Randomness
from robust_fairness.bench.training.prediction import predict
from robust_fairness.catalog.arrays import ModelsDataset
from robust_fairness.core.errors import InputError
from robust_fairness.core.registry import find
from tests.training.conftest import make_cell, make_samples
from tests.training.test_images import make_images

from .test_embedding import REBALANCINGS
from .test_embedding import SMALL as BACKBONE
from .test_fitted_classifiers import CLASSIFIERS
from .test_image_networks import CONVOLUTIONAL, SMALL, TRANSFORMERS
from .test_updn import SHAPE, SIZES

IMAGES = (1, 8, 8)
NETWORKS = {
    **{name: (options, IMAGES) for name, options in SMALL.items()},
    "biased_mnist_cnn": ({}, (3, 9, 9)),
    "resnet50": ({}, (3, 40, 40)),
    "embedding": ({"backbone": BACKBONE}, IMAGES),
    "kernel_features": ({}, (5,)),
    "updn": (SIZES, SHAPE),
}
GLOVE = {"word_vectors": "some/glove.txt"}
PRETRAINED = {"weights": "some/net.pth", "mean": (0.5, 0.5, 0.5)}
CONTINUOUS = ".*(not applicable to|regressor of) a continuous"
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
        *((name, (4,), {}, CONTINUOUS) for name in CLASSIFIERS),
        ("updn", SHAPE, SIZES, CONTINUOUS),
        (
            "embedding", IMAGES, {"backbone": BACKBONE, "classifier": "k_means"},
            f"classifier k_means: {CONTINUOUS}",
        ),
    ],
)  # fmt: skip
def test_rows_and_outcomes_that_do_not_fit_are_refused(name, shape, options, message):
    with pytest.raises(InputError, match=f"network {name}: {message}") as caught:
        build(name, shape, options, 1 if message.endswith(CONTINUOUS) else 3)
    assert "\n" not in str(caught.value)


EMBEDDING = {"name": "embedding", "dimensions": 5}
OF_IMAGES = EMBEDDING | {"backbone": BACKBONE}
# What is trained: the method, the network, and whether the rows are images.
SAVED = {
    **{name: ("cuma", {"name": name, **options}, True) for name, options in SMALL.items()},
    **{name: ("cuma", {"name": name}, False) for name in ("linear", "kernel_features")},
    **{name: ("erm", {"name": name, **options}, False) for name, options in CLASSIFIERS.items()},
    **{
        f"{name}, {rebalancing}": (
            "metric_learning",
            OF_IMAGES | {"classifier": name, "rebalancing": rebalancing},
            True,
        )
        for name in CLASSIFIERS
        for rebalancing in REBALANCINGS
    },
    "embedding of images": ("adv_debias", OF_IMAGES, True),
    "embedding of a table": ("adv_debias", EMBEDDING | {"backbone": "mlp"}, False),
}


@pytest.mark.parametrize("case", SAVED)
def test_what_is_saved_predicts_the_same(case, tmp_path):
    """From the file of a cell's models, the whole state; curvature where there is a gradient."""
    method, network, of_images = SAVED[case]
    samples = make_images(96, 16) if of_images else make_samples(classes=3)
    fields = {"metrics": ("accuracy", "delta_er", "delta_er_one_shot")}
    options = {"epochs": 1, "precision": "float32"}
    cell = make_cell(method, seeds=(0, 1), network=network, fields=fields, **options)
    fitted, validation, history, _ = training.train(samples, cell)
    assert np.isfinite(history["value"]).all()
    dataset = ModelsDataset(filepath=str(tmp_path / "models.safetensors"))
    dataset.save(fitted)
    again = dataset.load()
    part = predict(samples, again, cell, {"": samples}, "val")
    seen_before = [item for item in validation if item.part == "val"]
    for predicted, seen in zip(part, seen_before, strict=True):
        np.testing.assert_array_equal(predicted.outputs, seen.outputs)
    for tested in predict(samples, again, cell, {"": samples}):
        assert ("curvature" in tested.values) == (method in ("cuma", "adv_debias"))
        assert np.isfinite(tested.values.get("curvature", 0.0)).all()
