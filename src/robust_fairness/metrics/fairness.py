"""Group fairness of predictions: fairlearn's measures, and those of Equalized Robustness.

The positive class is class 1. fairlearn's are defined for any number of groups; the variants of
*Equalized Robustness* (``delta_dp``, ``delta_eo``, ``delta_eopp``, Eqs. 1 to 3, and the folded
``disparate_impact``) for two, with one-vs-rest variants for more, which are the same for two.
``disparate_impact_by_group`` is unfolded, for any number of groups.
"""

import numpy as np

from robust_fairness.metrics.classification import (
    false_positive_rate,
    selection_rate,
    true_negative_rate,
    true_positive_rate,
)
from robust_fairness.numbers.counts import Counts
from robust_fairness.numbers.gaps import gap, measure_of_counts, missing
from robust_fairness.numbers.intervals import to_rest
from robust_fairness.numbers.quantities import Score


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


@measure_of_counts(better="higher", binary=True)
def disparate_impact_by_group(counts: Counts) -> dict[str, Score]:
    """Unfolded, P(Y'=1 | A=a) / P(Y'=1 | A!=a) of each group a.

    Above 1 where the group has the higher rate. The value of the discriminated group is Eq. 16 of
    FairCOCCO. Missing where no row of another group has a positive prediction; n are the rows of
    the group.
    """
    rows, weight = counts.known(), counts.weight[:-1]
    hits, total = weight[..., 1].sum(1), weight.sum((1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        outside = (hits.sum() - hits) / (total.sum() - total)
        ratio = hits / total / outside
    scores = {}
    for place, name in enumerate(counts.groups):
        absent = missing([rows[place]], [name])
        absent = absent or missing([rows.sum() - rows[place]], [f"other than {name}"])
        if absent is None and not outside[place] > 0:
            absent = Score(None, int(rows[place]), "no positive prediction in any other group")
        scores[name] = absent or Score(float(ratio[place]), int(rows[place]))
    return scores


@measure_of_counts(better="lower")
def delta_dp_one_vs_rest(counts: Counts) -> Score:
    """Largest gap over classes c and groups a of |P(Y'=c | A=a) - P(Y'=c | A!=a)|."""
    return _largest_to_rest(counts, of_classes=False)


@measure_of_counts(better="lower")
def delta_eo_one_vs_rest(counts: Counts) -> Score:
    """Largest over groups a of the sum over y of |P(Y'=y | A=a, y) - P(Y'=y | A!=a, y)|."""
    return _largest_to_rest(counts, of_classes=True)


def _largest_to_rest(counts: Counts, of_classes: bool) -> Score:
    """Largest difference of a group to all others: of a class, or the sum over those of rows."""
    gaps = []
    for label, (means, functions) in zip(counts.classes, to_rest(counts, of_classes), strict=True):
        among = f" or beside it{f' in class {label}' if of_classes else ''}"
        if absent := missing(np.minimum(means.n, means.n.sum() - means.n), counts.groups, among):
            return absent
        gaps.append(np.abs(functions @ means.value))
    combined = np.sum(gaps, axis=0) if of_classes else np.max(gaps, axis=0)
    return Score(float(combined.max()), int(counts.known().sum()))
