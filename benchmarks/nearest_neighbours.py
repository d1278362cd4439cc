"""1-NN distance of one set to another against scikit-learn's brute force, and memory beside both.

Both get the same rows: pixels as uint8 for ours and as float32 in [0, 1] for scikit-learn, then
float32 numbers for both. Times are of the process, one thread each, and the fastest of some; a
ratio above 1 says that ours is faster. Memory is the peak of the whole process, libraries and rows
included.

    python benchmarks/nearest_neighbours.py
"""

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np
import torch
from _results import rounded, save
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from robust_fairness.metrics.nearest_neighbours import nearest_distances


def seconds(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """Processor seconds of a call, and what it returns."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def brute_force(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """What scikit-learn finds."""
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(others)
    return search.kneighbors(rows)[0][:, 0]


def peak() -> float:
    """Largest memory of the process until now, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print both times, their ratio, the largest relative difference and the memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--others", type=int, default=10_000, help="training rows")
    parser.add_argument("--rows", type=int, default=2_000, help="test rows")
    parser.add_argument("--columns", type=int, default=3_072)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    rng = np.random.default_rng(0)
    pixels = [
        rng.integers(0, 256, (count, options.columns), dtype=np.uint8)
        for count in (options.rows, options.others)
    ]
    started = peak()
    nearest_distances(*pixels)
    print(f"memory with the rows {started:,.0f} MiB, peak of ours {peak():,.0f} MiB")
    numbers = [one.astype(np.float32) / 255 for one in pixels]
    with threadpool_limits(1):
        for kind, own in (("uint8 pixels", pixels), ("float32 numbers", numbers)):
            times: list[list[float]] = [[], []]
            for _ in range(options.repeats):
                # in turn, so that both meet the same load
                ours, found = seconds(lambda own=own: nearest_distances(*own))
                theirs, expected = seconds(lambda: brute_force(*numbers))
                times[0].append(ours)
                times[1].append(theirs)
            fastest, reference = (min(one) for one in times)
            difference = np.abs(found / expected - 1).max()
            rows.append(
                {
                    "rows of": kind,
                    "s": rounded(fastest),
                    "scikit-learn, s": rounded(reference),
                    "ratio": rounded(reference / fastest),
                    "largest relative difference": rounded(difference, 2),
                }
            )
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
