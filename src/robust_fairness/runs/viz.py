"""Kedro-Viz: its first view, run times of nodes, and a static site without local paths."""

import json
import re
import shutil
import site
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro_viz.integrations.kedro.hooks import DatasetStatsHook
from kedro_viz.integrations.kedro.run_hooks import PipelineRunStatusHook

from robust_fairness.catalog.atomic import AtomicDataset
from robust_fairness.core.errors import InputError

SITE, API = "build", "api"
PARTS = (API, "assets")  # folders that Kedro-Viz writes
PAGES = ("/", "/workflow")  # of the server
# First view: from left to right, one row per dataset, as large as possible. Kedro-Viz stores the
# view in the browser; the choices of a reader are kept.
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


class RunTimes(PipelineRunStatusHook):
    """Records run times of nodes for Kedro-Viz, also with our sequential runner.

    Kedro-Viz does so with Kedro's sequential runner only. Run times in other processes are not
    recorded, since each has its own hooks.
    """

    @hook_impl
    def before_pipeline_run(self, run_params: Mapping[str, Any], pipeline: Any) -> None:
        """Start recording if all nodes run in this process."""
        if "SequentialRunner" in str(run_params.get("runner") or "SequentialRunner"):
            super().before_pipeline_run({**run_params, "runner": None}, pipeline)


class FileSizes(DatasetStatsHook):
    """Records rows, columns and sizes of files for Kedro-Viz, of the version that was saved.

    Kedro-Viz asks for the size of the folder of versions.
    """

    def get_file_size(self, dataset: Any) -> int | None:
        if isinstance(dataset, AtomicDataset):
            return dataset.size()
        size: int | None = super().get_file_size(dataset)
        return size


def with_first_look(page: str) -> str:
    """A page of Kedro-Viz that opens with the first view."""
    return page.replace("<script", FIRST_LOOK + "<script", 1)


def change_server() -> None:
    """Let the server of ``kedro viz run`` open with the first view, if this process is one.

    It imports this module by the settings of the project, before it makes its application.
    Kedro-Viz has no setting for it.
    """
    server = sys.modules.get("kedro_viz.api.apps")
    if server is None:
        return
    from starlette.responses import HTMLResponse

    make = server.create_api_app_from_project

    def application(*arguments: Any, **options: Any) -> Any:
        made = make(*arguments, **options)

        @made.middleware("http")
        async def first_look(request: Any, answer: Any) -> Any:
            response = await answer(request)
            if request.url.path not in PAGES:
                return response
            page = b"".join([part async for part in response.body_iterator])
            return HTMLResponse(with_first_look(page.decode()))

        return made

    server.create_api_app_from_project = application  # type: ignore[attr-defined]


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
