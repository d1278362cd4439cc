"""Hooks: what happens around runs and nodes."""

import logging
from pathlib import Path
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.io import AbstractVersionedDataset
from kedro.io.core import Version

from robust_fairness import provenance
from robust_fairness.errors import InputError

logger = logging.getLogger(__name__)


class RunRecord:
    """Pins a run's outputs to its id and keeps its manifest.

    Kedro loads the newest version of a file, which mixes runs: an old complete run would count
    as present for a new half-failed one.
    """

    def __init__(self) -> None:
        self._loader: Any = None
        self._manifest: dict[str, Any] = {}

    @hook_impl
    def after_context_created(self, context: Any) -> None:
        """Remember the configuration of the run."""
        self._loader = context.config_loader

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], pipeline: Any, catalog: Any) -> None:
        """Pin the versions and write the first manifest.

        Raises:
            InputError: the run id is that of another run, or of a finished one.
        """
        run_id = run_params["run_id"]
        outputs = sorted(pipeline.all_outputs())
        manifest = provenance.new_manifest(run_id, run_params, self._loader, outputs)
        if provenance.manifest_path(run_id).exists():
            old = provenance.load_manifest(run_id)
            if not run_params["only_missing_outputs"]:
                raise InputError(
                    f"run {run_id} exists; add --only-missing-outputs to complete it, "
                    "or choose another --run-id"
                )
            provenance.require_same_run(old, manifest)
            manifest |= {"started": old["started"], "inputs": old["inputs"]}
        for name in outputs:
            dataset = catalog.get(name)
            if isinstance(dataset, AbstractVersionedDataset) and dataset._version:
                dataset._version = Version(run_id, run_id)
        self._manifest = manifest
        provenance.write_manifest(manifest)
        if "manifest" in catalog:
            catalog["manifest"].save(manifest)
        logger.info("run %s", run_id)

    @hook_impl
    def after_dataset_saved(self, dataset_name: str, data: Any) -> None:
        """Note the files that samples came from; drop checkpoints whose models are saved."""
        if dataset_name.endswith(".samples"):
            self._note_inputs(data.sources)
        if dataset_name.endswith(".models"):
            from robust_fairness.training.checkpoints import drop

            drop(dataset_name.removesuffix(".models"))

    @hook_impl
    def after_dataset_loaded(self, dataset_name: str, data: Any) -> None:
        """Note the files that samples came from."""
        if dataset_name.endswith(".samples"):
            self._note_inputs(data.sources)

    def _note_inputs(self, sources: dict[str, str]) -> None:
        known = self._manifest.setdefault("inputs", {})
        for name, sha256 in sources.items():
            if known.setdefault(name, sha256) != sha256:
                raise InputError(f"{name}: another file than this run began with; use a new run")

    @hook_impl
    def after_pipeline_run(self, pipeline: Any, catalog: Any) -> None:
        """Write the last manifest of a run that finished."""
        self._close("finished", [], pipeline, catalog)

    @hook_impl
    def on_pipeline_error(self, error: Exception, pipeline: Any, catalog: Any) -> None:
        """Write the last manifest of a run that failed, with what it has made."""
        if self._manifest:
            failed = str(error).splitlines()
            self._close("failed", failed, pipeline, catalog)

    def _close(self, state: str, failed: list[str], pipeline: Any, catalog: Any) -> None:
        outputs = {}
        for name in sorted(pipeline.all_outputs()):
            dataset = catalog.get(name)
            if hasattr(dataset, "_get_load_path") and dataset.exists():
                path = Path(dataset._get_load_path())
                relative = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
                outputs[name] = {
                    "path": str(relative),
                    "content": provenance.content_hash(path),
                }
        self._manifest |= {
            "state": state,
            "ended": provenance.now(),
            "failed": failed,
            "outputs": outputs,
        }
        provenance.write_manifest(self._manifest)
