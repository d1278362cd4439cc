"""Draw report.png and report_dark.png, the first screen of the report of ``robust-fairness demo``.

robust-fairness demo demo
python -m tools.draw_report demo/report.html chromium
"""

import subprocess
import sys
from pathlib import Path

from PIL import Image

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
SCHEMES = {"report.png": 1, "report_dark.png": 0}  # Chromium's preferredColorScheme
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--window-size=1280,1040",
)


def draw(report: Path, chromium: str) -> None:
    """Screenshots of a report in both colour schemes, with 128 colours."""
    for name, scheme in SCHEMES.items():
        options = [
            f"--screenshot={FOLDER / name}",
            f"--blink-settings=preferredColorScheme={scheme}",
        ]
        subprocess.run([chromium, *OPTIONS, *options, report.absolute().as_uri()], check=True)
        with Image.open(FOLDER / name) as image:
            small = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        small.save(FOLDER / name, optimize=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1]), sys.argv[2])
