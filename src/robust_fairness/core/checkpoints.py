"""Content-addressed checkpoints, written atomically.

A checkpoint's folder is the hash of everything that the training depends on.
"""

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from threadpoolctl import threadpool_limits
from torch import Tensor

import robust_fairness
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import atomic_path

ROOT_VARIABLE = "ROBUST_FAIRNESS_CHECKPOINTS"
STATE = "state.safetensors"
_used: dict[Path, set[Path]] = defaultdict(set)  # folders by cell, of this process
_temporary: ContextVar[Path | None] = ContextVar("temporary", default=None)


def root() -> Path:
    """Folder of all checkpoints: ``ROBUST_FAIRNESS_CHECKPOINTS``, or ``data/checkpoints``."""
    return _temporary.get() or Path(os.environ.get(ROOT_VARIABLE) or "data/checkpoints")


@contextmanager
def not_kept() -> Iterator[None]:
    """Keep checkpoints only as long as this lasts, in a temporary folder."""
    with TemporaryDirectory() as folder:
        token = _temporary.set(Path(folder))
        try:
            yield
        finally:
            _temporary.reset(token)


def key(
    arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any], packages: Sequence[str]
) -> str:
    """SHA-256 over input arrays, settings, source code and versions of torch and torchvision."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.data)
    described = {**settings, "torch": torch.__version__, "torchvision": version("torchvision")}
    digest.update(json.dumps(described, sort_keys=True, default=str).encode())
    root = Path(robust_fairness.__file__).parent
    for source in sorted(path for one in packages for path in (root / one).rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


class Checkpoint:
    """The newest state of a training."""

    def __init__(self, cell: str, content: str) -> None:
        self.content = content
        self.path = use(cell, content) / STATE

    def save(self, state: Mapping[str, Tensor]) -> None:
        copies = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
        try:
            self._write(copies)
        except (FileNotFoundError, SafetensorError):
            if self.path.parent.exists():
                raise
            self._write(copies)  # another process has just deleted the empty folder

    def _write(self, state: dict[str, Tensor]) -> None:
        with atomic_path(self.path) as file:
            save_file(state, file, metadata={"content": self.content})

    def load(self) -> dict[str, Tensor] | None:
        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, framework="pt") as file:
                content = (file.metadata() or {}).get("content")
                state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except SafetensorError as error:
            raise InputError(f"{self.path}: corrupted checkpoint ({error}); delete it") from error
        if content != self.content:
            raise InputError(f"{self.path}: checkpoint of another configuration; delete it")
        return state


def use(cell: str, content: str) -> Path:
    """The folder of a checkpoint or a set of chunks, whose files ``drop`` deletes."""
    found = root() / cell / content
    _used[root() / cell].add(found)
    return found


def drop(cell: str) -> None:
    """Delete the checkpoints of a cell that this process used; other runs may need the others."""
    with suppress(OSError):  # they cost space, no result
        for used in _used.pop(root() / cell, ()):
            for file in used.glob("*.safetensors"):
                file.unlink(missing_ok=True)
            used.rmdir()  # unless another process is writing there
        (root() / cell).rmdir()


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Set the number of CPU threads of torch, and of OpenMP and BLAS in other libraries."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        with threadpool_limits(number):
            yield
    finally:
        torch.set_num_threads(before)
