"""Group fairness of predictions: fairlearn's measures, and those of Equalized Robustness.

The positive class is class 1. fairlearn's are defined for any number of groups; the variants of
*Equalized Robustness* (``delta_dp``, ``delta_eo``, ``delta_eopp``, Eqs. 1 to 3, and the folded
``disparate_impact``) for two, with one-vs-rest variants for more, which are the same for two.
``disparate_impact_by_group`` is unfolded, for any number of groups.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from robust_fairness.metrics.aggregations import by_group, difference, ratio
from robust_fairness.metrics.base import Array, NotApplicable, Score, Weights, measure
from robust_fairness.metrics.classification import (
    false_positive_rate,
    selection_rate,
    true_positive_rate,
)
from robust_fairness.metrics.groups import as_groups, missing, rates, rates_outside
from robust_fairness.samples import Groups

CLASSES = ("0", "1")
WITH_CLASSES = ("y_true", "y_pred", "sensitive_features", "classes")


# fairlearn's measures: the rates of which they take the worse difference or ratio of groups.
RATES_OF = {
    "demographic_parity": (selection_rate,),
    "equal_opportunity": (true_positive_rate,),
    "equalized_odds": (true_positive_rate, false_positive_rate),
}


def _worst(notion: str, compare: Callable[..., Score]) -> Callable[..., Score]:
    """The measure ``{notion}_difference`` or ``{notion}_ratio``: the worse one of its rates."""
    is_difference = compare is difference
    worst: Callable[..., Score] = max if is_difference else min

    def measured(
        y_true: Array, y_pred: Array, *, sensitive_features: Any, sample_weight: Weights = None
    ) -> Score:
        of = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        scores = [compare(by_group(rate, y_true, y_pred, **of)) for rate in RATES_OF[notion]]
        undefined = [score for score in scores if score.value is None]
        return undefined[0] if undefined else worst(scores, key=lambda score: score.value or 0)

    measured.__name__ = measured.__qualname__ = f"{notion}_{compare.__name__}"
    rates = " or ".join(f"{rate.__name__.replace('_', ' ')}s" for rate in RATES_OF[notion])
    what = "Largest difference" if is_difference else "Lowest ratio"
    measured.__doc__ = f"{what} of {rates} between two groups (fairlearn)."
    return measure(better="lower" if is_difference else "higher", binary=True)(measured)


demographic_parity_difference, equal_opportunity_difference, equalized_odds_difference = (
    _worst(notion, difference) for notion in RATES_OF
)
demographic_parity_ratio, equal_opportunity_ratio, equalized_odds_ratio = (
    _worst(notion, ratio) for notion in RATES_OF
)


@measure(better="lower", binary=True)
def delta_dp(
    y_true: Array, y_pred: Array, *, sensitive_features: Any, sample_weight: Weights = None
) -> Score:
    """Demographic parity gap of two groups, |P(Y'=1 | A=0) - P(Y'=1 | A=1)| (Eq. 1)."""
    return _gap(y_pred == 1, as_groups(sensitive_features), None, sample_weight)


@measure(better="lower", needs=WITH_CLASSES, binary=True)
def delta_eo(
    y_true: Array,
    y_pred: Array,
    *,
    sensitive_features: Any,
    classes: Sequence[str] = CLASSES,
    sample_weight: Weights = None,
) -> Score:
    """Equalised odds gap: the *sum* over y of |P(Y'=y | A=0, y) - P(Y'=y | A=1, y)| (Eq. 2).

    Between 0 and 2; ``equalized_odds_difference`` is the larger of the two.
    """
    groups = as_groups(sensitive_features)
    total = 0.0
    for label, name in enumerate(classes):
        gap = _gap(y_pred == y_true, groups, y_true == label, sample_weight)
        if gap.value is None:
            return Score(None, 0, f"{gap.note} in class {name}")
        total += gap.value
    return Score(total, len(y_true))


@measure(better="lower", binary=True)
def delta_eopp(
    y_true: Array, y_pred: Array, *, sensitive_features: Any, sample_weight: Weights = None
) -> Score:
    """Equal opportunity gap as printed: on y = 0 (Eq. 3), a gap of true negative rates."""
    return _gap(y_pred == 0, as_groups(sensitive_features), y_true == 0, sample_weight)


@measure(better="higher", binary=True)
def disparate_impact(
    y_true: Array, y_pred: Array, *, sensitive_features: Any, sample_weight: Weights = None
) -> Score:
    """Folded: the lower positive rate over the higher.

    Missing where no group has a positive prediction (0/0).
    """
    groups = _two(as_groups(sensitive_features))
    means, counts = rates(y_pred == 1, groups.index, 2, None, sample_weight)
    if absent := missing(counts, groups.names):
        return absent
    if means.max() == 0:
        return Score(None, len(y_pred), "no positive prediction in any group")
    return Score(float(means.min() / means.max()), len(y_pred))


@measure(better="higher", binary=True)
def disparate_impact_by_group(
    y_true: Array, y_pred: Array, *, sensitive_features: Any, sample_weight: Weights = None
) -> dict[str, Score]:
    """Unfolded, P(Y'=1 | A=a) / P(Y'=1 | A!=a) of each group a.

    Above 1 where the group has the higher rate. The value of the discriminated group is Eq. 16 of
    FairCOCCO. Missing where no row of another group has a positive prediction.
    """
    groups = as_groups(sensitive_features)
    inside, counts = rates(y_pred == 1, groups.index, len(groups.names), None, sample_weight)
    outside, rest = rates_outside(y_pred == 1, groups.index, len(groups.names), None, sample_weight)
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
        gap = _gaps_to_rest(y_pred == label, groups, sample_weight=sample_weight)
        if isinstance(gap, Score):
            return gap
        gaps.append(gap)
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
        gap = _gaps_to_rest(y_pred == y_true, groups, y_true == label, among, sample_weight)
        if isinstance(gap, Score):
            return gap
        total += gap
    return Score(float(total.max()), len(y_true))


def _two(groups: Groups) -> Groups:
    if len(groups.names) != 2:
        raise NotApplicable(f"{len(groups.names)} groups, defined for two")
    return groups


def _gap(
    hits: Array, groups: Groups, where: Array | None = None, sample_weight: Weights = None
) -> Score:
    """Absolute difference of two groups' means."""
    means, counts = rates(hits, _two(groups).index, 2, where, sample_weight)
    absent = missing(counts, groups.names)
    return absent or Score(float(abs(means[0] - means[1])), int(counts.sum()))


def _gaps_to_rest(
    hits: Array,
    groups: Groups,
    where: Array | None = None,
    among: str = "",
    sample_weight: Weights = None,
) -> Array | Score:
    """Absolute difference of each group's mean and that of the others; or why it is missing."""
    inside, counts = rates(hits, groups.index, len(groups.names), where, sample_weight)
    outside, rest = rates_outside(hits, groups.index, len(groups.names), where, sample_weight)
    absent = missing(np.minimum(counts, rest), groups.names, f" or beside it{among}")
    return absent or np.abs(inside - outside)
