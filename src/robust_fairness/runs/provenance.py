"""What a run was: its manifest, its versions, and running it again.

A manifest is written when a run starts and again when it ends: ``data/08_reporting/manifests/``
``<run id>.json``. Reports point at it; ``kedro rerun`` compares against it.
"""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kedro.framework.session import KedroServiceSession
from kedro.io.core import generate_timestamp
from kedro.utils import find_kedro_project

from robust_fairness.catalog._atomic import AtomicDataset
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.files import locked, written_aside

FOLDER = Path("data/08_reporting/manifests")
PACKAGES = ("robust-fairness", "torch", "numpy", "pandas", "scikit-learn", "kedro", "safetensors")
FILTERS = ("tags", "from_nodes", "to_nodes", "node_names", "from_inputs", "to_outputs")
# What must be the same for a run to be completed under its id; inputs are checked when read.
IDENTITY = (
    "environment", "pipelines", "namespaces", "filters", "runtime_parameters", "configuration",
    "git",
)  # fmt: skip
# Outputs that tell the run's id or time; they cannot be the same bits.
TELLS_THE_RUN = ("report",)


class Session(KedroServiceSession):
    """Kedro's session, whose run id can be given as the runtime parameter ``run_id``."""

    @classmethod
    def create(  # type: ignore[override]
        cls, session_id: str | None = None, *, save_on_close: bool = False, **options: Any
    ) -> "Session":
        """See Kedro's own; its catalog commands pass ``save_on_close``, which has no effect."""
        session = super().create(session_id, **options)
        assert isinstance(session, cls)
        return session

    def run(  # type: ignore[override]  # Kedro's further options go through as they are
        self,
        run_id: str | None = None,
        *,
        runtime_params: dict[str, Any] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Run pipelines; see Kedro's own. An interrupted run says so in its manifest.

        Raises:
            InputError: the run id cannot be the name of a file.
        """
        parameters = dict(runtime_params or {})
        run_id = parameters.pop("run_id", run_id)
        if run_id is not None and not re.fullmatch(r"\w[\w.-]*", str(run_id), re.ASCII):
            raise InputError(
                f"run id {run_id!r}: allowed: letters, digits, '_', and after the first '.' and '-'"
            )
        run_id = generate_timestamp() if run_id is None else str(run_id)
        try:
            result: dict[str, Any] = super().run(run_id, runtime_params=parameters, **options)
        except KeyboardInterrupt:  # of which Kedro tells no hook
            if manifest_path(run_id).exists():
                write_manifest(load_manifest(run_id) | {"state": "interrupted", "ended": now()})
            raise
        return result


def root() -> Path:
    """Folder of the project; the current one outside of a project."""
    return find_kedro_project(Path.cwd()) or Path.cwd()


def relative(path: Path) -> str:
    """A path as manifests tell it: from the project's folder, where it lies in there."""
    return str(path.relative_to(root()) if path.is_relative_to(root()) else path)


def manifest_path(run_id: str) -> Path:
    """File of a run's manifest."""
    return root() / FOLDER / f"{run_id}.json"


def known_runs() -> list[str]:
    """Ids of all runs that have a manifest, oldest first."""
    runs = [path.stem for path in (root() / FOLDER).glob("*.json")]
    return sorted(runs, key=lambda run_id: str(load_manifest(run_id)["started"]))


def load_manifest(run_id: str) -> dict[str, Any]:
    """The manifest of a run.

    Raises:
        InputError: no such run, or its manifest is corrupted.
    """
    path = manifest_path(run_id)
    if not path.exists():
        raise unknown_name("run", run_id, (found.stem for found in path.parent.glob("*.json")))
    try:
        content = json.loads(path.read_text())
    except ValueError as error:
        raise InputError(f"{path}: corrupted manifest ({error})") from error
    if not isinstance(content, dict) or content.get("run_id") != run_id:
        raise InputError(f"{path}: corrupted manifest (not that of run {run_id})")
    return content


def write_manifest(manifest: Mapping[str, Any]) -> None:
    """Write aside and rename."""
    with written_aside(manifest_path(manifest["run_id"])) as aside:
        aside.write_text(json.dumps(manifest, indent=2, allow_nan=False) + "\n")


def newest_finished_run() -> str:
    """Id of the newest run that finished with a metrics table.

    Raises:
        InputError: there is none.
    """
    for run_id in reversed(known_runs()):
        manifest = load_manifest(run_id)
        if manifest["state"] == "finished" and "metrics" in manifest["outputs"]:
            return run_id
    raise InputError(f"{FOLDER}: no finished run yet; start one by: kedro run")


def output(run_id: str, name: str) -> Path | str:
    """Path, or URL, of an output of a run.

    Raises:
        InputError: the run has no such output.
    """
    outputs = load_manifest(run_id)["outputs"]
    if name not in outputs:
        raise unknown_name(f"output of run {run_id}", name, outputs)
    told: str = outputs[name]["path"]
    return told if "://" in told else root() / told


def load(run_id: str, name: str, kind: type[AtomicDataset]) -> Any:
    """What a run saved, or read from the run that saved it.

    Args:
        run_id: id of the run.
        name: of the dataset in the catalog.
        kind: class of the dataset.

    Raises:
        InputError: the run did neither.
        DatasetError: the file is missing or corrupted.
    """
    manifest = load_manifest(run_id)
    if name in manifest["outputs"]:
        place = output(run_id, name)
        options = {} if isinstance(place, Path) else _options(manifest["environment"], name)
        return kind(filepath=str(place), **options).load()
    if name in manifest["loaded"]:
        return load(manifest["loaded"][name], name, kind)
    known = {*manifest["outputs"], *manifest["loaded"]}
    part = name.rpartition(".")[2]
    alike = {one for one in known if one.rpartition(".")[2] == part}
    raise unknown_name(f"output of run {run_id}", name, alike or known)


def _options(environment: str, name: str) -> dict[str, Any]:
    """How a file elsewhere is reached, which no manifest tells: the catalog's, with credentials."""
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
    """Names of everything that a run used, by kind.

    Raises:
        InputError: there is no such run, or it was made before manifests told.
    """
    manifest = load_manifest(run_id)
    if "used" not in manifest:
        raise InputError(
            f"{manifest_path(run_id)}: does not tell what was used, allowed: a run of this version"
        )
    found: dict[str, list[str]] = manifest["used"]
    return found


def new_manifest(
    run_params: Mapping[str, Any], loader: Any, outputs: Iterable[str]
) -> dict[str, Any]:
    """What is known of a run before its first node, as JSON can hold it.

    Args:
        run_params: what Kedro's session notes of it.
        loader: the configuration loader in use.
        outputs: names of what it will save.
    """
    grid = loader.selected_grid
    configuration = {"parameters": loader.written_parameters, "grid": repr(grid)}
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
        "configuration": digest(json.dumps(configuration, sort_keys=True, default=str).encode()),
        "grid": {
            "seeds": {dataset.name: dataset.seeds for dataset in grid.datasets},
            "cells": [cell.name for cell in grid.cells],
            "test_sets": {
                dataset.name: [test_set.name for test_set in dataset.test_sets]
                for dataset in grid.datasets
            },
        },
        "used": loader.used,
        "git": git_state(),
        "inputs": {},
        "loaded": {},
        "failed": [],
        "expected": sorted(outputs),
        "outputs": {},
        "packages": {name: version(name) for name in PACKAGES},
        **machine(),
    }
    plain: dict[str, Any] = json.loads(json.dumps(manifest, default=str))
    return plain


def completed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with which a run is completed under its id.

    Args:
        old: the manifest that it left.
        new: that of what is asked for now.

    Raises:
        InputError: the environment, what runs, its parameters, configuration or code differ.
    """
    for field in IDENTITY:
        if old.get(field) != new[field]:
            raise InputError(
                f"run {old['run_id']} was another run: its {field.replace('_', ' ')} was "
                f"{str(old.get(field))[:100]}, now it is {str(new[field])[:100]}; "
                "use another --run-id"
            )
    return {**new, **{name: old[name] for name in ("started", "inputs", "loaded")}}


def note_inputs(run_id: str, sources: Mapping[str, Mapping[str, str]]) -> None:
    """Note in the manifest which files samples came from.

    Several processes may do so at once.

    Args:
        run_id: id of the run.
        sources: SHA-256 by file name, by name of the samples.

    Raises:
        InputError: the run began with other files.
    """
    with locked(manifest_path(run_id).parent):
        _note_inputs(run_id, sources)


def _note_inputs(run_id: str, sources: Mapping[str, Mapping[str, str]]) -> None:
    manifest = load_manifest(run_id)
    known = manifest["inputs"]
    for name, files in sources.items():
        before = known.get(name, files)
        changed = sorted(file for file in {*before, *files} if before.get(file) != files.get(file))
        if changed:
            raise InputError(
                f"{name}: another {', '.join(changed)} than run {run_id} began with; "
                "use another --run-id"
            )
    if not sources.keys() <= known.keys():
        write_manifest(manifest | {"inputs": {**known, **sources}})


def require_same_samples(versions: Mapping[str, str]) -> None:
    """Refuse what was made from other samples than those that are read beside it.

    Splits may differ between samples of two runs: what one trains on, the other may test on.

    Args:
        versions: the run of everything that is read from other runs, by name.

    Raises:
        InputError: the samples differ, or no manifest tells that they do not.
    """
    for name, run_id in versions.items():
        samples = f"{name.partition('.')[0]}.samples"
        if samples not in versions or not manifest_path(run_id).exists():
            continue
        read, behind = versions[samples], load_manifest(run_id)["loaded"].get(samples, run_id)
        if behind != read and not _same_content(samples, behind, read):
            raise InputError(
                f"{name} of run {run_id} was made from {samples} of run {behind}, and those of "
                f"run {read} differ; choose by --load-versions={samples}:{behind}"
            )


def _same_content(name: str, *run_ids: str) -> bool:
    """Whether the manifests of two runs tell that an output of theirs is the same."""
    told = [load_manifest(one)["outputs"] for one in run_ids if manifest_path(one).exists()]
    contents = [outputs[name]["content"] for outputs in told if name in outputs]
    return len(contents) == len(run_ids) and len(set(contents)) == 1


def machine() -> dict[str, Any]:
    """What the numbers were computed on."""
    import torch

    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def now() -> str:
    """The time, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def digest(content: bytes) -> str:
    """SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


def git_state() -> dict[str, Any]:
    """Commit of the working tree, whether it differs and by what; None outside of Git.

    ``changes`` is the SHA-256 of the differences, so that two dirty trees can be told apart.
    """

    def git(*words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=root(), capture_output=True, check=True).stdout

    try:
        commit = git("rev-parse", "HEAD").decode().strip()
        changed = git("status", "--porcelain")
        changes = digest(changed + git("diff", "HEAD", "--binary")) if changed else None
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None, "changes": None}
    return {"commit": commit, "dirty": bool(changed), "changes": changes}


def content_hash(path: Path) -> str:
    """SHA-256 of what a file says: of a table its columns and values, of others their bytes."""
    if path.suffix != ".parquet":
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    import pandas as pd

    frame = pd.read_parquet(path)
    values = pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes()
    return digest(repr(list(frame.dtypes.astype(str).items())).encode() + values)


def rerun(run_id: str) -> str:
    """Run again what a run did, from nothing, and compare the content of every output.

    Args:
        run_id: id of a finished run.

    Returns:
        A line that says how many outputs have the same bits.

    Raises:
        InputError: the code is not the run's, or an output differs (it is named).
    """
    from robust_fairness.runs.runners import SequentialRunner

    old = load_manifest(run_id)
    if old["state"] != "finished":
        raise InputError(f"run {run_id} is {old['state']}, allowed: a finished one")
    _require_same_code(old)
    new_id = f"{run_id}-rerun-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    session = Session.create(env=old["environment"])
    with _no_checkpoints(), session:
        session.run(
            new_id,
            runner=SequentialRunner(),
            pipeline_names=old["pipelines"],
            namespaces=old["namespaces"],
            load_versions=old["loaded"],
            runtime_params=old["runtime_parameters"],
            **old["filters"],
        )
    return comparison(old, load_manifest(new_id))


@contextmanager
def _no_checkpoints() -> Iterator[None]:
    """A checkpoint would hand out the numbers that are to be computed again."""
    from robust_fairness.core.checkpoints import ROOT_VARIABLE

    before = os.environ.get(ROOT_VARIABLE)
    with tempfile.TemporaryDirectory() as empty:
        os.environ[ROOT_VARIABLE] = empty
        try:
            yield
        finally:
            del os.environ[ROOT_VARIABLE]
            if before is not None:
                os.environ[ROOT_VARIABLE] = before


def _require_same_code(old: Mapping[str, Any]) -> None:
    state, wanted = git_state(), old["git"]
    if wanted["commit"] is None or wanted["dirty"]:
        raise InputError(f"run {old['run_id']}: its code was not committed, so it cannot be rerun")
    if state["dirty"] or state["commit"] != wanted["commit"]:
        tree = f"../rerun-{wanted['commit'][:8]}"
        raise InputError(
            f"the code here is not that of run {old['run_id']}; "
            f"check it out and rerun there: git worktree add {tree} {wanted['commit']}"
        )


def comparison(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """One line on the outputs of two runs.

    Args:
        old: manifest of the first run.
        new: manifest of the second.

    Raises:
        InputError: outputs differ in their content, or only one run has them; they are named.
    """
    contents = [
        {name: one["content"] for name, one in run["outputs"].items() if name not in TELLS_THE_RUN}
        for run in (old, new)
    ]
    names = sorted(contents[0].keys() | contents[1].keys())
    differing = [name for name in names if contents[0].get(name) != contents[1].get(name)]
    if differing:
        raise InputError(f"{len(differing)} of {len(names)} outputs differ: {', '.join(differing)}")
    return (
        f"{len(names)} outputs, same bits (run {new['run_id']}; the report, which tells it, apart)"
    )
