"""How well a model does, overall and in each group."""

import numpy as np

from robust_fairness.metrics._rates import by_group, missing, rates
from robust_fairness.metrics.base import Score, metric


@metric(better="higher")
def accuracy(y: np.ndarray, prediction: np.ndarray) -> Score:
    """Share of rows predicted right."""
    return Score(float(np.mean(prediction == y)), len(y)) if len(y) else Score(None, 0, "no rows")


@metric(better="higher", unshifted_only=True)
def constant_accuracy(y: np.ndarray, train_y: np.ndarray) -> Score:
    """Accuracy of always predicting the most frequent class of the training rows.

    A model below it has learned nothing that accuracy can tell.
    """
    if not len(y) or not len(train_y):
        return Score(None, 0, "no rows")
    return Score(float(np.mean(y == np.bincount(train_y).argmax())), len(y))


@metric(better="higher")
def accuracy_by_group(
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


@metric(better="higher")
def mean_group_accuracy(
    y: np.ndarray, prediction: np.ndarray, group: np.ndarray, groups: tuple[str, ...]
) -> Score:
    """Mean over groups of the accuracy within each, however many rows they have.

    Of head and tail it is the unbiased accuracy of questions (Shrestha et al. 2022, Table 2).
    """
    means, counts = rates(prediction == y, group, len(groups))
    return missing(counts, groups) or Score(float(means.mean()), int(counts.sum()))


@metric(better="lower", task="regression")
def mean_squared_error(y: np.ndarray, prediction: np.ndarray) -> Score:
    """Mean squared error, in squared units of the outcome."""
    return Score(float(np.mean(np.square(prediction - y, dtype=np.float64))), len(y))


@metric(better="lower", task="regression")
def unexplained_variance(y: np.ndarray, prediction: np.ndarray) -> Score:
    """Mean squared error over the variance of the outcome in these rows: 1 minus R squared.

    1 is the best constant; missing where the outcome does not vary.
    """
    if len(y) == 0 or (y == y[0]).all():
        return Score(None, len(y), "the outcome is constant")
    errors = np.square(prediction - y, dtype=np.float64)
    return Score(float(np.mean(errors) / np.var(y, dtype=np.float64)), len(y))


@metric(better="lower", task="regression")
def mean_absolute_error(y: np.ndarray, prediction: np.ndarray) -> Score:
    """Mean absolute error, in units of the outcome."""
    return Score(float(np.mean(np.abs(prediction - y), dtype=np.float64)), len(y))


@metric(better="lower", task="regression")
def mean_squared_error_by_group(
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
