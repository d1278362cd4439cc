"""The report in a real browser."""

import shutil
import subprocess

import pandas as pd
import pytest

from tests.report.test_report import made_up, page

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=15000",
    "--allow-file-access-from-files",
    "--dump-dom",
]


DATASETS = 9


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page with every kind of figure, all drawers open."""
    metrics = pd.concat([made_up(dataset=f"d{k}") for k in range(DATASETS)], ignore_index=True)
    path = tmp_path_factory.mktemp("page") / "report.html"
    opening = (
        "<script>document.querySelectorAll('details').forEach(one => one.open = true)</script>"
    )
    path.write_text(page(metrics) + opening, encoding="utf-8")
    return path


def opened(path, tmp_path) -> subprocess.CompletedProcess:
    """What the browser makes of a page opened from disk."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed")
    return subprocess.run(
        [browser, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )


@pytest.mark.slow
def test_report_draws_all_figures_without_errors(report, tmp_path):
    """Opened from disk: every figure has its drawing, the console is silent."""
    done = opened(report, tmp_path)
    figures = done.stdout.count('role="img"')
    assert figures == 4 + 1 + 2 * DATASETS  # ranks, agreement of measures
    assert done.stdout.count('class="plot-container') == figures
    assert "CONSOLE" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(report, tmp_path, width):
    """On a phone, too, the page does not scroll sideways, and figures fit in their boxes."""
    frame = report.with_name("frame.html")
    frame.write_text(
        f"""<iframe id="phone" src="{report.name}" width="{width}" height="800"></iframe>
        <p id="told">
        <script>onload = () => setTimeout(() => {{
          const root = phone.contentDocument.documentElement;
          const wide = [...root.querySelectorAll(".plot.fluid")]
            .filter(box => box.scrollWidth > box.clientWidth + 1);
          told.textContent = `wider ${{root.scrollWidth > {width}}}, figures ${{wide.length}}`;
        }}, 5000)</script>"""
    )
    done = opened(frame, tmp_path)
    assert "wider false, figures 0" in done.stdout
