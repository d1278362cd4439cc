"""Scores of existing predictions: every metric that needs no model, with its uncertainty.

The uncertainty depends on the metric:

- a proportion (accuracies, rates, the size of a group): Wilson's 95 % interval;
- a difference, a ratio or a worst group: the interval of ``auditing.intervals``, computed from the
  table of counts by group, class and prediction, at a cost that does not grow with the rows;
- a mean error: Student's 95 % interval;
- a FairCOCCO score: a permutation p-value, and that p-value after Holm's correction for all
  p-values of the audit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from robust_fairness.auditing.intervals import Bound, bounds_of_classes, worst_mean
from robust_fairness.auditing.predictions import PredictionKind, Predictions, Roles, check
from robust_fairness.core import tables
from robust_fairness.core.draws import subset
from robust_fairness.core.errors import unknown_name
from robust_fairness.core.intervals import mean_interval, wilson_interval
from robust_fairness.datasets.raw.columns import Bins, Kind
from robust_fairness.inference.adjust import holm
from robust_fairness.metrics import all_metrics, evaluate
from robust_fairness.samples import Groups, Samples, groups_of

AUDIT = {
    "dataset": "str", "attribute": "str", "group": "str", "metric": "str", "value": "float64",
    "low": "float64", "high": "float64", "interval": "str", "n": "int64", "small": "bool",
    "note": "str", "applies": "bool",
}  # fmt: skip
SMALL = 30  # rows below which a group is flagged: a share has a standard error of up to 9 points
KERNEL_ROWS = 16_384  # rows from which the kernel scores take theirs
MISSING, SHARE = "missing_attribute", "group_share"
SHARES = (
    "accuracy", "selection_rate", "true_positive_rate", "false_positive_rate", "precision",
    "accuracy_by_group", "selection_rate_by_group", "true_positive_rate_by_group",
    "true_negative_rate_by_group", "false_positive_rate_by_group", "false_negative_rate_by_group",
    "precision_by_group", "head_accuracy", "tail_accuracy", SHARE,
)  # fmt: skip
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


def audit(
    table: pd.DataFrame,
    target: str,
    prediction: str,
    attributes: Sequence[str],
    *,
    positive: str | None = None,
    continuous: bool = False,
    prediction_is: PredictionKind = "auto",
    threshold: float | None = None,
    types: Mapping[str, Kind] | None = None,
    bins: Mapping[str, Bins] | None = None,
    intersections: bool = False,
    small: int = SMALL,
    name: str = "table",
    metrics: Sequence[str] | None = None,
    suppress: int = 0,
) -> pd.DataFrame:
    """Score predictions with every metric that needs no model; deterministic.

    Args:
        table: one row per prediction.
        target: column of the true values.
        prediction: column of the predictions.
        attributes: columns of sensitive attributes; rows without a value belong to no group.
        positive: value of class 1 of a binary target; default: ``1``, ``True`` or
            ``yes``, beside ``0`` or ``-1``, ``False`` or ``no``.
        continuous: the target is continuous.
        prediction_is: ``class``: a value of the target; ``probability`` of the positive class, in
            [0, 1]; ``score``: any number, positive from ``threshold`` on; ``number``: an estimate
            of a continuous target. ``auto``: number if the target is continuous, class if all
            values are values of the target, otherwise probability.
        threshold: lowest probability (default 0.5) or score of the positive class.
        types: ``number`` or ``category`` by attribute, where the rules of
            ``datasets.raw.columns`` decide otherwise or cannot decide.
        bins: bins of numeric attributes: increasing edges, or a number of quantile bins.
        intersections: also score the intersections of all categorical attributes.
        small: groups with fewer rows are flagged.
        name: name of the table, for rows and error messages.
        metrics: names of the metrics, see ``offered_names``; default: ``metrics_of``.
        suppress: groups with fewer rows are not shown; gaps between groups contain them.

    Returns:
        One row per value, with the columns ``AUDIT``. ``value`` is missing if the metric is not
        defined, and ``note`` says why; ``applies`` is false if no such table defines it; ``small``
        flags values of a group with fewer than ``small`` rows.

    Raises:
        InputError: a column does not exist, is constant or has cells that do not fit, or a row
            lacks target or prediction.
    """
    roles = Roles(
        target, prediction, attributes, positive, continuous, prediction_is, threshold,
        types or {}, bins or {},
    )  # fmt: skip
    return score(check(table, roles, name), intersections, small, name, metrics, suppress)


def metrics_of(continuous: bool) -> list[str]:
    """Names of the metrics of an audit, sorted.

    All measures of groups, and ``AGGREGATIONS`` of all quantities of classes or outcomes; those of
    the positive class by group only.
    """
    task = "regression" if continuous else "classification"
    found = [one for one in all_metrics() if one.task in (task, "any")]
    measures = [one for one in found if one.is_measure and ARRAYS.issuperset(one.definition.needs)]
    quantities = [
        one
        for one in found
        if one.definition.needs == ("y_true", "y_pred")
        and not one.is_measure
        and one.aggregation in (("by_group",) if one.definition.binary else AGGREGATIONS)
    ]
    return sorted([*OF_DEPENDENCE, *(one.name for one in (*measures, *quantities))])


def offered_names(continuous: bool) -> list[str]:
    """All values that the column ``metric`` of an audit may have.

    Beside ``metrics_of``, every quantity of classes, outcomes or probabilities with any
    aggregation, such as ``roc_auc_difference`` or ``expected_calibration_error_by_group``.
    """
    task = "regression" if continuous else "classification"
    further = [
        one.name
        for one in all_metrics()
        if one.task in (task, "any") and ARRAYS.issuperset(one.needs)
    ]
    return sorted({*metrics_of(continuous), *further, *CORRECTED.values(), MISSING, SHARE})


def selected(names: Sequence[str], continuous: bool) -> list[str]:
    """Names of metrics, without those that every audit has.

    ``conventional`` are the metrics ``CONVENTIONAL``, or all of a continuous target, and ``all``
    are ``metrics_of``.

    Raises:
        InputError: an audit has no such metric.
    """
    known = offered_names(continuous)
    every = metrics_of(continuous)
    sets = {"all": every, "conventional": every if continuous else [*CONVENTIONAL]}
    found: list[str] = []
    for name in names:
        if name not in sets and name not in known:
            raise unknown_name("metric", name, [*sets, *known])
        found += sets.get(name, [name])
    return [one for one in dict.fromkeys(found) if one not in (MISSING, SHARE)]


def score(
    predictions: Predictions,
    intersections: bool = False,
    small: int = SMALL,
    name: str = "table",
    metrics: Sequence[str] | None = None,
    suppress: int = 0,
) -> pd.DataFrame:
    """All rows of checked predictions, see ``audit``."""
    samples = predictions.samples
    names = selected(("all",) if metrics is None else metrics, not samples.classes)
    kernel = {*OF_DEPENDENCE, *CORRECTED.values()}
    plain = [one for one in names if one not in kernel]
    groupings = _groupings(samples, intersections)
    groups = groups_in(predictions, intersections)
    per_row = {"y_pred": predictions.prediction}
    rows = evaluate(plain, samples, predictions.outputs, per_row, groupings=groupings)
    rows += _missing_rows(samples) + _share_rows(groups)
    counts = {name: counts_of(predictions, own) for name, own in groups.items() if samples.classes}
    bounds = dict(_bounds(predictions, groups, counts))
    for row in rows:
        row.update(_interval(row, bounds))
        row.update(_small_group(row, samples.classes, groups, counts, small))
    if kernel.intersection(names):
        rows += _dependence(predictions, small)
    rows = _without_small(rows, groups, suppress)
    empty = {"low": np.nan, "high": np.nan, "interval": "", "small": False, "applies": True}
    return tables.table(AUDIT, [{**empty, **row, "dataset": name} for row in rows])


def _groupings(samples: Samples, intersections: bool) -> list[tuple[str, ...]]:
    """All categorical attributes together, if there are several and intersections are scored."""
    categorical = tuple(map(str, samples.attributes.select_dtypes("category")))
    return [categorical] if intersections and len(categorical) > 1 else []


def groups_in(predictions: Predictions, intersections: bool) -> dict[str, Groups]:
    """Groups by categorical attribute, and of their intersections."""
    samples = predictions.samples
    alone = [(str(one),) for one in samples.attributes.select_dtypes("category")]
    return {
        " & ".join(one): groups_of(samples.attributes, one)
        for one in [*alone, *_groupings(samples, intersections)]
    }


def _without_small(
    rows: Sequence[dict[str, Any]], groups: Mapping[str, Groups], fewest: int
) -> list[dict[str, Any]]:
    """The rows without groups of fewer than ``fewest`` rows, and without notes that tell them."""
    hiding = {name for name, found in groups.items() if (found.counts < fewest).any()}
    note = f"groups with fewer than {fewest} rows are hidden"
    kept = [row for row in rows if not row["group"] or row["n"] >= fewest]
    for row in kept:
        if fewest and not row["group"] and (row["attribute"] in hiding or row.get("small")):
            row["note"] = note
    return kept


def _missing_rows(samples: Samples) -> list[dict[str, Any]]:
    """Share of the rows that lack an attribute."""
    return [
        {
            "attribute": str(name), "group": "", "metric": MISSING,
            "value": count / len(samples), "n": len(samples),
            "note": f"{count} rows have no value and belong to no group" if count else "",
        }
        for name, count in samples.attributes.isna().sum().items()
    ]  # fmt: skip


def _share_rows(groups: Mapping[str, Groups]) -> list[dict[str, Any]]:
    """Share of every group in the rows whose group is known; ``n`` is the size of the group."""
    return [
        {
            "attribute": attribute, "group": group, "metric": SHARE,
            "value": count / found.counts.sum(), "n": int(count), "note": "",
        }
        for attribute, found in groups.items()
        for group, count in zip(found.names, found.counts, strict=True)
    ]  # fmt: skip


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
    counts_by_class: Mapping[str, np.ndarray],
    small: int,
) -> dict[str, Any]:
    """Whether a value depends on a small group, and on which."""
    if row["attribute"] not in groups or row["metric"] == MISSING:
        return {}
    if row["group"]:
        return {"small": row["n"] < small}
    found = groups[row["attribute"]]
    counts, names = found.counts, list(found.names)
    if row["metric"] in OF_CLASSES:
        counts = counts_by_class[row["attribute"]].sum(2).ravel()
        names = [f"{group}, class {label}" for group in found.names for label in classes]
    least = int(counts.argmin())
    if counts[least] >= small:
        return {"small": False}
    problem = f"small group: {names[least]} has {counts[least]} rows"
    return {"small": True, "note": "; ".join(filter(None, (row["note"], problem)))}


def _interval(
    row: Mapping[str, Any], bounds: Mapping[tuple[str, str, str], Bound]
) -> dict[str, Any]:
    """Interval of a row and its kind; none if the value is missing or has none."""
    if row["value"] is None:
        return {}
    if row["metric"] in SHARES:
        # n of the share of a group is the size of the group
        n = row["n"] / row["value"] if row["metric"] == SHARE else row["n"]
        low, high = wilson_interval(np.array([row["value"]]), np.array([n]))
        return {"low": low[0], "high": high[0], "interval": "Wilson"}
    found = bounds.get((row["attribute"], row["metric"], row["group"]))
    return asdict(found) if found else {}


def _bounds(
    predictions: Predictions, groups: Mapping[str, Groups], counts: Mapping[str, np.ndarray]
) -> Iterator[tuple[tuple[str, str, str], Bound]]:
    """Intervals of everything but proportions, by attribute, metric and group."""
    if not predictions.samples.classes:
        yield from _bounds_of_errors(predictions, groups)
        return
    for number, (attribute, own) in enumerate(counts.items()):
        generator = np.random.default_rng([0, number])
        for metric, bound in bounds_of_classes(own, generator).items():
            yield (attribute, metric, ""), bound


def counts_of(predictions: Predictions, groups: Groups) -> np.ndarray:
    """Rows by group, class and predicted class, int64 ``[groups, classes, classes]``."""
    classes = len(predictions.samples.classes)
    shape = (len(groups.names), classes, classes)
    known = groups.index >= 0
    cells = (groups.index[known], predictions.samples.y[known], predictions.prediction[known])
    cell = np.ravel_multi_index(cells, shape)
    return np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)


def _bounds_of_errors(
    predictions: Predictions, groups: Mapping[str, Groups]
) -> Iterator[tuple[tuple[str, str, str], Bound]]:
    """Intervals of mean errors of a continuous target."""
    errors = predictions.prediction - predictions.samples.y
    yield ("", "mean_squared_error", ""), _mean_bound(errors**2)
    yield ("", "mean_absolute_error", ""), _mean_bound(abs(errors))
    for attribute, found in groups.items():
        squares = [errors[found.index == code] ** 2 for code in range(len(found.names))]
        for group, values in zip(found.names, squares, strict=True):
            yield (attribute, "mean_squared_error_by_group", group), _mean_bound(values)
        yield (attribute, "worst_group_mean_squared_error", ""), worst_mean(squares)


def _mean_bound(values: np.ndarray) -> Bound:
    found = mean_interval(values)
    low = found.low if np.isnan(found.low) else max(found.low, 0.0)
    return Bound("Student's t", low, found.high)
