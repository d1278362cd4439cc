"""Published networks: the same numbers after conversion; files that are not as they should be."""

import json
import os
import pickle
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from robust_fairness.bench.generation.conversion import convert
from robust_fairness.bench.generation.generator import HEADER
from robust_fairness.core.errors import InputError
from tests.generation import published

SMALL = {"widths": (32, 64), "layers": 2, "attends": (False, True), "heads_of": 8, "classes": 5}
WIDE = {"widths": (128, 128), "layers": 1, "attends": (False, True), "heads_of": 64, "classes": 4}
SIDE = 8


def inputs(classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Images, times and labels."""
    draws = torch.Generator().manual_seed(3)
    images = torch.randn(2, 3, SIDE, SIDE, generator=draws)
    return images, torch.tensor([-300.5, 1.25]), torch.tensor([1, classes - 1])


@pytest.fixture(scope="module")
def plain() -> tuple[published.Weights, Tensor]:
    """Weights of OpenAI's form, and what their network computes."""
    weights = published.Weights(0)
    with torch.no_grad():
        return weights, published.openai(weights, *inputs(SMALL["classes"]), **SMALL)


@pytest.fixture(scope="module")
def stored() -> tuple[published.Weights, Tensor]:
    """Weights of NVlabs' form, and what their network computes."""
    weights = published.Weights(1)
    with torch.no_grad():
        return weights, published.nvlabs(weights, *inputs(WIDE["classes"]), **WIDE)


def settings_of(path: Path) -> dict:
    with safe_open(path, framework="pt") as file:
        return json.loads(file.metadata()[HEADER])


def computed(path: Path, classes: int) -> Tensor:
    """What the network of a converted file computes, built by its settings."""
    from diffusers import UNet2DModel

    network = settings_of(path)["network"]
    attends = [SIDE >> level in network["attention"] for level in range(len(network["channels"]))]
    down = ["AttnDownBlock2D" if attend else "ResnetDownsampleBlock2D" for attend in attends]
    up = ["AttnUpBlock2D" if attend else "ResnetUpsampleBlock2D" for attend in attends[::-1]]
    unet = UNet2DModel(
        sample_size=SIDE,
        freq_shift=network["frequency_shift"],
        flip_sin_to_cos=network["cosine_first"],
        block_out_channels=network["channels"],
        layers_per_block=network["layers"],
        down_block_types=down,
        up_block_types=up,
        attention_head_dim=network["head_width"],
        norm_num_groups=network["groups"],
        attn_norm_num_groups=network["groups"],
        resnet_time_scale_shift=network["conditioning"],
        downsample_type=network["resampling"],
        upsample_type=network["resampling"],
        num_class_embeds=classes,
    ).eval()
    unet.load_state_dict(load_file(path))
    images, times, labels = inputs(classes)
    with torch.no_grad():
        return unet(images, times, labels).sample


class Command:
    """What a pickle can do: it calls what it names."""

    def __reduce__(self):
        return os.system, ("false",)


def fails(path: Path, output: Path, words: str, configuration: dict | None = None) -> None:
    """A conversion ends as one line that names the file, and leaves nothing behind."""
    before = sorted(output.parent.iterdir())
    with pytest.raises(InputError, match=words) as error:
        convert(path, output, configuration)
    assert "\n" not in str(error.value)
    assert path.name in str(error.value)
    assert sorted(output.parent.iterdir()) == before


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("half", [False, True])
def test_openai_form_computes_the_same(tmp_path, plain, zipped, half) -> None:
    weights, expected = plain
    path, output = tmp_path / "edm.pt", tmp_path / "out" / "edm.safetensors"
    kept = {name: tensor.half() if half else tensor for name, tensor in weights.items()}
    torch.save(kept, path, _use_new_zipfile_serialization=zipped)
    given = {"size": SIDE, "head_width": 8}
    convert(path, output, given)
    outputs = computed(output, SMALL["classes"])
    assert expected.std() > 0.1
    tolerance = 2e-2 if half else 2e-4
    assert torch.allclose(outputs, expected, atol=tolerance * float(expected.std()))
    assert {tensor.dtype for tensor in load_file(output).values()} == {torch.float32}
    assert settings_of(output) == {
        "kind": "generator",
        "classes": ["0", "1", "2", "3", "4"],
        "shape": [3, 8, 8],
        "preconditioning": {"noise_factor": 1000.0, "sigma_data": 0.5},
        "sampler": {"rho": 7.0, "sigma_max": 80.0, "sigma_min": 0.002, "steps": 40},
        "network": {
            "attention": [4],
            "channels": [32, 64],
            "conditioning": "scale_shift",
            "cosine_first": True,
            "dropout": 0.0,
            "frequency_shift": 0,
            "groups": 32,
            "head_width": 8,
            "layers": 2,
            "middle_attention": True,
            "resampling": "resnet",
        },
    }


def exported(folder: Path, weights: dict[str, Tensor], settings: dict) -> Path:
    """A file as the page exports it from the source's own environment."""
    path = folder / "net.safetensors"
    save_file({f"model.{name}": tensor.contiguous() for name, tensor in weights.items()}, path)
    (folder / "net.json").write_text(json.dumps(settings))
    return path


ADM = {
    "model_type": "DhariwalUNet", "img_resolution": SIDE, "img_channels": 3, "label_dim": 4,
    "model_channels": 128, "channel_mult": [1, 1], "use_fp16": True, "augment_dim": 0,
}  # fmt: skip


def test_nvlabs_form_computes_the_same(tmp_path, stored) -> None:
    weights, expected = stored
    output = tmp_path / "out.safetensors"
    names = ["ant", "bee", "cat", "dog"]
    convert(exported(tmp_path, weights, ADM), output, ADM | {"classes": names})
    assert expected.std() > 0.1
    outputs = computed(output, WIDE["classes"])
    assert torch.allclose(outputs, expected, atol=2e-4 * float(expected.std()))
    settings = settings_of(output)
    assert settings["classes"] == names
    assert settings["preconditioning"] == {"noise_factor": 1.0, "sigma_data": 0.5}


def test_settings_of_nvlabs_that_are_not_supported_are_named(tmp_path, stored) -> None:
    path, output = exported(tmp_path, stored[0], ADM), tmp_path / "out.safetensors"
    for change, words in (
        ({"model_type": "VPNet"}, "net.safetensors, model_type: "),
        ({"sigma_data": -1}, "net.safetensors, sigma_data: "),
        ({"decoder_type": "skip"}, "net.safetensors, decoder_type: "),
        ({"unheard_of": 1}, "net.safetensors, unheard_of: "),
        ({"label_dim": 5}, "weights of 4 classes, configured: 5 names"),
    ):
        fails(path, output, words, ADM | change)
    some = {name: stored[0][name] for name in stored[0] if name != "out_norm.weight"}
    fails(exported(tmp_path, some, ADM), output, "no weight out_norm.weight", ADM)


# -- files that are not as they should be


def test_weights_that_are_no_such_network_are_named(tmp_path, plain) -> None:
    path, output = tmp_path / "edm.pt", tmp_path / "edm.safetensors"
    given = {"size": SIDE, "head_width": 8}

    def changed(words: str, configuration=given, **change) -> None:
        kept = {name: tensor for name, tensor in (plain[0] | change).items() if tensor is not None}
        torch.save(kept, path)
        fails(path, output, words, configuration)

    changed("no weight label_emb.weight", **{"label_emb.weight": None})
    changed("weight extra is unknown", extra=torch.zeros(1))
    changed(r"conv_out.bias has shape \(6,\)", **{"out.2.bias": torch.zeros(6)})
    changed("conv_in.bias has values", **{"input_blocks.0.0.bias": torch.full((32,), torch.nan)})
    changed("weights of 5 classes, configured: 2 names", given | {"classes": ["a", "b"]})
    changed("2 levels for images of 9 x 9, allowed: .* multiples of 2", given | {"size": 9})
    changed("allowed: multiples of 3 heads of 64 channels|qkv", {"size": SIDE, "head_width": 128})
    changed("configuration of .*edm.pt, steps", given | {"steps": 0})
    changed("configuration of .*edm.pt, stepps", given | {"stepps": 1})
    changed("a dictionary of weights by name", **{"epoch": 3})
    torch.save([torch.zeros(1)], path)
    fails(path, output, "a dictionary of weights by name")
    torch.save({"a": torch.zeros(1).expand(10**9)}, path)
    fails(path, output, "its tensors are larger than the file")


def test_own_files_are_checked_and_written_again(tmp_path, plain) -> None:
    torch.save(dict(plain[0]), tmp_path / "edm.pt")
    first, second, bare = (tmp_path / f"{name}.safetensors" for name in ("one", "two", "bare"))
    convert(tmp_path / "edm.pt", first, {"size": 8, "head_width": 8})
    convert(first, second)
    assert settings_of(first) == settings_of(second)
    assert all(torch.equal(a, load_file(second)[name]) for name, a in load_file(first).items())
    weights = load_file(first)
    save_file(weights, bare)
    fails(bare, second, "has no settings")
    settings = {name: value for name, value in settings_of(first).items() if name != "kind"}
    convert(bare, second, settings)
    assert settings_of(first) == settings_of(second)
    fails(first, second, "has settings, so no", settings)
    fails(bare, second, "class_embedding.weight has shape", settings | {"classes": ["a"]})
    fails(
        bare,
        second,
        "weights are missing",
        settings | {"network": settings["network"] | {"layers": 3}},
    )
    fails(bare, second, "first down_blocks", settings | {"network": {}})
    save_file(weights, bare, metadata={HEADER: "{"})
    fails(bare, second, "no settings of a generator")


def test_suffix_content_and_length_have_to_agree(tmp_path, plain) -> None:
    output = tmp_path / "out.safetensors"
    torch.save(dict(plain[0]), tmp_path / "edm.pt")
    whole = (tmp_path / "edm.pt").read_bytes()
    save_file(dict(plain[0]), tmp_path / "own.safetensors")
    written = (tmp_path / "own.safetensors").read_bytes()
    pickled = pickle.dumps({"ema": list(range(100))}, protocol=2)
    called = pickle.dumps(Command(), protocol=2)
    for name, content, words in (
        ("a.safetensors", whole, "corrupted safetensors file"),
        ("b.safetensors", pickled, "corrupted safetensors file"),
        ("c.safetensors", written[:-10], "corrupted safetensors file"),
        ("d.safetensors", written[:20], "corrupted safetensors file"),
        ("e.pt", written, "is truncated or damaged, allowed: a plain state dictionary"),
        ("g.pkl", whole, "allowed: names that end in .safetensors, .pt or .pth"),
        ("h.pt", whole[:-100], "is truncated or damaged, allowed: a plain state dictionary"),
        ("i.pt", whole[:1000], "is truncated or damaged, allowed: a plain state dictionary"),
        ("j.pt", called, "names '.*system', allowed: a plain state .*; nothing was executed"),
        ("k.pt", pickled, "is truncated or damaged"),
        ("l.pt", b"", "is truncated or damaged"),
        ("m.onnx", whole, "allowed: names that end in"),
        ("n.pt", b"hello, world", "truncated or damaged, allowed: a plain state dictionary"),
    ):
        (tmp_path / name).write_bytes(content)
        fails(tmp_path / name, output, words)
    fails(tmp_path / "none.pt", output, "cannot be read: No such file")
    with pytest.raises(InputError, match=r"out\.bin: the name must end in \.safetensors"):
        convert(tmp_path / "edm.pt", tmp_path / "out.bin")


def test_an_output_that_cannot_be_written_is_one_line(tmp_path, plain, request) -> None:
    torch.save(dict(plain[0]), tmp_path / "edm.pt")
    (tmp_path / "file").touch()
    output = tmp_path / "file" / "out.safetensors"
    with pytest.raises(InputError, match=r"out\.safetensors: cannot be written"):
        convert(tmp_path / "edm.pt", output, {"size": 8, "head_width": 8})

    target = tmp_path / "out.safetensors"
    target.write_bytes(b"old")
    request.getfixturevalue("full_disk")
    with pytest.raises(InputError, match="No space left"):
        convert(tmp_path / "edm.pt", target, {"size": 8, "head_width": 8})
    assert target.read_bytes() == b"old"
    assert not list(tmp_path.glob(".*"))


def test_command_takes_a_configuration_and_shows_errors_as_one_line(tmp_path, plain) -> None:
    from robust_fairness.cli.commands import cli

    torch.save(dict(plain[0]), tmp_path / "edm.pt")
    configuration = tmp_path / "edm.json"
    configuration.write_text(json.dumps({"size": SIDE, "head_width": 8, "steps": 18}))
    words = ["convert-edm", str(tmp_path / "edm.pt"), str(tmp_path / "out.safetensors")]
    done = CliRunner().invoke(cli, [*words, "--configuration", str(configuration)])
    assert done.exit_code == 0, done.output
    assert settings_of(tmp_path / "out.safetensors")["sampler"]["steps"] == 18
    for content in ("{", "[]"):
        configuration.write_text(content)
        done = CliRunner().invoke(cli, [*words, "--configuration", str(configuration)])
        assert done.exit_code == 1
        assert done.output.startswith(f"Error: {configuration}")
        assert len(done.output.splitlines()) == 1
