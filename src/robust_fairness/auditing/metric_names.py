"""Names of the metrics of an audit: which it offers, and which of them are selected."""

from collections.abc import Collection, Sequence

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


SETS = ("conventional", "all")  # of metrics
# Beside metrics by name: of kernels, and of the attributes themselves.
FURTHER = (*OF_DEPENDENCE, *CORRECTED.values(), MISSING, SHARE)


def metrics_of(continuous: bool) -> list[str]:
    """Names of the metrics of an audit, sorted.

    All measures of groups, and ``AGGREGATIONS`` of all quantities of classes or outcomes; those of
    the positive class by group only.
    """
    names = []
    for metric in all_metrics():
        definition = metric.definition
        aggregations: Sequence[str] = AGGREGATIONS
        if not _fits(metric, continuous):
            continue
        if metric.is_signed:
            aggregations = ("", "by_group", "difference")
        elif metric.task == "regression" and metric.is_mean:
            aggregations = (*AGGREGATIONS, "difference")
        elif definition.binary:
            aggregations = ("by_group",)
        of_rows = definition.needs == ("y_true", "y_pred")
        if metric.is_measure or (of_rows and metric.aggregation in aggregations):
            names.append(metric.name)
    return sorted([*OF_DEPENDENCE, *names])


def _fits(metric: Metric, continuous: bool) -> bool:
    """Whether an audit of classes, or of a continuous target, has all that a metric needs."""
    task = "regression" if continuous else "classification"
    return metric.task in (task, "any") and ARRAYS.issuperset(metric.needs)


def require_offered(
    name: str, continuous: bool, place: str = "", also: Collection[str] = ()
) -> None:
    """Refuse a name that is no value of an audit's column ``metric``, nor one of ``also``.

    Beside ``metrics_of``, every quantity of classes, outcomes or probabilities with any
    aggregation, such as ``roc_auc_difference`` or ``expected_calibration_error_by_group``.
    """
    if name in (*FURTHER, *also):
        return
    try:
        if "(" not in name and _fits(find_metric(name), continuous):
            return
    except InputError:
        pass
    offered = [metric.name for metric in all_metrics() if _fits(metric, continuous)]
    raise unknown_name("metric", name, {*offered, *FURTHER, *also}, place)


def selected(options: Options) -> list[str]:
    """Names of metrics, without those that every audit has.

    ``conventional`` are the metrics ``CONVENTIONAL``, or all of a continuous target, and ``all``
    are ``metrics_of``; without labels both are ``SELECTIONS``, with some only means and gaps.

    Raises:
        InputError: an audit has no such metric, or none without labels.
    """
    continuous, unlabelled = options.continuous, options.y_true is None
    chosen: list[str] = []
    for name in options.metrics:
        if name in SETS:
            conventional = name == "conventional" and not continuous
            names: Sequence[str] = CONVENTIONAL if conventional else metrics_of(continuous)
            names = SELECTIONS if unlabelled else names
            chosen += filter(_of_some_labels, names) if options.labels == "some" else names
            continue
        require_offered(name, continuous, also=SETS)
        if unlabelled and name not in (*SELECTIONS, *OF_SELECTIONS, MISSING, SHARE):
            raise InputError(
                f"metric {name} needs a target; allowed without one: {', '.join(SELECTIONS)}"
            )
        if options.labels == "some" and name not in (MISSING, SHARE) and not _of_some_labels(name):
            raise InputError(
                f"metric {name} needs a label of every row; allowed with some: rates of "
                "classes and gaps between them, such as equalized_odds_difference"
            )
        chosen.append(name)
    return [name for name in dict.fromkeys(chosen) if name not in (MISSING, SHARE)]


def _of_some_labels(name: str) -> bool:
    """Whether a metric is a mean of counts, or a gap between means."""
    if name in (*OF_DEPENDENCE, *CORRECTED.values()):
        return False
    metric = find_metric(name)
    return metric.is_counted and (metric.is_mean or isinstance(metric.definition, Gap))
