"""Atomic writes, where a crash leaves the old or the new file, checksums, and locks.

Locks of files among processes are those of the kernel: they end with their holder.
"""

import hashlib
import json
import logging
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from robust_fairness.core.errors import InputError

ROOT = Path(__file__).parents[1]  # the package
# The configuration of the package: inside of it, in a clone beside ``src``.
CONF = next(filter(Path.is_dir, (ROOT / "conf", ROOT.parents[1] / "conf")), ROOT / "conf")
logger = logging.getLogger(__name__)

LOCK = ".lock"
WARNS_AFTER = 5.0  # seconds that a lock is held elsewhere
IS_POSIX = os.name == "posix"  # elsewhere, signal 0 is no question whether a process exists


def boot() -> str:
    """Name of this start of the kernel; empty where the system has none."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


def namespace() -> str:
    """The namespace in which process ids have a meaning; empty where the system has none."""
    path = Path("/proc/self/ns/pid")
    return str(path.readlink()) if path.is_symlink() else ""


# Machines and containers that share a folder, also of one name, know only their own processes.
_OWN = hashlib.sha256(f"{boot()} {namespace()}".encode()).hexdigest()[:8]
HOST = re.sub(r"\W", "-", f"{platform.node()}-{_OWN}")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path that replaces ``path`` when the block ends without error."""
    with atomic_paths([path]) as (temporary,):
        yield temporary


@contextmanager
def atomic_paths(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Temporary paths that replace ``paths`` when the block ends without error, all or none.

    All are on the disk before the first is renamed. Their permissions follow the umask, whichever
    those are that a library writes with. Temporary files of killed processes are deleted.
    """
    parts = {_temporary(path): path for path in paths}
    modes, current = {}, paths[0]
    try:
        for temporary, current in parts.items():
            current.parent.mkdir(parents=True, exist_ok=True)
            temporary.touch()
            modes[temporary] = temporary.stat().st_mode
        yield [*parts]
        for temporary, mode in modes.items():
            current = parts[temporary]
            temporary.chmod(mode)
            with temporary.open("r+b") as file:  # Windows asks for the right to write
                os.fsync(file.fileno())
        for temporary, current in parts.items():
            temporary.replace(current)
        for folder in {path.parent for path in paths}:
            sync_folder(folder)
    except OSError as error:  # a full disk names no file
        if error.errno is not None and error.filename is None:
            error.filename = str(current)
        raise
    finally:
        for temporary, path in parts.items():
            temporary.unlink(missing_ok=True)
            _remove_leftovers(path)


def sync_folder(path: Path) -> None:
    """Put the names of a folder on the disk, where the system knows how to."""
    if IS_POSIX:
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder that becomes ``path`` when the block ends without error.

    An existing folder, written by a concurrent process with the same content, is kept. Temporary
    folders of killed processes are deleted.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path)
    shutil.rmtree(temporary, ignore_errors=True)  # of an earlier process with the same id
    temporary.mkdir()
    try:
        yield temporary
        try:
            temporary.replace(path)
        except OSError:
            if not path.is_dir():
                raise
        sync_folder(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        _remove_leftovers(path)


def require_plain(folder: Path) -> None:
    """Refuse a folder of a project whose path has another meaning in URLs and patterns.

    Raises:
        InputError: it has one of ``* ? [ ] { } %``.
    """
    if wrong := re.search(r"[*?\[\]{}%]", str(folder.absolute())):
        raise InputError(
            f"folder {str(folder.absolute())!r} has {wrong[0]!r} in its path, which catalogs and "
            "URLs give a meaning; allowed: any letters but * ? [ ] { } %"
        )


def checksum(content: Any) -> str:
    """SHA-256 of what JSON can hold, whatever the order of its fields.

    >>> checksum({"a": 1, "b": [2]}) == checksum({"b": [2], "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, which may be larger than memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _temporary(path: Path) -> Path:
    """The temporary path of this process for ``path``."""
    return path.with_name(f".{path.name}.{HOST}.{os.getpid()}.part")


def _remove_leftovers(path: Path) -> None:
    """Delete temporary files of processes of this machine that have ended."""
    for leftover in path.parent.glob(f".{escape(path.name)}.{HOST}.*.part"):
        owner = leftover.name.split(".")[-2]
        if owner.isdigit() and not _exists(int(owner)):
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)


def _exists(process: int) -> bool:
    """Whether a process exists, or may exist."""
    if not IS_POSIX:
        return True
    try:
        os.kill(process, 0)  # sends no signal
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


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
