"""Pickles read as data: what they name is neither imported nor called.

A pickle is a program, and those of NVlabs' networks execute source text that they carry. Here
``pickle`` finds stand-ins for the names of stored networks, which record calls; other names and
instructions are refused.
"""

import io
import os
import pickle
import pickletools
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from robust_fairness.core.errors import InputError

PERSISTENT = "torch_utils.persistence._reconstruct_persistent_obj"
MODULE_DICT = "torch.nn.modules.container.ModuleDict"
TENSOR = "torch._utils._rebuild_tensor_v2"
PARAMETER = "torch._utils._rebuild_parameter"
STORAGE = "torch.storage._load_from_bytes"
# numbers among the arguments that a network was made with
NUMBERS = ("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar", "numpy.dtype")
RECORDED = (PERSISTENT, MODULE_DICT, TENSOR, PARAMETER, STORAGE, *NUMBERS)
CONTAINERS = {
    "collections.OrderedDict": dict,
    "dnnlib.util.EasyDict": dict,
    "builtins.set": list,
}
INSTRUCTIONS = {
    "PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2",
    "LONG1", "LONG4", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES",
    "SHORT_BINBYTES", "BINBYTES8", "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
    "EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_SET", "ADDITEMS", "EMPTY_DICT", "SETITEM", "SETITEMS",
    "MEMOIZE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "GLOBAL", "STACK_GLOBAL", "REDUCE",
    "NEWOBJ", "BUILD",
}  # fmt: skip


class Made:
    """What a pickle would have made by a call of ``of``."""

    of = ""
    arguments: tuple[Any, ...]
    state: Any = None

    def __new__(cls, *arguments: Any) -> "Made":
        made = super().__new__(cls)
        made.arguments = arguments
        return made

    def __setstate__(self, state: Any) -> None:
        self.state = state


def stand_in(path: str) -> type[Made]:
    """A class whose objects record the arguments and the state of what a pickle names."""
    return type("StandIn", (Made,), {"of": path})


class _Reader(pickle.Unpickler):
    """Unpickles without any class or function that the pickle names."""

    def find_class(self, module: str, name: str) -> type:
        path = f"{module}.{name}"
        if path in CONTAINERS:
            return CONTAINERS[path]
        if path in RECORDED:
            return stand_in(path)
        raise InputError(
            f"names {path[:80]!r}, allowed: what stored networks name; nothing was executed"
        )


def read(path: Path) -> Any:
    """What a pickle holds: plain values, and ``Made`` for whatever is made by a call."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            for instruction, argument, _ in pickletools.genops(file):
                if instruction.name not in INSTRUCTIONS:
                    raise InputError(
                        f"pickle instruction {instruction.name}, allowed: those of stored "
                        "networks; nothing was executed"
                    )
                # pickle allocates memory up to this index
                if instruction.name == "LONG_BINPUT" and int(argument or 0) > size:
                    raise ValueError("a memo index larger than the file")
            if file.read(1):
                raise InputError("more data after the pickle, allowed: one pickle")
            file.seek(0)
            return _Reader(file).load()
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except Exception as error:  # whatever a broken or hostile program raises
        raise InputError(f"{path}: truncated or corrupted pickle") from error


@dataclass(frozen=True)
class Module:
    """A stored module."""

    name: str
    state: dict[str, Any]


def module_of(value: Any, file: Path) -> Module:
    """A module among the values of a pickle."""
    if isinstance(value, Made) and value.of == PERSISTENT and len(value.arguments) == 1:
        described = value.arguments[0]
        if isinstance(described, dict) and isinstance(described.get("state"), dict):
            return Module(str(described.get("class_name")), described["state"])
    if isinstance(value, Made) and value.of == MODULE_DICT and isinstance(value.state, dict):
        return Module("ModuleDict", value.state)
    raise InputError(f"{file}: contains no network in NVlabs' format")


def weights_of(value: Any, file: Path) -> dict[str, Tensor]:
    """Parameters and buffers of a module and of all modules in it, by their dotted names."""
    found: dict[str, Tensor] = {}
    left, seen, size = [("", value)], set[int](), 0
    while left:
        prefix, part = left.pop()
        if id(part) in seen:
            raise InputError(f"{file}: {prefix} is there twice, allowed: a tree of modules")
        seen.add(id(part))
        state = module_of(part, file).state
        own = _parts(state, "_parameters", file) | _parts(state, "_buffers", file)
        for name, tensor in own.items():
            if tensor is not None:
                found[prefix + name] = _tensor_of(tensor, file)
                size += found[prefix + name].nbytes
        if size > file.stat().st_size:
            raise InputError(f"{file}: its tensors are larger than the file")
        for name, module in _parts(state, "_modules", file).items():
            if module is not None:
                left.append((f"{prefix}{name}.", module))
    return found


def _parts(state: dict[str, Any], field: str, file: Path) -> dict[str, Any]:
    """Named parts of a module."""
    parts = state.get(field, {})
    if not isinstance(parts, dict) or not all(isinstance(name, str) for name in parts):
        raise InputError(f"{file}: {field} of a module, allowed: parts by name")
    return parts


def _tensor_of(value: Any, file: Path) -> Tensor:
    """A tensor from the bytes of its storage, which PyTorch reads as weights only."""
    try:
        if value.of == PARAMETER:
            value = value.arguments[0]
        storage, offset, size, stride = value.arguments[:4]
        if value.of != TENSOR or storage.of != STORAGE:
            raise TypeError("no tensor")
        (content,) = storage.arguments
        flat = _numbers_of(content)
        found = flat.as_strided(size, stride, offset)
    except (AttributeError, TypeError, ValueError, LookupError, RuntimeError) as error:
        raise InputError(f"{file}: corrupted or missing tensor") from error
    if found.numel() > flat.numel():
        raise InputError(f"{file}: a tensor of {found.numel()} numbers, {flat.numel()} are stored")
    return found.clone()


def _numbers_of(content: bytes) -> Tensor:
    """The numbers of a stored storage ``[n]``."""
    try:
        # PyTorch's restricted reader: a storage of numbers, no call of anything named
        storage = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError("no storage") from error
    if not isinstance(storage, torch.storage.TypedStorage):
        raise TypeError("no storage")
    with warnings.catch_warnings():
        # the class is deprecated, but files hold nothing else
        warnings.simplefilter("ignore", UserWarning)
        return torch.empty(0, dtype=storage.dtype).set_(storage.untyped())
