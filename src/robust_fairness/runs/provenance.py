"""Manifests: what a run read, computed and saved, with which code and packages.

``data/08_reporting/manifests/<run id>.json`` is written when a run starts and when it ends. In
between, outputs and failures are lines of ``.<run id>.journal``, which belong to the manifest.
"""

import json
import logging
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kedro.io.core import generate_timestamp
from kedro.utils import find_kedro_project

from robust_fairness.bench.datasets import fetch
from robust_fairness.catalog import names
from robust_fairness.catalog.atomic import AtomicDataset
from robust_fairness.core.code import code, packages
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.escaping import hidden
from robust_fairness.core.files import LOCK, atomic_path, checksum, locked, sha256_of

logger = logging.getLogger(__name__)

FOLDER = Path("data/08_reporting/manifests")
FORMAT = 2  # of a manifest, which has a checksum
FILTERS = ("tags", "from_nodes", "to_nodes", "node_names", "from_inputs", "to_outputs")
# Fields that must be equal to complete a run under its id; inputs are checked when they are read.
IDENTITY = (
    "environment", "pipelines", "namespaces", "filters", "runtime_parameters", "configuration",
    "code", "packages", "python", "threads", "device",
)  # fmt: skip
MACHINE = ("packages", "python", "threads", "device")
REQUIRED = {"run_id", "state", "started", "outputs"}  # of any version
ALLOW_MODIFIED_DATA = "ROBUST_FAIRNESS_ALLOW_MODIFIED_DATA"  # set by --allow-modified-data
ACCEPT_CHANGES = "ROBUST_FAIRNESS_ACCEPT_CHANGES"  # set by --accept-changes


def root() -> Path:
    """Folder of the project; the current folder outside of a project."""
    return find_kedro_project(Path.cwd()) or Path.cwd()


def relative(path: Path) -> str:
    """A path relative to the project's folder if it is inside."""
    return str(path.relative_to(root()) if path.is_relative_to(root()) else path)


def manifest_path(run_id: str) -> Path:
    """File of a run's manifest."""
    return root() / FOLDER / f"{run_id}.json"


def manifests() -> list[dict[str, Any]]:
    """All manifests, oldest first; a corrupted one is skipped with a warning."""
    readable = []
    for path in sorted((root() / FOLDER).glob("*.json")):
        try:
            manifest = read_manifest(path)
        except InputError as error:
            logger.warning("%s; skipped", error)
            continue
        if manifest.keys() >= REQUIRED:
            readable.append(manifest)
        else:
            logger.warning("%s: corrupted manifest (fields are missing); skipped", path)
    return sorted(readable, key=lambda manifest: str(manifest["started"]))


def load_manifest(run_id: str) -> dict[str, Any]:
    """The manifest of a run, of one in progress with its outputs and failures so far.

    A killed process leaves half a line in the journal.
    """
    path = manifest_path(run_id)
    if not path.exists():
        raise unknown_name("run", run_id, (file.stem for file in path.parent.glob("*.json")))
    manifest = read_manifest(path)
    journal = journal_path(run_id)
    for line in journal.read_bytes().splitlines() if journal.exists() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            logger.warning("%s: a line is cut off; its output will be made again", journal)
            continue
        manifest["outputs"] |= entry.get("outputs", {})
        manifest["seconds"] = manifest.get("seconds", {}) | entry.get("seconds", {})
        failed = [*manifest["failed"], *entry.get("failed", ())]
        manifest["failed"] = list(dict.fromkeys(failed))
    return manifest


def has_failed(run_id: str) -> bool:
    """Whether a node of a run has failed."""
    return manifest_path(run_id).exists() and load_manifest(run_id)["state"] == "failed"


def journal_path(run_id: str) -> Path:
    """File of the outputs and failures of a run in progress."""
    return manifest_path(run_id).with_name(f".{run_id}.journal")


def record(run_id: str, **entry: Any) -> None:
    """Add ``outputs``, ``seconds`` or ``failed`` to the manifest of a run in progress.

    Any process may do so. Nothing happens without a manifest, as with a runner that is used without
    the hook.
    """
    if manifest_path(run_id).exists():
        line = f"{json.dumps(entry)}\n".encode()
        with locked(manifest_path(run_id).with_name(LOCK)), journal_path(run_id).open("ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest in a file, named by its run; earlier versions wrote no checksum.

    Raises:
        InputError: it cannot be read, was changed, or is not that of the run.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise InputError(f"{path}: corrupted manifest ({error})") from error
    if not isinstance(content, dict) or content.get("run_id") != path.stem:
        raise InputError(f"{path}: corrupted manifest (not that of run {path.stem})")
    written = content.pop("checksum", None)
    if (written or "format" in content) and written != checksum(content):
        raise InputError(f"{path}: corrupted manifest (changed since it was written); restore it")
    return content


def write_manifest(manifest: Mapping[str, Any]) -> None:
    """Write a manifest atomically."""
    content = {**manifest, "format": FORMAT}
    content |= {"checksum": checksum(content)}
    with atomic_path(manifest_path(manifest["run_id"])) as file:
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        file.write_text(text, encoding="utf-8")


def newest_finished_run() -> str:
    """Id of the newest run that ended with a metrics table; a warning says that nodes failed."""
    for manifest in reversed(manifests()):
        if manifest["state"] in ("finished", "failed") and "metrics" in manifest["outputs"]:
            run_id = str(manifest["run_id"])
            if failures := manifest.get("failed"):
                failed = "; ".join(failures)
                logger.warning("run %s: %d failed: %s", run_id, len(failures), failed)
            return run_id
    raise InputError(f"{FOLDER}: no finished run; start one with: kedro run")


def newest_unfinished_run() -> str:
    """Id of the newest run that can be completed."""
    for manifest in reversed(manifests()):
        if manifest["state"] != "finished":
            return str(manifest["run_id"])
    raise InputError(f"{FOLDER}: no unfinished run to complete; name one with --run-id")


def output(run_id: str, name: str) -> Path | str:
    """Path, or URL, of an output of a run.

    Raises:
        InputError: the run has no such output, or its file has changed since.
    """
    outputs = load_manifest(run_id)["outputs"]
    if name not in outputs:
        raise unknown_name(f"output of run {run_id}", name, outputs)
    place: str = outputs[name]["path"]
    if "://" in place:
        return place
    require_unchanged(run_id, outputs[name], root() / place)
    return root() / place


def require_unchanged(run_id: str, recorded: Mapping[str, str], path: Path) -> None:
    """Require the file that a run saved; ``path`` is the file or a local copy of it.

    Earlier versions recorded no checksum of the file.
    """
    if not path.exists():
        raise InputError(f"{recorded['path']}: deleted since run {run_id} saved it")
    if recorded.get("sha256", sha256_of(path)) != sha256_of(path):
        raise InputError(
            f"{recorded['path']}: changed since run {run_id} saved it; to record the change, "
            "complete the run with --only-missing-outputs --accept-changes; to make the file "
            "again, delete it and complete the run"
        )


def load(run_id: str, name: str, kind: Callable[..., AtomicDataset]) -> Any:
    """Load a dataset that a run saved or read.

    Raises:
        InputError: there is none, or its file has changed since it was saved.
    """
    manifest = load_manifest(run_id)
    if name in manifest["outputs"]:
        place = output(run_id, name)
        if isinstance(place, Path):
            return kind(filepath=str(place)).load()
        dataset = _remote(manifest["environment"], name, run_id)
        if dataset.exists():
            with dataset.local() as copy:
                require_unchanged(run_id, manifest["outputs"][name], copy)
        return dataset.load()
    if name in manifest["loaded"]:
        return load(manifest["loaded"][name], name, kind)
    known = {*manifest["outputs"], *manifest["loaded"]}
    part = names.parse(name).part
    alike = {output for output in known if names.parse(output).part == part}
    raise unknown_name(f"output of run {run_id}", name, alike or known)


def _remote(environment: str, name: str, run_id: str) -> AtomicDataset:
    """A remote file by the catalog, which has the credentials; manifests do not have them."""
    from kedro.config import MissingConfigException
    from kedro.io import DataCatalog

    from robust_fairness.runs.configuration import loader_of

    loader = loader_of(environment)
    try:
        credentials = loader["credentials"]
    except MissingConfigException:
        credentials = {}
    dataset = DataCatalog.from_config(loader["catalog"], credentials, {name: run_id}).get(name)
    assert isinstance(dataset, AtomicDataset)
    return dataset


def used(run_id: str) -> dict[str, list[str]]:
    """Names of the datasets, shifts, methods and metrics of a run, by kind."""
    names: dict[str, list[str]] | None = load_manifest(run_id).get("used")
    if names is None:
        raise InputError(
            f"{manifest_path(run_id)}: field 'used' is missing; only runs of this version have it"
        )
    return names


def new_manifest(run_params: Mapping[str, Any], loader: Any) -> dict[str, Any]:
    """The manifest of a run before its first node."""
    experiment = loader.selected_experiment
    manifest = {
        "run_id": run_params["run_id"],
        "state": "running",
        "started": now(),
        "ended": None,
        "command": sys.argv[1:],
        "environment": run_params["env"] or loader.env or loader.default_run_env,
        "pipelines": sorted(run_params["pipeline_names"]),
        "namespaces": sorted(run_params["namespaces"] or ()),
        "filters": {name: sorted(run_params[name] or ()) for name in FILTERS},
        "runtime_parameters": run_params["runtime_params"],
        "conf_source": relative(Path(loader.source).absolute()),
        "configuration": configuration_digest(loader),
        "configuration_files": loader.texts(),
        "grid": {
            "seeds": {dataset.name: dataset.seeds for dataset in experiment.datasets},
            "cells": [cell.name for cell in experiment.cells],
            "test_sets": {
                dataset.name: [test_set.name for test_set in dataset.test_sets]
                for dataset in experiment.datasets
            },
        },
        "used": loader.used,
        "git": git_state(),
        "code": code(),
        "accepted": [],
        "inputs": {},
        "modified": [],
        "loaded": {},
        "failed": [],
        "outputs": {},
        "unchecked": [],
        "seconds": {},
        "packages": packages(),
        **machine(),
    }
    written: dict[str, Any] = hidden(json.loads(json.dumps(manifest, default=str)))
    return written


def configuration_digest(loader: Any) -> str:
    """A hash of the parameters and of the selected experiment."""
    experiment = repr(loader.selected_experiment)
    configuration = {"parameters": loader.written_parameters, "experiment": experiment}
    return checksum(configuration)


def require_same_configuration(manifest: Mapping[str, Any], loader: Any) -> None:
    """Raise unless a run was made with the configuration that is read now."""
    if manifest["configuration"] != configuration_digest(loader):
        files = ", ".join(_changed_files(manifest, {"configuration_files": loader.texts()}))
        raise InputError(
            f"run {manifest['run_id']}: the configuration has changed since"
            f"{f' ({files}; the manifest has the earlier text)' if files else ''}, allowed: the "
            "same, or a new run"
        )


def _changed_files(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Files of the configuration that two manifests have different texts of."""
    before, after = (manifest.get("configuration_files", {}) for manifest in (old, new))
    return sorted({name for name, _ in before.items() ^ hidden(after).items()})


def accepted(run_id: str, changes: Sequence[str]) -> list[str]:
    """The changes for the manifest.

    Raises:
        InputError: there are some, and ``--accept-changes`` was not given.
    """
    if changes and ACCEPT_CHANGES not in os.environ:
        raise InputError(
            f"run {run_id} differs: {'; '.join(changes)}; use another --run-id, or add "
            "--accept-changes, which the manifest and the report record"
        )
    return list(changes)


def differences(
    old: Mapping[str, Any], new: Mapping[str, Any], fields: Sequence[str] = IDENTITY
) -> Iterator[str]:
    """What differs between the identities of two manifests."""
    for field in fields:
        name = field.replace("_", " ")
        if field == "configuration" and (files := _changed_files(old, new)):
            name = f"configuration ({', '.join(files)})"
        before, after = (_flat(name, manifest.get(field)) for manifest in (old, new))
        for name in before | after:
            if before.get(name) != after.get(name):
                yield (
                    f"its {name} was {str(before.get(name))[:100]}, "
                    f"now it is {str(after.get(name))[:100]}"
                )


def _flat(name: str, value: Any) -> dict[str, Any]:
    """A field, or the fields in it, by their names."""
    match value:
        case None:
            return {}
        case {**fields}:
            return {f"{name} ({field})": part for field, part in fields.items()}
    return {name: value}


def note_inputs(run_id: str, sources: Mapping[str, Mapping[str, str]]) -> None:
    """Record the raw files of samples, SHA-256 by file name, in the manifest.

    Safe for concurrent processes.

    Raises:
        InputError: a file has changed since the run started, or is not the official one and
            ``--allow-modified-data`` was not given.
    """
    if ALLOW_MODIFIED_DATA not in os.environ:
        for files in sources.values():
            fetch.require_official(
                files, "add --allow-modified-data, which the manifest and the report record"
            )
    modified = sorted({file for files in sources.values() for file in fetch.modified(files)})
    with locked(manifest_path(run_id).with_name(LOCK)):
        manifest = load_manifest(run_id)
        known = manifest["inputs"]
        for name, files in sources.items():
            before = known.get(name, files)
            changed = sorted({file for file, _ in before.items() ^ files.items()})
            if changed:
                raise InputError(
                    f"{name}: {', '.join(changed)} changed since run {run_id} started; "
                    "use another --run-id"
                )
        if not sources.keys() <= known.keys():
            modified = sorted({*manifest.get("modified", ()), *modified})
            write_manifest(manifest | {"inputs": {**known, **sources}, "modified": modified})


def require_same_samples(versions: Mapping[str, str]) -> None:
    """Require that all inputs from other runs were made from the samples that are read.

    Otherwise splits may differ: test rows of one run may be training rows of the other.
    """
    ids = {version for version in versions.values() if manifest_path(version).exists()}
    runs = {run_id: load_manifest(run_id)["loaded"] for run_id in ids}
    for name, run_id in versions.items():
        samples = names.of_dataset(names.parse(name).dataset, "samples")
        if samples not in versions or run_id not in runs:
            continue
        current = versions[samples]
        original = runs[run_id].get(samples, run_id)
        if original != current and not _same_content(samples, original, current):
            raise InputError(
                f"{name} of run {run_id} was made from {samples} of run {original}, and those of "
                f"run {current} differ; choose by --load-versions={samples}:{original}"
            )


def _same_content(name: str, *run_ids: str) -> bool:
    """Whether an output is equal in all of these runs according to their manifests."""
    runs = [
        load_manifest(run_id)["outputs"] for run_id in run_ids if manifest_path(run_id).exists()
    ]
    contents = [outputs[name].get("sha256") for outputs in runs if name in outputs]
    return None not in contents and len(contents) == len(run_ids) and len(set(contents)) == 1


def machine() -> dict[str, Any]:
    """Python, platform, cores, threads and device."""
    import torch

    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def new_run_id() -> str:
    """The id of a run that got none: the time, as Kedro writes it."""
    return str(generate_timestamp())


def now() -> str:
    """The current time, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def git_state() -> dict[str, Any]:
    """Commit, and whether the working tree differs from it.

    Both are None outside of Git and where Git refuses the folder. ``code`` says what the code was.
    """
    state = []
    try:
        for words in ("rev-parse HEAD", "status --porcelain"):
            command = ["git", *words.split()]
            done = subprocess.run(command, cwd=root(), capture_output=True, check=True, text=True)
            state.append(done.stdout.strip())
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}
    return {"commit": state[0], "dirty": bool(state[1])}
