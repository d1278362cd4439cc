"""The region of features in which a score falls most between two domains."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.tree import DecisionTreeRegressor


@dataclass(frozen=True)
class Scored:
    """Rows of a domain.

    Attributes:
        x: features ``[n, d]``.
        score: a score of every row, such as whether it is right or positive, ``[n]``.
        weights: weights of the shared distribution ``[n]``, of ``overlap``.
    """

    x: np.ndarray
    score: np.ndarray
    weights: np.ndarray

    def take(self, rows: np.ndarray) -> "Scored":
        return Scored(self.x[rows], self.score[rows], self.weights[rows])


def regions(
    home: Scored, away: Scored, features: Sequence[str], depth: int = 3, seed: int = 0
) -> pd.DataFrame:
    """Leaves of a shallow tree of the change of a score, the largest change first.

    On half of the rows the score given X is fitted in each domain, with the weights of the shared
    distribution, and a tree is grown on the difference; the other half gives the numbers, so that
    a region that was found by chance shows no change. After Liu et al., "On the Need for a Language
    Describing Distribution Shifts" (2023, arXiv 2307.05284), Algorithm 1.

    Args:
        home: rows at home.
        away: rows elsewhere.
        features: names of the features.
        depth: greatest depth of the tree, thus number of conditions.
        seed: of the halves.

    Returns:
        Columns conditions, at_home, elsewhere, change, rows_home, rows_away.
    """
    generator = np.random.default_rng(seed)
    halves = [generator.permutation(len(one.x)) % 2 == 0 for one in (home, away)]
    grown = [one.take(half) for one, half in zip((home, away), halves, strict=True)]
    left = [one.take(~half) for one, half in zip((home, away), halves, strict=True)]
    both = np.concatenate([one.x for one in grown])
    change = _fitted(grown[1]).predict(both) - _fitted(grown[0]).predict(both)
    weights = np.concatenate([one.weights for one in grown])
    tree = DecisionTreeRegressor(
        max_depth=depth, min_samples_leaf=max(20, len(both) // 20), random_state=0
    )
    tree.fit(both, change, sample_weight=weights)
    leaves = [tree.apply(one.x) for one in left]
    rows = []
    for leaf, conditions in _conditions(tree, features).items():
        own = [one.score[at == leaf] for one, at in zip(left, leaves, strict=True)]
        at_home, elsewhere = (float(one.mean()) if len(one) else np.nan for one in own)
        rows.append(
            {
                "conditions": " and ".join(conditions) or "all rows",
                "at_home": at_home, "elsewhere": elsewhere, "change": elsewhere - at_home,
                "rows_home": len(own[0]), "rows_away": len(own[1]),
            }
        )  # fmt: skip
    return pd.DataFrame(rows).sort_values("change", key=np.abs, ascending=False, ignore_index=True)


def _fitted(rows: Scored) -> HistGradientBoostingRegressor:
    """The score given the features."""
    model = HistGradientBoostingRegressor(
        max_iter=60, max_leaf_nodes=15, early_stopping=False, random_state=0
    )
    return model.fit(rows.x, rows.score, sample_weight=rows.weights * len(rows.x))


def _conditions(tree: DecisionTreeRegressor, features: Sequence[str]) -> dict[int, list[str]]:
    """The conditions of every leaf."""
    nodes, found = tree.tree_, {}
    waiting: list[tuple[int, list[str]]] = [(0, [])]
    while waiting:
        node, conditions = waiting.pop()
        if nodes.children_left[node] < 0:
            found[int(node)] = conditions
            continue
        name, limit = features[nodes.feature[node]], nodes.threshold[node]
        waiting.append((nodes.children_left[node], [*conditions, f"{name} <= {limit:.4g}"]))
        waiting.append((nodes.children_right[node], [*conditions, f"{name} > {limit:.4g}"]))
    return found
