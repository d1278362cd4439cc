"""Locks of files among processes, of the kernel: they end with their holder."""

import logging
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from robust_fairness.core.errors import InputError

logger = logging.getLogger(__name__)

LOCK = ".lock"
WARNS_AFTER = 5.0  # seconds that a lock is held elsewhere


def lock_of(path: Path) -> Path:
    """The lock of a file that is read, changed and written, or written only if it is new."""
    return path.with_name(f".{path.name}{LOCK}")


@contextmanager
def locked(path: Path, limit: float = 120.0) -> Iterator[None]:
    """Hold a lock, a file that names its holder, until the block or this process ends.

    Raises:
        InputError: another process has held it for ``limit`` seconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock, begun = FileLock(path, poll_interval=0.01, fallback_to_soft=False), time.monotonic()

    def held() -> str:
        holder = ""
        with suppress(FileNotFoundError):  # it has just ended
            holder = path.read_text(encoding="utf-8")[:200]
        return (
            f"{path}: locked by {holder or 'another process'} for {time.monotonic() - begun:.0f} s"
        )

    try:
        try:
            lock.acquire(timeout=min(WARNS_AFTER, limit))
        except Timeout:
            logger.warning("%s; waiting for it", held())
            lock.acquire(timeout=max(limit - WARNS_AFTER, 0))
    except Timeout:
        raise InputError(f"{held()}; end that process, or wait for it and start again") from None
    try:
        path.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
        yield
    finally:
        with suppress(OSError):  # Windows deletes no open file; those who wait notice the new one
            path.unlink()
        lock.release()
