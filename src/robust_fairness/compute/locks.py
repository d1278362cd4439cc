"""Locks of files among processes, of the kernel: they end with their holder."""

import fcntl
import logging
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from robust_fairness.core.errors import InputError

logger = logging.getLogger(__name__)

LOCK = ".lock"
WARNS_AFTER = 5.0  # seconds that a lock is held elsewhere


@contextmanager
def locked(path: Path, limit: float = 120.0) -> Iterator[None]:
    """Hold the lock of a file, which names its holder, until the block or this process ends.

    Raises:
        InputError: another process has held it for ``limit`` seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    begun, warned = time.monotonic(), False
    with path.open("a+", encoding="utf-8") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = time.monotonic() - begun
            words = f"{path}: locked by {_holder(file)} for {waited:.0f} s"
            if waited >= limit:
                raise InputError(f"{words}; end that process, or wait for it and start again")
            if waited >= WARNS_AFTER and not warned:
                warned = True
                logger.warning("%s; waiting for it", words)
            time.sleep(0.01)
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()}")
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)


def _holder(file: IO[str]) -> str:
    """The process that a lock file names."""
    file.seek(0)
    return file.read(200) or "another process"
