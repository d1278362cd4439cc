"""Metrics: pure functions of arrays, found by their name.

A metric is any function of this room under the decorator ``@metric``; its arguments name the
arrays that it needs, and it returns a ``Score`` or one for each group. Kernels and curvature are
functions on tensors over leading axes, which training uses as well.
"""

from robust_fairness.metrics.base import (
    NOT_APPLICABLE,
    Metric,
    Score,
    evaluate,
    find_metric,
    metric,
    metric_names,
)

__all__ = [
    "NOT_APPLICABLE",
    "Metric",
    "Score",
    "evaluate",
    "find_metric",
    "metric",
    "metric_names",
]
