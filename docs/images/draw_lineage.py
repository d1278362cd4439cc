"""Draw what ``kedro viz run`` shows first: ``python docs/images/draw_lineage.py`` (Chromium)."""

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.request import urlopen

from PIL import Image

PLACE = "http://127.0.0.1:4188"
WIDTH, HEIGHT, FRAME = 1600, 1000, 139  # of the page, and of the window around it
SECONDS = 300


def main() -> None:
    """Start the server, take a picture of its page, and store it with few colours."""
    command = ["kedro", "viz", "run", "--no-browser", "--port=4188"]
    server = subprocess.Popen(command, start_new_session=True)
    try:
        for _ in range(SECONDS):
            try:
                urlopen(PLACE)  # noqa: S310 - on this machine
                break
            except OSError:
                time.sleep(1)
        with tempfile.TemporaryDirectory() as folder:
            drawn = Path(folder) / "lineage.png"
            options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            options += [f"--user-data-dir={folder}", "--virtual-time-budget=40000"]
            options += [f"--window-size={WIDTH},{HEIGHT + FRAME}", f"--screenshot={drawn}"]
            subprocess.run(["chromium", *options, PLACE], check=True)
            page = Image.open(drawn).convert("RGB").crop((0, 0, WIDTH, HEIGHT))
            picture = page.quantize(64, dither=Image.Dither.NONE)
            picture.save(Path(__file__).with_name("lineage.png"), optimize=True)
    finally:
        os.killpg(server.pid, signal.SIGTERM)  # it has a process of its own


if __name__ == "__main__":
    main()
