"""Deleting old runs: their files, checkpoints and MLflow runs."""

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from robust_fairness.compute import checkpoints
from robust_fairness.core.errors import InputError
from robust_fairness.runs import provenance, tracking
from robust_fairness.runs.ownership import owned

PAGES = ("*.md", "*.html", "*.ipynb", "*.yml")
FOLDERS = ("docs", "notebooks", "conf")  # of pages that may name runs
REMAINS = ("data/.attempts_*", "data/**/.*.part")  # of processes that were killed


@dataclass(frozen=True)
class Removal:
    """Something to delete.

    Attributes:
        what: what it is, in words.
        paths: its files and folders.
        run_id: the run that it is; "" if it is none.
    """

    what: str
    paths: Sequence[Path]
    run_id: str = ""

    @property
    def size(self) -> int:
        """Bytes on disk."""
        files = (file for path in self.paths for file in (path, *path.rglob("*")))
        return sum(file.lstat().st_size for file in files if file.is_file())


def removals(keep: int, age: timedelta) -> list[Removal]:
    """What may be deleted: runs older than ``age``, but for the newest ``keep``, and remains.

    A run stays that another one read from, that a tag of Git is named after, or that a page of
    the project names. Runs without a readable manifest are left alone.
    """
    limit = datetime.now(UTC) - age
    known = provenance.manifests()
    old = known[: max(0, len(known) - keep)]
    runs = [
        manifest["run_id"]
        for manifest in old
        if datetime.fromisoformat(manifest["started"]) < limit
    ]
    kept = {*_referred_to(known, runs)}
    result = [Removal(f"run {run}", _files_of(run), run) for run in runs if run not in kept]
    remains = [path for pattern in REMAINS for path in provenance.root().glob(pattern)]
    remains += (provenance.root() / checkpoints.root()).glob("*/*")
    result += [
        Removal(provenance.relative(path), [path]) for path in remains if _is_old(path, limit)
    ]
    return result


def remove(removal: Removal) -> None:
    """Delete it; a run in progress is an error."""
    if removal.run_id:
        with owned(removal.run_id):
            tracking.forget(removal.run_id)
            _delete(removal.paths)
    else:
        _delete(removal.paths)


def _delete(paths: Sequence[Path]) -> None:
    """Delete files and folders, and the folders that are empty then."""
    try:
        for path in paths:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be deleted: {error.strerror}") from error
    for path in paths:
        with suppress(OSError):  # of the first one that is not empty
            for folder in path.parents:
                folder.rmdir()


def _files_of(run_id: str) -> list[Path]:
    """Folders of a run's versions, ``<file>/<run id>/<file>``, its log and last its manifest."""
    folders = (provenance.root() / "data").glob(f"**/{run_id}")
    versions = [path for path in folders if (path / path.parent.name).is_file()]
    files = (provenance.log_path, provenance.journal_path, provenance.manifest_path)
    return [*versions, *(path(run_id) for path in files if path(run_id).exists())]


def _referred_to(known: Sequence[Mapping[str, Any]], runs: Sequence[str]) -> Iterator[str]:
    """Runs that other runs, tags or pages refer to."""
    for manifest in known:
        yield from manifest.get("loaded", {}).values()
    done = subprocess.run(
        ["git", "tag"], cwd=provenance.root(), capture_output=True, text=True, check=False
    )
    yield from done.stdout.split()
    folders = [provenance.root() / name for name in FOLDERS]
    pages = [provenance.root() / "README.md"]
    pages += (path for folder in folders for kind in PAGES for path in folder.rglob(kind))
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in pages if path.is_file()]
    words = {word.rstrip(".-") for text in texts for word in re.findall(r"\w[\w.-]*", text)}
    yield from words.intersection(runs)


def _is_old(path: Path, limit: datetime) -> bool:
    return datetime.fromtimestamp(path.lstat().st_mtime, UTC) < limit
