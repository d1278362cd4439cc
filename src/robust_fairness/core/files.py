"""What is written aside and renamed, so that a crash leaves the old one or the new one."""

import os
import platform
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

LOCK = ".lock"
# Several machines may write to one folder: each knows the processes of its own only.
HOST = re.sub(r"\W", "-", platform.node())


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of ``path`` when the block ends without error.

    What killed processes left behind of the same file is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = _aside(path)
    try:
        yield aside
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
        _remove_leftovers(path)


@contextmanager
def folder_written_aside(path: Path) -> Iterator[Path]:
    """An empty folder to write to, which becomes ``path`` when the block ends without error.

    If another process was faster its folder stays: this is for content that is the same. What
    killed processes left behind of the same folder is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = _aside(path)
    shutil.rmtree(aside, ignore_errors=True)  # of a process of the same number, long ago
    aside.mkdir()
    try:
        yield aside
        _rename(aside, path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        _remove_leftovers(path)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from changing files that are read and written within the block.

    The lock, a file of the folder, ends with the process that holds it, however that ends.
    """
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _aside(path: Path) -> Path:
    """Where this process writes what becomes ``path``."""
    return path.with_name(f".{path.name}.{HOST}.{os.getpid()}.part")


def _rename(aside: Path, path: Path) -> None:
    """Rename a folder, unless there is one already."""
    try:
        aside.replace(path)
    except OSError:
        if not path.is_dir():
            raise


def _remove_leftovers(path: Path) -> None:
    """Delete what killed processes of this machine wrote aside; those that live may still write."""
    for left in path.parent.glob(f".{escape(path.name)}.{HOST}.*.part"):
        owner = left.name.split(".")[-2]
        if owner.isdigit() and not _lives(int(owner)):
            _remove(left)


def _remove(left: Path) -> None:
    if left.is_dir():
        shutil.rmtree(left, ignore_errors=True)
    else:
        left.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)  # asks only
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
