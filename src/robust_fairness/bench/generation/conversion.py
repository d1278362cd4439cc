"""Conversion of published weights of a denoiser to a generator's file.

Weights are a safetensors file or a plain state dictionary of PyTorch, settings are JSON; nothing
that a file names is imported or called.
"""

import json
from collections.abc import Mapping
from math import inf
from pathlib import Path
from typing import Any, Literal, TypeVar

import torch
from pydantic import BaseModel, PositiveFloat, PositiveInt, ValidationError
from safetensors import SafetensorError
from torch import Tensor

from robust_fairness.bench.compute.weight_files import require_fit, weights_of
from robust_fairness.bench.generation import generator, songunet
from robust_fairness.bench.generation._published import Settings, Weights, from_nvlabs, from_openai
from robust_fairness.bench.generation.generator import (
    HEADER,
    LONGEST_MESSAGE,
    NETWORK,
    write,
    written_settings,
)
from robust_fairness.core.errors import InputError

OPENAI_NOISE_FACTOR = 1000.0  # its network counts time in thousandths of ln(sigma) / 4
CIFAR_SIZE, CIFAR_STEPS, STEPS = 32, 18, 40  # steps of the sampler for images of that size, others

Model = TypeVar("Model", bound=BaseModel)


class Configuration(BaseModel, extra="forbid", frozen=True):
    """Settings that weights do not contain; the defaults are those of the ImageNet-64 networks.

    Attributes:
        size: height and width of an image.
        head_width: channels of a head of the attention.
        classes: names of the classes; their numbers if None.
        sigma_data: standard deviation that data count as.
        steps: of the sampler; 18 for images of 32 x 32, else 40 if None.
        sigma_min: least noise that it goes down to.
        sigma_max: most noise, that it begins with.
        rho: the higher, the shorter are its steps of little noise.
    """

    size: PositiveInt = 64
    head_width: PositiveInt = 64
    classes: tuple[str, ...] | None = None
    sigma_data: PositiveFloat = 0.5
    steps: PositiveInt | None = None
    sigma_min: PositiveFloat = 0.002
    sigma_max: PositiveFloat = 80.0
    rho: PositiveFloat = 7.0


class Exported(BaseModel, extra="forbid", frozen=True):
    """``init_kwargs`` of a network of NVlabs (EDM, Table 7), with names of classes if added."""

    model_type: Literal["SongUNet", "DhariwalUNet"]
    img_resolution: PositiveInt
    img_channels: PositiveInt
    label_dim: PositiveInt
    model_channels: PositiveInt
    channel_mult: tuple[PositiveInt, ...]
    num_blocks: PositiveInt | None = None
    attn_resolutions: tuple[PositiveInt, ...] | None = None
    dropout: float = 0.0
    label_dropout: float = 0.0
    use_fp16: bool = False
    sigma_min: Literal[0] = 0
    sigma_max: Literal["inf", "Infinity"] | float = inf
    sigma_data: PositiveFloat = 0.5
    augment_dim: int = 0
    channel_mult_emb: Literal[4] = 4
    channel_mult_noise: Literal[1, 2] = 1
    embedding_type: Literal["positional", "fourier"] = "positional"
    encoder_type: Literal["standard", "residual"] = "standard"
    decoder_type: Literal["standard"] = "standard"
    resample_filter: tuple[int, ...] = (1, 1)
    classes: tuple[str, ...] | None = None


def read_configuration(path: Path) -> dict[str, Any]:
    """Content of a JSON file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: must be a JSON object of settings")
    return content


def convert(path: Path, output: Path, configuration: Mapping[str, Any] | None = None) -> None:
    """Write a generator's file from published weights; nothing is written if anything is wrong.

    Args:
        path: ``.safetensors``, or a plain state dictionary (``.pt``, ``.pth``). Names of weights
            are those of diffusers' UNet2DModel, of OpenAI's consistency models, or of NVlabs.
        output: a name that ends in ``.safetensors``.
        configuration: a generator's settings for names of diffusers, unless the file has them; the
            fields of ``Configuration`` for names of OpenAI; ``init_kwargs`` for names of NVlabs.
    """
    if output.suffix != ".safetensors":
        raise InputError(f"{output}: the name must end in .safetensors")
    given = dict(configuration or {})
    weights: Weights
    metadata, weights = weights_of(path)
    if HEADER in metadata:
        if given:
            raise InputError(f"{path}: has settings, so no configuration is allowed")
        settings = written_settings(metadata, path)
    elif "input_blocks.0.0.weight" in weights:
        configured = _validated(Configuration, path, given)
        network, weights = from_openai(weights, configured.size, configured.head_width, str(path))
        settings = _settings(path, configured, network, *_sizes(weights), OPENAI_NOISE_FACTOR)
    elif "model.map_layer0.weight" in weights:
        settings, weights = _nvlabs(path, weights, _validated(Exported, path, given))
    elif given:
        settings = given
    else:
        raise InputError(f"{path}: has no settings; give them as the configuration")
    weights = _floats(path, weights)
    _require_fit(path, settings, weights)
    try:
        write(output, settings, weights)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{output}: cannot be written: {error}") from error


def _nvlabs(path: Path, weights: Weights, exported: Exported) -> tuple[Settings, Weights]:
    """Settings and weights of a network of NVlabs, ImageNet's or one of those for CIFAR-10."""
    inner = {name.removeprefix("model."): tensor for name, tensor in weights.items()}
    configured = Configuration(
        size=exported.img_resolution,
        sigma_data=exported.sigma_data,
        classes=exported.classes or tuple(map(str, range(exported.label_dim))),
    )
    if exported.model_type == "DhariwalUNet":
        network, converted = from_nvlabs(inner, configured.size, configured.head_width, str(path))
        return _settings(path, configured, network, *_sizes(converted)), converted
    return _songunet(path, inner, exported, configured)


def _songunet(
    path: Path, weights: dict[str, Tensor], exported: Exported, configured: Configuration
) -> tuple[Settings, Weights]:
    """Settings and weights of DDPM++ or NCSN++."""
    forms = {
        ("positional", "standard", 1, (1, 1)): "ddpm++",
        ("fourier", "residual", 2, (1, 3, 3, 1)): "ncsn++",
    }
    form = (
        exported.embedding_type,
        exported.encoder_type,
        exported.channel_mult_noise,
        exported.resample_filter,
    )
    if form not in forms:
        raise InputError(f"{path}: a network of {form}, allowed: {' or '.join(map(str, forms))}")
    network = songunet.SongUNetParameters(
        architecture=forms[form],
        channels=exported.model_channels,
        multipliers=exported.channel_mult,
        layers=exported.num_blocks or 4,
        attention=exported.attn_resolutions or (16,),
        dropout=exported.dropout,
    )
    kept = {}
    for name, tensor in weights.items():
        if not name.endswith(".resample_filter"):
            kept[name] = tensor
        elif not torch.equal(tensor.float(), songunet.kernel(network.architecture)):
            raise InputError(f"{path}: {name} is not the filter of {network.architecture}")
    # labels of augmentation are zero when images are made
    kept.pop("map_augment.weight", None)
    sizes = exported.label_dim, exported.img_channels
    return _settings(path, configured, network.model_dump(), *sizes), kept


def _validated(model: type[Model], path: Path, given: Settings) -> Model:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise InputError(f"configuration of {path}, {field}: {first['msg']}") from error


def _sizes(weights: Weights) -> tuple[int, int]:
    """Number of classes, and of the channels of an image, by weights under diffusers' names."""
    return len(weights["class_embedding.weight"]), len(weights["conv_out.weight"])


def _settings(
    path: Path,
    configured: Configuration,
    network: Settings,
    count: int,
    channels: int,
    factor: float = 1.0,
) -> Settings:
    """Settings of a generator with a published network of ``count`` classes."""
    classes = configured.classes or tuple(map(str, range(count)))
    if len(classes) != count:
        raise InputError(f"{path}: weights of {count} classes, configured: {len(classes)} names")
    steps = configured.steps or (CIFAR_STEPS if configured.size == CIFAR_SIZE else STEPS)
    return {
        "network": network,
        "preconditioning": {"sigma_data": configured.sigma_data, "noise_factor": factor},
        "sampler": {
            "steps": steps,
            "sigma_min": configured.sigma_min,
            "sigma_max": configured.sigma_max,
            "rho": configured.rho,
        },
        "classes": list(classes),
        "shape": [channels, configured.size, configured.size],
    }


def _floats(path: Path, weights: Weights) -> dict[str, Tensor]:
    """Weights in single precision, each a finite number."""
    converted = {name: tensor.float().contiguous() for name, tensor in weights.items()}
    for name, tensor in converted.items():
        if not tensor.isfinite().all():
            raise InputError(f"{path}: {name} has values that are not finite")
    return converted


def _require_fit(path: Path, settings: Settings, weights: Weights) -> None:
    """Weights have the names and shapes of the network that the settings describe."""
    try:
        with torch.device("meta"):  # no weight is computed
            network = generator.GeneratorSettings.model_validate(settings).build()
        require_fit("generator", network.unet.state_dict(), weights, NETWORK)
    except (InputError, ValidationError) as error:
        reason = " ".join(str(error).split())[:LONGEST_MESSAGE]
        raise InputError(f"{path}: {reason}") from error
