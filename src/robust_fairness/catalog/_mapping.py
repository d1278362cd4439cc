"""Arrays of a safetensors file that the system reads page by page, when they are looked at."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from robust_fairness.core.errors import InputError

LENGTH = np.dtype("<u8")  # the file begins with the length of its header
METADATA = "__metadata__"
# The format's names of numpy's types; numbers lie in little-endian order.
TYPES = {
    "BOOL": "?", "U8": "u1", "U16": "<u2", "U32": "<u4", "U64": "<u8", "I8": "i1", "I16": "<i2",
    "I32": "<i4", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<c8",
}  # fmt: skip


def mapped(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays of a safetensors file by name, and the text of its header.

    The reader of safetensors copies every array. These are views of one memory map: a page is
    read when it is looked at, and shared with other processes. They are writable, as torch wants
    them, but what is written stays in the process (copy on write). A file that is renamed to
    this path is another one, so arrays stay as they are; the file itself must not be cut.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:  # checks the header against the file
            metadata: dict[str, str] = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: corrupted file ({_first_line(error)})") from error
    content = np.asarray(np.memmap(path, np.uint8, mode="c"))
    start = LENGTH.itemsize + int(content[: LENGTH.itemsize].view(LENGTH)[0])
    header = json.loads(content[LENGTH.itemsize : start].tobytes())
    header.pop(METADATA, None)
    data = content[start:]
    return {name: _view(data, told, f"{path}: {name}") for name, told in header.items()}, metadata


def _view(data: np.ndarray, told: dict[str, Any], where: str) -> np.ndarray:
    """One array of what follows the header."""
    if told["dtype"] not in TYPES:
        raise InputError(f"{where}: numbers of type {told['dtype']}, allowed: {', '.join(TYPES)}")
    first, behind = told["data_offsets"]
    array = data[first:behind].view(TYPES[told["dtype"]]).reshape(told["shape"])
    # safetensors aligns what it writes; of what others write, torch may read no odd address
    return array if array.flags.aligned else array.copy()


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
