"""Rows that a repair is fitted on: their groups, their parts, their rates before and after."""

from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing

from robust_fairness.core.arrays import factorised
from robust_fairness.core.errors import InputError
from robust_fairness.numbers.groups import Groups, everyone, intersection
from robust_fairness.numbers.quantities import means_of_rows


@dataclass(frozen=True)
class Rows:
    """Rows with classes 0 and 1, groups and weights."""

    X: Any
    y: np.ndarray
    groups: Groups
    weight: np.ndarray

    def take(self, rows: np.ndarray) -> "Rows":
        """Some of them, by position."""
        X = _safe_indexing(self.X, rows)
        return Rows(X, self.y[rows], self.groups.take(rows), self.weight[rows])


def drawn(strata: np.ndarray, share: float, random: np.random.RandomState) -> np.ndarray:
    """Which rows are drawn, bool ``[n]``: a share of every stratum, at least one row of two."""
    order = random.permutation(len(strata))
    order = order[np.argsort(strata[order], kind="stable")]
    counts = np.bincount(strata)
    rank = np.arange(len(strata)) - np.repeat(counts.cumsum() - counts, counts)
    number = np.clip(np.round(share * counts), 1, np.maximum(counts - 1, 0))
    result = np.zeros(len(strata), dtype=bool)
    result[order] = rank < np.repeat(number, counts)
    return result


def groups_by_text(frame: pd.DataFrame) -> Groups:
    """Groups of rows by columns: every combination of values that occurs, none missing.

    A number has the same text whatever its type: 1 and 1.0 are one value.
    """
    parts = []
    for name, column in frame.items():
        codes, values = factorised(str(name), column)
        texts = [
            str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
            for value in values.tolist()
        ]
        if len({*texts}) < len(texts):
            raise InputError(f"{name}: different labels have the same text, such as 1 and '1'")
        order = np.argsort(texts)
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        parts.append(Groups.named(place[codes], [texts[code] for code in order]))
    return intersection(parts)


def rates_of_both(
    rows: Rows, before: np.ndarray, after: np.ndarray
) -> list[tuple[str, str, float, float]]:
    """Metric, group ("" for all) and values of two decisions, probabilities of class 1 ``[n]``."""
    result: list[tuple[str, str, float, float]] = []
    for name, label, groups in (
        ("accuracy", None, everyone(len(rows.y))),
        ("selection_rate", None, rows.groups),
        ("true_positive_rate", 1, rows.groups),
        ("false_positive_rate", 0, rows.groups),
    ):
        of = slice(None) if label is None else rows.y == label
        values = [
            means_of_rows(
                groups.index[of],
                (np.where(rows.y == 1, p, 1 - p) if name == "accuracy" else p)[of],
                len(groups.values), rows.weight[of],
            ).value.tolist()
            for p in (before, after)
        ]  # fmt: skip
        result += zip(repeat(name), groups.names, *values)
    return result
