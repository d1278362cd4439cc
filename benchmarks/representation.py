"""Time and memory of the metrics of an embedding, beside pytorch-metric-learning's calculator.

Ours are recall@1, NMI, U_KL and both alignments, overall and for every group. The calculator has
precision at 1 (the same number as recall@1) and NMI, overall. Its default neighbours and clusters
need faiss; here it is given its own CustomKNN with cosine similarity in blocks, of several sizes,
and scikit-learn's k-means with random starts and as many steps as ours.

At 200,000 rows a whole run takes minutes: ``--memory-rows`` says of how many rows the peak memory
is measured, ``--slice`` how many of them are looked from (their neighbours are among all). Clusters
are measured over all rows for two steps.
"""

import argparse
import platform
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from pytorch_metric_learning.distances import CosineSimilarity
from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator
from pytorch_metric_learning.utils.inference import CustomKNN
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from robust_fairness.metrics import find_metric, representation
from robust_fairness.samples import Groups

BATCHES = (128, 256, 1024)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds of a call, and what it returns."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def peak() -> float:
    """Largest memory of the process until now, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def made(rows: int, columns: int, classes: int, groups: int) -> tuple[np.ndarray, ...]:
    """Unit vectors around a direction for each class, with classes and groups."""
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, classes, rows), rng.integers(0, groups, rows)
    x = rng.normal(size=(classes, columns)).astype(np.float32)[y] * np.float32(0.35)
    x += rng.standard_normal(x.shape, dtype=np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x, y, group


def ours(x: np.ndarray, y: np.ndarray, group: np.ndarray, groups: int) -> dict[str, float]:
    """Processor seconds of every piece."""
    names = tuple(f"group {number}" for number in range(groups))
    times = {}
    times["rank"], rank = seconds(lambda: representation.same_class_rank(x, y))
    times["clusters"], cluster = seconds(lambda: representation.clusters(x, len(np.unique(y))))
    arrays = {"embedding": x, "y_true": y, "same_class_rank": rank, "cluster": cluster}
    arrays |= {"sensitive_features": Groups(group, names)}
    for quantity in ("recall_at", "nmi", "u_kl", "positive_alignment", "negative_alignment"):
        for name in (quantity, f"{quantity}_by_group"):
            one = find_metric(name)
            times[name], scores = seconds(lambda one=one: one.scores(arrays))
            if name in ("recall_at", "nmi"):
                print(f"  ours {name}: {scores[''].value:.4f}")
    return times


def calculator(batch: int) -> AccuracyCalculator:
    """The library's, without faiss."""

    def k_means(query: torch.Tensor, clusters: int) -> torch.Tensor:
        steps = representation.ITERATIONS
        fitted = KMeans(clusters, init="random", n_init=1, max_iter=steps, tol=0, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.from_numpy(fitted.fit_predict(query.numpy()))

    return AccuracyCalculator(
        include=("precision_at_1", "NMI"),
        k=1,
        device=torch.device("cpu"),
        knn_func=CustomKNN(CosineSimilarity(), batch_size=batch),
        kmeans_func=k_means,
    )


def measure_memory(rows: int, looked_from: int, columns: int, classes: int) -> None:
    """Print the peak of every piece at many rows."""
    x, y, group = made(rows, columns, classes, 12)
    names = tuple(f"group {number}" for number in range(12))
    print(f"{rows:,} x {columns}, {x.nbytes / 2**20:,.0f} MiB; the process {peak():,.0f} MiB")
    start = time.process_time()
    arrays = {"embedding": x, "y_true": y, "sensitive_features": Groups(group, names)}
    for quantity in ("u_kl", "positive_alignment", "negative_alignment"):
        find_metric(f"{quantity}_by_group").scores(arrays)
    spent = time.process_time() - start
    print(f"  U_KL and alignments of 12 groups: {spent:.1f} s, peak {peak():,.0f} MiB")
    steps = representation.ITERATIONS
    representation.ITERATIONS = 2
    spent, _ = seconds(lambda: representation.clusters(x, classes))
    representation.ITERATIONS = steps
    print(f"  two steps of k-means, {classes:,} clusters: {spent:.1f} s, peak {peak():,.0f} MiB")
    blocks = representation._block_pairs
    wanted = max(1, looked_from // representation.ROWS)

    def first_blocks(count: int) -> Any:
        return ((a, b) for a, b in blocks(count) if a.start < wanted * representation.ROWS)

    representation._block_pairs = first_blocks
    spent, _ = seconds(lambda: representation.same_class_rank(x, y))
    representation._block_pairs = blocks
    share = sum(1 for _ in first_blocks(rows)) / sum(1 for _ in blocks(rows))
    print(
        f"  ranks, {share:.1%} of the pairs of blocks: {spent:.1f} s (all: about "
        f"{spent / share:,.0f} s), peak {peak():,.0f} MiB"
    )


def main() -> None:
    """Print times of both and the memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--classes", type=int, default=200)
    parser.add_argument("--groups", type=int, default=12)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory-rows", type=int, default=200_000, help="0 for none")
    parser.add_argument("--slice", type=int, default=4_096, help="rows that are looked from")
    options = parser.parse_args()
    torch.set_num_threads(1)
    x, y, group = made(options.rows, options.columns, options.classes, options.groups)
    print(
        f"{platform.processor() or platform.machine()}, torch {torch.__version__}, one thread, "
        f"{options.rows:,} x {options.columns}, {options.classes} classes, {options.groups} groups"
    )
    with threadpool_limits(1):
        own, theirs = [], []
        for _ in range(options.repeats):
            # in turn, so that both meet the same load
            own.append(ours(x, y, group, options.groups))
            for batch in BATCHES:
                one = calculator(batch)
                spent, found = seconds(
                    lambda one=one: one.get_accuracy(torch.from_numpy(x), torch.from_numpy(y))
                )
                theirs.append((spent, batch, found))
        fastest = min(own, key=lambda times: sum(times.values()))
        print("ours: " + ", ".join(f"{name} {spent:.2f}" for name, spent in fastest.items()))
        spent, batch, found = min(theirs, key=lambda one: one[0])
        print(f"  theirs: {found}")
        total = sum(fastest.values())
        print(
            f"all of ours {total:.2f} s; two of theirs, overall, {spent:.2f} s (blocks of {batch}, "
            f"the fastest of {', '.join(map(str, BATCHES))}); ratio {spent / total:.2f}"
        )
        if options.memory_rows:
            classes = options.memory_rows // 100
            measure_memory(options.memory_rows, options.slice, options.columns, classes)


if __name__ == "__main__":
    main()
