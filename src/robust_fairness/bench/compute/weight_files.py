"""Files of weights: read without executing anything they name, and compared with a network's."""

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from robust_fairness.core.errors import InputError

SUFFIXES = (".safetensors", ".pth", ".pt")


def weights_of(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and weights of a safetensors file or of a plain state dictionary, on the CPU."""
    if path.suffix == ".safetensors":
        return safetensors_of(path)
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: allowed: names that end in .safetensors, .pt or .pth")
    try:
        # PyTorch's restricted reader: tensors and plain containers, no call of anything named
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    # whatever a broken or hostile file makes of PyTorch's reader: it allows weights only
    except Exception as error:
        # for the message only: PyTorch names what it refused after this word
        named = str(error).partition("GLOBAL ")[2].split(maxsplit=1)
        what = f"names {named[0]!r}" if named else "is truncated or damaged"
        raise InputError(
            f"{path}: {what}, allowed: a plain state dictionary of PyTorch; nothing was executed"
        ) from error
    if not isinstance(weights, dict) or not weights or not all(map(_is_plain, weights.items())):
        raise InputError(f"{path}: must be a dictionary of weights by name, and nothing else")
    size = sum(tensor.numel() * tensor.element_size() for tensor in weights.values())
    if size > path.stat().st_size:
        raise InputError(f"{path}: its tensors are larger than the file")
    return {}, weights


def safetensors_of(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors of a safetensors file."""
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            return metadata, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise InputError(f"{path}: cannot be read: No such file or directory") from error
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: corrupted safetensors file ({error})") from error


def _is_plain(item: tuple[object, object]) -> bool:
    name, tensor = item
    return (
        isinstance(name, str)
        and isinstance(tensor, Tensor)
        and tensor.layout == torch.strided
        and not tensor.is_quantized
        and tensor.device.type == "cpu"
    )


def require_fit(
    place: object, wanted: Mapping[str, Tensor], given: Mapping[str, Tensor], allowed: str
) -> None:
    """Raise an error unless weights have the names and shapes of the network's."""
    for problem, names in (
        ("missing", sorted(wanted.keys() - given.keys())),
        ("unknown", sorted(given.keys() - wanted.keys())),
    ):
        if names:
            raise InputError(
                f"{place}: {len(names)} weights are {problem}, first {names[0]}; allowed: {allowed}"
            )
    for name, tensor in wanted.items():
        if tensor.shape != given[name].shape:
            raise InputError(
                f"{place}: {name} has shape {tuple(given[name].shape)}, "
                f"allowed: {tuple(tensor.shape)}"
            )
