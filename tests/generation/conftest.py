"""Small generators, and how good trained ones are."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from robust_fairness.bench.generation import edm, generator, unet
from robust_fairness.bench.generation.fitting import GeneratorParameters
from robust_fairness.bench.generation.generator import Generator, GeneratorSettings

NETWORK = unet.UNetParameters(channels=(8, 16), groups=4)
CLASSES = ("dark", "light", "striped")


def make_generator(seed: int = 0, **settings) -> Generator:
    """An untrained generator of 4 x 4 images whose network does not answer zero."""
    values = {
        "classes": CLASSES,
        "shape": (1, 4, 4),
        "network": NETWORK,
        "sampler": edm.Sampler(steps=3),
    }
    made = GeneratorSettings.model_validate({**values, **settings})
    weights = made.build(seed).unet.state_dict()
    draws = torch.Generator().manual_seed(seed)
    for name in ("conv_out.weight", "conv_out.bias"):
        weights[name] = torch.randn(weights[name].shape, generator=draws) * 0.1
    return Generator(made, weights, "cpu")


def make_images(count: int = 90) -> tuple[torch.Tensor, torch.Tensor]:
    """Images of three classes that a glance tells apart, with a little noise."""
    draws = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % 3
    stripes = torch.tensor([20, 230]).repeat(2).expand(4, 4)
    plain = torch.stack([torch.full((4, 4), 20), torch.full((4, 4), 230), stripes])
    noise = torch.randint(-15, 16, (count, 1, 4, 4), generator=draws)
    return (plain[labels][:, None] + noise).to(torch.uint8), labels


def make_parameters(**changes) -> GeneratorParameters:
    """A training of some steps."""
    values = {"network": NETWORK, "images": 400, "batch_size": 20, "sampler": {"steps": 6}}
    return GeneratorParameters.model_validate({**values, "device": "cpu", **changes})


def recognised(trained: Generator) -> float:
    """Share of 200 generated digits that a classifier of the real ones assigns to their class."""
    digits = load_digits()
    classifier = SVC(C=10).fit(digits.data / 16, digits.target)
    images = trained.grid(20).numpy().reshape(200, -1) / 255
    return float((classifier.predict(images) == np.repeat(np.arange(10), 20)).mean())


@pytest.fixture
def full_disk(monkeypatch) -> None:
    """Files of generators are written by half."""

    def full(tensors, path, metadata):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(generator, "save_file", full)
