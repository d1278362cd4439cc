"""Scores of metrics by name, from arrays."""

from robust_fairness.metrics import Score, find_metric
from robust_fairness.samples import Groups


def score_of(name: str, **arrays) -> Score:
    """Score of a metric over all groups."""
    return find_metric(name).scores(arrays)[""]


def scores_of_groups(name: str, group, names: tuple[str, ...], **arrays) -> dict[str, Score]:
    """Scores of a metric by group."""
    return find_metric(name).scores({**arrays, "sensitive_features": Groups(group, names)})
