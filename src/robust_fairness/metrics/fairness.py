"""Group fairness of predictions: fairlearn's measures, and those of Equalized Robustness.

The positive class is class 1. fairlearn's are defined for any number of groups; the variants of
*Equalized Robustness* (``delta_dp``, ``delta_eo``, ``delta_eopp``, Eqs. 1 to 3, and the folded
``disparate_impact``) for two, with one-vs-rest variants for more, which are the same for two.
``disparate_impact_by_group`` is unfolded, for any number of groups.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from robust_fairness.metrics.classification import (
    false_positive_rate,
    selection_rate,
    true_negative_rate,
    true_positive_rate,
)
from robust_fairness.numbers.forms import missing
from robust_fairness.numbers.gaps import gap
from robust_fairness.numbers.groups import Groups, as_groups
from robust_fairness.numbers.quantities import Array, Score, Weights, measure

CLASSES = ("0", "1")
WITH_CLASSES = ("y_true", "y_pred", "sensitive_features", "classes")


@gap(of=[selection_rate])
def demographic_parity_difference() -> None:
    """Largest difference of selection rates between two groups (fairlearn)."""


@gap(of=[true_positive_rate])
def equal_opportunity_difference() -> None:
    """Largest difference of true positive rates between two groups (fairlearn)."""


@gap(of=[true_positive_rate, false_positive_rate])
def equalized_odds_difference() -> None:
    """Largest difference of true or false positive rates between two groups (fairlearn)."""


@gap(of=[selection_rate], how="ratio")
def demographic_parity_ratio() -> None:
    """Lowest ratio of selection rates between two groups (fairlearn)."""


@gap(of=[true_positive_rate], how="ratio")
def equal_opportunity_ratio() -> None:
    """Lowest ratio of true positive rates between two groups (fairlearn)."""


@gap(of=[true_positive_rate, false_positive_rate], how="ratio")
def equalized_odds_ratio() -> None:
    """Lowest ratio of true or false positive rates between two groups (fairlearn)."""


@gap(of=[selection_rate], groups=2)
def delta_dp() -> None:
    """Demographic parity gap of two groups, |P(Y'=1 | A=0) - P(Y'=1 | A=1)| (Eq. 1)."""


@gap(of=[true_positive_rate, false_positive_rate], how="sum", groups=2)
def delta_eo() -> None:
    """Equalised odds gap: the *sum* over y of |P(Y'=y | A=0, y) - P(Y'=y | A=1, y)| (Eq. 2).

    Between 0 and 2; ``equalized_odds_difference`` is the larger of the two.
    """


@gap(of=[true_negative_rate], groups=2)
def delta_eopp() -> None:
    """Equal opportunity gap as printed: on y = 0 (Eq. 3), a gap of true negative rates."""


@gap(of=[selection_rate], how="ratio", groups=2)
def disparate_impact() -> None:
    """Folded: the lower positive rate over the higher.

    Missing where no group has a positive prediction (0/0).
    """


@measure(better="higher", binary=True)
def disparate_impact_by_group(
    y_true: Array, y_pred: Array, *, sensitive_features: Any, sample_weight: Weights = None
) -> dict[str, Score]:
    """Unfolded, P(Y'=1 | A=a) / P(Y'=1 | A!=a) of each group a.

    Above 1 where the group has the higher rate. The value of the discriminated group is Eq. 16 of
    FairCOCCO. Missing where no row of another group has a positive prediction.
    """
    groups = as_groups(sensitive_features)
    inside, outside, counts, rest = _inside_and_outside(y_pred == 1, groups, None, sample_weight)
    scores = {}
    for place, name in enumerate(groups.names):
        absent = missing(counts[[place]], [name]) or missing(rest[[place]], [f"other than {name}"])
        if absent is None and not outside[place] > 0:
            absent = Score(None, len(y_pred), "no positive prediction in any other group")
        scores[name] = absent or Score(float(inside[place] / outside[place]), len(y_pred))
    return scores


@measure(better="lower")
def delta_dp_one_vs_rest(
    y_true: Array, y_pred: Array, *, sensitive_features: Any, sample_weight: Weights = None
) -> Score:
    """Largest gap over classes c and groups a of |P(Y'=c | A=a) - P(Y'=c | A!=a)|."""
    groups = as_groups(sensitive_features)
    gaps = []
    for label in range(int(y_pred.max(initial=0)) + 1):
        to_rest = _gaps_to_rest(y_pred == label, groups, sample_weight=sample_weight)
        if isinstance(to_rest, Score):
            return to_rest
        gaps.append(to_rest)
    return Score(float(np.max(gaps)), len(y_pred))


@measure(better="lower", needs=WITH_CLASSES)
def delta_eo_one_vs_rest(
    y_true: Array,
    y_pred: Array,
    *,
    sensitive_features: Any,
    classes: Sequence[str] = CLASSES,
    sample_weight: Weights = None,
) -> Score:
    """Largest over groups a of the sum over y of |P(Y'=y | A=a, y) - P(Y'=y | A!=a, y)|."""
    groups = as_groups(sensitive_features)
    total = np.zeros(len(groups.names))
    for label, name in enumerate(classes):
        among = f" in class {name}"
        to_rest = _gaps_to_rest(y_pred == y_true, groups, y_true == label, among, sample_weight)
        if isinstance(to_rest, Score):
            return to_rest
        total += to_rest
    return Score(float(total.max()), len(y_true))


def _gaps_to_rest(
    hits: Array,
    groups: Groups,
    where: Array | None = None,
    among: str = "",
    sample_weight: Weights = None,
) -> Array | Score:
    """Absolute difference of each group's mean and that of the others; or why it is missing."""
    inside, outside, counts, rest = _inside_and_outside(hits, groups, where, sample_weight)
    absent = missing(np.minimum(counts, rest), groups.names, f" or beside it{among}")
    return absent or np.abs(inside - outside)


def _inside_and_outside(
    hits: Array, groups: Groups, where: Array | None, sample_weight: Weights
) -> tuple[Array, Array, Array, Array]:
    """Means of each group and of all other rows ``where``, and how many rows these are."""
    some = slice(None) if where is None else where
    weight = np.ones(len(hits)) if sample_weight is None else sample_weight
    codes, hits, weight = groups.index[some], hits[some], weight[some]
    counts = np.bincount(codes, minlength=len(groups.values))
    sums, total = (np.bincount(codes, each, len(counts)) for each in (hits * weight, weight))
    with np.errstate(divide="ignore", invalid="ignore"):
        inside, outside = sums / total, (sums.sum() - sums) / (total.sum() - total)
    return inside, outside, counts, counts.sum() - counts
