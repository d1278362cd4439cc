"""Shares of classes and groups in two domains, and whether other shares explain a change."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from robust_fairness.numbers.estimate import LEVEL


@dataclass(frozen=True)
class Change:
    """A share at home and in the domain.

    Attributes:
        at_home: the share at home.
        away: the share in the domain.
        error: standard error of the difference.
    """

    at_home: float
    away: float
    error: float

    @property
    def change(self) -> float:
        return self.away - self.at_home

    @property
    def interval(self) -> tuple[float, float]:
        """Ends of the normal 95 % interval of the change."""
        half = float(special.ndtri(1 - LEVEL / 2)) * self.error
        return self.change - half, self.change + half

    @property
    def p(self) -> float:
        """P-value of no change; missing where the share does not vary in either domain."""
        return float(2 * special.ndtr(-abs(self.change) / self.error)) if self.error else np.nan


def share_change(
    home: np.ndarray,
    away: np.ndarray,
    units: tuple[np.ndarray, np.ndarray] | None = None,
    weights: tuple[np.ndarray, np.ndarray] | None = None,
) -> Change:
    """The change of a share between independent samples, whose units may have several rows.

    The standard error of a mean is that of sums over units of the rows' differences from it, the
    cluster-robust one; with a row per unit it is the usual one.

    Args:
        home: whether each row at home is of the class or group, bool ``[n]``.
        away: the same of the rows elsewhere ``[m]``.
        units: units of the rows; every row on its own if None.
        weights: weights of the rows; equal ones if None.
    """
    samples = (home, away)
    of_units = units or tuple(np.arange(len(values)) for values in samples)
    of_rows = weights or tuple(np.ones(len(values)) for values in samples)
    shares, errors = [], []
    for values, unit, weight in zip(samples, of_units, of_rows, strict=True):
        share = float(np.average(values, weights=weight))
        sums = np.bincount(np.unique(unit, return_inverse=True)[1], weight * (values - share))
        variance = len(sums) / max(1, len(sums) - 1) * np.sum(sums**2)
        shares.append(share)
        errors.append(np.sqrt(variance) / weight.sum())
    return Change(shares[0], shares[1], float(np.hypot(*errors)))


def estimated_shares(
    predicted: np.ndarray, label: np.ndarray, predicted_away: np.ndarray, classes: int
) -> np.ndarray:
    r"""Shares of the classes elsewhere, estimated without labels of there, ``[classes]``.

    With the confusion :math:`C_{ij} = P(f = i, Y = j)` at home and :math:`\mu_i = P(f = i)`
    elsewhere, :math:`C w = \mu` has the weights :math:`w_j = P_T(j) / P_P(j)`, if the features of a
    class are the same in both domains. If the estimate is far from the true shares, they are not:
    the shift is no label shift. Negative weights are set to 0. Source: Lipton, Wang and Smola,
    "Detecting and Correcting for Label Shift with Black Box Predictors" (ICML 2018), black box
    shift estimation.

    Args:
        predicted: predicted classes at home ``[n]``.
        label: classes at home ``[n]``.
        predicted_away: predicted classes elsewhere ``[m]``.
        classes: number of classes.

    Returns:
        The shares, missing where the confusion matrix is singular.
    """
    confusion = np.zeros((classes, classes))
    np.add.at(confusion, (predicted, label), 1 / len(label))
    if np.linalg.matrix_rank(confusion) < classes:
        return np.full(classes, np.nan)
    away = np.bincount(predicted_away, minlength=classes) / len(predicted_away)
    shares = np.maximum(np.linalg.solve(confusion, away), 0) * confusion.sum(0)
    return shares / shares.sum()
