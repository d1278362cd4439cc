"""One process owns a run id: a second start says which one."""

import json
import os
import platform
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

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
    lock = FileLock(path, timeout=0.1, poll_interval=0.01, fallback_to_soft=False)
    with ExitStack() as stack:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(lock)
        except Timeout:
            raise RunInProgress(
                f"run {run_id} is in progress: {_described(_holder(path))}; wait for it, or choose "
                "another --run-id"
            ) from None
        except OSError as error:
            raise InputError(f"{path}: cannot be locked: {error.strerror}") from error
        _require_ended(path, run_id)
        path.write_text(json.dumps(_this_process()), encoding="utf-8")
        stack.callback(path.unlink, missing_ok=True)  # while it is locked
        yield


def _this_process() -> dict[str, Any]:
    return {
        "host": platform.node(),
        "boot": boot(),
        "namespace": namespace(),
        "process": os.getpid(),
        "started": provenance.now(),
    }


def _holder(path: Path) -> dict[str, Any]:
    """The process that a lock file names; empty if it names none."""
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, FileNotFoundError):  # of a process that was killed, or has just ended
        return {}
    return holder if isinstance(holder, dict) else {}


def _described(holder: dict[str, Any]) -> str:
    known = {"process": "?", "host": "?", "started": "?", **holder}
    return "process {process} on {host}, since {started}".format(**known)


def _require_ended(path: Path, run_id: str) -> None:
    """Require that the process named in a free lock file has ended, as far as can be known."""
    holder = _holder(path)
    here = _this_process()
    if not holder or any(holder.get(name) == here[name] for name in ("boot", "host")):
        return  # the same kernel would still hold the lock, an earlier one has ended
    raise RunInProgress(
        f"run {run_id} is in progress, or ended without notice: {_described(holder)}; if that "
        f"process has ended, delete {provenance.relative(path)}"
    )
