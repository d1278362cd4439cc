r"""Shrunken rates of many small groups: empirical Bayes with the beta-binomial model.

Of group a with :math:`n_a` rows, :math:`k_a \sim Binomial(n_a, r_a)` are counted, and
:math:`r_a \sim Beta(\alpha, \beta)`. The prior maximises the marginal likelihood

.. math:: \prod_a B(k_a + \alpha, n_a - k_a + \beta) / B(\alpha, \beta)

and the posterior of a group is :math:`Beta(k_a + \alpha, n_a - k_a + \beta)`. The largest
difference of raw rates of small groups is far too large on average. Source: Morris, "Parametric
Empirical Bayes Inference: Theory and Applications", JASA 78, 1983.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats
from scipy.special import betaln

from robust_fairness.core.intervals import CONFIDENCE

FEWEST = 5  # groups; a prior of fewer is arbitrary
STRONGEST = 1e4  # rows that a prior counts for at most: without any variance between groups


@dataclass(frozen=True)
class Shrunken:
    """Posterior means with their 95 % intervals, float64 ``[groups]`` each, and the prior.

    Intervals do not contain the uncertainty of the prior.
    """

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    alpha: float
    beta: float

    @property
    def difference(self) -> float:
        """Largest difference of two groups."""
        return float(np.ptp(self.mean))


def shrunken(hits: np.ndarray, rows: np.ndarray) -> Shrunken | None:
    """Shrunken proportions ``hits / rows`` of groups ``[groups]``.

    None for fewer than ``FEWEST`` groups with rows. A group without rows has the mean of the prior.
    """
    if (rows > 0).sum() < FEWEST:
        return None
    alpha, beta = _prior(hits, rows)
    posterior = stats.beta(hits + alpha, rows - hits + beta)
    low, high = posterior.interval(CONFIDENCE)
    return Shrunken(posterior.mean(), low, high, alpha, beta)


def shrunken_rates(counts: np.ndarray) -> dict[str, Shrunken]:
    """Shrunken rates of groups by name of the metric; none of fewer than ``FEWEST`` groups.

    Args:
        counts: rows by group, class and predicted class, int64 ``[groups, 2, 2]``.
    """
    of_class, predicted = counts.sum(2), counts.sum(1)
    shares = {
        "accuracy_by_group": (counts[:, 0, 0] + counts[:, 1, 1], counts.sum((1, 2))),
        "selection_rate_by_group": (predicted[:, 1], counts.sum((1, 2))),
        "true_positive_rate_by_group": (counts[:, 1, 1], of_class[:, 1]),
        "false_positive_rate_by_group": (counts[:, 0, 1], of_class[:, 0]),
    }
    found = {name: shrunken(*share) for name, share in shares.items()}
    return {name: one for name, one in found.items() if one is not None}


def _prior(hits: np.ndarray, rows: np.ndarray) -> tuple[float, float]:
    """Parameters of largest marginal likelihood; their sum is at most ``STRONGEST``."""

    def loss(logs: np.ndarray) -> float:
        mean, strength = 1 / (1 + np.exp(-logs[0])), np.exp(logs[1])
        alpha, beta = mean * strength, (1 - mean) * strength
        return float(np.sum(betaln(alpha, beta) - betaln(hits + alpha, rows - hits + beta)))

    pooled = (hits.sum() + 0.5) / (rows.sum() + 1)
    start = [np.log(pooled / (1 - pooled)), np.log(10.0)]
    bounds = [(-10.0, 10.0), (np.log(0.01), np.log(STRONGEST))]
    found = optimize.minimize(loss, start, bounds=bounds, method="L-BFGS-B").x
    mean, strength = 1 / (1 + np.exp(-found[0])), np.exp(found[1])
    return float(mean * strength), float((1 - mean) * strength)
