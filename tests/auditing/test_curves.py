"""Threshold curves against the metrics, and shrunken rates against golden numbers."""

import numpy as np
import pytest

from robust_fairness import metrics
from robust_fairness.auditing.curves import KEPT, curve
from robust_fairness.auditing.shrinkage import shrunken
from robust_fairness.samples import Groups

# reference/baselines_golden.json, small_groups: maximum likelihood and posterior of scipy
HITS, ROWS = np.array([3, 0, 12, 45, 7, 2, 30, 1]), np.array([8, 4, 20, 100, 25, 3, 50, 12])
PRIOR = (3.9697981781, 5.9050751357)
MEANS = [
    0.3899215427, 0.28611419278, 0.53455618072, 0.44568695919,
    0.31454732694, 0.46367820736, 0.5673464727, 0.22719208961,
]  # fmt: skip
FIRST = (0.1846420862, 0.61852126686)


def test_a_curve_has_the_metrics_at_every_threshold():
    """Three groups with ties between scores and thresholds, one row without a group."""
    rng = np.random.default_rng(0)
    y, group = rng.integers(0, 2, 600), rng.integers(0, 3, 600)
    score = np.round(np.clip(0.3 * y + rng.normal(0.1 * group, 0.3, 600), 0, 1), 2)
    index = np.where(np.arange(600) == 5, -1, group)
    found = curve(y, score, Groups(index, ("a", "b", "c")))
    known = index >= 0
    for place in range(0, 101, 10):
        predicted = (score >= found.threshold[place]).astype(int)
        assert found.accuracy[place] == pytest.approx(np.mean(predicted == y))
        gap = metrics.equalized_odds_difference(
            y[known], predicted[known], sensitive_features=group[known]
        )
        assert found.gap[place] == pytest.approx(gap)
    allowed = found.accuracy >= KEPT * found.accuracy.max()
    assert found.gap[found.fairest] == found.gap[allowed].min()


def test_a_group_without_a_class_has_no_curve():
    y = np.array([0, 1, 1, 1])
    assert curve(y, np.linspace(0, 1, 4), Groups(np.array([0, 0, 1, 1]), ("a", "b"))) is None


def test_shrunken_rates_are_the_golden_ones():
    found = shrunken(HITS, ROWS)
    assert (found.alpha, found.beta) == pytest.approx(PRIOR, rel=1e-3)
    assert found.mean == pytest.approx(MEANS, abs=1e-5)
    assert (found.low[0], found.high[0]) == pytest.approx(FIRST, abs=1e-4)
    assert found.difference == pytest.approx(0.34015438309, abs=1e-5)


def test_groups_that_do_not_differ_get_the_pooled_rate():
    """The likelihood grows with the strength of the prior, which is capped."""
    found = shrunken(np.full(10, 30), np.full(10, 100))
    assert found.mean == pytest.approx(0.3, abs=1e-4)
    assert found.alpha + found.beta == pytest.approx(1e4)
    assert shrunken(HITS[:4], ROWS[:4]) is None
