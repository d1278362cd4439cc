"""Checkpoints: named by the content they grew from, written aside and renamed.

A checkpoint's folder is the hash of everything that shapes the training, so that it is found
again by the same work only, whatever the run.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

import robust_fairness
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import written_aside

ROOT_VARIABLE = "ROBUST_FAIRNESS_CHECKPOINTS"
STATE = "state.safetensors"


def root() -> Path:
    """Folder of all checkpoints: ``ROBUST_FAIRNESS_CHECKPOINTS``, or ``data/checkpoints``."""
    return Path(os.environ.get(ROOT_VARIABLE) or "data/checkpoints")


def key(arrays: Mapping[str, np.ndarray], settings: Mapping[str, Any], rooms: Sequence[str]) -> str:
    """SHA-256 over input arrays, settings, source code and versions of torch and torchvision.

    Args:
        arrays: what is trained on, by name.
        settings: what else the numbers depend on.
        rooms: folders of the package with the code that decides the numbers: a change of it
            makes old checkpoints unfit.
    """
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.data)
    described = {**settings, "torch": torch.__version__, "torchvision": version("torchvision")}
    digest.update(json.dumps(described, sort_keys=True, default=str).encode())
    package = Path(robust_fairness.__file__).parent
    for source in sorted(path for room in rooms for path in (package / room).rglob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


class Checkpoint:
    """The newest state of one training.

    Args:
        cell: name of the cell, the folder that is dropped when its models are saved.
        content: what ``key`` gave.
    """

    def __init__(self, cell: str, content: str) -> None:
        self.content = content
        self.path = root() / cell / content / STATE

    def save(self, state: Mapping[str, Tensor]) -> None:
        """Write the state so that a kill at any moment leaves the old or the new one."""
        copies = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
        with written_aside(self.path) as aside:
            save_file(copies, aside, metadata={"content": self.content})

    def load(self) -> dict[str, Tensor] | None:
        """The newest state, or None where there is none.

        Raises:
            InputError: the file is corrupted, or is the checkpoint of another training.
        """
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


def drop(cell: str) -> None:
    """Delete the checkpoints of a cell, once its models are saved."""
    shutil.rmtree(root() / cell, ignore_errors=True)


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Run torch on this many CPU threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
