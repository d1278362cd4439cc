"""How far two domains differ in their features, and the weights that make them comparable."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

FOLDS = 5
MOST = 20_000  # rows of a domain that classifiers and trees are fitted on
FEWEST = 50  # rows of a domain, or of a group in it, for which classifiers are fitted
LITTLE_OVERLAP = 0.95  # AUC above which a shared distribution rests on few rows
FEWEST_EFFECTIVE = 0.1  # of the rows


@dataclass(frozen=True)
class Overlap:
    r"""Two domains seen by a classifier that tells them apart.

    With :math:`\pi(x)` the probability of being elsewhere and :math:`\alpha` the share of rows
    elsewhere, the weights of the shared distribution :math:`s(x) \propto p(x) t(x) / (p(x) + t(x))`
    are

    .. math:: w_P = \frac{\pi}{(1-\alpha) \pi + \alpha (1-\pi)}, \quad
        w_T = \frac{1-\pi}{(1-\alpha) \pi + \alpha (1-\pi)}

    Source: Cai, Namkoong and Yadlowsky, "Diagnosing Model Performance Under Distribution Shift"
    (2023, arXiv 2303.02011).

    Attributes:
        pi_home: probabilities of being elsewhere of the rows at home ``[n]``, by classifiers that
            were not fitted on them.
        pi_away: those of the rows elsewhere ``[m]``.
    """

    pi_home: np.ndarray
    pi_away: np.ndarray

    @cached_property
    def auc(self) -> float:
        """Area under the ROC curve of the classifier; 0.5 if the domains are alike."""
        sizes = [len(self.pi_home), len(self.pi_away)]
        pi = np.concatenate([self.pi_home, self.pi_away])
        return float(roc_auc_score(np.repeat([False, True], sizes), pi))

    @cached_property
    def home(self) -> np.ndarray:
        """Weights of the rows at home ``[n]``, with sum 1."""
        weights = self.pi_home / self._both(self.pi_home)
        return np.asarray(weights / weights.sum())

    @cached_property
    def away(self) -> np.ndarray:
        """Weights of the rows elsewhere ``[m]``, with sum 1."""
        weights = (1 - self.pi_away) / self._both(self.pi_away)
        return np.asarray(weights / weights.sum())

    def _both(self, pi: np.ndarray) -> np.ndarray:
        alpha = len(self.pi_away) / (len(self.pi_home) + len(self.pi_away))
        return np.asarray((1 - alpha) * pi + alpha * (1 - pi))

    def take(self, home: np.ndarray, away: np.ndarray) -> "Overlap":
        """The overlap of some rows by their numbers, such as those of a group.

        Where the group is a feature of the classifier, its probabilities are those within the
        group as well, whatever the shares of the groups.
        """
        return Overlap(self.pi_home[home], self.pi_away[away])

    @property
    def effective_rows(self) -> tuple[float, float]:
        """Effective sample sizes of both weights, 1 / sum of squares."""
        return float(1 / np.sum(self.home**2)), float(1 / np.sum(self.away**2))

    @property
    def little(self) -> bool:
        """Whether the domains share too little for a decomposition to say anything."""
        few = (
            size < FEWEST_EFFECTIVE * len(weights)
            for size, weights in zip(self.effective_rows, (self.home, self.away), strict=True)
        )
        return self.auc > LITTLE_OVERLAP or any(few)


def folds(number: int, rows: int, units: np.ndarray | None, seed: int = 0) -> np.ndarray:
    """The fold of each row ``[rows]``, from 0; rows of a unit are in one, if there are units."""
    names, unit = np.unique(np.arange(rows) if units is None else units, return_inverse=True)
    return np.asarray((np.random.default_rng(seed).permutation(len(names)) % number)[unit])


def _classifier(categorical: np.ndarray | None) -> HistGradientBoostingClassifier:
    """Boosted trees of a fixed, small size."""
    return HistGradientBoostingClassifier(
        max_iter=60,
        max_leaf_nodes=15,
        early_stopping=False,
        random_state=0,
        categorical_features=categorical,
    )


def overlap(
    home: np.ndarray,
    away: np.ndarray,
    units: tuple[np.ndarray, np.ndarray] | None = None,
    seed: int = 0,
    categorical: np.ndarray | None = None,
) -> Overlap:
    """Two domains, separated by boosted trees fitted without the row and its unit.

    They need no scaling and see interactions; they are cross-fitted in ``FOLDS`` folds.

    Args:
        home: features at home ``[n, d]``, of rows that the model was not trained on.
        away: features elsewhere ``[m, d]``.
        units: units of the rows at home and elsewhere.
        seed: of the folds.
        categorical: the features that are codes of categories.
    """
    x, elsewhere = np.concatenate([home, away]), np.repeat([False, True], [len(home), len(away)])
    fold = folds(FOLDS, len(x), None if units is None else np.concatenate(units), seed)
    pi = np.empty(len(x))
    for left_out in (fold == number for number in range(FOLDS)):
        model = _classifier(categorical).fit(x[~left_out], elsewhere[~left_out])
        pi[left_out] = model.predict_proba(x[left_out])[:, 1]
    return Overlap(pi[~elsewhere], pi[elsewhere])


def two_sample_test(
    x: np.ndarray,
    elsewhere: np.ndarray,
    units: np.ndarray | None = None,
    permutations: int = 200,
    seed: int = 0,
    categorical: np.ndarray | None = None,
) -> tuple[float, float]:
    """AUC of a domain classifier on rows that it was not fitted on, and its p-value.

    The classifier is fitted once, on half of the units; labels of the other half are permuted, by
    unit. Source: Lopez-Paz and Oquab, "Revisiting Classifier Two-Sample Tests" (ICLR 2017).

    Args:
        x: features of the rows of both domains, float ``[n, d]``.
        elsewhere: whether a row is of the other domain, bool ``[n]``; the same for all rows of a
            unit, or a unit counts as where its first row is.
        units: units ``[n]``; every row on its own if None.
        permutations: how many; no p-value is below ``1 / (permutations + 1)``.
        seed: of the halves and permutations.
        categorical: the features that are codes of categories, bool ``[d]``; none if None.
    """
    generator = np.random.default_rng(seed)
    names, first, unit = np.unique(
        np.arange(len(x)) if units is None else units, return_index=True, return_inverse=True
    )
    half = generator.permutation(len(names)) % 2 == 0
    fitted = half[unit]
    model = _classifier(categorical).fit(x[fitted], elsewhere[fitted])
    ranks = stats.rankdata(model.predict_proba(x[~fitted])[:, 1])
    # ranks and rows of each unit of the other half: all that the AUC needs of them
    others = np.flatnonzero(~half)
    tested = np.searchsorted(others, unit[~fitted])
    sums, rows = np.bincount(tested, ranks), np.bincount(tested)
    where = elsewhere[first][others]
    shuffled = np.array([where, *(generator.permutation(where) for _ in range(permutations))])
    away = shuffled @ rows
    auc = (shuffled @ sums - away * (away + 1) / 2) / (away * (len(ranks) - away))
    return float(auc[0]), float(np.mean(auc >= auc[0]))
