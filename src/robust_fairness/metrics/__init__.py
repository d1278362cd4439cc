"""Metrics: quantities, aggregations over groups, and named measures.

``find_metric("worst_group_accuracy")`` finds a metric by name, ``evaluate`` computes them for all
attributes of samples. The functions themselves are pure and in the modules of the package:
``classification.accuracy(y_true, y_pred)``, ``aggregations.difference(scores)``,
``fairness.equalized_odds_difference(y_true, y_pred, sensitive_features=sex)``.
"""

from robust_fairness.metrics.base import NotApplicable, Score, Undefined, measure, quantity
from robust_fairness.metrics.evaluation import evaluate
from robust_fairness.metrics.find import (
    Metric,
    all_metrics,
    find_metric,
    metric_names,
    parse_metrics,
)

__all__ = [
    "Metric",
    "NotApplicable",
    "Score",
    "Undefined",
    "all_metrics",
    "evaluate",
    "find_metric",
    "measure",
    "metric_names",
    "parse_metrics",
    "quantity",
]
