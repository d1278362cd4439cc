"""Threshold curves against the metrics, for three groups with ties."""

import numpy as np
import pytest

from robust_fairness import metrics
from robust_fairness.auditing.curves import KEPT, curve
from robust_fairness.samples import Groups


@pytest.mark.parametrize("block", [7, 2**20])
def test_a_curve_has_the_metrics_at_every_threshold(block, monkeypatch):
    """Three groups with ties between scores and thresholds, one row without a group."""
    monkeypatch.setattr("robust_fairness.auditing.curves.BLOCK", block)
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
