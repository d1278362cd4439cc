"""Scores of existing predictions: every metric that needs no model, with its uncertainty.

The uncertainty depends on the metric:

- a proportion (accuracies, rates, the size of a group): Wilson's 95 % interval;
- a difference, a ratio or a worst group: the interval of ``numbers.intervals``, computed from the
  table of counts by group, class and prediction, at a cost that does not grow with the rows;
- a mean error: Student's 95 % interval;
- a FairCOCCO score: a permutation p-value, and that p-value after Holm's correction for all
  p-values of the audit.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from robust_fairness.auditing import control
from robust_fairness.auditing.bounds import Strata, bounds_in_counts, bounds_in_strata
from robust_fairness.auditing.digits import estimate
from robust_fairness.auditing.functions import metrics_of_functions
from robust_fairness.auditing.predictions import Options, Predictions
from robust_fairness.core import tables
from robust_fairness.core.draws import subset
from robust_fairness.core.errors import InputError, unknown_name
from robust_fairness.metrics import (
    Gap,
    Metric,
    NotApplicable,
    all_metrics,
    evaluate,
    find_metric,
)
from robust_fairness.metrics.evaluation import rows_of
from robust_fairness.metrics.evaluation import sources as sources_of
from robust_fairness.numbers.adjust import holm
from robust_fairness.numbers.counts import TWO, Counts
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.intervals import Compared, estimated, wilson
from robust_fairness.numbers.quantities import GROUPED, WEIGHTS
from robust_fairness.numbers.rows import Rows
from robust_fairness.numbers.variance import FEWEST_OF_MEAN, FEWEST_ROWS

NAMED = 3  # groups of which a note says why they are not known
WORST = ("worst_group", "worst_subgroup")  # aggregations that leave small groups out
AUDIT = {
    "dataset": "str", "attribute": "str", "group": "str", "metric": "str", "value": "float64",
    "low": "float64", "high": "float64", "interval": "str", "n": "int64", "small": "bool",
    "note": "str", "applies": "bool", "lowest": "float64", "highest": "float64",
}  # fmt: skip
KERNEL_ROWS = 16_384  # rows from which the kernel scores take theirs
MISSING, SHARE = "missing_attribute", "group_share"
OF_CLASSES = (
    "delta_eo", "delta_eopp", "delta_eo_one_vs_rest", "equal_opportunity_difference",
    "equal_opportunity_ratio", "equalized_odds_difference", "equalized_odds_ratio",
)  # fmt: skip
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
    known = [metric for metric in all_metrics() if metric.task in (task, "any")]
    measures = [
        metric
        for metric in known
        if metric.is_measure and ARRAYS.issuperset(metric.definition.needs)
    ]
    quantities = [
        metric
        for metric in known
        if metric.definition.needs == ("y_true", "y_pred")
        and not metric.is_measure
        and metric.aggregation in _aggregations(metric)
    ]
    return sorted([*OF_DEPENDENCE, *(metric.name for metric in (*measures, *quantities))])


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


class Scored(NamedTuple):
    """Values of predictions, and what gaps compare, by attribute and metric.

    ``rows`` has a row per value, with the columns ``AUDIT``. ``value`` is missing if the metric is
    not defined, and ``note`` says why; ``applies`` is false if no such table defines it; ``small``
    flags values of a group with fewer than ``Options.small`` rows. ``between`` are differences that
    are others within strata.
    """

    rows: pd.DataFrame
    compared: Mapping[tuple[str, str], Compared]
    between: Sequence[control.Between] = ()


def scored(predictions: Predictions, options: Options, name: str = "table") -> Scored:
    """All values of checked predictions; deterministic.

    Raises:
        InputError: an audit has no such metric.
    """
    samples, names = predictions.samples, selected(options)
    kernel = {*OF_DEPENDENCE, *CORRECTED.values()}
    metrics = {key: find_metric(key) for key in names if key not in kernel}
    metrics |= metrics_of_functions(options.functions)
    groups = predictions.groups(options.intersections)
    cells = predictions.counts(options.intersections) if samples.classes else {}
    of_classes = (samples.y, predictions.prediction, samples.classes, predictions.weight)
    strata = {
        attribute: Strata.of(share, *of_classes)
        for attribute, (_, share) in predictions.membership.items()
        if samples.classes
    }
    compared: dict[tuple[str, str], Compared] = {}
    rows: list[dict[str, Any]] = []
    sources = sources_by_metric(predictions, metrics.values(), cells, options.intersections)
    for key, metric in metrics.items():
        for attribute, source in sources[key].items():
            if isinstance(source, NotApplicable):
                rows += rows_of(key, attribute, {"": source.score(len(samples))})
                continue
            of_strata = strata.get(attribute)
            rows += _rows(metric, attribute, source, compared, of_strata, options.small)
    inside, between = _within_strata(predictions, options, metrics, rows, compared)
    rows += inside
    worst = {name for name, metric in metrics.items() if metric.aggregation in WORST}
    rows += _missing_rows(predictions) + list(_share_rows(predictions, groups, cells))
    for row in rows:
        is_worst = row["metric"] in worst
        row.update(_small_group(row, samples.classes, groups, cells, options.small, is_worst))
    if kernel.intersection(names):
        rows += _dependence(predictions, options.small)
    rows = _without_small(rows, groups, options.suppress)
    empty = {"small": False, "applies": True}
    table = tables.table(AUDIT, [{**empty, **row, "dataset": name} for row in rows])
    return Scored(table, compared, between)


def _within_strata(
    predictions: Predictions,
    options: Options,
    metrics: Mapping[str, Metric],
    rows: Sequence[Mapping[str, Any]],
    compared: dict[tuple[str, str], Compared],
) -> tuple[list[dict[str, Any]], list[control.Between]]:
    """Rows of gaps within strata of the control features, and differences that are others there.

    Of those only where an interval, overall or within, excludes 0.
    """
    inside: list[dict[str, Any]] = []
    between = []
    overall = {(row["attribute"], row["metric"]): row for row in rows if not row["group"]}
    lacking = int(predictions.control.isna().any(axis=1).sum())
    note = f"{lacking:,} rows without {', '.join(options.control_features)} are left out"
    for attribute, strata in control.strata_of(predictions, options.intersections):
        for key, metric in metrics.items():
            gap, whole = metric.gap, overall.get((attribute, key))
            if gap is None or gap.how not in control.COMBINED or whole is None:
                continue
            if not whole.get("applies", True) or (gap.how == "sum" and len(strata.groups) != TWO):
                continue
            made = control.within(gap, strata)
            row = {
                "attribute": strata.name, "group": "", "metric": key,
                "value": None if np.isnan(made.value) else made.value,
                "n": int((strata.codes >= 0).sum()),
                "note": "; ".join(filter(None, (made.note, note if lacking else ""))),
                **(made.bound._asdict() if made.bound else {}),
            }  # fmt: skip
            inside.append(row)
            if made.compared is not None:
                compared[strata.name, key] = made.compared
            known = [each.get("low", np.nan) > 0 for each in (row, whole)]
            if gap.how == "largest" and any(known):
                said = control.between(gap, attribute, strata, made, all(known))
                between += [said] if said else []
    return inside, between


def sources_by_metric(
    predictions: Predictions,
    metrics: Collection[Metric],
    cells: Mapping[str, Counts],
    intersections: bool = False,
) -> dict[str, dict[str, Counts | Rows | NotApplicable]]:
    """Counts or rows by metric and attribute; ``cells`` are the counts of every attribute."""
    samples = predictions.samples
    result: dict[str, dict[str, Counts | Rows | NotApplicable]]
    some = [metric for metric in metrics if not (samples.classes and metric.is_counted)]
    everyone = {"": predictions.everyone()} if samples.classes else {}
    result = {
        metric.name: {} if metric in some else {**(cells if GROUPED in metric.needs else everyone)}
        for metric in metrics
    }
    if not some:
        return result
    per_row = {"y_pred": predictions.prediction}
    if predictions.weight is not None:
        per_row[WEIGHTS] = predictions.weight
    together = [columns for columns in predictions.groupings(intersections) if len(columns) > 1]
    independent = predictions.units is None and predictions.replicates is None
    for metric, attribute, source in sources_of(
        some, samples, predictions.outputs, per_row, None, together, independent
    ):
        result[metric.name][attribute] = source
    return result


def _rows(
    metric: Metric,
    attribute: str,
    source: Counts | Rows,
    compared: dict[tuple[str, str], Compared],
    strata: Strata | None = None,
    small: int = 0,
) -> list[dict[str, Any]]:
    """Rows of a metric with intervals and bounds; no worst group of counts is ``small``."""
    counts = source if isinstance(source, Counts) else None
    if counts is not None and metric.aggregation in WORST and strata is None:
        large = counts.known() >= small
        left_out = [name for name, kept in zip(counts.groups, large, strict=True) if not kept]
        if left_out and large.any():
            rows = _rows(metric, attribute, counts.take(large), compared)
            note = f"without {', '.join(left_out)}, fewer than {small} rows"
            return [row | {"note": "; ".join(filter(None, (row["note"], note)))} for row in rows]
    scores, comparison = estimated(metric, source)
    rows = rows_of(metric.name, attribute, scores)
    row, *others = rows
    if comparison is not None:
        compared[attribute, metric.name] = comparison
        row["note"] = "; ".join(filter(None, (row["note"], _lacking(comparison, metric))))
    if counts is None or others or row["group"]:
        return rows
    if metric.is_measure and row["n"]:
        row["n"] = int(counts.known().sum())
    if row["applies"] and GROUPED in metric.needs:
        row["lowest"], row["highest"] = (
            bounds_in_counts(metric, counts) if strata is None else bounds_in_strata(metric, strata)
        )
    return rows


def _lacking(compared: Compared, metric: Metric) -> str:
    """Why groups with rows are not known, and the gap without unknown ones; "" if all are."""
    words = [quantity.words for quantity in metric.gap.of] if metric.gap else [metric.quantity]
    rates, reasons = compared.rates, dict[str, str]()
    for place in np.flatnonzero(~compared.known[0] & (rates.n[0] > 0)):
        rate, group = divmod(int(place), len(compared.groups))
        fewest = FEWEST_ROWS if rates.bounded else FEWEST_OF_MEAN
        n, counted = rates.n[0, place], rates.effective[0, place]
        text = f"has {n:,.0f} row{'' if n == 1 else 's'} for the {words[rate % len(words)]}"
        text += f", worth {counted:.1f} of equal weight" if counted < n else ""
        text += f", {fewest} are needed" if counted < fewest else " and no known variance"
        reasons.setdefault(compared.groups[group], text)
    said = [f"{group} {reason}" for group, reason in reasons.items()]
    said[NAMED:] = [f"and {len(said) - NAMED} more"] if len(said) > NAMED else []
    rest = compared.among_known()
    if rest is not None:
        gap = rest.gap.of(np.where(rest.known, rest.rates.mean, 0.0))[0]
        gap, bound = 1 - gap if compared.turned else gap, rest.bound()
        without = "it" if len(compared.unknown) == 1 else "them"
        said.append(f"without {without} {estimate(gap, bound.low, bound.high)}")
    return "; ".join(said)


def _without_small(
    rows: Sequence[dict[str, Any]], groups: Mapping[str, Groups], fewest: int
) -> list[dict[str, Any]]:
    """The rows without groups of fewer than ``fewest`` rows, and without notes that tell them."""
    hiding = {name for name, of_attribute in groups.items() if (of_attribute.counts < fewest).any()}
    note = f"groups with fewer than {fewest} rows are hidden"
    kept = [row for row in rows if not row["group"] or row["n"] >= fewest]
    for row in kept:
        if fewest and not row["group"] and (row["attribute"] in hiding or row.get("small")):
            row["note"] = note
    return kept


def _missing_rows(predictions: Predictions) -> list[dict[str, Any]]:
    """Share of the rows that lack an attribute."""
    lacking = {
        str(name): is_missing.to_numpy()
        for name, is_missing in predictions.samples.attributes.isna().items()
    }
    lacking |= {name: ~np.isfinite(p).all(1) for name, (_, p) in predictions.membership.items()}
    return [
        {
            "attribute": name, "group": "", "metric": MISSING,
            "value": float(np.average(missing, weights=predictions.weight)), "n": len(missing),
            "note": f"{missing.sum()} rows have no value and belong to no group"
            if missing.any() else "",
        }
        for name, missing in lacking.items()
    ]  # fmt: skip


def _share_rows(
    predictions: Predictions, groups: Mapping[str, Groups], cells: Mapping[str, Counts]
) -> Iterator[dict[str, Any]]:
    """Share of every group in the rows whose group is known; ``n`` is the size of the group."""
    if not cells:  # a continuous target: all rows are of one class
        nothing = np.zeros(len(predictions.samples), np.int64)
        cells = {
            name: Counts.of(of_attribute, nothing, nothing, ("",), predictions.weight)
            for name, of_attribute in groups.items()
        }
    for attribute, of_attribute in cells.items():
        shares = of_attribute.shares()
        _, low, high = wilson(shares.value, shares.effective)
        for place, group in enumerate(of_attribute.groups):
            yield {
                "attribute": attribute, "group": group, "metric": SHARE,
                "value": shares.value[place], "n": int(shares.n[place]), "note": "",
                "low": low[place], "high": high[place], "interval": "Wilson",
            }  # fmt: skip


def _dependence(predictions: Predictions, small: int) -> list[dict[str, Any]]:
    """FairCOCCO scores and p-values, and the p-values after Holm's correction."""
    some = subset(len(predictions.samples), KERNEL_ROWS)
    rows = evaluate(OF_DEPENDENCE, predictions.samples.take(some), predictions.outputs[some])
    for row in rows:
        row["small"] = row["n"] < small
    tests = [row for row in rows if row["metric"] in CORRECTED]
    adjusted = iter(holm([row["value"] for row in tests if row["value"] is not None]))
    for row in tests:
        value = None if row["value"] is None else float(next(adjusted))
        rows.append({**row, "metric": CORRECTED[row["metric"]], "value": value})
    return rows


def _small_group(
    row: Mapping[str, Any],
    classes: Sequence[str],
    groups: Mapping[str, Groups],
    cells: Mapping[str, Counts],
    small: int,
    is_worst: bool,
) -> dict[str, Any]:
    """Whether a value depends on a small group, and on which; a worst group is a large one."""
    if row["attribute"] not in groups or row["metric"] == MISSING:
        return {}
    if row["group"]:
        return {"small": row["n"] < small}
    of_attribute = groups[row["attribute"]]
    counts, names = of_attribute.counts, list(of_attribute.names)
    if is_worst and counts.max() >= small and classes:
        return {"small": False}
    if row["metric"] in OF_CLASSES:
        counts = cells[row["attribute"]].n[:-1].sum(2).ravel()
        names = [f"{group}, class {label}" for group in of_attribute.names for label in classes]
    least = int(counts.argmin())
    if counts[least] >= small:
        return {"small": False}
    some = "1 row" if counts[least] == 1 else f"{counts[least]} rows"
    problem = f"small group: {names[least]} has {some}"
    return {"small": True, "note": "; ".join(filter(None, (row["note"], problem)))}
