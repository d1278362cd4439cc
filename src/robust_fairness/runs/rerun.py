"""Repeating a run and comparing its outputs bit by bit."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from robust_fairness.core.checkpoints import ROOT_VARIABLE
from robust_fairness.core.errors import InputError
from robust_fairness.runs.provenance import git_state, load_manifest, manifest_path, read_manifest
from robust_fairness.runs.runners import SequentialRunner
from robust_fairness.runs.secrets import HIDDEN
from robust_fairness.runs.session import Session, environment

# Outputs that contain the run's id or time.
NOT_COMPARED = ("report",)


def rerun(run: str) -> str:
    """Repeat a run without checkpoints and compare the content of every output.

    ``run`` is its id, or the file of its manifest, which a new checkout does not have.
    """
    old = read_manifest(Path(run)) if Path(run).is_file() else load_manifest(run)
    run_id = old["run_id"]
    if old["state"] != "finished":
        raise InputError(f"run {run_id} is {old['state']}; only finished runs can be rerun")
    if old.get("accepted"):
        raise InputError(
            f"run {run_id} cannot be rerun: it was completed after changes "
            f"({'; '.join(old['accepted'])})"
        )
    if HIDDEN in json.dumps(old["runtime_parameters"]):
        raise InputError(f"run {run_id} cannot be rerun: its manifest lacks secret parameters")
    _require_same_code(old)
    new_id = f"{run_id}-rerun-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    session = Session.create(env=old["environment"])
    # an empty folder of checkpoints, so that everything is computed again
    with TemporaryDirectory() as empty, environment({ROOT_VARIABLE: empty}), session:
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


def _require_same_code(old: Mapping[str, Any]) -> None:
    state, wanted = git_state(), old["git"]
    if wanted["commit"] is None or wanted["dirty"]:
        raise InputError(f"run {old['run_id']}: its code was not committed, so it cannot be rerun")
    if state["dirty"] or state["commit"] != wanted["commit"]:
        tree = f"../rerun-{wanted['commit'][:8]}"
        raise InputError(
            f"the code differs from that of run {old['run_id']}; check it out and rerun there: "
            f"git worktree add {tree} {wanted['commit']} && cd {tree} && "
            f"kedro rerun {manifest_path(old['run_id'])}"
        )


def comparison(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """One line about the outputs of two runs."""
    contents = [
        {name: one["content"] for name, one in run["outputs"].items() if name not in NOT_COMPARED}
        for run in (old, new)
    ]
    names = sorted(contents[0].keys() | contents[1].keys())
    differing = [name for name in names if contents[0].get(name) != contents[1].get(name)]
    if differing:
        raise InputError(f"{len(differing)} of {len(names)} outputs differ: {', '.join(differing)}")
    return (
        f"{len(names)} outputs, same bits (run {new['run_id']}; without the report, "
        "which contains the run's id)"
    )
