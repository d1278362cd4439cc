"""The generator of photographs: real CIFAR-10 at half its size, and the network of conf/paper."""

from math import prod
from pathlib import Path

import torch
import yaml

from robust_fairness.bench.datasets.images import cifar10
from robust_fairness.bench.generation import generator as files
from robust_fairness.bench.generation import unet
from robust_fairness.bench.generation.fitting import GeneratorParameters, fit
from robust_fairness.core.raw_files import Files

ROOT = Path(__file__).parents[2]
PAPER = yaml.safe_load((ROOT / "conf" / "base" / "parameters.yml").read_text())["generators"]
# the options of the large one, at sizes that a CPU trains
SMALL = {
    "images": 1_000,
    "batch_size": 12,
    "learning_rate": 0.004,
    "ramp_up": 100,
    "device": "cpu",
    "network": {
        **PAPER["cifar10_edm"]["training"]["network"],
        "channels": [8, 16],
        "layers": 1,
        "attention": [8],
        "head_width": 8,
        "groups": 4,
    },
    "sampler": {"steps": 4},
}


def test_photographs_of_16_pixels_are_learnt_kept_and_decoded(shared_data, tmp_path):
    """Every option of the large training, on real images of three channels."""
    images = cifar10.Cifar10.Parameters(
        train_files=("cifar10/cifar10_train_a_10k.npz",),
        test_files=("cifar10/cifar10_test_5k.npz",),
    )
    samples = cifar10.Cifar10(images).load(Files(shared_data), 1)
    rows = samples.rows(samples.split_names[0], "train")[:600]
    halves = torch.nn.functional.avg_pool2d(torch.from_numpy(samples.x[rows]).float(), 2).round()
    parameters = GeneratorParameters.model_validate({**PAPER["cifar10_edm"]["training"], **SMALL})
    labels = torch.from_numpy(samples.y[rows])
    made, curve = fit(parameters, halves.to(torch.uint8), labels, samples.classes, "photographs")
    assert curve["loss"].iloc[-20:].mean() < 0.7 * curve["loss"].iloc[:5].mean()
    made.save(tmp_path / "small.safetensors")
    latents = torch.randn(20, *made.shape, generator=torch.Generator().manual_seed(0))
    decoded = made.decode(latents, torch.arange(20) % 10)
    assert decoded.shape == (20, 3, 16, 16)
    assert decoded.float().std() > 20  # of 0 to 255: neither grey nor noise of one level
    again = files.load(tmp_path / "small.safetensors", "cpu", samples.classes)
    assert torch.equal(again.decode(latents, torch.arange(20) % 10), decoded)


def test_the_network_of_the_paper_preset_fits_photographs_of_32_pixels():
    """Counted without memory for its weights; as many as the published network has, about."""
    parameters = GeneratorParameters.model_validate(PAPER["cifar10_edm"]["training"])
    options = unet.options(parameters.network, 3, (32, 32), 10)
    from diffusers import UNet2DModel

    with torch.device("meta"):
        network = UNet2DModel(**options)
    count = sum(prod(weight.shape) for weight in network.parameters())
    assert 30e6 < count < 80e6
