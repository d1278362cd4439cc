"""What a run was: its manifest, its versions, and running it again.

A manifest is written when a run starts and again when it ends: ``data/08_reporting/manifests/``
``<run id>.json``. Reports point at it; ``kedro rerun`` compares against it.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kedro.framework.session import KedroServiceSession

from robust_fairness.errors import InputError, unknown_name

FOLDER = Path("data/08_reporting/manifests")
PACKAGES = ("robust-fairness", "torch", "numpy", "pandas", "scikit-learn", "kedro", "safetensors")
# What must be the same for a run to be completed under its id.
IDENTITY = ("environment", "runtime_parameters", "configuration", "git")
# Outputs that tell the run's id or time; they cannot be the same bits.
TELLS_THE_RUN = ("report",)


class Session(KedroServiceSession):
    """Kedro's session, whose run id can be given as the runtime parameter ``run_id``."""

    @classmethod
    def create(cls, *arguments: Any, save_on_close: bool = False, **options: Any) -> "Session":
        """Create a session; ``kedro catalog`` passes ``save_on_close``, which has no meaning."""
        session = super().create(*arguments, **options)
        assert isinstance(session, cls)
        return session

    def run(  # type: ignore[override]  # Kedro's further options go through as they are
        self,
        run_id: str | None = None,
        *,
        runtime_params: dict[str, Any] | None = None,
        **options: Any,
    ) -> dict[str, Any]:
        """Run pipelines; see Kedro's own."""
        parameters = dict(runtime_params or {})
        run_id = parameters.pop("run_id", run_id)
        if (
            run_id is not None
            and not run_id.replace("-", "").replace(".", "").replace("_", "").isalnum()
        ):
            raise InputError(f"run id {run_id!r}: allowed: letters, digits, '.', '_' and '-'")
        if options.get("pipeline_names") is None:
            options.pop("pipeline_names", None)
        result: dict[str, Any] = super().run(run_id, runtime_params=parameters, **options)
        return result


def manifest_path(run_id: str) -> Path:
    """File of a run's manifest."""
    return FOLDER / f"{run_id}.json"


def known_runs() -> list[str]:
    """Ids of all runs that have a manifest, oldest first."""
    return sorted((path.stem for path in FOLDER.glob("*.json")), key=_started)


def _started(run_id: str) -> str:
    return str(load_manifest(run_id)["started"])


def load_manifest(run_id: str) -> dict[str, Any]:
    """The manifest of a run.

    Raises:
        InputError: no such run, or its manifest is corrupted.
    """
    path = manifest_path(run_id)
    if not path.exists():
        raise unknown_name("run", run_id, (found.stem for found in FOLDER.glob("*.json")))
    try:
        content: dict[str, Any] = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: corrupted manifest ({error})") from error
    return content


def write_manifest(manifest: Mapping[str, Any]) -> None:
    """Write aside and rename."""
    path = manifest_path(manifest["run_id"])
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}.part")
    aside.write_text(json.dumps(manifest, indent=2, default=str, allow_nan=False) + "\n")
    aside.replace(path)


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


def output(run_id: str, name: str) -> Path:
    """File of an output of a run.

    Raises:
        InputError: the run has no such output.
    """
    outputs = load_manifest(run_id)["outputs"]
    if name not in outputs:
        raise unknown_name(f"output of run {run_id}", name, outputs)
    return Path(outputs[name]["path"])


def new_manifest(
    run_id: str, run_params: Mapping[str, Any], loader: Any, outputs: Iterable[str]
) -> dict[str, Any]:
    """What is known of a run before its first node.

    Args:
        run_id: its id.
        run_params: what Kedro's session notes of it.
        loader: the configuration loader in use.
        outputs: names of what it will save.
    """
    filters = ("tags", "from_nodes", "to_nodes", "node_names", "from_inputs", "to_outputs")
    configuration = {
        "parameters": loader.written_parameters,
        "grid": repr(loader.selected_grid),
    }
    return {
        "run_id": run_id,
        "state": "running",
        "started": now(),
        "ended": None,
        "command": sys.argv[1:],
        "environment": run_params["env"] or loader.env or loader.default_run_env,
        "pipelines": list(run_params["pipeline_names"]),
        "namespaces": list(run_params["namespaces"] or ()),
        "filters": {name: list(run_params[name] or ()) for name in filters},
        "runtime_parameters": dict(run_params["runtime_params"]),
        "configuration": digest(json.dumps(configuration, sort_keys=True, default=str).encode()),
        "grid": {
            "seeds": loader.selected_grid.seeds,
            "cells": [cell.name for cell in loader.selected_grid.cells],
            "test_sets": {
                dataset.name: [test_set.name for test_set in dataset.test_sets]
                for dataset in loader.selected_grid.datasets
            },
        },
        "git": git_state(),
        "inputs": {},
        "failed": [],
        "expected": sorted(outputs),
        "outputs": {},
        "packages": {name: version(name) for name in PACKAGES},
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
    }


def now() -> str:
    """The time, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def digest(content: bytes) -> str:
    """SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


def git_state() -> dict[str, Any]:
    """Commit of the working tree and whether it differs from it; None outside of Git."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        return {"commit": git("rev-parse", "HEAD"), "dirty": bool(git("status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return {"commit": None, "dirty": None}


def content_hash(path: Path) -> str:
    """SHA-256 of what a file says: of a table its columns and values, of others their bytes."""
    if path.suffix != ".parquet":
        return digest(path.read_bytes())
    import pandas as pd

    frame = pd.read_parquet(path)
    values = pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes()
    return digest(repr(list(frame.dtypes.astype(str).items())).encode() + values)


def require_same_run(old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Refuse to complete a run that was another one.

    Raises:
        InputError: the environment, parameters, configuration or code differ.
    """
    for field in IDENTITY:
        if old[field] != new[field]:
            raise InputError(
                f"run {old['run_id']} was another run: its {field.replace('_', ' ')} was "
                f"{str(old[field])[:100]}, now it is {str(new[field])[:100]}; "
                "use another --run-id"
            )


def rerun(run_id: str) -> str:
    """Run again what a run did, from nothing, and compare the content of every output.

    Args:
        run_id: id of a finished run.

    Returns:
        A line that says how many outputs have the same bits.

    Raises:
        InputError: the code is not the run's, or an output differs (it is named).
    """
    old = load_manifest(run_id)
    if old["state"] != "finished":
        raise InputError(f"run {run_id} is {old['state']}, allowed: a finished one")
    _require_same_code(old)
    new_id = f"{run_id}-rerun-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    from robust_fairness.runners import SequentialRunner
    from robust_fairness.training.checkpoints import ROOT_VARIABLE

    with tempfile.TemporaryDirectory() as empty:
        before = os.environ.get(ROOT_VARIABLE)
        os.environ[ROOT_VARIABLE] = empty
        try:
            with Session.create(env=old["environment"]) as session:
                assert isinstance(session, Session)
                session.run(
                    new_id,
                    runner=SequentialRunner(),
                    pipeline_names=old["pipelines"],
                    namespaces=old["namespaces"],
                    runtime_params=old["runtime_parameters"],
                    **old["filters"],
                )
        finally:
            os.environ.pop(ROOT_VARIABLE)
            if before is not None:
                os.environ[ROOT_VARIABLE] = before
    return _comparison(old, load_manifest(new_id))


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


def _comparison(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    names = sorted((old["outputs"].keys() | new["outputs"].keys()) - set(TELLS_THE_RUN))
    differing = [
        name
        for name in names
        if old["outputs"].get(name, {}).get("content")
        != new["outputs"].get(name, {}).get("content")
    ]
    if differing:
        raise InputError(f"{len(differing)} of {len(names)} outputs differ: {', '.join(differing)}")
    return (
        f"{len(names)} outputs, same bits (run {new['run_id']}; the report, which tells it, apart)"
    )
