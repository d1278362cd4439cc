"""What a long computation has of its process: device, memory, and a display of progress."""

import ctypes
import logging
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import TypeVar

import torch
from tqdm import tqdm

from robust_fairness.core.errors import InputError

logger = logging.getLogger(__name__)
SECONDS_BETWEEN_LINES = 10.0
# <malloc.h>
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
MOST = 2**31 - 1

Item = TypeVar("Item")


def device_named(name: str, field: str) -> torch.device:
    """The device ``cpu``, ``cuda`` or ``auto``: the GPU if there is one."""
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError(f"{field}: no cuda device available; allowed: auto, cpu")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(name)


def same_every_time() -> AbstractContextManager[None]:
    """A block in which cuDNN uses deterministic algorithms only; TF32 as torch is set."""
    cudnn = torch.backends.cudnn
    tensor_cores = cudnn.allow_tf32
    return cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=tensor_cores)


@cache
def keep_freed_memory() -> bool:
    """Let glibc keep freed memory for this process; returns whether the C library is glibc.

    Otherwise it gives tensors above 32 MiB, and the end of the heap, back to the kernel at every
    step and gets them again page by page, a third of the time of a step on images. No number
    depends on it; memory that a process once needed stays its own until it ends.
    """
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(M_MMAP_MAX, 0) and mallopt(M_TRIM_THRESHOLD, MOST))


def progress(items: Iterable[Item], description: str, total: int, start: int = 0) -> Iterator[Item]:
    """Yield the items and show rate and remaining time."""
    if sys.stderr.isatty():
        yield from tqdm(items, desc=description, total=total, initial=start, leave=False)
        return
    started = last = time.monotonic()
    for number, item in enumerate(items, start + 1):
        yield item
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES:
            last = now
            logger.info(
                "%s: %s",
                description,
                tqdm.format_meter(number, total, now - started, initial=start),
            )
