"""How far two domains differ in their features, and the weights that make them comparable."""

from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

FOLDS = 5
LITTLE_OVERLAP = 0.95  # AUC above which a shared distribution rests on few rows
FEWEST_EFFECTIVE = 0.1  # of the rows


@dataclass(frozen=True)
class Overlap:
    """Two domains seen by a classifier that tells them apart.

    Attributes:
        auc: area under its ROC curve on rows that it was not fitted on; 0.5 if they are alike.
        home: weights of the rows at home ``[n]`` for the shared distribution, with sum 1.
        away: weights of the rows elsewhere ``[m]``, with sum 1.
    """

    auc: float
    home: np.ndarray
    away: np.ndarray

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


def domain_probabilities(
    x: np.ndarray, elsewhere: np.ndarray, units: np.ndarray | None = None, seed: int = 0
) -> np.ndarray:
    """Probabilities of being elsewhere, of classifiers fitted without the row and its unit.

    Boosted trees, which need no scaling and see interactions, cross-fitted in five folds.

    Args:
        x: features of the rows of both domains, float ``[n, d]``.
        elsewhere: whether a row is of the other domain, bool ``[n]``.
        units: rows of the same unit are in one fold, ``[n]``; every row on its own if None.
        seed: of the folds.
    """
    names, unit = np.unique(np.arange(len(x)) if units is None else units, return_inverse=True)
    fold = (np.random.default_rng(seed).permutation(len(names)) % FOLDS)[unit]
    found = np.empty(len(x))
    for left_out in (fold == number for number in range(FOLDS)):
        model = _classifier().fit(x[~left_out], elsewhere[~left_out])
        found[left_out] = model.predict_proba(x[left_out])[:, 1]
    return found


def _classifier() -> HistGradientBoostingClassifier:
    """Boosted trees of a fixed, small size."""
    return HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=15, early_stopping=False, random_state=0
    )


def overlap(
    home: np.ndarray,
    away: np.ndarray,
    units: tuple[np.ndarray, np.ndarray] | None = None,
    seed: int = 0,
) -> Overlap:
    r"""The shared distribution of two domains, :math:`s(x) \propto p(x) t(x) / (p(x) + t(x))`.

    With :math:`\pi(x)` the probability of being elsewhere and :math:`\alpha` the share of rows
    elsewhere, the weights are

    .. math:: w_P = \frac{\pi}{(1-\alpha) \pi + \alpha (1-\pi)}, \quad
        w_T = \frac{1-\pi}{(1-\alpha) \pi + \alpha (1-\pi)}

    Source: Cai, Namkoong and Yadlowsky, "Diagnosing Model Performance Under Distribution Shift"
    (2023, arXiv 2303.02011).

    Args:
        home: features at home ``[n, d]``, of rows that the model was not trained on.
        away: features elsewhere ``[m, d]``.
        units: units of the rows at home and elsewhere, see ``domain_probabilities``.
        seed: of the folds.
    """
    elsewhere = np.repeat([False, True], [len(home), len(away)])
    unit = None if units is None else np.unique(np.concatenate(units), return_inverse=True)[1]
    pi = domain_probabilities(np.concatenate([home, away]), elsewhere, unit, seed)
    alpha = elsewhere.mean()
    together = (1 - alpha) * pi + alpha * (1 - pi)
    w_home, w_away = (pi / together)[~elsewhere], ((1 - pi) / together)[elsewhere]
    auc = float(roc_auc_score(elsewhere, pi))
    return Overlap(auc, w_home / w_home.sum(), w_away / w_away.sum())


def two_sample_test(
    x: np.ndarray,
    elsewhere: np.ndarray,
    units: np.ndarray | None = None,
    permutations: int = 200,
    seed: int = 0,
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
    """
    generator = np.random.default_rng(seed)
    names, first, unit = np.unique(
        np.arange(len(x)) if units is None else units, return_index=True, return_inverse=True
    )
    half = generator.permutation(len(names)) % 2 == 0
    fitted = half[unit]
    model = _classifier().fit(x[fitted], elsewhere[fitted])
    score, tested = model.predict_proba(x[~fitted])[:, 1], unit[~fitted]
    where = elsewhere[first]
    observed = roc_auc_score(where[tested], score)
    others = np.flatnonzero(~half)
    as_large = 1
    for _ in range(permutations):
        shuffled = where.copy()
        shuffled[others] = generator.permutation(where[others])
        as_large += roc_auc_score(shuffled[tested], score) >= observed
    return float(observed), as_large / (permutations + 1)
