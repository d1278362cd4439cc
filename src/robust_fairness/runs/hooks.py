"""The hooks that keep manifests, pin versions, and write what Kedro-Viz shows of a run."""

import json
import logging
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path, PurePosixPath
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.io import (
    AbstractVersionedDataset,
    CatalogProtocol,
    MemoryDataset,
    SharedMemoryDataset,
)
from kedro.io.core import Version, VersionNotFoundError
from kedro.pipeline import Node, Pipeline
from kedro_viz.integrations.kedro.hooks import DatasetStatsHook
from kedro_viz.integrations.kedro.hooks_utils import EVENTS_DIR, hash_node, write_events

from robust_fairness.catalog import names
from robust_fairness.catalog.atomic import AtomicDataset
from robust_fairness.catalog.files import FileDataset
from robust_fairness.catalog.raw import RawDataset
from robust_fairness.core.code import code_id
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.core.files import atomic_path, sha256_of
from robust_fairness.runs import provenance
from robust_fairness.runs.configuration import ConfigLoader, loader, loader_of_run
from robust_fairness.runs.runners import FAN_IN, reason_of, remove
from robust_fairness.runs.session import CheckedCatalog

logger = logging.getLogger(__name__)

# Parts of the catalog whose nodes keep checkpoints, and those that are read from files.
CHECKPOINTED = ("models", "reference", "generator", "samples", names.SHIFTED)
READ = ("originals", "samples", "rows", "real")
# Datasets that a manifest has checksums of, or that are in memory.
OF_A_RUN = (AtomicDataset, MemoryDataset, RawDataset, SharedMemoryDataset)
# Fields that a completed run keeps.
KEPT = ("started", "inputs", "loaded", "modified", "accepted", "outputs", "seconds")


class RunRecord:
    """Pins the versions of a run's data and keeps its manifest.

    Kedro loads the newest version of a file, which may belong to another run. Events of nodes
    change nothing but the manifest, so that a node may run in any process.
    """

    def __init__(self) -> None:
        self._folder = Path.cwd()
        self._recorded: dict[tuple[str, str], Mapping[str, str]] = {}
        self._run: tuple[str, Any] = ("", None)  # id and catalog
        self._started: dict[str, float] = {}  # by node

    @hook_impl
    def before_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
    ) -> None:
        """Check that raw files are available, pin the versions and write the first manifest."""
        configured = loader()
        if not run_params["only_missing_outputs"]:  # those may need no raw files
            read = (names.parse(name) for name in pipeline.inputs())
            configured.require_raw_files({name.dataset for name in read if name.part == "raw"})
        self._recorded.clear()
        run_id = run_params["run_id"]
        _require_inputs(run_params["load_versions"] or (), pipeline, catalog)
        manifest = provenance.new_manifest(run_params, configured)
        for name in pipeline.all_outputs():
            if dataset := _versioned(catalog, name):
                dataset._version = Version(run_id, run_id)
        before: dict[str, Any] = {}
        changes: list[str] = []
        if provenance.manifest_path(run_id).exists():
            if not run_params["only_missing_outputs"]:
                raise InputError(
                    f"run {run_id} exists; add --only-missing-outputs to complete it, "
                    "or choose another --run-id"
                )
            before = provenance.load_manifest(run_id)
            changes += provenance.differences(before, manifest)
            manifest |= {name: before[name] for name in KEPT if name in before}
            if before["state"] != "finished":  # they may lack cells whose outputs are there now
                for name in pipeline.only_nodes_with_tags(FAN_IN).all_outputs():
                    manifest["outputs"].pop(name, None)
            changes += _changed(manifest["outputs"], pipeline.all_outputs(), catalog)
        manifest["loaded"] = _pin_inputs(manifest["loaded"], pipeline, catalog)
        for name, version in manifest["loaded"].items():
            if provenance.manifest_path(version).exists():
                outputs = provenance.load_manifest(version)["outputs"]
                changes += _changed(outputs, [name], catalog)
        if isinstance(catalog, CheckedCatalog):
            catalog.is_checked = True
        manifest["accepted"] += provenance.accepted(run_id, changes)
        manifest["joined"] = _of_other_settings(manifest["loaded"], configured)
        if before:
            _remove_unrecorded(manifest["outputs"], pipeline, catalog)
        provenance.write_manifest(manifest)
        provenance.journal_path(run_id).unlink(missing_ok=True)
        if "manifest" in catalog:
            catalog["manifest"].save(manifest)
        logger.info("run %s", run_id)

    @hook_impl
    def before_node_run(
        self, node: Node, inputs: Mapping[str, Any], catalog: CatalogProtocol, run_id: str
    ) -> dict[str, Any]:
        """Record the raw files of samples; the report gets the manifest with all of them."""
        self._run = run_id, catalog
        self._folder = Path.cwd()
        self._record_samples(run_id, inputs)
        self._started[node.name] = time.perf_counter()
        return {"manifest": provenance.load_manifest(run_id)} if "manifest" in inputs else {}

    @hook_impl(tryfirst=True)
    def after_node_run(self, node: Node, outputs: Mapping[str, Any], run_id: str) -> None:
        """Record the time, and the raw files of new samples before they are saved."""
        seconds = time.perf_counter() - self._started.pop(node.name)
        os.chdir(self._folder)  # a plug-in may have changed it
        provenance.record(run_id, seconds={node.name: round(seconds, 3)})
        self._record_samples(run_id, outputs)

    @hook_impl(tryfirst=True)
    def on_node_error(self) -> None:
        """Return to the project's folder, which a plug-in may have left."""
        os.chdir(self._folder)

    @hook_impl
    def after_dataset_saved(self, dataset_name: str) -> None:
        """Record path or URL, checksum and code; delete checkpoints of models and images.

        A folder, or another machine's file of a type that is not ours, is not recorded.
        """
        run_id, catalog = self._run
        dataset, place = _versioned(catalog, dataset_name), ""
        if isinstance(dataset, AtomicDataset):
            place, sha256 = dataset.place, dataset.sha256
        elif dataset and Path(dataset._get_load_path()).is_file():
            place = str(dataset._get_load_path())
            sha256 = sha256_of(Path(place))
        if place:
            path = place if "://" in place else provenance.relative(Path(place))
            recorded = {"path": path, "sha256": sha256, "code": code_id()}
            provenance.record(run_id, outputs={dataset_name: recorded})
        parsed = names.parse(dataset_name)
        if parsed.part in CHECKPOINTED:
            from robust_fairness.bench.compute.checkpoints import drop

            reference = f"{parsed.dataset}.{parsed.part}" if parsed.part == "reference" else ""
            drop(parsed.cell or reference or dataset_name)

    @hook_impl
    def after_pipeline_run(
        self, run_params: dict[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
    ) -> None:
        _close(run_params["run_id"], "finished", [], pipeline, catalog)

    @hook_impl
    def on_pipeline_error(
        self,
        error: Exception,
        run_params: dict[str, Any],
        pipeline: Pipeline,
        catalog: CatalogProtocol,
    ) -> None:
        """Complete the manifest of a failed run, with its outputs so far."""
        failed = [str(failure) for failure in getattr(error, "failures", [reason_of(error)])]
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


class VizFiles:
    """Writes sizes of files and times of nodes for Kedro-Viz, of a run by any runner.

    Kedro-Viz itself does so in the process that runs the nodes, for Kedro's sequential runner only.
    """

    @hook_impl
    def after_pipeline_run(
        self, run_params: Mapping[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
    ) -> None:
        _write_for_viz(run_params["run_id"], pipeline, catalog)

    @hook_impl
    def on_pipeline_error(
        self,
        error: Exception,
        run_params: Mapping[str, Any],
        pipeline: Pipeline,
        catalog: CatalogProtocol,
    ) -> None:
        if provenance.manifest_path(run_params["run_id"]).exists():
            _write_for_viz(run_params["run_id"], pipeline, catalog, error)


def _versioned(catalog: CatalogProtocol, name: str) -> AbstractVersionedDataset | None:
    dataset = catalog.get(name)
    is_versioned = isinstance(dataset, AbstractVersionedDataset) and dataset._version is not None
    return dataset if is_versioned else None


def _pin_inputs(
    pinned: Mapping[str, str], pipeline: Pipeline, catalog: CatalogProtocol
) -> dict[str, str]:
    """Versions of inputs from other runs: pinned before, by ``--load-versions``, or the newest."""
    datasets = {name: _versioned(catalog, name) for name in sorted(pipeline.inputs())}
    saved = {name: dataset for name, dataset in datasets.items() if dataset is not None}
    if not saved:
        return {}
    versions = {}
    ended = {run["run_id"]: run["ended"] or run["started"] for run in provenance.manifests()}
    for name, dataset in saved.items():
        try:
            version = pinned.get(name) or _newest(dataset, ended)
        except VersionNotFoundError:
            raise InputError(f"{name}: no version yet; run the pipeline that saves it") from None
        dataset._version = Version(version, None)
        if not dataset.exists():
            raise InputError(
                f"{name}: no version {version!r}, allowed: the id of a run that saved it"
            )
        versions[name] = str(version)
    provenance.require_same_samples(versions)
    for version, count in sorted(Counter(versions.values()).items()):
        logger.info("using %d outputs of run %s", count, version)
    return versions


def _require_inputs(chosen: Iterable[str], pipeline: Pipeline, catalog: CatalogProtocol) -> None:
    """Require that the run reads what ``--load-versions`` names from other runs.

    Nodes of the run have to make what is in memory only.
    """
    for name in chosen:
        if name in pipeline.all_outputs():
            raise InputError(
                f"--load-versions={name}: this run makes it, allowed: what it reads of other runs"
            )
        if name not in pipeline.inputs():
            raise unknown_name("input of --load-versions", name, pipeline.inputs())
    missing = sorted(name for name in pipeline.inputs() if name not in catalog)
    if missing:
        raise InputError(
            f"{', '.join(missing)}: kept in memory only and made by no node of this run; select "
            "the nodes that make it as well, for example by --pipelines=reporting"
        )


def _newest(dataset: AbstractVersionedDataset, ended: Mapping[str, str]) -> str | None:
    """The given version, or that of the run that ended last; without one the newest file.

    A copy of the files has other times than the runs.
    """
    if dataset._version is not None and dataset._version.load:
        return str(dataset._version.load)
    saved = {PurePosixPath(path).parent.name for path in dataset.list_versions()}
    newest = max(saved & ended.keys(), key=lambda run: ended[run], default=None)
    return newest or dataset.resolve_load_version()


def _of_other_settings(versions: Mapping[str, str], configured: ConfigLoader) -> list[str]:
    """Cells whose outputs are read and were made with other settings than now; warns of them."""
    joined = []
    cells: dict[str, set[str]] = {}
    for name, version in versions.items():
        if (cell := names.parse(name).cell) and provenance.manifest_path(version).exists():
            cells.setdefault(version, set()).add(cell)
    for run_id, read in sorted(cells.items()):
        manifest = provenance.load_manifest(run_id)
        if manifest["configuration"] == provenance.configuration_digest(configured):
            continue
        earlier = loader_of_run(provenance.manifest_path(run_id), manifest)
        before, now = _settings(earlier), _settings(configured)
        for cell in sorted(read & before.keys() & now.keys()):
            changes = [
                f"{field} {before[cell].get(field)}, now {now[cell].get(field)}"
                for field in before[cell] | now[cell]
                if before[cell].get(field) != now[cell].get(field)
            ]
            if changes:
                joined.append(f"{cell} of run {run_id} ({', '.join(changes)})")
    if joined:
        logger.warning("cells of other settings are joined: %s", "; ".join(joined))
    return joined


def _settings(configured: ConfigLoader) -> dict[str, dict[str, str]]:
    """The settings of every cell, with names such as ``protocol.epochs``."""
    from pandas import json_normalize

    cells = {cell.name: cell.model_dump() for cell in configured.selected_experiment.cells}
    return {
        name: {str(field): str(value) for field, value in json_normalize(cell).iloc[0].items()}
        for name, cell in cells.items()
    }


def _close(
    run_id: str, state: str, failed: list[str], pipeline: Pipeline, catalog: CatalogProtocol
) -> None:
    """Write the manifest with every output that exists."""
    manifest = provenance.load_manifest(run_id)
    outputs = manifest["outputs"]
    for name in pipeline.all_outputs() & outputs.keys():
        if not catalog.exists(name):
            del outputs[name]
    unrecorded = pipeline.datasets() - outputs.keys() - manifest["loaded"].keys()
    unchecked = (  # of types of the user's own, which outlive the run
        name
        for name in unrecorded
        if name in catalog and not isinstance(catalog.get(name), OF_A_RUN)
    )
    ending = {
        "state": state,
        "ended": provenance.now(),
        "failed": failed,
        "outputs": dict(sorted(outputs.items())),
        "unchecked": sorted(unchecked),
    }
    provenance.write_manifest(manifest | ending)
    provenance.journal_path(run_id).unlink(missing_ok=True)


def _changed(
    recorded: dict[str, dict[str, str]], outputs: Iterable[str], catalog: CatalogProtocol
) -> Iterator[str]:
    """The outputs whose files differ from their checksums; ``recorded`` gets the present ones."""
    for name in sorted(recorded.keys() & set(outputs)):
        dataset = _versioned(catalog, name)
        if dataset is None or not dataset.exists():
            continue
        with (
            dataset.local()
            if isinstance(dataset, AtomicDataset)
            else nullcontext(Path(dataset._get_load_path())) as path
        ):
            sha256 = sha256_of(path)
        if recorded[name].get("sha256") != sha256:
            recorded[name] |= {"sha256": sha256}
            yield (
                f"{recorded[name]['path']} was changed after it was saved (delete it to make it "
                "again)"
            )


def _remove_unrecorded(
    recorded: Mapping[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
) -> None:
    """Delete what is to be made again, also of a process killed before it recorded its output."""
    for name in pipeline.all_outputs() - recorded.keys():
        if dataset := _versioned(catalog, name):
            remove(dataset)


def _write_for_viz(
    run_id: str, pipeline: Pipeline, catalog: CatalogProtocol, error: Exception | None = None
) -> None:
    """Write what Kedro-Viz shows of datasets (``stats.json``) and of the run (its events)."""
    manifest = provenance.load_manifest(run_id)
    stats = {name: _facts(catalog.get(name)) for name in sorted(pipeline.datasets())}
    stats = {name: facts for name, facts in stats.items() if facts}
    with atomic_path(provenance.root() / EVENTS_DIR / "stats.json") as path:
        path.write_text(json.dumps(stats), encoding="utf-8")
    seconds, nodes = manifest["seconds"], {node.name: node for node in pipeline.nodes}
    failures = {failure.node: failure for failure in getattr(error, "failures", ())}
    events: list[dict[str, Any]] = [
        {"event": "before_pipeline_run", "timestamp": manifest["started"]},
        *(
            {"event": "after_node_run", "node": name, "node_id": hash_node(node)}
            | {"duration": seconds[name], "status": "success"}
            for name, node in nodes.items()
            if name in seconds and name not in failures
        ),
        *(
            {"event": "on_node_error", "node": name, "node_id": hash_node(nodes[name])}
            | {"error": str(failure), "timestamp": provenance.now(), "traceback": ""}
            for name, failure in failures.items()
            if name in nodes
        ),
        *(
            {"event": "after_dataset_saved", "dataset": name, "node_id": hash_node(name)}
            | {"status": "Available", "size": facts["file_size"]}
            for name, facts in stats.items()
        ),
    ]
    end = {"event": "after_pipeline_run", "timestamp": provenance.now()}
    if error is not None:
        end |= {"event": "on_pipeline_error", "error": str(error), "traceback": ""}
    write_events([*events, end])


def _facts(dataset: Any) -> dict[str, int]:
    """Bytes of a file, and rows and columns of a Parquet file of this machine."""
    if not isinstance(dataset, AtomicDataset):
        size = DatasetStatsHook().get_file_size(dataset)
        return {"file_size": size} if size else {}
    if not dataset._exists():
        return {}
    size = dataset.system.size(str(dataset._get_load_path()))
    if not isinstance(dataset, FileDataset) or Path(dataset.filepath).suffix != ".parquet":
        return {"file_size": size}
    from pyarrow.parquet import read_metadata

    with dataset.local() as path:
        table = read_metadata(path)
    columns = len(table.schema.to_arrow_schema())
    return {"rows": table.num_rows, "columns": columns, "file_size": size}
