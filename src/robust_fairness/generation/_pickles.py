"""Pickles read as data: what they name is neither imported nor called.

A pickle is a program, and those of NVlabs' networks execute source text that they carry. Here its
instructions, as ``pickletools`` lists them, move values on a stack of our own; a call is written
down, not made. Names and instructions other than those of stored networks are refused.
"""

import io
import pickletools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from robust_fairness.core.errors import InputError

PERSISTENT = "torch_utils.persistence._reconstruct_persistent_obj"
MODULE_DICT = "torch.nn.modules.container.ModuleDict"
TENSOR = "torch._utils._rebuild_tensor_v2"
PARAMETER = "torch._utils._rebuild_parameter"
STORAGE = "torch.storage._load_from_bytes"
DICTIONARIES = ("collections.OrderedDict", "dnnlib.util.EasyDict")
SETS = ("builtins.set",)
# numbers among the arguments that a network was made with; they are left where they are
NUMBERS = ("numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar", "numpy.dtype")
ALLOWED = (PERSISTENT, MODULE_DICT, TENSOR, PARAMETER, STORAGE, *DICTIONARIES, *SETS, *NUMBERS)

VALUES = (
    "BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE",
    "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
)  # fmt: skip
MARK = object()
MOST_INSTRUCTIONS = 2_000_000  # a network of ImageNet has some ten thousand
KEYS = (str, int)  # of dictionaries: the hash of nested tuples may take forever


@dataclass(frozen=True)
class Name:
    """Something that a pickle names, by its dotted path; only the path is known."""

    path: str


@dataclass(eq=False)
class Made:
    """What a pickle would have made by a call."""

    of: str
    arguments: tuple[Any, ...]
    state: Any = None


def read(path: Path) -> Any:
    """What a pickle holds: plain values, and ``Made`` for whatever is made by a call."""
    try:
        with path.open("rb") as file:
            found = _Machine(str(path)).run(file)
            if file.read(1):
                raise InputError(f"{path}: more data after the pickle, allowed: one pickle")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    return found


class _Machine:
    """The stack, the marks on it and the memory of one pickle."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.stack: list[Any] = []
        self.memory: dict[int, Any] = {}

    def run(self, file: BinaryIO) -> Any:
        try:
            for count, (instruction, argument, _) in enumerate(pickletools.genops(file)):
                if count == MOST_INSTRUCTIONS:
                    raise InputError(f"{self.file}: more than {count:,} pickle instructions")
                self.take(instruction.name, argument)
            result = self.pop()
            if self.stack:
                raise ValueError("more than one value")
        except InputError:
            raise
        # whatever a broken or hostile program makes of lists, dictionaries and the stack
        except (ValueError, LookupError, TypeError, AttributeError, MemoryError) as error:
            raise InputError(f"{self.file}: truncated or corrupted pickle") from error
        return result

    def take(self, name: str, argument: Any) -> None:
        if name in VALUES:
            self.stack.append(argument)
            return
        act = _ACTS.get(name)
        if act is None:
            raise InputError(
                f"{self.file}: pickle instruction {name}, allowed: those of stored networks; "
                "nothing was executed"
            )
        act(self, argument)

    def pop(self) -> Any:
        value = self.stack.pop()
        if value is MARK:
            raise ValueError("a mark is no value")
        return value

    def popped(self, count: int) -> list[Any]:
        return [self.pop() for _ in range(count)][::-1]

    def since_mark(self) -> list[Any]:
        values = []
        while (value := self.stack.pop()) is not MARK:
            values.append(value)
        return values[::-1]

    def name(self, path: str) -> None:
        if path not in ALLOWED:
            raise InputError(
                f"{self.file}: names {path[:80]!r}, allowed: what stored networks name; "
                "nothing was executed"
            )
        self.stack.append(Name(path))

    def extend(self, values: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise TypeError("no list")
        self.stack[-1].extend(values)

    def update(self, values: list[Any]) -> None:
        if type(self.stack[-1]) is not dict:
            raise TypeError("no dictionary")
        if not all(type(key) in KEYS for key in values[::2]):
            raise TypeError("no key")
        self.stack[-1].update(zip(values[::2], values[1::2], strict=True))

    def call(self) -> None:
        of, arguments = self.popped(2)
        if not isinstance(of, Name) or type(arguments) is not tuple:
            raise TypeError("no call")
        if of.path in DICTIONARIES and not arguments:
            self.stack.append({})
        elif of.path in SETS and len(arguments) <= 1:
            self.stack.append(list(*arguments) if arguments else [])
        else:
            self.stack.append(Made(of.path, arguments))

    def give_state(self) -> None:
        state = self.pop()
        made = self.stack[-1]
        if not isinstance(made, Made) or made.state is not None:
            raise TypeError("no object without a state")
        made.state = state


_ACTS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda machine, _: None,
    "FRAME": lambda machine, _: None,
    "STOP": lambda machine, _: None,
    "NONE": lambda machine, _: machine.stack.append(None),
    "NEWTRUE": lambda machine, _: machine.stack.append(True),
    "NEWFALSE": lambda machine, _: machine.stack.append(False),
    "MARK": lambda machine, _: machine.stack.append(MARK),
    "EMPTY_TUPLE": lambda machine, _: machine.stack.append(()),
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "EMPTY_SET": lambda machine, _: machine.stack.append([]),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.since_mark())),
    "TUPLE1": lambda machine, _: machine.stack.append(tuple(machine.popped(1))),
    "TUPLE2": lambda machine, _: machine.stack.append(tuple(machine.popped(2))),
    "TUPLE3": lambda machine, _: machine.stack.append(tuple(machine.popped(3))),
    "APPEND": lambda machine, _: machine.extend(machine.popped(1)),
    "APPENDS": lambda machine, _: machine.extend(machine.since_mark()),
    "ADDITEMS": lambda machine, _: machine.extend(machine.since_mark()),
    "SETITEM": lambda machine, _: machine.update(machine.popped(2)),
    "SETITEMS": lambda machine, _: machine.update(machine.since_mark()),
    "MEMOIZE": lambda machine, _: machine.memory.update({len(machine.memory): machine.stack[-1]}),
    "BINPUT": lambda machine, place: machine.memory.update({place: machine.stack[-1]}),
    "LONG_BINPUT": lambda machine, place: machine.memory.update({place: machine.stack[-1]}),
    "BINGET": lambda machine, place: machine.stack.append(machine.memory[place]),
    "LONG_BINGET": lambda machine, place: machine.stack.append(machine.memory[place]),
    "GLOBAL": lambda machine, path: machine.name(path.replace(" ", ".", 1)),
    "STACK_GLOBAL": lambda machine, _: machine.name(".".join(machine.popped(2))),
    "REDUCE": lambda machine, _: machine.call(),
    "NEWOBJ": lambda machine, _: machine.call(),
    "BUILD": lambda machine, _: machine.give_state(),
}


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
            name = described.get("class_name")
            return Module(name if isinstance(name, str) else "", described["state"])
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
