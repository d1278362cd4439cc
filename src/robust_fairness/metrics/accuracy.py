"""How well a model does, overall and in each group."""

import numpy as np

from robust_fairness.metrics._metric import Score, metric
from robust_fairness.metrics._rates import by_group, missing, rates


@metric(better="higher")
def accuracy(y: np.ndarray, prediction: np.ndarray) -> Score:
    """Share of rows predicted right."""
    return Score(float(np.mean(prediction == y)), len(y)) if len(y) else Score(None, 0, "no rows")


@metric(better="higher")
def group_accuracy(
    y: np.ndarray, prediction: np.ndarray, group: np.ndarray, groups: tuple[str, ...]
) -> dict[str, Score]:
    """Accuracy within each group."""
    return by_group(*rates(prediction == y, group, len(groups)), groups)


@metric(better="higher")
def worst_group_accuracy(
    y: np.ndarray, prediction: np.ndarray, group: np.ndarray, groups: tuple[str, ...]
) -> Score:
    """Lowest accuracy of a group (Sagawa et al. 2020); n is that group's."""
    means, counts = rates(prediction == y, group, len(groups))
    if absent := missing(counts, groups):
        return absent
    worst = int(means.argmin())
    return Score(float(means[worst]), int(counts[worst]))


@metric(better="lower", task="regression")
def mean_squared_error(y: np.ndarray, prediction: np.ndarray) -> Score:
    """Mean squared error, in squared units of the outcome."""
    return Score(float(np.mean(np.square(prediction - y, dtype=np.float64))), len(y))


@metric(better="lower", task="regression")
def mean_absolute_error(y: np.ndarray, prediction: np.ndarray) -> Score:
    """Mean absolute error, in units of the outcome."""
    return Score(float(np.mean(np.abs(prediction - y), dtype=np.float64)), len(y))


@metric(better="lower", task="regression")
def group_mean_squared_error(
    y: np.ndarray, prediction: np.ndarray, group: np.ndarray, groups: tuple[str, ...]
) -> dict[str, Score]:
    """Mean squared error within each group."""
    errors = np.square(prediction - y, dtype=np.float64)
    return by_group(*rates(errors, group, len(groups)), groups)


@metric(better="lower", task="regression")
def worst_group_mean_squared_error(
    y: np.ndarray, prediction: np.ndarray, group: np.ndarray, groups: tuple[str, ...]
) -> Score:
    """Highest mean squared error of a group; n is that group's."""
    errors = np.square(prediction - y, dtype=np.float64)
    means, counts = rates(errors, group, len(groups))
    if absent := missing(counts, groups):
        return absent
    worst = int(means.argmax())
    return Score(float(means[worst]), int(counts[worst]))
