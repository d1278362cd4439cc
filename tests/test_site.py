"""The documentation site: its links, and that it needs nothing but itself."""

import json
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from types import SimpleNamespace as Fields

import pytest

from tests.modules import module
from tests.project import ROOT

pytest.importorskip("mkdocs", reason="documents are built with the extra `docs`")


@cache
def of_site(name: str) -> ModuleType:
    """A module of docs/site."""
    return module(ROOT / "docs" / "site" / f"{name}.py")


class Titles:
    """Pages of a site, by place, with their first heading."""

    def __init__(self, **titles: str) -> None:
        self.titles = {name.replace("__", "/") + ".md": text for name, text in titles.items()}

    def get_file_from_path(self, place: str) -> Fields | None:
        text = self.titles.get(place)
        return Fields(content_string=f"# {text}\n", name=place) if text else None

    def __iter__(self):
        return iter([])


@pytest.mark.parametrize(
    ("here", "written", "shown"),
    [
        ("index.md", "[a](docs/data.md#x) [b](LICENSE)", "[a](data.md#x) [b](LICENSE.txt)"),
        ("papers/x.md", "[a](../../README.md)", "[a](../index.md)"),
        ("papers/x.md", "[data.md](../data.md)", "[Data](../data.md)"),
        ("architecture.md", "![a](images/x.svg)", "![a](images/x.svg)"),
        ("index.md", '<img src="docs/x.png">', '<img src="x.png">'),
        ("notebooks/index.md", "[a](../docs/own.md)", "[a](../own.md)"),
        ("index.md", "[a](https://example.org/docs/x.md)", "[a](https://example.org/docs/x.md)"),
        ("index.md", "```\n[a](docs/data.md)\n```", "```\n[a](docs/data.md)\n```"),
    ],
)
def test_links_of_the_repository_lead_to_pages_of_the_site(here, written, shown):
    page = Fields(file=Fields(src_uri=here))
    hooks = of_site("hooks")
    turned = hooks.on_page_markdown(written, page=page, config=None, files=Titles(data="Data"))
    assert turned == shown


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ('<script src="https://cdn.example.org/x.js">', True),
        ("<link rel=stylesheet href=//fonts.example.org/css>", True),
        ("src: url(https://fonts.example.org/x.woff2)", True),
        ('<img alt="" src="http://example.org/x.png">', True),
        ('<a href="https://example.org">', False),
        ('<link rel="canonical" href="https://example.org">', False),
        ('<script src="assets/x.js">', False),
        ("url('data:image/svg+xml;http://www.w3.org/2000/svg')", False),
    ],
)
def test_what_a_browser_would_load_from_elsewhere_is_recognised(text, asks):
    assert bool(of_site("hooks").LOADED.search(text)) == asks


def test_a_page_that_asks_another_host_is_an_error(tmp_path):
    hooks = of_site("hooks")
    page = tmp_path / "a" / "index.html"
    page.parent.mkdir()
    page.write_text("<a href='https://example.org'>")
    hooks.on_post_build(config=Fields(site_dir=str(tmp_path)))
    page.write_text("<script src='https://example.org/x.js'>")
    with pytest.raises(hooks.PluginError, match=re.escape("a/index.html asks another host")):
        hooks.on_post_build(config=Fields(site_dir=str(tmp_path)))


def test_a_notebook_becomes_a_page_without_outputs(tmp_path):
    cells = [
        {"cell_type": "markdown", "source": ["# A\n", "text"]},
        {"cell_type": "code", "source": ["x = 1"], "outputs": [{"text": "secret"}]},
    ]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"cells": cells}))
    assert of_site("hooks").text_of(path) == "# A\ntext\n\n```python\nx = 1\n```"


@pytest.mark.parametrize(
    ("docstring", "shown"),
    [
        ("A.\n\n.. math:: x + y\n\nB.", "A.\n\n```text\nx + y\n```\n\nB."),
        ("A.\n\n.. math::\n\n    x\n    + y\n\nB.", "A.\n\n```text\nx\n+ y\n```\n\nB."),
        ("Add :math:`x`.", "Add `x`."),
    ],
)
def test_formulas_are_shown_as_they_are_written(docstring, shown):
    documented = Fields(docstring=Fields(value=docstring))
    of_site("docstrings").Formulas().on_object(obj=documented)
    assert documented.docstring.value == shown


@pytest.mark.slow
def test_the_site_is_built_and_searched_from_disk(tmp_path):
    """A browser without a network finds a word, on a page that it opened as a file."""
    browser = shutil.which("chromium")
    if not browser:
        pytest.skip("no chromium")
    built = tmp_path / "site"
    subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(built)],
        cwd=ROOT,
        check=True,
    )
    nowhere = "--host-resolver-rules=MAP * ~NOTFOUND"
    offline = ["--headless", "--no-sandbox", "--disable-gpu", nowhere]
    address = Path(built, "adding", "method.html").as_uri() + "?q=delta_er"
    done = subprocess.run(
        [browser, *offline, "--virtual-time-budget=20000", "--dump-dom", address],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    results = re.search(r'class="md-search-result__list".*?</ol>', done.stdout, re.DOTALL)
    assert results
    assert "metrics.html" in results[0]
