"""The documentation site: its links, and that it needs nothing but itself."""

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
    """A module of the site."""
    return module(ROOT / "tools" / f"{name}.py")


def test_a_page_that_asks_another_host_is_an_error(tmp_path):
    hooks = of_site("hooks")
    page = tmp_path / "a" / "index.html"
    page.parent.mkdir()
    page.write_text("<a href='https://example.org'>")
    hooks.on_post_build(config=Fields(site_dir=str(tmp_path)))
    page.write_text("<script src='https://example.org/x.js'>")
    with pytest.raises(hooks.PluginError, match=re.escape("a/index.html asks another host")):
        hooks.on_post_build(config=Fields(site_dir=str(tmp_path)))


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
    address = Path(built, "adding", "plugins.html").as_uri() + "?q=delta_er"
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
