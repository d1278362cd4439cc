"""A generator as a file and as a decoder."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from robust_fairness.bench.generation import edm
from robust_fairness.bench.generation.generator import Generator, load
from robust_fairness.core.errors import InputError
from tests.generation.conftest import CLASSES, make_generator


def latents_and_labels(count: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    draws = torch.Generator().manual_seed(5)
    return torch.randn(count, 1, 4, 4, generator=draws), torch.arange(count) % 3


def test_a_saved_generator_decodes_the_same(tmp_path):
    path, made = tmp_path / "deep" / "generator.safetensors", make_generator()
    made.save(path)
    again = load(path, "cpu", CLASSES)
    assert again.settings == made.settings
    assert again.fingerprint == made.fingerprint
    assert torch.equal(again.decode(*latents_and_labels()), made.decode(*latents_and_labels()))
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with safe_open(path, framework="pt") as file:
        assert "conv_in.weight" in file.keys()  # noqa: SIM118 - not a dictionary


def test_a_generator_keeps_weights_of_its_own():
    """Those that it was made of may be trained further."""
    first = make_generator()
    weights = {name: weight.clone() for name, weight in first.weights.items()}
    second = Generator(first.settings, weights, "cpu")
    before = second.decode(*latents_and_labels())
    for weight in weights.values():
        weight.add_(1)
    assert torch.equal(second.decode(*latents_and_labels()), before)
    assert second.fingerprint == first.fingerprint


def test_decoding_is_heuns_method_on_the_denoiser():
    """Written out with the functions that the other tests check, the network from its weights."""
    made = make_generator()
    network = made.settings.build()
    network.unet.load_state_dict(made.weights)
    latents, labels = latents_and_labels()
    with torch.no_grad():
        denoiser = edm.Denoiser(network, edm.Preconditioning())
        images = edm.heun(denoiser, latents, labels, edm.schedule(edm.Sampler(steps=3)))
    expected = np.clip(np.rint((images.numpy() + 1) * 127.5), 0, 255).astype(np.uint8)
    pixels = made.decode(latents, labels)
    assert pixels.dtype == torch.uint8
    np.testing.assert_array_equal(pixels.numpy(), expected)
    assert len(np.unique(expected)) > 10


def test_fingerprint_tells_weights_settings_and_sampler_apart():
    made = make_generator()
    nudged = dict(made.weights)
    nudged["conv_out.bias"] = nudged["conv_out.bias"] + 1e-6
    prints = [
        generator.fingerprint
        for generator in (
            made,
            make_generator(seed=1),
            make_generator(classes=("dark", "light", "dotted")),
            Generator(made.settings, nudged, "cpu"),
            make_generator(sampler=edm.Sampler(steps=4)),
        )
    ]
    assert len(set(prints)) == 5
    assert make_generator().fingerprint == made.fingerprint


def test_bfloat16_gives_nearly_the_same_images():
    made = make_generator()
    short = make_generator(sampler=edm.Sampler(steps=3, precision="bfloat16"))
    given = latents_and_labels()
    difference = made.decode(*given).int() - short.decode(*given).int()
    assert 0 < difference.abs().float().mean() < 5


def test_compiled_network_is_asked_for_the_same_images():
    made = make_generator()
    compiled = make_generator(sampler=edm.Sampler(steps=3, compiled=True))
    with torch.compiler.set_stance("force_eager"):
        images = compiled.decode(*latents_and_labels())
    assert torch.equal(images, made.decode(*latents_and_labels()))


def test_grid_has_the_same_latents_in_every_class():
    made = make_generator()
    grid = made.grid(4, seed=3)
    assert grid.shape == (3, 4, 1, 4, 4)
    latents = torch.randn(4, 1, 4, 4, generator=torch.Generator().manual_seed(3))
    images = made.decode(latents.repeat(3, 1, 1, 1), torch.arange(3).repeat_interleave(4))
    assert torch.equal(grid.flatten(0, 1), images)


@pytest.mark.parametrize(
    ("shape", "labels", "message"),
    [
        ((2, 1, 4, 5), [0, 1], r"latents of shape \(1, 4, 5\), allowed: \(1, 4, 4\)"),
        ((2, 1, 4, 4), [0, 3], "labels 0 to 3, allowed: 0 to 2"),
        ((2, 1, 4, 4), [-1, 0], "labels -1 to 0, allowed: 0 to 2"),
    ],
)
def test_what_cannot_be_decoded_is_refused(shape, labels, message):
    with pytest.raises(InputError, match=message):
        make_generator().decode(torch.zeros(shape), torch.tensor(labels))


def test_broken_weights_do_not_become_images():
    made = make_generator()
    weights = made.weights | {"conv_out.bias": torch.tensor([float("nan")])}
    with pytest.raises(InputError, match="not finite"):
        Generator(made.settings, weights, "cpu").decode(*latents_and_labels())


class Command:
    """What a pickle can do: it writes a file when it is read."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return (Path.touch, (self.target,))


def test_pickles_are_refused_unread(tmp_path):
    trap = tmp_path / "executed"
    path = tmp_path / "generator.pkl"
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(Command(trap), protocol=protocol))
        with pytest.raises(InputError, match="generator.pkl: a pickle, .*convert-edm"):
            load(path)
    torch.save({"weights": torch.ones(2)}, path)
    with pytest.raises(InputError, match="generator.pkl: a zip archive, .*convert-edm"):
        load(path)
    path.write_bytes(pickle.dumps(Command(trap), protocol=0))
    with pytest.raises(InputError, match="corrupted safetensors file"):
        load(path)
    assert not trap.exists()


def test_missing_and_corrupted_files_are_refused_by_name(tmp_path):
    path = tmp_path / "generator.safetensors"
    with pytest.raises(InputError, match="generator.safetensors: No such file"):
        load(path)
    make_generator().save(path)
    whole = path.read_bytes()
    for length in (0, 5, 40, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match="generator.safetensors: corrupted"):
            load(path)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (None, "no settings of a generator"),
        ({"robust_fairness": "[1]"}, "no settings of a generator"),
        ({"robust_fairness": '{"kind": "samples"}'}, "no settings of a generator"),
        ({"robust_fairness": '{"kind": "generator", "classes": ["a"]}'}, "shape: Field required"),
    ],
)
def test_files_of_other_kinds_are_refused(tmp_path, header, message):
    path = tmp_path / "other.safetensors"
    save_file({"a": torch.ones(2)}, path, metadata=header)
    with pytest.raises(InputError, match=f"other.safetensors: {message}"):
        load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda weights: weights.pop("conv_out.bias"),
            "1 weights are missing, first conv_out.bias",
        ),
        (lambda weights: weights.update(more=torch.ones(1)), "1 weights are unknown, first more"),
        (
            lambda weights: weights.update({"class_embedding.weight": torch.ones(2, 32)}),
            r"class_embedding.weight has shape \(2, 32\), allowed: \(3, 32\)",
        ),
    ],
)
def test_weights_that_do_not_fit_the_settings_are_refused(tmp_path, change, message):
    made, path = make_generator(), tmp_path / "generator.safetensors"
    change(made.weights)
    made.save(path)
    with pytest.raises(InputError, match=f"generator.safetensors: generator: {message}"):
        load(path)


def test_other_classes_are_refused(tmp_path):
    path = tmp_path / "generator.safetensors"
    make_generator().save(path)
    with pytest.raises(InputError, match="3 classes .*, allowed: 2 \\(dark, light\\)"):
        load(path, classes=["dark", "light"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a cuda device")
def test_absent_device_is_refused():
    made = make_generator()
    with pytest.raises(InputError, match="no cuda device available; allowed: auto, cpu"):
        Generator(made.settings, made.weights, "cuda")
