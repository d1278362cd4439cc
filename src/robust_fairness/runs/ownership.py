"""One process owns a run id: a second start says which one."""

import fcntl
import json
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from robust_fairness.core.errors import InputError
from robust_fairness.core.files import boot, namespace
from robust_fairness.runs import provenance


class RunInProgress(InputError):
    """Another process owns the run."""


@contextmanager
def owned(run_id: str) -> Iterator[None]:
    """Own a run id until the block or this process ends, however it ends.

    The lock is one of the kernel; its file names the holder. A file system that does not pass
    locks on to other machines is recognised by a holder elsewhere whose lock is free.

    Raises:
        InputError: another process owns it, or the file cannot be written or locked.
    """
    path = provenance.manifest_path(run_id).with_name(f".{run_id}.lock")
    try:
        file = _locked(path, run_id)
    except OSError as error:
        raise InputError(f"{path}: cannot be locked: {error.strerror}") from error
    with file:
        _require_ended(file, path, run_id)
        file.seek(0)
        file.truncate()
        json.dump(_this_process(), file)
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)  # still locked: who waits for it opens a new file


def _locked(path: Path, run_id: str) -> IO[str]:
    """The open lock file of a run, locked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        file = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _described(_holder(file))
            file.close()
            raise RunInProgress(
                f"run {run_id} is in progress: {holder}; wait for it, or choose another --run-id"
            ) from None
        if _is_at(file, path):
            return file
        file.close()  # its holder has just deleted it


def _is_at(file: IO[str], path: Path) -> bool:
    """Whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _this_process() -> dict[str, Any]:
    return {
        "host": platform.node(),
        "boot": boot(),
        "namespace": namespace(),
        "process": os.getpid(),
        "started": provenance.now(),
    }


def _holder(file: IO[str]) -> dict[str, Any]:
    """The process that a lock file names; empty if it names none."""
    file.seek(0)
    try:
        holder = json.load(file)
    except ValueError:  # empty, or of a process that was killed while writing
        return {}
    return holder if isinstance(holder, dict) else {}


def _described(holder: dict[str, Any]) -> str:
    known = {"process": "?", "host": "?", "started": "?", **holder}
    return "process {process} on {host}, since {started}".format(**known)


def _require_ended(file: IO[str], path: Path, run_id: str) -> None:
    """Require that the process named in a free lock file has ended, as far as can be known."""
    holder = _holder(file)
    here = _this_process()
    if not holder or any(holder.get(name) == here[name] for name in ("boot", "host")):
        return  # the same kernel would still hold the lock, an earlier one has ended
    raise RunInProgress(
        f"run {run_id} is in progress, or ended without notice: {_described(holder)}; if that "
        f"process has ended, delete {provenance.relative(path)}"
    )
