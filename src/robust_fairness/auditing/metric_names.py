"""Names of the metrics of an audit: which it offers, and which of them are selected."""

from robust_fairness.auditing.predictions import Options
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.metrics import Gap, Metric, all_metrics, find_metric

MISSING, SHARE = "missing_attribute", "group_share"
# Arrays that an audit has, and aggregations of quantities that it shows.
ARRAYS = frozenset(("y_true", "y_pred", "y_score", "outputs", "classes", "sensitive_features"))
AGGREGATIONS = (
    "", "by_group", "mean_group", "worst_group", "worst_gap", "halves_gap", "light_dark_gap",
)  # fmt: skip
# Conventional measures, and those of Equalized Robustness; the audit of a file scores them.
CONVENTIONAL = (
    "accuracy", "balanced_accuracy", "selection_rate", "true_positive_rate", "false_positive_rate",
    "precision",
    "demographic_parity_difference", "equal_opportunity_difference", "equalized_odds_difference",
    "demographic_parity_ratio", "equal_opportunity_ratio", "equalized_odds_ratio",
    "worst_group_accuracy", "delta_dp", "delta_eo", "delta_eopp", "disparate_impact",
    "delta_dp_one_vs_rest", "delta_eo_one_vs_rest",
    "accuracy_by_group", "selection_rate_by_group", "true_positive_rate_by_group",
    "false_positive_rate_by_group", "precision_by_group",
)  # fmt: skip
SCORES = ("faircocco_cal", "faircocco_dp", "faircocco_eo")
P_VALUES = tuple(f"{name}_p_value" for name in SCORES)
CORRECTED = {name: f"{name}_holm" for name in P_VALUES}
OF_DEPENDENCE = (*SCORES, *P_VALUES)
# What follows from predictions without labels.
SELECTIONS = (
    "selection_rate", "demographic_parity_difference", "demographic_parity_ratio", "delta_dp",
    "disparate_impact", "delta_dp_one_vs_rest", "selection_rate_by_group",
)  # fmt: skip
# The same gaps by the names of fairlearn's ``MetricFrame``.
OF_SELECTIONS = ("selection_rate_difference", "selection_rate_ratio")


def metrics_of(continuous: bool) -> list[str]:
    """Names of the metrics of an audit, sorted.

    All measures of groups, and ``AGGREGATIONS`` of all quantities of classes or outcomes; those of
    the positive class by group only.
    """
    task = "regression" if continuous else "classification"
    names = [
        metric.name
        for metric in all_metrics()
        if metric.task in (task, "any") and _is_shown(metric)
    ]
    return sorted([*OF_DEPENDENCE, *names])


def _is_shown(metric: Metric) -> bool:
    """Whether all audits show a metric of their task."""
    needs = metric.definition.needs
    if metric.is_measure:
        return ARRAYS.issuperset(needs)
    return needs == ("y_true", "y_pred") and metric.aggregation in _aggregations(metric)


def _aggregations(metric: Metric) -> tuple[str, ...]:
    """The aggregations of a quantity that all audits show."""
    if metric.is_signed:
        return ("", "by_group", "difference")
    if metric.task == "regression" and metric.is_mean:
        return (*AGGREGATIONS, "difference")
    return ("by_group",) if metric.definition.binary else AGGREGATIONS


def offered_names(continuous: bool) -> list[str]:
    """All values that the column ``metric`` of an audit may have.

    Beside ``metrics_of``, every quantity of classes, outcomes or probabilities with any
    aggregation, such as ``roc_auc_difference`` or ``expected_calibration_error_by_group``.
    """
    task = "regression" if continuous else "classification"
    further = [
        metric.name
        for metric in all_metrics()
        if metric.task in (task, "any") and ARRAYS.issuperset(metric.needs)
    ]
    return sorted({*metrics_of(continuous), *further, *CORRECTED.values(), MISSING, SHARE})


SETS = ("conventional", "all")  # of metrics


def selected(options: Options) -> list[str]:
    """Names of metrics, without those that every audit has.

    ``conventional`` are the metrics ``CONVENTIONAL``, or all of a continuous target, and ``all``
    are ``metrics_of``; without labels both are ``SELECTIONS``, with some only means and gaps.

    Raises:
        InputError: an audit has no such metric, or none without labels.
    """
    known, names = offered_names(options.continuous), options.metrics
    every = metrics_of(options.continuous)
    sets = {"all": every, "conventional": every if options.continuous else [*CONVENTIONAL]}
    if options.y_true is None:
        sets = dict.fromkeys(sets, [*SELECTIONS])
        for name in {*names}.intersection(known) - {*SELECTIONS, *OF_SELECTIONS, MISSING, SHARE}:
            raise InputError(
                f"metric {name} needs a target; allowed without one: {', '.join(SELECTIONS)}"
            )
    if options.labels == "some":
        sets = {name: [*filter(_of_some_labels, some)] for name, some in sets.items()}
        for name in {*names}.intersection(known) - {MISSING, SHARE}:
            if not _of_some_labels(name):
                raise InputError(
                    f"metric {name} needs a label of every row; allowed with some: rates of "
                    "classes and gaps between them, such as equalized_odds_difference"
                )
    chosen: list[str] = []
    for name in names:
        if name not in sets and name not in known:
            raise unknown_name("metric", name, [*sets, *known])
        chosen += sets.get(name, [name])
    return [name for name in dict.fromkeys(chosen) if name not in (MISSING, SHARE)]


def _of_some_labels(name: str) -> bool:
    """Whether a metric is a mean of counts, or a gap between means."""
    if name in (*OF_DEPENDENCE, *CORRECTED.values()):
        return False
    metric = find_metric(name)
    return metric.is_counted and (metric.is_mean or isinstance(metric.definition, Gap))
