"""Conversion of published weights of a denoiser to a generator's file.

The pipeline reads safetensors only. Nothing that a file names is imported or called: pickles are
read by ``_pickles`` or by PyTorch as weights only.
"""

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, PositiveFloat, PositiveInt, ValidationError
from safetensors import SafetensorError
from torch import Tensor

from robust_fairness.core.errors import InputError
from robust_fairness.generation import _pickles, generator
from robust_fairness.generation._published import Shape, from_nvlabs, from_openai, network_settings
from robust_fairness.generation.generator import (
    HEADER,
    LONGEST_MESSAGE,
    read,
    require_fit,
    write,
    written_settings,
)

SUFFIXES = (".safetensors", ".pt", ".pth", ".pkl")
OPENAI_NOISE_FACTOR = 1000.0  # its network counts time in thousandths of ln(sigma) / 4
DENOISER, NETWORK, OTHER_NETWORK = "EDMPrecond", "DhariwalUNet", "SongUNet"
LARGEST_NUMBER = 2**31  # of a setting
ZIP, PICKLE = b"PK", b"\x80"

Weights = Mapping[str, Tensor]
Settings = dict[str, Any]


class Configuration(BaseModel, extra="forbid", frozen=True):
    """Settings that weights do not contain; the defaults are those of the ImageNet-64 networks.

    Attributes:
        size: height and width of an image.
        head_width: channels of a head of the attention.
        classes: names of the classes; their numbers if None.
        sigma_data: standard deviation that data count as.
        steps: of the sampler.
        sigma_min: least noise that it goes down to.
        sigma_max: most noise, that it begins with.
        rho: the higher, the shorter are its steps of little noise.
    """

    size: PositiveInt = 64
    head_width: PositiveInt = 64
    classes: tuple[str, ...] | None = None
    sigma_data: PositiveFloat = 0.5
    steps: PositiveInt = 40
    sigma_min: PositiveFloat = 0.002
    sigma_max: PositiveFloat = 80.0
    rho: PositiveFloat = 7.0


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
    """Write a generator's file from a published one; nothing is written where anything is wrong.

    ``.safetensors``: weights by the names of diffusers' UNet2DModel, with the settings of a
    generator in the metadata, or else in ``configuration``. ``.pt`` and ``.pth``: a plain state
    dictionary by the names of OpenAI's consistency models. ``.pkl``: a module DhariwalUNet of
    NVlabs. Of the last two ``configuration`` has the fields of ``Configuration``.
    """
    if output.suffix != ".safetensors":
        raise InputError(f"{output}: the name must end in .safetensors")
    _require_form(path)
    given = dict(configuration or {})
    if path.suffix == ".safetensors":
        settings, weights = _own(path, given)
    elif path.suffix == ".pkl":
        settings, weights = _stored_module(path, given)
    else:
        settings, weights = _state_dictionary(path, given)
    _require_fit(path, settings, weights)
    try:
        write(output, settings, weights)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{output}: cannot be written: {error}") from error


def _require_form(path: Path) -> None:
    """The file is there and begins as its suffix says."""
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: allowed: names that end in {', '.join(SUFFIXES)}")
    try:
        with path.open("rb") as file:
            start = file.read(9)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if not start:
        raise InputError(f"{path}: is empty")
    found = "a PyTorch file" if start[:2] == ZIP else "a pickle" if start[:1] == PICKLE else ""
    # a safetensors file begins with the length of its header in eight bytes, then a brace
    if path.suffix == ".safetensors" and found and start[8:] != b"{":
        raise InputError(f"{path}: is {found}, allowed: safetensors where the name says so")
    if path.suffix != ".safetensors" and not found and start[8:] == b"{":
        raise InputError(f"{path}: is a safetensors file, allowed: one whose name says so")
    if path.suffix == ".pkl" and found != "a pickle":
        raise InputError(f"{path}: is {found or 'no pickle'}, allowed: a pickle")


def _own(path: Path, given: Settings) -> tuple[Settings, dict[str, Tensor]]:
    """Settings and weights of a safetensors file."""
    metadata, weights = read(path)
    if HEADER not in metadata:
        if not given:
            raise InputError(f"{path}: has no settings; give them as the configuration")
        return given, weights
    if given:
        raise InputError(f"{path}: has settings, so no configuration is allowed")
    return written_settings(metadata, path), weights


def _state_dictionary(path: Path, given: Settings) -> tuple[Settings, dict[str, Tensor]]:
    """Settings and weights of OpenAI's form."""
    configured = _configured(path, given)
    weights = _plain_weights(path)
    shape, converted = from_openai(weights, configured.head_width, str(path))
    return _settings(path, configured, shape, OPENAI_NOISE_FACTOR), _floats(path, converted)


def _plain_weights(path: Path) -> dict[str, Tensor]:
    """A state dictionary, by PyTorch's reader of weights only."""
    _require_sound_zip(path)
    try:
        # PyTorch's restricted reader: tensors and plain containers, no call of anything named
        found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    # whatever a broken or hostile file makes of PyTorch's reader: it allows weights only
    except Exception as error:
        named = str(error).partition("GLOBAL ")[2].split(maxsplit=1)
        what = f"names {named[0]!r}" if named else "is truncated or damaged"
        raise InputError(
            f"{path}: {what}, allowed: a plain state dictionary of PyTorch; nothing was executed"
        ) from error
    weights = found if isinstance(found, dict) else {}
    if not weights or not all(_is_plain(*item) for item in weights.items()):
        raise InputError(f"{path}: must be a dictionary of weights by name, and nothing else")
    size = sum(tensor.numel() * tensor.element_size() for tensor in weights.values())
    if size > path.stat().st_size:
        raise InputError(f"{path}: its tensors are larger than the file")
    return weights


def _is_plain(name: object, tensor: object) -> bool:
    return (
        isinstance(name, str)
        and isinstance(tensor, Tensor)
        and tensor.layout == torch.strided
        and not tensor.is_quantized
        and tensor.device.type == "cpu"
    )


def _require_sound_zip(path: Path) -> None:
    """Where the file is a zip archive, it unpacks to no more than it holds."""
    with path.open("rb") as file:
        if file.read(2) != ZIP:
            return
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise InputError(f"{path}: truncated or corrupted PyTorch file") from error
    packed = [member.filename for member in members if member.compress_type != zipfile.ZIP_STORED]
    if packed or sum(member.file_size for member in members) > path.stat().st_size:
        raise InputError(f"{path}: has compressed members, allowed: stored ones, as PyTorch writes")


def _stored_module(path: Path, given: Settings) -> tuple[Settings, dict[str, Tensor]]:
    """Settings and weights of NVlabs' form."""
    configured = _configured(path, given)
    content = _pickles.read(path)
    if not isinstance(content, dict) or "ema" not in content:
        raise InputError(
            f"{path}: allowed: a dictionary with the network 'ema', as NVlabs store it"
        )
    denoiser = _pickles.module_of(content["ema"], path)
    modules = denoiser.state.get("_modules")
    inner = modules.get("model") if isinstance(modules, dict) else None
    network = _pickles.module_of(inner, path).name
    if (denoiser.name, network) != (DENOISER, NETWORK):
        reason = f"{OTHER_NETWORK} is not supported; " if network == OTHER_NETWORK else ""
        raise InputError(
            f"{path}: {denoiser.name} of {network}, {reason}allowed: {DENOISER} of {NETWORK}"
        )
    for field, wanted in (
        ("img_resolution", configured.size),
        ("sigma_data", configured.sigma_data),
    ):
        found = denoiser.state.get(field)
        # the text of a nested value or of a huge number may take forever
        if not isinstance(found, int | float) or abs(found) > LARGEST_NUMBER:
            raise InputError(f"{path}: {field} is no number, configured: {wanted}")
        if found != wanted:
            raise InputError(f"{path}: {field} is {found}, configured: {wanted}")
    weights = _pickles.weights_of(inner, path)
    shape, converted = from_nvlabs(weights, configured.head_width, str(path))
    return _settings(path, configured, shape, 1.0), _floats(path, converted)


def _configured(path: Path, given: Settings) -> Configuration:
    try:
        return Configuration.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise InputError(f"configuration of {path}, {field}: {first['msg']}") from error


def _settings(path: Path, configured: Configuration, shape: Shape, factor: float) -> Settings:
    """Settings of a generator with a published network."""
    classes = configured.classes or tuple(map(str, range(shape.classes)))
    if len(classes) != shape.classes:
        raise InputError(
            f"{path}: weights of {shape.classes} classes, configured: {len(classes)} names"
        )
    return {
        "network": network_settings(shape, configured.size, configured.head_width),
        "preconditioning": {"sigma_data": configured.sigma_data, "noise_factor": factor},
        "sampler": {
            name: getattr(configured, name) for name in ("steps", "sigma_min", "sigma_max", "rho")
        },
        "classes": list(classes),
        "shape": [shape.channels, configured.size, configured.size],
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
            network = generator.Settings.model_validate(settings).build()
        require_fit(network.unet.state_dict(), weights)
    except (InputError, ValidationError) as error:
        reason = " ".join(str(error).split())[:LONGEST_MESSAGE]
        raise InputError(f"{path}: {reason}") from error
