"""Exact Delta-ER of a whole test set against slower ways to the same number, as ratios.

python benchmarks/delta_er.py
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from _results import Row, rounded, save
from torch import Tensor

from robust_fairness.metrics.curvature import exact_curvature, power_iteration_curvature
from robust_fairness.metrics.kernels import BANDWIDTHS, blocked_group_mmd
from robust_fairness.models.losses import task_loss
from robust_fairness.models.randomness import Randomness
from robust_fairness.models.tables import mlp

NAIVE_BLOCK = 2048


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Median wall time."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def naive_mmd(values: Tensor, group: Tensor) -> float:
    """Eq. 7 with one exponential a width, each pair of groups for itself."""

    def mean(a: Tensor, b: Tensor) -> Tensor:
        total = values.new_zeros(())
        for rows in a.split(NAIVE_BLOCK):
            square = (rows[:, None] - b[None]).square()
            for width in BANDWIDTHS:
                total += torch.exp(-square / (2 * width**2)).sum()
        return total / (len(a) * len(b))

    p, q = values[group == 0], values[group == 1]
    return float(mean(p, p) - 2 * mean(p, q) + mean(q, q))


def iterate(model: torch.nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Curvature by converged power iteration on Hessian-vector products."""
    return power_iteration_curvature(lambda z: task_loss(model(z), y), x)


def main() -> None:
    """Print times and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=18842)
    parser.add_argument("--features", type=int, default=108)
    parser.add_argument("--sample", type=int, default=512, help="rows of the power iteration")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    torch.manual_seed(0)
    model = mlp.Mlp(mlp.Mlp.Parameters(), (options.features,), 2, Randomness([0], "weights"))
    x = torch.randn(1, options.rows, options.features)
    y = torch.randint(2, (1, options.rows))
    exact = seconds(lambda: exact_curvature(model, x), options.repeats)
    rows = []
    for name, at_once in (("all rows at once", options.sample), ("row by row", 1)):
        blocks = list(
            zip(
                x[:, : options.sample].split(at_once, 1),
                y[:, : options.sample].split(at_once, 1),
                strict=True,
            )
        )
        blocks = blocks[:32]
        iterated_rows = at_once * len(blocks)
        iterated = seconds(lambda blocks=blocks: [iterate(model, *block) for block in blocks], 1)
        iterated *= options.rows / iterated_rows
        rows.append(row("curvature in closed form", exact, f"power iteration, {name}", iterated))
    values = torch.randn(options.rows, dtype=torch.float64).exp()
    group = (torch.rand(options.rows) < 1 / 3).long()
    blocked = seconds(lambda: blocked_group_mmd(values, group, 2), options.repeats)
    naive = seconds(lambda: naive_mmd(values, group), 1)
    rows.append(row("squared MMD", blocked, "five exponentials per pair", naive))
    save(__file__, vars(options), rows)


def row(ours: str, own: float, against: str, other: float) -> Row:
    """A comparison of two times."""
    return {
        "what": ours,
        "CPU s": rounded(own),
        "against": against,
        "its CPU s": rounded(other),
        "ratio": rounded(other / own),
    }


if __name__ == "__main__":
    main()
