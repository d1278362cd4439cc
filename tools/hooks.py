"""What the documentation site adds to the folder of documents.

README, CONTRIBUTING, CHANGELOG, the READMEs of studies and the notebooks become pages as well.
Links are written for the repository, where they lead from file to file; here they are turned to the
pages of the site. A site that would ask another host for anything is an error.
"""

import json
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "notebooks/README.md": "notebooks/index.md",
    "LICENSE": "LICENSE.txt",
    "CITATION.cff": "CITATION.txt",
}
LINK = re.compile(r"""(?:(?<=\]\()|(?<=src=")|(?<=srcset="))[^)"#\s]+(?=[)"#])""")
NAMED = re.compile(r"\[([\w./]+\.md)\]\(([^)#\s]+)(?=[)#])")  # a link that shows a file's name
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
LINKED = (".csv", ".svg")  # of studies
EXECUTED = ROOT / "build" / "notebooks"  # of tools/execute_notebooks.py
FENCE = re.compile(r"(^[ ]*```.*?^[ ]*```[ ]*$)", re.DOTALL | re.MULTILINE)
# what a browser loads by itself: scripts, images, frames, style sheets; not links that one clicks
LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*\ssrc=[\"']?(?:https?:)?//"
    r"|<link\b(?![^>]*rel=[\"']?canonical)[^>]*\shref=[\"']?(?:https?:)?//"
    r"|url\([\"']?(?:https?:)?//"
    r"|@import\s+[\"'](?:https?:)?//"
)


def pages() -> dict[str, str]:
    """Place in the site of every file outside of ``docs`` that is a page, by its own place."""
    notebooks = sorted(path.stem for path in ROOT.glob("notebooks/*.ipynb"))
    studies = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("studies/**/*.md"))
    return (
        PAGES
        | {f"notebooks/{name}.ipynb": f"notebooks/{name}.md" for name in notebooks}
        | {place: place.replace("README.md", "index.md") for place in studies}
    )


def text_of(path: Path) -> str:
    """Markdown of a file; of a notebook its cells, with outputs where it was executed."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".ipynb":
        return text
    executed = EXECUTED / f"{path.stem}.md"
    if executed.is_file():
        return executed.read_text()
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(f"```python\n{source}\n```" if cell["cell_type"] == "code" else source)
    return "\n\n".join(parts)


def title_of(file: File) -> str:
    """Its first heading."""
    heading = TITLE.search(file.content_string)
    return heading[1] if heading else file.name


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that lie outside of ``docs``."""
    for source, target in pages().items():
        files.append(File.generated(config, target, content=text_of(ROOT / source)))
    # what their pages show or link beside text
    for shown in sorted(path for path in EXECUTED.glob("*") if path.suffix != ".md"):
        files.append(File.generated(config, f"notebooks/{shown.name}", abs_src_path=str(shown)))
    for shown in sorted(path for path in ROOT.glob("studies/**/*") if path.suffix in LINKED):
        place = shown.relative_to(ROOT).as_posix()
        files.append(File.generated(config, place, abs_src_path=str(shown)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links of the repository to pages of the site."""
    here = page.file.src_uri
    outside = {target: source for source, target in pages().items()}
    origin = posixpath.dirname(outside.get(here, f"docs/{here}"))

    def turned(link: re.Match[str]) -> str:
        if "://" in link[0] or link[0].startswith("mailto:"):
            return link[0]
        target = posixpath.normpath(posixpath.join(origin, link[0]))
        place = pages().get(target, target.removeprefix("docs/"))
        return posixpath.relpath(place, posixpath.dirname(here) or ".")

    def titled(link: re.Match[str]) -> str:
        place = posixpath.normpath(posixpath.join(posixpath.dirname(here), link[2]))
        target = files.get_file_from_path(place)
        return f"[{title_of(target)}]({link[2]}" if target else link[0]

    parts = FENCE.split(markdown)
    for number in range(0, len(parts), 2):
        parts[number] = NAMED.sub(titled, LINK.sub(turned, parts[number]))
    if here == "notebooks/index.md":
        shown = [file for file in files if re.fullmatch(r"notebooks/(?!index).*\.md", file.src_uri)]
        parts += [f"\n- [{title_of(file)}]({file.name}.md)" for file in shown]
    return "".join(parts)


def on_post_build(*, config: MkDocsConfig) -> None:
    """Check that no page asks another host for anything."""
    built = Path(config.site_dir)
    for path in sorted([*built.rglob("*.html"), *built.rglob("*.css"), *built.rglob("*.svg")]):
        asked = LOADED.search(path.read_text())
        if asked:
            raise PluginError(f"{path.relative_to(built)} asks another host: {asked[0]}")
