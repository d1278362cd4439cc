"""Features as the columns of their table, and which of them name a domain."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.tree import DecisionTreeClassifier

from robust_fairness.core.samples import Samples

MOST_LEVELS = 255  # of a column that the boosted trees take as a category
NAMES_DOMAIN = 0.9  # AUC from which a single column names the domain
LEAVES = 32


@dataclass(frozen=True)
class Columns:
    """Columns of some rows.

    Attributes:
        values: numbers, or codes of categories, float32 ``[n, columns]``.
        names: what they are called.
        categorical: which of them are categories, bool ``[columns]``.
    """

    values: np.ndarray
    names: tuple[str, ...]
    categorical: np.ndarray

    @classmethod
    def of(cls, samples: Samples) -> "Columns":
        """The columns of samples whose features are numbers; one-hot features are one column."""
        x = np.asarray(samples.x, dtype=np.float32)
        names = samples.columns or samples.features or tuple(map(str, range(x.shape[1])))
        places = pd.Series(np.arange(len(names))).groupby(list(names), sort=False)
        parts = {str(name): part.to_numpy() for name, part in places}
        values = [
            x[:, part[0]] if len(part) == 1 else x[:, part].argmax(1) for part in parts.values()
        ]
        levels = np.array([len(part) for part in parts.values()])
        return cls(
            np.column_stack(values).astype(np.float32),
            tuple(parts),
            (levels > 1) & (levels <= MOST_LEVELS),
        )

    def take(self, rows: np.ndarray) -> "Columns":
        """The columns of some rows."""
        return replace(self, values=self.values[rows])

    def without(self, names: tuple[str, ...]) -> "Columns":
        """The columns but those of some names."""
        kept = ~np.isin(self.names, names)
        left = tuple(name for name in self.names if name not in names)
        return Columns(self.values[:, kept], left, self.categorical[kept])

    def joined(self, others: dict[str, np.ndarray], categories: bool = True) -> "Columns":
        """These columns and further ones, numbers or codes of categories ``[n]``, by name."""
        return Columns(
            np.column_stack([self.values, *others.values()]).astype(np.float32),
            (*self.names, *others),
            np.append(self.categorical, np.full(len(others), categories)),
        )


def folds(number: int, rows: int, units: np.ndarray | None) -> np.ndarray:
    """The fold of each row ``[rows]``, from 0; rows of a unit are in one, if there are units."""
    names, unit = np.unique(np.arange(rows) if units is None else units, return_inverse=True)
    return np.asarray((np.random.default_rng(0).permutation(len(names)) % number)[unit])


def domain_columns(
    columns: Columns, elsewhere: np.ndarray, units: np.ndarray | None = None
) -> pd.Series:
    """How well each column alone tells two domains apart, the best first: AUC by name.

    A small tree is fitted on half of the units and scored on the other half; categories are ordered
    by their share elsewhere in the first half. From ``NAMES_DOMAIN`` on a column names the domain:
    no rows of the two domains can be compared, however alike they are otherwise.

    Args:
        columns: columns of the rows of both domains.
        elsewhere: whether a row is of the other domain, bool ``[n]``.
        units: rows of the same unit are in one half, ``[n]``; every row on its own if None.
    """
    fitted = folds(2, len(elsewhere), units) == 0
    aucs = {}
    for name, values, categorical in zip(
        columns.names, columns.values.T, columns.categorical, strict=True
    ):
        ordered = _by_share(values, elsewhere, fitted) if categorical else values
        tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, min_samples_leaf=5, random_state=0)
        tree.fit(ordered[fitted, None], elsewhere[fitted])
        score = tree.predict_proba(ordered[~fitted, None])[:, -1]
        aucs[name] = float(roc_auc_score(elsewhere[~fitted], score))
    return pd.Series(aucs, dtype=np.float64).sort_values(ascending=False, kind="stable")


def _by_share(codes: np.ndarray, elsewhere: np.ndarray, fitted: np.ndarray) -> np.ndarray:
    """The share elsewhere of the category of each row, in the rows that are fitted."""
    index = codes.astype(np.int64)
    counts = np.bincount(index[fitted], minlength=index.max() + 1)
    away = np.bincount(index[fitted], elsewhere[fitted], minlength=index.max() + 1)
    return ((away + elsewhere.mean()) / (counts + 1))[index]
