"""A first run on a table of one's own: what ``init`` drafts, three methods and five seeds.

A made-up table of numbers and categories, whose outcome leans on them and on the group, is drafted
and run by two workers with one thread each. CPU time includes start, scores and report; with two
cores of their own both workers need half of it. Memory is the largest process's. The same with an
early stop shows what ``patience`` saves and changes: means over seeds and methods, and the standard
deviation between seeds.

    python benchmarks/own_table.py --rows 60000 --patience 0 3
"""

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from _results import Row, cpu_seconds, rounded, save

COMMAND = [sys.executable, "-m", "robust_fairness"]
RUN = [*COMMAND, "run", "--datasets=people"]
WORKERS = ["--runner=robust_fairness.runs.runners.DaskRunner", "--runner-params=workers=2"]
SCORES = {"accuracy": "accuracy, %", "equalized_odds_difference": "gap, points"}
INIT = ["init", "people.csv", "--target=paid", "--sensitive=sex", "--domain=none", "--unit=none"]


def people(rows: int) -> pd.DataFrame:
    """Eight numbers, four categories, sex and a binary outcome."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"number_{k}": rng.normal(size=rows).round(3) for k in range(8)})
    for k, levels in enumerate((4, 6, 10, 20)):
        table[f"category_{k}"] = np.char.add("level ", rng.integers(0, levels, rows).astype(str))
    woman = rng.random(rows) < 0.4
    score = table["number_0"] + 0.5 * table["number_1"] * (table["category_0"] == "level 1")
    score += 0.6 * ~woman + rng.logistic(size=rows)
    return table.assign(sex=np.where(woman, "woman", "man"), paid=np.where(score > 0, "yes", "no"))


def measured(rows: int, patience: int) -> Row:
    """CPU time, wall-clock time, memory and scores of a run."""
    with TemporaryDirectory() as folder:
        people(rows).to_csv(Path(folder) / "people.csv", index=False)
        subprocess.run([*COMMAND, "new", "project"], cwd=folder, check=True)
        project = Path(folder, "project")
        Path(folder, "people.csv").rename(project / "people.csv")
        subprocess.run([*COMMAND, *INIT], cwd=project, check=True)
        for path in project.glob("conf/**/*.yml"):
            path.write_text(path.read_text().replace("epochs:", f"patience: {patience}, epochs:"))
        start = time.perf_counter()
        settings = {"OMP_NUM_THREADS": "1", "ROBUST_FAIRNESS_MLFLOW": "off"}
        spent = cpu_seconds([*RUN, *WORKERS], project, **settings)
        wall = time.perf_counter() - start
        (path,) = project.glob("data/08_reporting/metrics.parquet/*/*.parquet")
        scores = pd.read_parquet(path).query("shift == 'none' and group == ''")
    of_seeds = scores.groupby(["metric", "method"])["value"].agg(["mean", "std"])
    by_metric = 100 * of_seeds.groupby("metric").mean()
    return {
        "run": f"{rows:,} rows, 15 models, two workers, patience {patience}",
        "CPU s": rounded(spent),
        "on two cores of its own, at least s": rounded(spent / 2),
        "wall-clock s": rounded(wall),
        "peak of a process, MiB": rounded(
            resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        ),
        **{
            title: "{:.1f} ± {:.1f}".format(*by_metric.loc[metric])
            for metric, title in SCORES.items()
        },
    }


def main() -> None:
    """Print the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--patience", type=int, nargs="+", default=[0, 3])
    options = parser.parse_args()
    save(__file__, vars(options), [measured(options.rows, value) for value in options.patience])


if __name__ == "__main__":
    main()
