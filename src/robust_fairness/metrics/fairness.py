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
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.forms import missing
from robust_fairness.numbers.gaps import gap
from robust_fairness.numbers.groups import as_groups
from robust_fairness.numbers.intervals import to_rest
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
    cells = _counts(y_pred, sensitive_features, CLASSES, sample_weight)
    hit = cells.grid()[1] == 1
    inside, outside = (part.means(hit) for part in (cells, cells.others()))
    scores = {}
    for place, name in enumerate(cells.groups):
        absent = missing(inside.n[[place]], [name])
        absent = absent or missing(outside.n[[place]], [f"other than {name}"])
        if absent is None and not outside.value[place] > 0:
            absent = Score(None, len(y_pred), "no positive prediction in any other group")
        ratio = inside.value[place] / outside.value[place] if absent is None else np.nan
        scores[name] = absent or Score(float(ratio), len(y_pred))
    return scores


@measure(better="lower")
def delta_dp_one_vs_rest(
    y_true: Array, y_pred: Array, *, sensitive_features: Any, sample_weight: Weights = None
) -> Score:
    """Largest gap over classes c and groups a of |P(Y'=c | A=a) - P(Y'=c | A!=a)|."""
    classes = range(max(2, int(y_pred.max(initial=0)) + 1))
    cells = _counts(y_pred, sensitive_features, [str(label) for label in classes], sample_weight)
    gaps = _gaps_to_rest(cells, of_classes=False)
    return gaps if isinstance(gaps, Score) else Score(float(gaps.max()), len(y_pred))


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
    cells = _counts(y_pred, sensitive_features, classes, sample_weight, y_true)
    gaps = _gaps_to_rest(cells, of_classes=True)
    return gaps if isinstance(gaps, Score) else Score(float(gaps.sum(0).max()), len(y_true))


def _counts(
    y_pred: Array,
    sensitive_features: Any,
    classes: Sequence[str],
    sample_weight: Weights,
    y_true: Array | None = None,
) -> Counts:
    """Counts of rows; all of the first class where labels do not matter."""
    y = np.zeros(len(y_pred), np.int64) if y_true is None else y_true
    return Counts.of(as_groups(sensitive_features), y, y_pred, tuple(classes), sample_weight)


def _gaps_to_rest(cells: Counts, of_classes: bool) -> Array | Score:
    """Absolute differences to the other groups ``[classes, groups]``; or why one is missing."""
    gaps = []
    for label, (means, functions) in zip(cells.classes, to_rest(cells, of_classes), strict=True):
        among = f" or beside it{f' in class {label}' if of_classes else ''}"
        if absent := missing(np.minimum(means.n, means.n.sum() - means.n), cells.groups, among):
            return absent
        gaps.append(np.abs(functions @ means.value))
    return np.array(gaps)
