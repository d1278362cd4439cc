"""Kedro-Viz: sizes of files, times of nodes, and a static site without local paths."""

import json
import re
import shutil
import site
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro.io import CatalogProtocol
from kedro.pipeline import Pipeline
from kedro_viz.integrations.kedro.hooks import DatasetStatsHook
from kedro_viz.integrations.kedro.hooks_utils import EVENTS_DIR, hash_node, write_events

from robust_fairness.catalog.atomic import AtomicDataset
from robust_fairness.catalog.files import FileDataset
from robust_fairness.core.errors import InputError
from robust_fairness.core.files import atomic_path
from robust_fairness.runs import provenance

SITE, API = "build", "api"
PARTS = (API, "assets")  # folders that Kedro-Viz writes
# First view of the site: from left to right, one row per dataset, as large as possible. Kedro-Viz
# stores the view in the browser; the choices of a reader are kept.
LOOK = {
    "orientation": "horizontal",
    "showFeatureHints": False,
    "layer": {"visible": False},
    "visible": {"miniMap": False},
}
FIRST_LOOK = f"""<script>
if (!localStorage.getItem("KedroViz"))
  localStorage.setItem("KedroViz", {json.dumps(json.dumps(LOOK))});
</script>
"""
FONTS = re.compile(r'<link\b[^>]*"https://fonts\.[^>]*>\s*')  # from another server


class VizFiles:
    """Writes sizes of files and times of nodes for Kedro-Viz, of a run by any runner.

    Kedro-Viz itself does so in the process that runs the nodes, for Kedro's sequential runner only.
    """

    @hook_impl
    def after_pipeline_run(
        self, run_params: Mapping[str, Any], pipeline: Pipeline, catalog: CatalogProtocol
    ) -> None:
        _write(run_params["run_id"], pipeline, catalog)

    @hook_impl
    def on_pipeline_error(
        self,
        error: Exception,
        run_params: Mapping[str, Any],
        pipeline: Pipeline,
        catalog: CatalogProtocol,
    ) -> None:
        if provenance.manifest_path(run_params["run_id"]).exists():
            _write(run_params["run_id"], pipeline, catalog, error)


def _write(
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
    size = dataset.size()
    if size is None:
        return {}
    if not isinstance(dataset, FileDataset) or Path(dataset.filepath).suffix != ".parquet":
        return {"file_size": size}
    from pyarrow.parquet import read_metadata

    with dataset.local() as path:
        table = read_metadata(path)
    columns = len(table.schema.to_arrow_schema())
    return {"rows": table.num_rows, "columns": columns, "file_size": size}


def with_first_look(page: str) -> str:
    """A page of Kedro-Viz that opens with the first view."""
    return page.replace("<script", FIRST_LOOK + "<script", 1)


def build_site(root: Path) -> int:
    """Build the site in ``build/``, with previews of the newest outputs."""
    from kedro_viz.launchers.cli.utils import create_shareableviz_process

    folder = root / SITE
    for part in PARTS:  # other files of the folder are kept
        shutil.rmtree(folder / part, ignore_errors=True)
    create_shareableviz_process("local", True)
    if not (folder / API / "main").exists():
        raise InputError(f"{SITE}/: Kedro-Viz did not build a site")
    page = folder / "index.html"
    text = FONTS.sub("", page.read_text(encoding="utf-8"))
    page.write_text(with_first_look(text), encoding="utf-8")
    remove_local_paths(folder / API, root)
    return sum(path.is_file() for part in PARTS for path in (folder / part).rglob("*"))


def remove_local_paths(folder: Path, root: Path) -> None:
    """Remove the folders of the project, the environment and the user from paths in a site."""
    packages = [*site.getsitepackages(), sys.prefix, sys.base_prefix, str(Path.home())]
    places = [f"{place}/" for place in dict.fromkeys([str(root), str(root.resolve()), *packages])]
    for path in (path for path in folder.rglob("*") if path.is_file()):
        text = shorter = path.read_text(encoding="utf-8")
        for place in places:
            shorter = shorter.replace(place, "")
        if shorter != text:
            path.write_text(shorter, encoding="utf-8")
