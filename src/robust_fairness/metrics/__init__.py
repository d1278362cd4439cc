"""Metrics: quantities, aggregations over groups, and named measures.

``find_metric("worst_group_accuracy")`` finds a metric by name, ``evaluate`` computes them for all
attributes of samples. ``metrics.worst_group_accuracy(y_true, y_pred, sensitive_features=sex)``, and
so every other metric, is a function of arrays. The definitions are pure functions in the modules:
``classification.accuracy(y_true, y_pred)``, ``aggregations.difference(scores)``,
``fairness.equalized_odds_difference(y_true, y_pred, sensitive_features=sex)``.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from robust_fairness.core.errors import InputError
from robust_fairness.metrics.base import (
    NotApplicable,
    RowValues,
    Score,
    Undefined,
    measure,
    quantity,
)
from robust_fairness.metrics.evaluation import count, evaluate
from robust_fairness.metrics.find import (
    Metric,
    all_metrics,
    find_metric,
    metric_names,
    parse_metrics,
)
from robust_fairness.metrics.functions import Value, metric_function
from robust_fairness.metrics.gaps import Gap, gap

__all__ = [
    "Gap",
    "Metric",
    "NotApplicable",
    "RowValues",
    "Score",
    "Undefined",
    "all_metrics",
    "count",
    "evaluate",
    "find_metric",
    "gap",
    "measure",
    "metric_function",
    "metric_names",
    "parse_metrics",
    "quantity",
]


def __dir__() -> list[str]:
    return sorted([*__all__, *(metric.name for metric in all_metrics())])


def __getattr__(name: str) -> Callable[..., Value]:
    """Every metric without options as a function of arrays, see ``metric_function``."""
    if name[:1] == "_":
        raise AttributeError(name)
    try:
        return metric_function(name)
    except InputError as error:
        raise AttributeError(str(error)) from None


with suppress(FileNotFoundError):  # an incomplete installation
    __doc__ = f"{__doc__}\n{Path(__file__).with_suffix('.pyi').read_text(encoding='utf-8')}"
