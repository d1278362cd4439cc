"""The region of features in which a score falls most between two domains."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy import special
from sklearn.tree import DecisionTreeRegressor

from robust_fairness.numbers.estimate import LEVEL

LEAVES = 32  # of the tree of a score given the features
SMALLEST = 20  # rows of a leaf


@dataclass(frozen=True)
class ScoredDomain:
    """Rows of a domain, or of a group in it.

    Attributes:
        x: features ``[n, d]``.
        score: a score of every row, such as whether it is right or positive, ``[n]``.
        weights: weights of the shared distribution ``[n]``, of ``Overlap``.
        sign: -1 where the mean score is subtracted, as that of the first group in a gap.
    """

    x: np.ndarray
    score: np.ndarray
    weights: np.ndarray
    sign: int = 1

    def take(self, rows: np.ndarray) -> "ScoredDomain":
        return replace(self, x=self.x[rows], score=self.score[rows], weights=self.weights[rows])


def regions(
    home: Sequence[ScoredDomain],
    away: Sequence[ScoredDomain],
    features: Sequence[str],
    depth: int = 3,
    seed: int = 0,
) -> pd.DataFrame:
    """Leaves of a shallow tree of the change of a score or a gap, the largest change first.

    On half of the rows the scores given X are fitted, with the weights of the shared distribution,
    and a tree is grown on the difference; the other half gives the numbers, so that a region that
    was found by chance shows no change. After Liu et al., "On the Need for a Language Describing
    Distribution Shifts" (2023, arXiv 2307.05284), Algorithm 1.

    Args:
        home: rows at home; for a gap those of both groups, the first with sign -1.
        away: rows elsewhere.
        features: names of the features.
        depth: greatest depth of the tree, thus number of conditions.
        seed: of the halves.

    Returns:
        Columns conditions, at_home, away, change, low, high (normal intervals of the changes,
        which hold for all leaves together at 95 %, since the largest changes are shown; by
        Bonferroni), rows_home, rows_away. Missing where a group has no rows in the region.
    """
    generator = np.random.default_rng(seed)
    parts = [*home, *away]
    halves = [generator.permutation(len(part.x)) % 2 == 0 for part in parts]
    grown = [part.take(half) for part, half in zip(parts, halves, strict=True)]
    left = [part.take(~half) for part, half in zip(parts, halves, strict=True)]
    both = np.concatenate([part.x for part in grown])
    tree = _grown(grown, [-1] * len(home) + [1] * len(away), both, depth)
    leaves = [tree.apply(part.x) for part in left]
    by_leaf = _conditions(tree, both, features)
    critical = float(special.ndtri(1 - LEVEL / (2 * len(by_leaf))))
    rows = []
    for leaf, conditions in by_leaf.items():
        scores = [part.score[at == leaf] for part, at in zip(left, leaves, strict=True)]
        means = [
            part.sign * (float(score.mean()) if len(score) else np.nan)
            for part, score in zip(left, scores, strict=True)
        ]
        at_home, there = sum(means[: len(home)]), sum(means[len(home) :])
        variances = [
            float(score.var(ddof=1)) / len(score) if len(score) > 1 else np.nan for score in scores
        ]
        half = critical * np.sqrt(sum(variances))
        rows.append(
            {
                "conditions": " and ".join(conditions) or "all rows",
                "at_home": at_home,
                "away": there,
                "change": there - at_home,
                "low": there - at_home - half,
                "high": there - at_home + half,
                "rows_home": sum(map(len, scores[: len(home)])),
                "rows_away": sum(map(len, scores[len(home) :])),
            }
        )
    return pd.DataFrame(rows).sort_values("change", key=np.abs, ascending=False, ignore_index=True)


def _grown(
    parts: Sequence[ScoredDomain], directions: Sequence[int], x: np.ndarray, depth: int
) -> DecisionTreeRegressor:
    """A tree of the change of the fitted scores over all rows of the parts.

    The score of each part given the features is a tree, too: it takes a tenth of the time of
    boosted ones.
    """
    change = np.zeros(len(x))
    for direction, part in zip(directions, parts, strict=True):
        fitted = DecisionTreeRegressor(
            max_leaf_nodes=LEAVES, min_samples_leaf=SMALLEST, random_state=0
        )
        fitted.fit(part.x, part.score, sample_weight=part.weights)
        change += direction * part.sign * fitted.predict(x)
    weights = np.concatenate([part.weights for part in parts])
    smallest = max(SMALLEST, len(x) // 20)
    tree = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=smallest, random_state=0)
    return tree.fit(x, change, sample_weight=weights)


def _conditions(
    tree: DecisionTreeRegressor, x: np.ndarray, features: Sequence[str]
) -> dict[int, list[str]]:
    """The conditions of every leaf; a 0/1 feature is there, or ``not`` there."""
    nodes, by_leaf = tree.tree_, {}
    binary = ((x == 0) | (x == 1)).all(axis=0)
    waiting: list[tuple[int, list[str]]] = [(0, [])]
    while waiting:
        node, conditions = waiting.pop()
        if nodes.children_left[node] < 0:
            by_leaf[int(node)] = conditions
            continue
        place = nodes.feature[node]
        name, limit = features[place], f"{nodes.threshold[node]:.4g}"
        below, above = (
            (f"not {name}", name) if binary[place] else (f"{name} <= {limit}", f"{name} > {limit}")
        )
        waiting.append((nodes.children_left[node], [*conditions, below]))
        waiting.append((nodes.children_right[node], [*conditions, above]))
    return by_leaf
