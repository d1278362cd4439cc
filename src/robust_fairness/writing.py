"""Files that are written aside and renamed, so that a crash leaves the old one or the new one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path


@contextmanager
def written_aside(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of ``path`` when the block ends without error.

    What killed processes left behind of the same file is removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield aside
        with aside.open("rb") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
        _remove_leftovers(path)


def _remove_leftovers(path: Path) -> None:
    """Delete what killed processes wrote aside of a file; those that live may still write."""
    for left in path.parent.glob(f".{escape(path.name)}.*.part"):
        owner = left.name.split(".")[-2]
        if owner.isdigit() and not _lives(int(owner)):
            left.unlink(missing_ok=True)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)  # asks only
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
