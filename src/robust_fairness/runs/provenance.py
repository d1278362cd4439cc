"""Manifests: what a run read, computed and saved, with which code and packages.

``data/08_reporting/manifests/<run id>.json`` is written when a run starts and when it ends.
"""

import hashlib
import json
import logging
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kedro.utils import find_kedro_project

import robust_fairness
from robust_fairness.catalog import names
from robust_fairness.catalog.atomic import AtomicDataset
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.files import atomic_path, locked
from robust_fairness.core.registry import plugins_folder
from robust_fairness.datasets import fetch
from robust_fairness.runs.secrets import hidden

logger = logging.getLogger(__name__)

FOLDER = Path("data/08_reporting/manifests")
# Packages that numbers depend on.
PACKAGES = (
    "robust-fairness", "diffusers", "kedro", "numpy", "optuna", "pandas", "pillow", "pyarrow",
    "pytorch-metric-learning", "safetensors", "scikit-image", "scikit-learn", "scipy", "torch",
    "torchvision",
)  # fmt: skip
FILTERS = ("tags", "from_nodes", "to_nodes", "node_names", "from_inputs", "to_outputs")
# Fields that must be equal to complete a run under its id; inputs are checked when they are read.
IDENTITY = (
    "environment", "pipelines", "namespaces", "filters", "runtime_parameters", "configuration",
    "git", "code", "packages", "python", "threads", "device",
)  # fmt: skip
REQUIRED = {"run_id", "state", "started", "outputs"}  # of any version
SOURCES = ("*.py", "*.yml", "*.bib")
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
    found = []
    for path in sorted((root() / FOLDER).glob("*.json")):
        try:
            manifest = read_manifest(path)
        except InputError as error:
            logger.warning("%s; skipped", error)
            continue
        if manifest.keys() >= REQUIRED:
            found.append(manifest)
        else:
            logger.warning("%s: corrupted manifest (fields are missing); skipped", path)
    return sorted(found, key=lambda manifest: str(manifest["started"]))


def load_manifest(run_id: str) -> dict[str, Any]:
    """The manifest of a run."""
    path = manifest_path(run_id)
    if not path.exists():
        raise unknown_name("run", run_id, (one.stem for one in path.parent.glob("*.json")))
    return read_manifest(path)


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest in a file, named by its run."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise InputError(f"{path}: corrupted manifest ({error})") from error
    if not isinstance(content, dict) or content.get("run_id") != path.stem:
        raise InputError(f"{path}: corrupted manifest (not that of run {path.stem})")
    return content


def write_manifest(manifest: Mapping[str, Any]) -> None:
    """Write a manifest atomically."""
    with atomic_path(manifest_path(manifest["run_id"])) as file:
        file.write_text(json.dumps(manifest, indent=2, allow_nan=False) + "\n")


def update_manifest(run_id: str, **fields: Any) -> None:
    """Change fields of the manifest of a run."""
    write_manifest(load_manifest(run_id) | fields)


def newest_finished_run() -> str:
    """Id of the newest run that finished with a metrics table."""
    for manifest in reversed(manifests()):
        if manifest["state"] == "finished" and "metrics" in manifest["outputs"]:
            return str(manifest["run_id"])
    raise InputError(f"{FOLDER}: no finished run; start one with: kedro run")


def output(run_id: str, name: str) -> Path | str:
    """Path, or URL, of an output of a run."""
    outputs = load_manifest(run_id)["outputs"]
    if name not in outputs:
        raise unknown_name(f"output of run {run_id}", name, outputs)
    place: str = outputs[name]["path"]
    return place if "://" in place else root() / place


def load(run_id: str, name: str, kind: type[AtomicDataset]) -> Any:
    """Load a dataset that a run saved or read."""
    manifest = load_manifest(run_id)
    if name in manifest["outputs"]:
        place = output(run_id, name)
        options = {} if isinstance(place, Path) else _options(manifest["environment"], name)
        return kind(filepath=str(place), **options).load()
    if name in manifest["loaded"]:
        return load(manifest["loaded"][name], name, kind)
    known = {*manifest["outputs"], *manifest["loaded"]}
    part = names.parse(name).part
    alike = {one for one in known if names.parse(one).part == part}
    raise unknown_name(f"output of run {run_id}", name, alike or known)


def _options(environment: str, name: str) -> dict[str, Any]:
    """Options of a remote file, with credentials, from the catalog; manifests do not have them."""
    from kedro.config import MissingConfigException
    from kedro.io import DataCatalog

    from robust_fairness.runs.configuration import loader_of

    loader = loader_of(environment)
    try:
        credentials = loader["credentials"]
    except MissingConfigException:
        credentials = {}
    dataset = DataCatalog.from_config(loader["catalog"], credentials).get(name)
    assert isinstance(dataset, AtomicDataset)
    return dataset.options


def used(run_id: str) -> dict[str, list[str]]:
    """Names of the datasets, shifts, methods and metrics of a run, by kind."""
    names: dict[str, list[str]] | None = load_manifest(run_id).get("used")
    if names is None:
        raise InputError(
            f"{manifest_path(run_id)}: field 'used' is missing; only runs of this version have it"
        )
    return names


def new_manifest(
    run_params: Mapping[str, Any], loader: Any, outputs: Iterable[str]
) -> dict[str, Any]:
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
        "configuration": configuration_digest(loader),
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
        "expected": sorted(outputs),
        "outputs": {},
        "packages": {name: version(name) for name in PACKAGES},
        **machine(),
    }
    written: dict[str, Any] = hidden(json.loads(json.dumps(manifest, default=str)))
    return written


def configuration_digest(loader: Any) -> str:
    """A hash of the parameters and of the selected experiment."""
    experiment = repr(loader.selected_experiment)
    configuration = {"parameters": loader.written_parameters, "experiment": experiment}
    return digest(json.dumps(configuration, sort_keys=True, default=str).encode())


def require_same_configuration(manifest: Mapping[str, Any], loader: Any) -> None:
    """Raise unless a run was made with the configuration that is read now."""
    if manifest["configuration"] != configuration_digest(loader):
        raise InputError(
            f"run {manifest['run_id']}: the configuration has changed since, allowed: the same, or "
            "a new run"
        )


def completed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with which a run is completed under its id; it lists accepted changes.

    Raises:
        InputError: the run differs, and ``--accept-changes`` was not given.
    """
    changes = [*differences(old, new)]
    if changes and ACCEPT_CHANGES not in os.environ:
        raise InputError(
            f"run {old['run_id']} differs: {'; '.join(changes)}; use another --run-id, or add "
            "--accept-changes, which the manifest and the report record"
        )
    kept = {name: old[name] for name in ("started", "inputs", "loaded")}
    recorded = {
        "accepted": [*old.get("accepted", ()), *changes],
        "modified": old.get("modified", []),
    }
    return {**new, **kept, **recorded}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """What differs between the identities of two manifests."""
    for field in IDENTITY:
        before, after = (_flat(field.replace("_", " "), one.get(field)) for one in (old, new))
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
            return {f"{name} ({field})": one for field, one in fields.items()}
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
    with locked(manifest_path(run_id).parent):
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
    ids = {one for one in versions.values() if manifest_path(one).exists()}
    runs = {one: load_manifest(one)["loaded"] for one in ids}
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
    runs = [load_manifest(one)["outputs"] for one in run_ids if manifest_path(one).exists()]
    contents = [outputs[name]["content"] for outputs in runs if name in outputs]
    return len(contents) == len(run_ids) and len(set(contents)) == 1


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


def now() -> str:
    """The current time, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def digest(content: bytes) -> str:
    """SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


def git_state() -> dict[str, Any]:
    """Commit, whether the working tree differs from it, and SHA-256 of the changes.

    Untracked files count by their contents. All are None outside of Git and where Git refuses
    the folder: ``code`` alone says then what the code was.
    """

    def git(*words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=root(), capture_output=True, check=True).stdout

    try:
        commit = git("rev-parse", "HEAD").decode().strip()
        diff = git("diff", "HEAD", "--binary")
        untracked = git("ls-files", "--others", "--exclude-standard", "-z", ":/")
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None, "changes": None}
    paths = [root() / os.fsdecode(name) for name in untracked.split(b"\0") if name]
    changes = digest(diff + _contents(root(), paths)) if diff or paths else None
    return {"commit": commit, "dirty": changes is not None, "changes": changes}


def code() -> dict[str, str]:
    """SHA-256 of the sources of this package and of the plug-ins of the project."""
    folders = {"package": Path(robust_fairness.__file__).parent, "plugins": plugins_folder()}
    return {
        name: digest(_contents(folder, (path for kind in SOURCES for path in folder.rglob(kind))))
        for name, folder in folders.items()
    }


def _contents(folder: Path, paths: Iterable[Path]) -> bytes:
    """Names and SHA-256 of files, of links where they point to."""
    lines = []
    for path in sorted(paths):
        if path.is_symlink():
            content = str(path.readlink())
        elif path.is_file():
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
        else:  # a repository within this one
            content = ""
        lines.append(f"{os.path.relpath(path, folder)} {content}")
    return "\n".join(lines).encode()


def content_hash(path: Path) -> str:
    """SHA-256 of a file's content: of a table its columns and values, otherwise its bytes."""
    if path.suffix != ".parquet":
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    import pandas as pd

    frame = pd.read_parquet(path)
    values = pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes()
    return digest(repr(list(frame.dtypes.astype(str).items())).encode() + values)
