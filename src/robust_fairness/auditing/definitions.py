"""Definitions of an audit's measures in one sentence each, from the metrics' docstrings."""

from functools import cache
from inspect import getdoc

from robust_fairness.auditing.changes import MIX
from robust_fairness.auditing.metric_names import CORRECTED, MISSING, SHARE
from robust_fairness.metrics import find_metric

OWN = {
    MISSING: "Share of rows without a value of the attribute; they belong to no group.",
    SHARE: "Share of the group in the rows whose group is known.",
    MIX: "Part of the change of accuracy that is due to other shares of the groups.",
    **dict.fromkeys(
        CORRECTED.values(), "The p-value, corrected for the number of tests of the audit (Holm)."
    ),
}
OF_GROUPS = {
    "": "{}",
    "by_group": "{}",
    "mean_group": "Mean over groups. {}",
    "worst_group": "Worst value of a group. {}",
    "worst_subgroup": "Worst value of a group and class. {}",
    "difference": "Largest difference between two groups. {}",
    "ratio": "Lowest value of a group over the highest one. {}",
    "one_vs_rest_difference": "Largest difference between a group and all other rows. {}",
    "worst_gap": "Mean of the other groups less the worst group. {}",
    "halves_gap": "Mean of the better half of the groups less that of the worse half. {}",
    "light_dark_gap": "Mean of skin types I to III less that of IV to VI. {}",
}


@cache
def definition(name: str) -> str:
    """What a value of the column ``metric`` is."""
    if name in OWN:
        return OWN[name]
    metric = find_metric(name)
    first = (getdoc(metric.definition.function) or "").split("\n\n")[0]
    plain = " ".join(first.replace("`", "").replace("*", "").split())
    return OF_GROUPS[metric.aggregation].format(plain)
