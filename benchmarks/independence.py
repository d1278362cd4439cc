"""Type-I error and power of permutation tests of equalised odds, by simulation.

A prediction depends on an attribute given a binary outcome, or does not. Every test permutes rows
within the outcomes and differs in its statistic only: FairCOCCO's score, the sum of n HSIC over the
outcomes, that of KCI (Zhang et al. 2011, kernels of the prediction and of attribute and outcome,
centred within the outcomes), and the larger difference of both groups' positive rates.

    python benchmarks/independence.py --draws 200
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from robust_fairness.bench.maths.cross_covariance import kernel_features, pivots, variable
from robust_fairness.bench.maths.permutation import hsic_test, permutation_test, permutations_within

TABLE = Path(__file__).resolve().parents[1] / "docs" / "tables" / "independence.csv"
LEVEL, PERMUTATIONS = 0.05, 199
SIZES = ((150, 0.5), (400, 0.35))  # rows and strength of the dependence
WITHOUT = 5  # times as many draws without dependence
KINDS = ("binary, shifted", "binary, shifted in a class", "binary, wider", "number", "its square")


def problem(
    kind: str, rows: int, strength: float, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Prediction, attribute and outcome ``[n]``."""
    rng = np.random.default_rng(seed)
    y, noise = rng.integers(0, 2, rows), rng.normal(size=rows)
    score = 1.5 * (2 * y - 1)
    if kind.startswith("binary"):
        a = (rng.random(rows) < np.where(y, 0.35, 0.6)).astype(float)
        if kind == "binary, wider":
            noise *= 1 + a * strength
        else:
            alone = kind == "binary, shifted in a class"
            score += strength * (a - 0.5) * (1.5 * y if alone else 1)
    else:
        own = rng.normal(size=rows)
        a = own + 0.5 * y
        score += 0.5 * strength * (own if kind == "number" else own**2 - 1)
    return 1 / (1 + np.exp(-score - noise)), a, y


def p_values(p: np.ndarray, a: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Of every test."""
    columns = [torch.from_numpy(x[:, None]) for x in (p, a)]
    outcome = torch.eye(2, dtype=torch.float64)[torch.from_numpy(y)]
    prediction, attribute = map(variable, columns)
    joint = variable(columns[1], outcome)
    result = {
        "FairCOCCO": permutation_test([prediction, joint, variable(outcome)], y, PERMUTATIONS),
        "HSIC in classes": hsic_test([prediction, attribute], y, PERMUTATIONS),
    }
    drawn = permutations_within(y, PERMUTATIONS, np.random.default_rng(0))
    order = np.vstack([np.arange(len(y)), drawn])
    first, second = (kernel_features(v, pivots(v)) for v in (prediction, joint))
    for number in (0, 1):
        for features in (first, second):
            features[y == number] -= features[y == number].mean(0)
    moved = first[order.T.ravel()].view(len(y), -1)
    statistic = (second.mT @ moved).square().sum(0).view(len(order), -1).sum(1).numpy()
    result["KCI"] = float((statistic >= statistic[0] * (1 - 1e-12)).mean())
    if set(a) == {0.0, 1.0}:
        positive, group = p > 0.5, a[order]
        gaps = []
        for number in (0, 1):
            rates = [
                ((positive & (y == number)) * member).sum(1) / ((y == number) * member).sum(1)
                for member in (group, 1 - group)
            ]
            gaps.append(np.abs(rates[0] - rates[1]))
        largest = np.maximum(*gaps)
        result["largest gap"] = float((largest >= largest[0] - 1e-12).mean())
    return result


def rejections(draws: int) -> Iterator[dict[str, object]]:
    """Share of draws that each test rejects."""
    independent = [(kind, 150, 0.0) for kind in ("binary, shifted", "number")]
    dependent = [(kind, *size) for kind in KINDS for size in SIZES]
    first = 1_000_000
    for kind, rows, strength in (*independent, *dependent):
        seeds = range(first, first + draws * (1 if strength else WITHOUT))
        first = seeds.stop
        tests = pd.DataFrame([p_values(*problem(kind, rows, strength, seed)) for seed in seeds])
        shares = tests.le(LEVEL).mean().where(tests.notna().any())
        named = {"attribute": kind if strength else f"{kind.partition(',')[0]}, independent"}
        yield {**named, "rows": rows, "strength": strength, **shares.round(3)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draws", type=int, default=200)
    torch.set_num_threads(1)
    table = pd.DataFrame(rejections(parser.parse_args().draws))
    table.to_csv(TABLE, index=False)
    print(table.to_string())
