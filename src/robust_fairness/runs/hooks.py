"""Hooks: what happens around runs and nodes."""

import logging
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.io import AbstractVersionedDataset
from kedro.io.core import Version, VersionNotFoundError

from robust_fairness.catalog.atomic import AtomicDataset
from robust_fairness.core.errors import InputError
from robust_fairness.runs import provenance
from robust_fairness.runs.runners import first_line

logger = logging.getLogger(__name__)

# Endings of names of what long work makes; it keeps pieces in a folder of that name, or its cell's.
UNFINISHED, SHIFTED = (".models", "_referee", "_generator", ".samples"), ".shifted."
READ = (".samples", "_real")  # names of samples that come from files


class RunRecord:
    """Pins a run's data to versions and keeps its manifest.

    Kedro loads the newest version of a file, which mixes runs: an old complete run would count
    as present for a new half-failed one. Around a node nothing is remembered but in the
    manifest of its run id, so that a node may run in any process.
    """

    def __init__(self) -> None:
        self._loader: Any = None

    @hook_impl
    def after_context_created(self, context: Any) -> None:
        """Remember the configuration of the run to come."""
        self._loader = context.config_loader

    @hook_impl
    def before_pipeline_run(self, run_params: dict[str, Any], pipeline: Any, catalog: Any) -> None:
        """Pin the versions and write the first manifest.

        Raises:
            InputError: the run id is that of another run, or completing it was not asked for.
        """
        run_id = run_params["run_id"]
        manifest = provenance.new_manifest(run_params, self._loader, pipeline.all_outputs())
        if provenance.manifest_path(run_id).exists():
            if not run_params["only_missing_outputs"]:
                raise InputError(
                    f"run {run_id} exists; add --only-missing-outputs to complete it, "
                    "or choose another --run-id"
                )
            manifest = provenance.completed(provenance.load_manifest(run_id), manifest)
        _pin_outputs(run_id, pipeline, catalog)
        manifest["loaded"] = _pin_inputs(manifest["loaded"], pipeline, catalog)
        provenance.write_manifest(manifest)
        if "manifest" in catalog:
            catalog["manifest"].save(manifest)
        logger.info("run %s", run_id)

    @hook_impl
    def before_node_run(self, inputs: Mapping[str, Any], run_id: str) -> None:
        """Note the files that the samples which a node reads came from."""
        _note_samples(run_id, inputs)

    @hook_impl
    def after_node_run(self, outputs: Mapping[str, Any], run_id: str) -> None:
        """Note the files of new samples, before these are saved."""
        _note_samples(run_id, outputs)

    @hook_impl
    def after_dataset_saved(self, dataset_name: str) -> None:
        """Drop what was kept to go on from: checkpoints of models, chunks of pictures."""
        if dataset_name.endswith(UNFINISHED) or SHIFTED in dataset_name:
            from robust_fairness.core.checkpoints import drop

            generator = dataset_name.removesuffix("_referee")
            is_referee = generator != dataset_name
            drop(f"{generator}.referee" if is_referee else dataset_name.removesuffix(".models"))

    @hook_impl
    def after_pipeline_run(self, run_params: dict[str, Any], pipeline: Any, catalog: Any) -> None:
        """Write the last manifest of a run that finished."""
        _close(run_params["run_id"], "finished", [], pipeline, catalog)

    @hook_impl
    def on_pipeline_error(
        self, error: Exception, run_params: dict[str, Any], pipeline: Any, catalog: Any
    ) -> None:
        """Write the last manifest of a run that failed, with what it has made."""
        failed = [str(one) for one in getattr(error, "failures", [first_line(error)])]
        _close(run_params["run_id"], "failed", failed, pipeline, catalog)


def _versioned(catalog: Any, name: str) -> AbstractVersionedDataset | None:
    """The dataset, where it is a file with versions."""
    dataset = catalog.get(name)
    found = isinstance(dataset, AbstractVersionedDataset) and dataset._version is not None
    return dataset if found else None


def _pin_outputs(run_id: str, pipeline: Any, catalog: Any) -> None:
    for name in pipeline.all_outputs():
        dataset = _versioned(catalog, name)
        if dataset is not None:
            dataset._version = Version(run_id, run_id)


def _pin_inputs(pinned: Mapping[str, str], pipeline: Any, catalog: Any) -> dict[str, str]:
    """Versions of what other runs have made: those pinned before, asked for, or the newest."""
    versions = {}
    for name in sorted(pipeline.inputs()):
        dataset = _versioned(catalog, name)
        if dataset is None:
            continue
        try:
            version = pinned.get(name) or dataset.resolve_load_version()
        except VersionNotFoundError:
            raise InputError(f"{name}: no version yet; run the pipeline that makes it") from None
        dataset._version = Version(version, None)
        versions[name] = str(version)
    provenance.require_same_samples(versions)
    for version, count in sorted(Counter(versions.values()).items()):
        logger.info("reads %d of run %s", count, version)
    return versions


def _note_samples(run_id: str, data: Mapping[str, Any]) -> None:
    sources = {name: value.sources for name, value in data.items() if name.endswith(READ)}
    if sources:
        provenance.note_inputs(run_id, sources)


def _close(run_id: str, state: str, failed: list[str], pipeline: Any, catalog: Any) -> None:
    """Write the manifest with the contents of all outputs that exist."""
    outputs = {}
    for name in sorted(pipeline.all_outputs()):
        dataset = catalog.get(name)
        if isinstance(dataset, AbstractVersionedDataset) and dataset.exists():
            with _local(dataset) as path:
                content = provenance.content_hash(path)
            outputs[name] = {"path": _told_place(dataset), "content": content}
    closing = {"state": state, "ended": provenance.now(), "failed": failed, "outputs": outputs}
    provenance.write_manifest(provenance.load_manifest(run_id) | closing)


def _local(dataset: AbstractVersionedDataset) -> AbstractContextManager[Path]:
    """The file of a dataset on this machine: itself, or a copy."""
    if isinstance(dataset, AtomicDataset):
        return dataset.local()
    return nullcontext(Path(dataset._get_load_path()))


def _told_place(dataset: AbstractVersionedDataset) -> str:
    """Where a dataset lies, as manifests tell it: a URL, or a path from the project's folder."""
    place = dataset.place if isinstance(dataset, AtomicDataset) else str(dataset._get_load_path())
    return place if "://" in place else provenance.relative(Path(place))
