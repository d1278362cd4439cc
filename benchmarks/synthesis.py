"""Biased MNIST: factor rows and rendered pictures a second, and memory by number of pictures.

Random digits: what they look like does not change the cost.

    python benchmarks/synthesis.py --pictures 20000
"""

import argparse
import os
import platform
import time
import tracemalloc

import numpy as np

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
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores")
    rng = np.random.default_rng(0)
    p_bias = dict.fromkeys(VARIABLES, 0.7)
    digits = rng.integers(0, 10, ROWS)
    start = time.perf_counter()
    factors = draw_factors(digits, p_bias, "corrected", (0, 0))
    print(f"factors of {ROWS} rows: {time.perf_counter() - start:.3f} s")
    masks = rng.random((options.pictures, CELL, CELL)) < 0.2
    drawn = factors.iloc[: options.pictures].reset_index(drop=True)
    for canvas in (96, 48, 32, 24):
        seconds = []
        for _ in range(options.repeats + 1):  # the first makes the masks of shapes and textures
            start = time.perf_counter()
            render(masks, drawn, canvas=canvas)
            seconds.append(time.perf_counter() - start)
        rate = options.pictures / min(seconds[1:])
        print(f"{canvas} pixels: {rate:,.0f} pictures/s ({rate / PUBLISHED:.0f} x published)")
    for count in (options.pictures // 4, options.pictures):
        tracemalloc.start()
        render(masks[:count], drawn.iloc[:count])
        result, peak = count * 3 * 96 * 96, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"{count} pictures: {(peak - result) / 2**20:.0f} MiB beside the result itself")


if __name__ == "__main__":
    main()
