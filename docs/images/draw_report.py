"""Draw report.png and report_dark.png: a first screen of the results of results/cross.md.

python docs/images/draw_report.py CHROMIUM
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd
from PIL import Image

from robust_fairness.reporting import Results, report

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER.parent / "results"
SCHEMES = {"report.png": 1, "report_dark.png": 0}  # Chromium's preferredColorScheme
DATASETS = ("compas_two_years", "diabetes", "coloured_extend")
METRICS = ("accuracy", "worst_group_accuracy")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--window-size=1280,880",
)


def page() -> str:
    """The report of some datasets and metrics of the tables that lie beside the results."""
    metrics = pd.read_parquet(RESULTS / "cross_scores.parquet")
    metrics = metrics[metrics["dataset"].isin(DATASETS) & metrics["metric"].isin(METRICS)]
    splits = pd.read_parquet(RESULTS / "cross_splits.parquet")
    names = metrics[["dataset", "method"]].drop_duplicates().to_dict("records")
    cells = [{**cell, "state": "done", "reason": ""} for cell in names]
    manifest = {"run_id": "cross", "started": "2026-11-22"}
    return report(Results.of(metrics, splits=splits), cells, manifest)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        html = Path(folder) / "report.html"
        html.write_text(page(), encoding="utf-8")
        for name, scheme in SCHEMES.items():
            options = [
                f"--screenshot={FOLDER / name}",
                f"--blink-settings=preferredColorScheme={scheme}",
            ]
            subprocess.run([sys.argv[1], *OPTIONS, *options, html.as_uri()], check=True)
    for name in SCHEMES:
        with Image.open(FOLDER / name) as image:
            small = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        small.save(FOLDER / name, optimize=True)
