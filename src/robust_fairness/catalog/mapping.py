"""Arrays of safetensors files, memory-mapped, with everything else as JSON in the header."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from robust_fairness.core.errors import InputError, first_line

LENGTH = np.dtype("<u8")  # the file begins with the length of its header
METADATA = "__metadata__"
HEADER = "robust_fairness"
# The format's names of numpy's types; its byte order is little-endian.
TYPES = {
    "BOOL": "?", "U8": "u1", "U16": "<u2", "U32": "<u4", "U64": "<u8", "I8": "i1", "I16": "<i2",
    "I32": "<i4", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "C64": "<c8",
}  # fmt: skip

Arrays = dict[str, np.ndarray]


def save_parts(arrays: Arrays, rest: Any, path: Path) -> None:
    """Write arrays by name and a rest that JSON can hold."""
    from safetensors.numpy import save_file

    # safetensors writes memory as it lies
    contiguous = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    save_file(contiguous, path, metadata={HEADER: json.dumps(rest, allow_nan=False)})


def parts_of(path: Path) -> tuple[Arrays, Any]:
    """The arrays of a file by name, and the rest."""
    arrays, metadata = mapped(path)
    if HEADER not in metadata:
        raise InputError(f"{path}: corrupted file (its header lacks {HEADER})")
    return arrays, json.loads(metadata[HEADER])


def mapped(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """The arrays of a safetensors file by name, and the metadata in its header.

    The arrays are views of one memory map, where safetensors would copy them: pages are read on
    access and shared with other processes. Writing to them does not change the file.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:  # checks the header against the file
            metadata: dict[str, str] = file.metadata() or {}
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: corrupted file ({first_line(error)})") from error
    content = np.asarray(np.memmap(path, np.uint8, mode="c"))
    start = LENGTH.itemsize + int(content[: LENGTH.itemsize].view(LENGTH)[0])
    header = json.loads(content[LENGTH.itemsize : start].tobytes())
    header.pop(METADATA, None)
    data = content[start:]
    arrays = {}
    for name, entry in header.items():
        kind = entry["dtype"]
        if kind not in TYPES:
            raise InputError(f"{path}: {name}: numbers of type {kind}, allowed: {', '.join(TYPES)}")
        first, behind = entry["data_offsets"]
        array = data[first:behind].view(TYPES[kind]).reshape(entry["shape"])
        # torch cannot read unaligned addresses, which files of other writers may have
        arrays[name] = array if array.flags.aligned else array.copy()
    return arrays, metadata
