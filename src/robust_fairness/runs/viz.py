"""Kedro-Viz: run times of our runner, and a static site that tells nothing of the machine."""

import json
import re
import shutil
import site
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kedro.framework.hooks import hook_impl
from kedro_viz.integrations.kedro.run_hooks import PipelineRunStatusHook

from robust_fairness.core.errors import InputError

SITE, API = "build", "api"
PARTS = (API, "assets")  # folders that Kedro-Viz writes
# How the site looks at first: from left to right, a row a dataset, with the tables and files hidden
# that would make all names too small to read. The filters, which bring them back, are beside it.
LOOK = {
    "orientation": "horizontal",
    "nodeType": {"disabled": {"parameters": True, "data": True}},
    "showFeatureHints": False,
    "visible": {"miniMap": False},
}
# Kedro-Viz keeps the look in the browser; what the reader has chosen stays.
FIRST_LOOK = f"""<script>
if (!localStorage.getItem("KedroViz"))
  localStorage.setItem("KedroViz", {json.dumps(json.dumps(LOOK))});
</script>
"""
FONTS = re.compile(r'<link\b[^>]*"https://fonts\.[^>]*>\s*')  # of a server elsewhere


class RunTimes(PipelineRunStatusHook):
    """Notes run times of nodes, for Kedro-Viz to show, also of our sequential runner.

    Kedro-Viz does so for Kedro's own sequential runner alone. In other processes nothing can be
    noted, since each has its own hooks.
    """

    @hook_impl
    def before_pipeline_run(self, run_params: Mapping[str, Any], pipeline: Any) -> None:
        """Begin to note, where all nodes run in this process."""
        if "SequentialRunner" in str(run_params.get("runner") or "SequentialRunner"):
            super().before_pipeline_run({**run_params, "runner": None}, pipeline)


def build_site(root: Path) -> int:
    """Build the site with previews of what the last run left; the number of its files.

    Args:
        root: the project's folder; the site is below it.

    Raises:
        InputError: Kedro-Viz could not build it; it has said why.
    """
    from kedro_viz.launchers.cli.utils import create_shareableviz_process

    folder = root / SITE
    for part in PARTS:  # whatever else is in the folder stays
        shutil.rmtree(folder / part, ignore_errors=True)
    create_shareableviz_process("local", True)
    if not (folder / API / "main").exists():
        raise InputError(f"{SITE}/: Kedro-Viz has built no site")
    page = folder / "index.html"
    text = FONTS.sub("", page.read_text(encoding="utf-8"))
    page.write_text(text.replace("<script", FIRST_LOOK + "<script", 1), encoding="utf-8")
    without_places(folder / API, root)
    return sum(path.is_file() for part in PARTS for path in (folder / part).rglob("*"))


def without_places(folder: Path, root: Path) -> None:
    """Take the places of this machine out of what a site shows.

    Paths below the project become relative to it; of those below the environment or the user's
    home only what follows is left.

    Args:
        folder: what Kedro-Viz told of the project; its own pages are the same everywhere.
        root: the project's folder.
    """
    packages = [*site.getsitepackages(), sys.prefix, sys.base_prefix, str(Path.home())]
    places = [f"{place}/" for place in dict.fromkeys([str(root), str(root.resolve()), *packages])]
    for path in (path for path in folder.rglob("*") if path.is_file()):
        text = shorter = path.read_text(encoding="utf-8")
        for place in places:
            shorter = shorter.replace(place, "")
        if shorter != text:
            path.write_text(shorter, encoding="utf-8")
