"""Kedro-Viz: a static site without local paths."""

import json
import re
import shutil
import site
import sys
from pathlib import Path

from robust_fairness.core.errors import InputError

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
