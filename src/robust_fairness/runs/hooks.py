"""The hook that keeps manifests and pins versions."""

import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.io import AbstractVersionedDataset
from kedro.io.core import Version, VersionNotFoundError

from robust_fairness.catalog import names
from robust_fairness.catalog.atomic import AtomicDataset
from robust_fairness.core.errors import InputError
from robust_fairness.runs import provenance
from robust_fairness.runs.runners import FAN_IN, first_line, remove
from robust_fairness.runs.session import started

logger = logging.getLogger(__name__)

# Parts of the catalog whose nodes keep checkpoints, and those that are read from files.
CHECKPOINTED = ("models", "reference", "generator", "samples", names.SHIFTED)
READ = ("samples", "real")


class RunRecord:
    """Pins the versions of a run's data and keeps its manifest.

    Kedro loads the newest version of a file, which may belong to another run. Events of nodes
    change nothing but the manifest, so that a node may run in any process.
    """

    def __init__(self) -> None:
        self._loader: Any = None
        self._recorded: dict[tuple[str, str], Mapping[str, str]] = {}

    @hook_impl
    def after_context_created(self, context: Any) -> None:
        self._loader = context.config_loader

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], pipeline: Any, catalog: Any) -> None:
        """Check that raw files are available, pin the versions and write the first manifest."""
        if not run_params["only_missing_outputs"]:  # those may need no raw files
            nodes = {node.name: node.namespace for node in pipeline.nodes}
            read = {of for name, of in nodes.items() if name == names.of_dataset(of, "ingest")}
            self._loader.require_raw_files(read)
        self._recorded.clear()
        run_id, before = run_params["run_id"], {"state": "finished"}
        manifest = provenance.new_manifest(run_params, self._loader, pipeline.all_outputs())
        if provenance.manifest_path(run_id).exists():
            if not run_params["only_missing_outputs"]:
                raise InputError(
                    f"run {run_id} exists; add --only-missing-outputs to complete it, "
                    "or choose another --run-id"
                )
            before = provenance.load_manifest(run_id)
            manifest = provenance.completed(before, manifest)
        for name in pipeline.all_outputs():
            if dataset := _versioned(catalog, name):
                dataset._version = Version(run_id, run_id)
        if before["state"] != "finished":
            _remove_collected(pipeline, catalog)
        manifest["loaded"] = _pin_inputs(manifest["loaded"], pipeline, catalog)
        provenance.write_manifest(manifest)
        if "manifest" in catalog:
            catalog["manifest"].save(manifest)
        started()
        logger.info("run %s", run_id)

    @hook_impl
    def before_node_run(self, inputs: Mapping[str, Any], run_id: str) -> dict[str, Any]:
        """Record the raw files of samples; the report gets the manifest with all of them."""
        self._record_samples(run_id, inputs)
        return {"manifest": provenance.load_manifest(run_id)} if "manifest" in inputs else {}

    @hook_impl
    def after_node_run(self, outputs: Mapping[str, Any], run_id: str) -> None:
        """Record the raw files of new samples before they are saved."""
        self._record_samples(run_id, outputs)

    @hook_impl
    def after_dataset_saved(self, dataset_name: str) -> None:
        """Delete the checkpoints of models and chunks of images."""
        found = names.parse(dataset_name)
        if found.part in CHECKPOINTED:
            from robust_fairness.core.checkpoints import drop

            reference = f"{found.dataset}.{found.part}" if found.part == "reference" else ""
            drop(found.cell or reference or dataset_name)

    @hook_impl
    def after_pipeline_run(self, run_params: dict[str, Any], pipeline: Any, catalog: Any) -> None:
        _close(run_params["run_id"], "finished", [], pipeline, catalog)

    @hook_impl
    def on_pipeline_error(
        self, error: Exception, run_params: dict[str, Any], pipeline: Any, catalog: Any
    ) -> None:
        """Complete the manifest of a failed run, with its outputs so far."""
        failed = [str(one) for one in getattr(error, "failures", [first_line(error)])]
        _close(run_params["run_id"], "failed", failed, pipeline, catalog)

    def _record_samples(self, run_id: str, data: Mapping[str, Any]) -> None:
        """Record the raw files of samples; four nodes of every cell read the same ones."""
        sources = {
            (run_id, name): value.sources
            for name, value in data.items()
            if names.parse(name).part in READ
        }
        new = {key: files for key, files in sources.items() if self._recorded.get(key) != files}
        if new:
            provenance.note_inputs(run_id, {name: files for (_, name), files in new.items()})
            self._recorded |= new


def _versioned(catalog: Any, name: str) -> AbstractVersionedDataset | None:
    dataset = catalog.get(name)
    is_versioned = isinstance(dataset, AbstractVersionedDataset) and dataset._version is not None
    return dataset if is_versioned else None


def _remove_collected(pipeline: Any, catalog: Any) -> None:
    """Delete what an unfinished run collected: it may lack cells whose outputs are there now."""
    for node in pipeline.nodes:
        if FAN_IN in node.tags:
            for name in node.outputs:
                remove(catalog.get(name))


def _pin_inputs(pinned: Mapping[str, str], pipeline: Any, catalog: Any) -> dict[str, str]:
    """Versions of inputs from other runs: pinned before, by ``--load-versions``, or the newest."""
    versions = {}
    for name in sorted(pipeline.inputs()):
        dataset = _versioned(catalog, name)
        if dataset is None:
            continue
        try:
            version = pinned.get(name) or dataset.resolve_load_version()
        except VersionNotFoundError:
            raise InputError(f"{name}: no version yet; run the pipeline that saves it") from None
        dataset._version = Version(version, None)
        versions[name] = str(version)
    provenance.require_same_samples(versions)
    for version, count in sorted(Counter(versions.values()).items()):
        logger.info("using %d outputs of run %s", count, version)
    return versions


def _close(run_id: str, state: str, failed: list[str], pipeline: Any, catalog: Any) -> None:
    """Write the manifest with the content of every output that exists."""
    outputs = {}
    for name in sorted(pipeline.all_outputs()):
        dataset = catalog.get(name)
        if isinstance(dataset, AbstractVersionedDataset) and dataset.exists():
            with _local(dataset) as path:
                content = provenance.content_hash(path)
            outputs[name] = {"path": _location(dataset), "content": content}
    provenance.update_manifest(
        run_id, state=state, ended=provenance.now(), failed=failed, outputs=outputs
    )


def _local(dataset: AbstractVersionedDataset) -> AbstractContextManager[Path]:
    """The local file of a dataset, or a local copy."""
    if isinstance(dataset, AtomicDataset):
        return dataset.local()
    return nullcontext(Path(dataset._get_load_path()))


def _location(dataset: AbstractVersionedDataset) -> str:
    """A URL, or a path relative to the project's folder."""
    place = dataset.place if isinstance(dataset, AtomicDataset) else str(dataset._get_load_path())
    return place if "://" in place else provenance.relative(Path(place))
