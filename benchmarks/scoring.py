"""Scoring: memory of a million rows, and the time of FairCOCCO's permutation tests.

Predictions, two attributes, one of them continuous, and a binary outcome depend on each other.
Memory is the peak of a process of its own, libraries included (Linux only). Times are CPU time of
one thread; of the tests the median of some.

    python benchmarks/scoring.py
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import product

import numpy as np
import pandas as pd
import torch
from _results import Row, peak_mib, rounded, save

from robust_fairness.core.samples import Samples
from robust_fairness.metrics import evaluate

SCORES = ("accuracy", "delta_dp", "delta_eo", "worst_group_accuracy", "faircocco_dp")
SCORES += ("faircocco_eo", "faircocco_cal")
ATTRIBUTES = ("sex", "age")  # categorical, continuous
TESTS = ("faircocco_dp_p_value", "faircocco_eo_p_value", "faircocco_cal_p_value")


def predicted(rows: int, sensitive: Sequence[str]) -> tuple[Samples, np.ndarray]:
    """Rows without inputs and their logits, float32 ``[n, 2]``."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, rows)
    sex = rng.integers(0, 2, rows)
    score = y + 0.5 * sex + rng.normal(size=rows)
    attributes = {
        "sex": pd.Categorical.from_codes(sex, ["f", "m"]),
        "age": (40 + 10 * rng.normal(size=rows) + 5 * y).astype(np.float32),
    }
    samples = Samples(
        x=np.empty((rows, 0), dtype=np.float32),
        y=y,
        attributes=pd.DataFrame(attributes)[list(sensitive)],
        id=np.arange(rows),
        splits=pd.DataFrame({"split_0": pd.Categorical.from_codes(np.zeros(rows, int), ["test"])}),
        classes=("no", "yes"),
        sensitive=tuple(sensitive),
    )
    return samples, np.column_stack([-score, score]).astype(np.float32)


def seconds(names: Sequence[str], rows: int, *sensitive: str) -> float:
    """CPU time of scoring that many rows by these attributes."""
    samples, outputs = predicted(rows, sensitive)
    start = time.process_time()
    evaluate(names, samples, outputs)
    return time.process_time() - start


def main() -> None:
    """Print what every set of metrics costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the scores")
    parser.add_argument("--tested", type=int, default=10_000, help="rows of the tests")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", action="store_true", help="of this process, after scoring")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.memory:
        print(peak_mib(), seconds(SCORES, options.rows, *ATTRIBUTES), peak_mib())
        return
    command = [sys.executable, __file__, "--memory", "--rows", str(options.rows)]
    printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    before, spent, most = map(float, printed.split())
    rows: list[Row] = [
        {
            "what": f"{len(SCORES)} metrics of {options.rows:,} rows",
            "CPU s": rounded(spent),
            "peak of the process, MiB": rounded(most),
            "of which libraries, MiB": rounded(before),
        }
    ]
    for name, attribute in product(TESTS, ATTRIBUTES):
        tested = [f"{name}(rows={options.tested})"]
        spent = [seconds(tested, options.tested, attribute) for _ in range(options.repeats)]
        what = f"{name} of {options.tested:,} rows, {attribute}"
        rows.append({"what": what, "CPU s": rounded(statistics.median(spent))})
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
