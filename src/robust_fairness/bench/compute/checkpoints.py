"""Content-addressed checkpoints, written atomically, with a checksum.

A checkpoint's folder is the hash of everything that the training depends on.
"""

import hashlib
import json
import logging
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from threadpoolctl import threadpool_limits
from torch import Tensor

from robust_fairness.core.code import code, packages
from robust_fairness.core.errors import first_line
from robust_fairness.core.files import atomic_path

logger = logging.getLogger(__name__)

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


def key(arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> str:
    """SHA-256 over input arrays, settings, all code, versions of packages and CPU threads."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.data)
    described = [settings, code(), packages(), torch.get_num_threads()]
    digest.update(json.dumps(described, sort_keys=True, default=str).encode())
    return digest.hexdigest()


class Checkpoint:
    """The newest state of a training."""

    def __init__(self, cell: str, content: str) -> None:
        self.content = content
        self.path = use(cell, content) / STATE

    def save(self, state: Mapping[str, Tensor]) -> None:
        copies = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
        try:
            write(self.path, self.content, copies)
        except (FileNotFoundError, SafetensorError):
            if self.path.parent.exists():
                raise
            # another process has just deleted the empty folder
            write(self.path, self.content, copies)

    def load(self) -> dict[str, Tensor] | None:
        """The state that was saved; None, with a warning, if the file is damaged."""
        return read(self.path, self.content)


def write(path: Path, content: str, state: dict[str, Tensor]) -> None:
    """Save tensors with the hash of what they depend on and their checksum."""
    with atomic_path(path) as file:
        save_file(state, file, metadata=_identity(state, content))


def read(path: Path, content: str) -> dict[str, Tensor] | None:
    """The tensors that were saved; None, with a warning, if the file is damaged."""
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        reason = first_line(error)
    else:
        if metadata == _identity(state, content):
            return state
        reason = "its checksum differs"
    logger.warning("%s: damaged checkpoint (%s); computed again", path, reason)
    return None


def _identity(state: Mapping[str, Tensor], content: str) -> dict[str, str]:
    """What tensors depend on, and SHA-256 of them and their names.

    In one field, because safetensors writes several in random order.
    """
    digest = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name].contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return {"content and checksum": f"{content} {digest.hexdigest()}"}


def use(cell: str, content: str) -> Path:
    """The folder of a checkpoint or a set of chunks, whose files ``drop`` deletes."""
    folder = root() / cell / content
    _used[root() / cell].add(folder)
    return folder


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
