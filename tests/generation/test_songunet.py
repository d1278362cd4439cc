"""DDPM++ and NCSN++: agreement with the authors' network, and published files."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from robust_fairness.bench.generation import edm, generator, songunet
from robust_fairness.bench.generation.conversion import convert
from robust_fairness.core.errors import InputError

KINDS = ("ddpmpp", "ncsnpp")
GOLDEN = Path(__file__).parent


@pytest.fixture(scope="module")
def reference() -> tuple[dict, dict[str, Tensor]]:
    """Settings and tensors of NVlabs/edm @ 008a4e53, computed in its own environment."""
    kinds = json.loads((GOLDEN / "songunet_golden.json").read_text())["kinds"]
    files = (load_file(GOLDEN / f"songunet_{kind}.safetensors") for kind in KINDS)
    return kinds, {name: tensor for file in files for name, tensor in file.items()}


def converted(reference, kind: str, folder: Path, **changes: object) -> Path:
    kinds, tensors = reference
    start = f"{kind}/weights/"
    weights = {
        name.removeprefix(start): tensor
        for name, tensor in tensors.items()
        if name.startswith(start)
    }
    save_file(weights, folder / "exported.safetensors")
    settings = kinds[kind]["init_kwargs"] | changes
    convert(folder / "exported.safetensors", folder / "out.safetensors", settings)
    return folder / "out.safetensors"


@pytest.mark.parametrize("kind", KINDS)
def test_network_and_sampler_agree_with_the_authors(reference, kind: str, tmp_path: Path) -> None:
    made = generator.load(converted(reference, kind, tmp_path), "cpu")
    x, sigma, labels, denoised, latents, images = (
        reference[1][f"{kind}/{name}"]
        for name in ("x", "sigma", "labels", "denoised", "latents", "images")
    )
    assert made.settings.sampler == edm.Sampler(steps=18)
    with torch.inference_mode():
        computed = made._denoiser(x, sigma, labels.argmax(1))
        levels = edm.schedule(made.settings.sampler)
        sampled = edm.heun(made._denoiser, latents.double(), labels.argmax(1), levels)
    assert denoised.std() > 0.1
    torch.testing.assert_close(computed, denoised, rtol=0, atol=1e-5)
    torch.testing.assert_close(sampled.float(), images.float(), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("kind", "millions"), [("ddpmpp", 55.7), ("ncsnpp", 62.8)])
def test_file_of_the_published_shapes_loads(
    reference, kind: str, millions: float, tmp_path: Path
) -> None:
    size = reference[0][kind]["published_size"]
    architecture = {"ddpmpp": "ddpm++", "ncsnpp": "ncsn++"}[kind]
    weights = {
        name: songunet.kernel(architecture) if "resample_filter" in name else torch.zeros(shape)
        for name, shape in size["state_dict"].items()
    }
    count = sum(
        tensor.numel() for name, tensor in weights.items() if not name.endswith(("filter", "freqs"))
    )
    assert count == size["parameters"] and round(count / 1e6, 1) == millions
    save_file(weights, tmp_path / "cifar10.safetensors")
    settings = reference[0][kind]["init_kwargs"] | {
        "model_channels": size["model_channels"],
        "num_blocks": size["num_blocks"],
    }
    output = tmp_path / "out.safetensors"
    convert(tmp_path / "cifar10.safetensors", output, settings)
    made = generator.load(output, "cpu")
    assert made.shape == (3, 32, 32) and len(made.classes) == 10


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"embedding_type": "fourier"}, r"a network of \('fourier', 'standard'.*allowed: "),
        ({"encoder_type": "skip"}, "encoder_type: "),
        ({"channel_mult": [2, 2]}, r"weights are missing, first dec.16x16_in0"),
        ({"attn_resolutions": [8]}, "weights are missing"),
        ({"attn_resolutions": [5]}, r"network.attention: \(5,\), allowed: .*\[32, 16, 8\]"),
        ({"label_dim": 9}, r"map_label.weight has shape"),
    ],
)
def test_settings_that_do_not_fit_are_named(
    reference, changes: dict[str, object], words: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=words) as error:
        converted(reference, "ddpmpp", tmp_path, **changes)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out.safetensors").exists()


def test_another_filter_is_refused(reference, tmp_path: Path) -> None:
    tensors = {
        name: 2 * tensor if name.endswith("16x16_down.skip.resample_filter") else tensor
        for name, tensor in reference[1].items()
    }
    with pytest.raises(InputError, match=r"resample_filter is not the filter of ncsn\+\+"):
        converted((reference[0], tensors), "ncsnpp", tmp_path)
