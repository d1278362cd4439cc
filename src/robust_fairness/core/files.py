"""Atomic writes, where a crash leaves the old or the new file, checksums and locks."""

import hashlib
import logging
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import IO

import robust_fairness
from robust_fairness.core.errors import InputError

logger = logging.getLogger(__name__)

ROOT = Path(robust_fairness.__file__).parent  # the package
# The configuration of the package: inside of it, in a clone beside ``src``.
CONF = next(filter(Path.is_dir, (ROOT / "conf", ROOT.parents[1] / "conf")), ROOT / "conf")
LOCK = ".lock"
WARNS_AFTER = 5.0  # seconds that a lock is held elsewhere


def boot() -> str:
    """Name of this start of the kernel; empty where the system has none."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else ""


def namespace() -> str:
    """The namespace in which process ids have a meaning; empty where the system has none."""
    path = Path("/proc/self/ns/pid")
    return str(path.readlink()) if path.is_symlink() else ""


# Machines and containers that share a folder, also of one name, know only their own processes.
_OWN = hashlib.sha256(f"{boot()} {namespace()}".encode()).hexdigest()[:8]
HOST = re.sub(r"\W", "-", f"{platform.node()}-{_OWN}")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path that replaces ``path`` when the block ends without error.

    Its permissions follow the umask, whichever those are that a library writes with. Temporary
    files of killed processes are deleted.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(path)
    try:
        temporary.touch()
        mode = temporary.stat().st_mode
        yield temporary
        temporary.chmod(mode)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:  # a full disk names no file
        if error.errno is not None and error.filename is None:
            error.filename = str(path)
        raise
    finally:
        temporary.unlink(missing_ok=True)
        _remove_leftovers(path)


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
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        _remove_leftovers(path)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, which may be larger than memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def locked(path: Path, limit: float = 120.0) -> Iterator[None]:
    """Hold the lock of a file, which names its holder, until the block or this process ends.

    Raises:
        InputError: another process has held it for ``limit`` seconds.
    """
    import fcntl

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
    try:
        os.kill(process, 0)  # sends no signal
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
