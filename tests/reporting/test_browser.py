"""The report in a real browser."""

import shutil
import subprocess

import pytest

from tests.reporting.test_report import made_up, page

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
    "--dump-dom",
]


@pytest.mark.slow
def test_report_draws_all_figures_without_errors(tmp_path):
    """Opened from disk: every figure has its drawing, the console is silent."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("chromium is not installed")
    path = tmp_path / "report.html"
    path.write_text(page(made_up()))
    done = subprocess.run(
        [browser, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    figures = done.stdout.count('role="img"')
    assert figures == 2
    assert done.stdout.count('class="plot-container') == figures
    assert "CONSOLE" not in done.stderr
