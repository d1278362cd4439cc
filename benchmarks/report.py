"""The report of a large grid: seconds, size of the page and memory, from a made-up table.

Every dataset has every method; scores are drawn at random. Half of the datasets are the papers'
own, so that views and claims have rows.

    python benchmarks/report.py --datasets 25 --methods 20 --output report.html
"""

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from _results import peak_mib, rounded, save

from robust_fairness.core import registry, tables
from robust_fairness.metrics import find_metric
from robust_fairness.papers import SECTIONS
from robust_fairness.report import Results, report, summary_table, trade_off_figure

PAPERS = {
    "adult": "sex", "communities_race": "racepctblack_group", "celeba_chubby": "Chubby",
    "compas": "race", "german": "foreign_worker", "biased_mnist": "texture",
    "celeba_identity": "skin_tone", "cars196_imbalanced": "class_size",
}  # fmt: skip
METRICS = (
    "accuracy", "worst_group_accuracy", "accuracy_by_group", "delta_dp", "delta_eo", "delta_eopp",
    "equal_opportunity_difference", "disparate_impact", "delta_er", "selection_rate_by_group",
    "true_positive_rate_by_group", "faircocco_dp", "faircocco_eo", "faircocco_cal", "recall_at",
)  # fmt: skip
OVERALL = ("accuracy", "recall_at")  # of no attribute
SHIFTS = {"none": [0.0], "gaussian_noise": [0.03, 0.06, 0.5], "uniform_noise": [0.03, 0.06, 0.5]}
GROUPS = ("first", "second")


def made_up(datasets: int, methods: int, seeds: int) -> pd.DataFrame:
    """Rows of a table of scores between 0 and 1."""
    names = (*registry.names("method"), *(f"variant_{k}" for k in range(methods)))[:methods]
    places = dict([*PAPERS.items(), *((f"table_{k}", "sex") for k in range(datasets))][:datasets])
    shifts = [(shift, severity) for shift, some in SHIFTS.items() for severity in some]
    scored = [
        (metric, group)
        for metric in METRICS
        for group in (GROUPS if metric.startswith("group_") else ("",))
    ]
    keys = product(places.items(), names, range(seeds), shifts, scored)
    rows = [
        (dataset, method, "mlp", "default", seed, "accuracy", shift, severity, "",
         "" if metric in OVERALL else attribute, group, metric)
        for (dataset, attribute), method, seed, (shift, severity), (metric, group) in keys
    ]  # fmt: skip
    columns = [name for name in tables.METRICS if name not in ("value", "n", "variance", "note")]
    frame = pd.DataFrame(rows, columns=columns)
    frame["value"] = np.random.default_rng(0).random(len(frame))
    frame = frame.assign(n=1000, variance=np.nan, note="")
    return frame[list(tables.METRICS)].astype(tables.METRICS)


def splits_of(datasets: list[str], seeds: int) -> pd.DataFrame:
    """Overlapping splits of every dataset."""
    sizes = {"train_rows": 600, "test_rows": 200, "reused": 0.6}
    pairs = product(datasets, range(seeds))
    rows = [{"dataset": name, "split": f"split_{k}", **sizes} for name, k in pairs]
    return tables.table(tables.SPLITS, rows)


def main() -> None:
    """Print what the page takes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", type=int, default=25)
    parser.add_argument("--methods", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    metrics = made_up(options.datasets, options.methods, options.seeds)
    pairs = metrics[["dataset", "method"]].drop_duplicates()
    cells = [{**pair, "state": "done", "reason": ""} for pair in pairs.to_dict("records")]
    used = {"method": registry.names("method"), "metric": list(METRICS), "shift": list(SHIFTS)[1:]}
    splits = splits_of(list(metrics["dataset"].unique()), options.seeds)
    find_metric("accuracy")  # reads the metrics, which is not what is timed
    manifest = {"run_id": "made up", "environment": "none", "started": "now", "used": used}
    start, processor = time.perf_counter(), time.process_time()
    page = report(Results.of(metrics, splits=splits), cells, manifest, SECTIONS.values())
    seconds, processor = time.perf_counter() - start, time.process_time() - processor
    summary_table(metrics)
    trade_off_figure(metrics)
    if options.output:
        options.output.write_text(page, encoding="utf-8")
    row = {
        "cells": len(cells),
        "rows": len(metrics),
        "wall-clock s": rounded(seconds),
        "CPU s": rounded(processor),
        "page, MiB": rounded(len(page.encode()) / 2**20),
        "memory, GiB": rounded(peak_mib() / 1024),
    }
    save(__file__, vars(options), [row])


if __name__ == "__main__":
    main()
