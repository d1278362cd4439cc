"""Files of the MNIST family: idx, a header of sizes and then bytes."""

from math import prod

import numpy as np

from robust_fairness.core.errors import InputError
from robust_fairness.datasets.files import Files

UNSIGNED_BYTES = 0x08


def read_idx(files: Files, name: str, axes: int) -> np.ndarray:
    """Content of an idx file of unsigned bytes, uint8, read-only."""
    content = files.content(name)
    expected = bytes([0, 0, UNSIGNED_BYTES, axes])
    if content[:4] != expected:
        raise InputError(
            f"{name}: begins with {content[:4].hex(' ')}, allowed: {expected.hex(' ')}, "
            f"an idx file of unsigned bytes with {axes} axes"
        )
    header = 4 + 4 * axes
    shape = tuple(map(int, np.frombuffer(content[4:header].ljust(4 * axes, b"\0"), ">u4")))
    if len(content) - header != prod(shape):
        raise InputError(
            f"{name}: holds {max(0, len(content) - header)} bytes after its header, "
            f"allowed: {' x '.join(map(str, shape))} as the header says"
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)
