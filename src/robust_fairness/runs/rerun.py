"""Repeating a run and comparing its outputs bit by bit."""

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from robust_fairness.bench.compute.checkpoints import ROOT_VARIABLE
from robust_fairness.core.code import code, packages
from robust_fairness.core.errors import InputError
from robust_fairness.core.escaping import HIDDEN
from robust_fairness.runs import provenance
from robust_fairness.runs.session import Session, environment

logger = logging.getLogger(__name__)

# Outputs that contain the run's id or time.
NOT_COMPARED = ("report",)


def rerun(run: str) -> str:
    """Repeat a run without checkpoints and compare the content of every output.

    The configuration is that in the manifest, whatever ``conf`` has now. The code must be that of
    the run, in Git or not. Other packages, or another machine, are a warning, and named where
    outputs differ.

    Args:
        run: its id, or the file of its manifest, which a new checkout does not have.
    """
    is_file = Path(run).is_file()
    old = provenance.read_manifest(Path(run)) if is_file else provenance.load_manifest(run)
    run_id = old["run_id"]
    if old["state"] != "finished":
        raise InputError(f"run {run_id} is {old['state']}; only finished runs can be rerun")
    if "configuration_files" not in old:
        raise InputError(f"run {run_id}: an earlier version made it, without its configuration")
    if HIDDEN in json.dumps([old["runtime_parameters"], old["configuration_files"]]):
        raise InputError(f"run {run_id} cannot be rerun: its manifest lacks secret parameters")
    _require_same_code(old)
    manifest = Path(run) if is_file else provenance.manifest_path(run_id)
    session = Session.create(env=old["environment"], conf_source=str(manifest))
    loader = session.load_context(old["runtime_parameters"]).config_loader
    provenance.require_same_configuration(old, loader)
    here = {"packages": packages(), **provenance.machine()}
    reasons = [*provenance.differences(old, here, provenance.MACHINE), *old.get("accepted", ())]
    for reason in reasons:
        logger.warning("run %s: %s", run_id, reason)
    new_id = f"{run_id}-rerun-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    # an empty folder of checkpoints, so that everything is computed again
    with TemporaryDirectory() as empty, environment({ROOT_VARIABLE: empty}), session:
        session.run(
            new_id,
            pipeline_names=old["pipelines"],
            namespaces=old["namespaces"],
            load_versions=old["loaded"],
            runtime_params=old["runtime_parameters"],
            **old["filters"],
        )
    return comparison(old, provenance.load_manifest(new_id), reasons)


def _require_same_code(old: Mapping[str, Any]) -> None:
    """Require the sources and plug-ins of a run; says how to get them where Git has them."""
    changes = "; ".join(provenance.differences(old, {"code": code()}, ["code"]))
    git, advice = old["git"], ""
    if git["commit"] and not git["dirty"]:
        tree = f"../rerun-{git['commit'][:8]}"
        manifest = provenance.manifest_path(old["run_id"])
        advice = (
            f"; check it out and rerun there: git worktree add {tree} {git['commit']} && "
            f"cd {tree} && kedro rerun {manifest}"
        )
    if changes:
        raise InputError(f"the code differs from that of run {old['run_id']} ({changes}){advice}")


def comparison(old: Mapping[str, Any], new: Mapping[str, Any], reasons: Sequence[str] = ()) -> str:
    """One line about the outputs of two runs.

    Raises:
        InputError: outputs differ; the message has the ``reasons`` why they may.
    """
    contents = [
        {
            name: output["sha256"]
            for name, output in run["outputs"].items()
            if name not in NOT_COMPARED
        }
        for run in (old, new)
    ]
    names = sorted(contents[0].keys() | contents[1].keys())
    differing = [name for name in names if contents[0].get(name) != contents[1].get(name)]
    if differing:
        why = f" (run {old['run_id']}: {'; '.join(reasons)})" if reasons else ""
        raise InputError(
            f"{len(differing)} of {len(names)} outputs differ: {', '.join(differing)}{why}"
        )
    unchecked = new.get("unchecked", ())
    without = ", ".join(["the report, which contains the run's id", *unchecked])
    return f"{len(names)} outputs, same bits (run {new['run_id']}; without {without})"
