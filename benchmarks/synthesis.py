"""Biased MNIST: factor rows and rendered pictures a second, and memory by number of pictures.

Random digits: what they look like does not change the cost.

    python benchmarks/synthesis.py --pictures 20000
"""

import argparse
import time
import tracemalloc

import numpy as np
from _results import Row, rounded, save

from robust_fairness.datasets.images._biased_mnist_factors import VARIABLES, draw_factors
from robust_fairness.datasets.images._biased_mnist_rendering import CELL, render

PUBLISHED = 570  # pictures a second of the published generator on two cores, as measured once
ROWS = 70_000


def main() -> None:
    """Print rates of both steps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rows: list[Row] = []
    rng = np.random.default_rng(0)
    p_bias = dict.fromkeys(VARIABLES, 0.7)
    digits = rng.integers(0, 10, ROWS)
    start = time.process_time()
    factors = draw_factors(digits, p_bias, "corrected", (0, 0))
    rows.append(
        {"what": f"factors of {ROWS:,} rows", "CPU s": rounded(time.process_time() - start)}
    )
    masks = rng.random((options.pictures, CELL, CELL)) < 0.2
    drawn = factors.iloc[: options.pictures].reset_index(drop=True)
    for canvas in (96, 48, 32, 24):
        seconds = []
        for _ in range(options.repeats + 1):  # the first makes the masks of shapes and textures
            start = time.process_time()
            render(masks, drawn, canvas=canvas)
            seconds.append(time.process_time() - start)
        rate = options.pictures / min(seconds[1:])
        rows.append(
            {
                "what": f"images of {canvas} pixels",
                "images per CPU s": rounded(rate),
                "x published generator": rounded(rate / PUBLISHED, 2),
            }
        )
    for count in (options.pictures // 4, options.pictures):
        tracemalloc.start()
        render(masks[:count], drawn.iloc[:count])
        result, peak = count * 3 * 96 * 96, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows.append(
            {
                "what": f"{count:,} images of 96 pixels",
                "MiB beside the result": round((peak - result) / 2**20),
            }
        )
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
