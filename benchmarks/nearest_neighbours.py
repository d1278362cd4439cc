"""1-NN distance of one set to another against brute force, and memory beside both.

Peers are scikit-learn and, where it is installed (``faiss-cpu``, which the project does not need),
the flat index of faiss. All get the same rows: pixels as uint8 for ours and as float32 in [0, 1]
for the peers, then float32 numbers for all. Times are CPU times of one thread, medians of rounds in
turn; a ratio above 1 says that ours is faster. Memory is the peak of the whole process, libraries
and rows included.

    python benchmarks/nearest_neighbours.py
"""

import argparse
import statistics
import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import torch
from _results import peak_mib, rounded, save
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from robust_fairness.bench.maths.nearest_neighbours import nearest_distances


def seconds(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    """Processor seconds of a call, and what it returns."""
    start = time.process_time()
    returned = work()
    return time.process_time() - start, returned


def brute_force(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """What scikit-learn finds."""
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(others)
    return search.kneighbors(rows)[0][:, 0]


def flat_index(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """What faiss finds."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(others.shape[1])
    index.add(others)
    return np.sqrt(index.search(rows, 1)[0][:, 0])


PEERS = {"scikit-learn": brute_force} | ({"faiss": flat_index} if find_spec("faiss") else {})


def main() -> None:
    """Print both times, their ratio, the largest relative difference and the memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--others", type=int, default=10_000, help="training rows")
    parser.add_argument("--rows", type=int, default=2_000, help="test rows")
    parser.add_argument("--columns", type=int, default=3_072)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    rng = np.random.default_rng(0)
    pixels = [
        rng.integers(0, 256, (count, options.columns), dtype=np.uint8)
        for count in (options.rows, options.others)
    ]
    started = peak_mib()
    nearest_distances(*pixels)
    print(f"memory with the rows {started:,.0f} MiB, peak of ours {peak_mib():,.0f} MiB")
    numbers = [array.astype(np.float32) / 255 for array in pixels]
    with threadpool_limits(1):
        for kind, arrays in (("uint8 pixels", pixels), ("float32 numbers", numbers)):
            rounds = []
            for _ in range(options.repeats):
                # in turn, so that all meet the same load
                ours, distances = seconds(lambda arrays=arrays: nearest_distances(*arrays))
                peers = {
                    name: seconds(lambda peer=peer: peer(*numbers)) for name, peer in PEERS.items()
                }
                rounds.append({"s": ours} | {name: spent for name, (spent, _) in peers.items()})
            row = {"rows of": kind, "s": rounded(statistics.median(times["s"] for times in rounds))}
            for name, (_, expected) in peers.items():
                ratios = [times[name] / times["s"] for times in rounds]
                row |= {
                    f"{name}, s": rounded(statistics.median(times[name] for times in rounds)),
                    f"{name} / ours": rounded(statistics.median(ratios)),
                    f"{name} / ours, lowest": rounded(min(ratios)),
                    f"{name}, largest relative difference": rounded(
                        np.abs(distances / expected - 1).max(), 2
                    ),
                }
            rows.append(row)
    save(__file__, vars(options), rows)


if __name__ == "__main__":
    main()
