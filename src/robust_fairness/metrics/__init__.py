"""Metrics: quantities, their forms over groups, and named measures.

``find_metric("worst_group_accuracy")`` finds a metric by name, ``evaluate`` computes them for all
attributes of samples. ``metrics.worst_group_accuracy(y_true, y_pred, sensitive_features=sex)``, and
so every other metric, is a function of arrays. The definitions are pure functions in the modules:
``classification.accuracy(y_true, y_pred)``,
``fairness.equalized_odds_difference(y_true, y_pred, sensitive_features=sex)``.
"""

import typing

from robust_fairness.core import errors
from robust_fairness.metrics.evaluation import count as count
from robust_fairness.metrics.evaluation import evaluate as evaluate
from robust_fairness.numbers.gaps import Gap as Gap
from robust_fairness.numbers.gaps import gap as gap
from robust_fairness.numbers.metrics import Metric as Metric
from robust_fairness.numbers.metrics import all_metrics as all_metrics
from robust_fairness.numbers.metrics import find_metric as find_metric
from robust_fairness.numbers.metrics import metric_function as metric_function
from robust_fairness.numbers.metrics import metric_names as metric_names
from robust_fairness.numbers.metrics import parse_metrics as parse_metrics
from robust_fairness.numbers.quantities import NotApplicable as NotApplicable
from robust_fairness.numbers.quantities import RowValues as RowValues
from robust_fairness.numbers.quantities import Score as Score
from robust_fairness.numbers.quantities import Undefined as Undefined
from robust_fairness.numbers.quantities import measure as measure
from robust_fairness.numbers.quantities import quantity as quantity

_IMPORTED = [name for name, value in vars().items() if callable(value)]


def __dir__() -> list[str]:
    return sorted([*_IMPORTED, *(metric.name for metric in all_metrics())])


def __getattr__(name: str) -> typing.Any:
    """Every metric without options as a function of arrays, see ``metric_function``."""
    if name == "__all__":  # what ``help`` lists
        return __dir__()
    if name[:1] == "_":
        raise AttributeError(name)
    try:
        return find_metric(name).function
    except errors.InputError as error:
        raise AttributeError(str(error)) from None
