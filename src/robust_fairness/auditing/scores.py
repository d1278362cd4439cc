"""Scores of existing predictions: every metric that needs no model, with its uncertainty.

The uncertainty depends on the metric:

- a proportion (accuracies, rates, the size of a group): Wilson's 95 % interval;
- a difference, a ratio or a worst group: the interval of ``numbers.intervals``, computed from the
  table of counts by group, class and prediction, at a cost that does not grow with the rows;
- a mean error: Student's 95 % interval;
- a FairCOCCO score: a permutation p-value, and that p-value after Holm's correction for all
  p-values of the audit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from robust_fairness.auditing import control
from robust_fairness.auditing.bounds import Strata, bounds_in_counts, bounds_in_strata
from robust_fairness.auditing.functions import metrics_of_functions
from robust_fairness.auditing.metric_names import (
    CORRECTED,
    MISSING,
    OF_DEPENDENCE,
    SHARE,
    selected,
)
from robust_fairness.auditing.predictions import Options, Predictions
from robust_fairness.core import tables
from robust_fairness.core.draws import subset
from robust_fairness.core.numbers import counted, estimate
from robust_fairness.metrics import Metric, NotApplicable, evaluate, find_metric
from robust_fairness.metrics.evaluation import sources
from robust_fairness.numbers.counts import TWO, Counts, Rows
from robust_fairness.numbers.estimate import FEWEST_OF_MEAN, FEWEST_ROWS, LEVEL, wilson_interval
from robust_fairness.numbers.groups import Groups
from robust_fairness.numbers.groups import everyone as all_rows
from robust_fairness.numbers.intervals import Compared, estimated
from robust_fairness.numbers.metrics import rows_of
from robust_fairness.numbers.partly import PartlyLabelled
from robust_fairness.numbers.quantities import GROUPED, WEIGHTS
from robust_fairness.numbers.verdicts import holm

NAMED = 3  # groups of which a note says why they are not known
WORST = ("worst_group", "worst_subgroup")  # aggregations that leave small groups out
AUDIT = {
    "dataset": "str", "attribute": "str", "group": "str", "metric": "str", "value": "float64",
    "low": "float64", "high": "float64", "interval": "str", "n": "int64", "small": "bool",
    "note": "str", "applies": "bool", "lowest": "float64", "highest": "float64",
}  # fmt: skip
KERNEL_ROWS = 16_384  # rows from which the kernel scores take theirs
OF_CLASSES = (
    "delta_eo", "delta_eopp", "delta_eo_one_vs_rest", "equal_opportunity_difference",
    "equal_opportunity_ratio", "equalized_odds_difference", "equalized_odds_ratio",
)  # fmt: skip


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


def scored(
    predictions: Predictions, options: Options, name: str = "table", level: float = LEVEL
) -> Scored:
    """All values of checked predictions with intervals at a level; deterministic.

    Raises:
        InputError: an audit has no such metric.
    """
    samples, names = predictions.samples, selected(options)
    kernel = {*OF_DEPENDENCE, *CORRECTED.values()}
    metrics = {key: find_metric(key) for key in names if key not in kernel}
    if options.functions:
        metrics |= metrics_of_functions(options.functions)
    of_classes = (samples.y, predictions.prediction, samples.classes, predictions.weight)
    strata = {
        attribute: Strata.of(share, *of_classes)
        for attribute, (_, share) in predictions.membership.items()
        if samples.classes
    }
    compared: dict[tuple[str, str], Compared] = {}
    rows: list[dict[str, Any]] = []
    for metric, attribute, source in sources_of(predictions, metrics.values()):
        if isinstance(source, NotApplicable):
            rows += rows_of(metric.name, attribute, {"": source.score(len(samples))})
            continue
        of_strata = strata.get(attribute)
        rows += _rows(metric, attribute, source, compared, of_strata, options.small, level)
    order = {key: place for place, key in enumerate(metrics)}
    rows.sort(key=lambda row: order[row["metric"]])
    between: list[control.Between] = []
    if options.control_features:
        inside, between = _within_strata(predictions, options, metrics, rows, compared, level)
        rows += inside
    worst = {name for name, metric in metrics.items() if metric.aggregation in WORST}
    rows += _missing_rows(predictions) + list(_share_rows(predictions, level))
    for row in rows:
        is_worst = row["metric"] in worst
        row.update(_small_group(row, predictions, options.small, is_worst))
    if kernel.intersection(names):
        rows += _dependence(predictions, options.small)
    if options.suppress:
        rows = _without_small(rows, predictions.groups, options.suppress)
    empty = {"small": False, "applies": True}
    table = tables.table(AUDIT, [{**empty, **row, "dataset": name} for row in rows])
    return Scored(table, compared, between)


def _within_strata(
    predictions: Predictions,
    options: Options,
    metrics: Mapping[str, Metric],
    rows: Sequence[Mapping[str, Any]],
    compared: dict[tuple[str, str], Compared],
    level: float,
) -> tuple[list[dict[str, Any]], list[control.Between]]:
    """Rows of gaps within strata of the control features, and differences that are others there.

    Of those only where an interval, overall or within, excludes 0.
    """
    inside: list[dict[str, Any]] = []
    between = []
    overall = {(row["attribute"], row["metric"]): row for row in rows if not row["group"]}
    lacking = int(predictions.control.isna().any(axis=1).sum())
    note = f"{counted({'rows': lacking})} without {', '.join(options.control_features)} left out"
    for attribute, strata in control.strata_of(predictions):
        for key, metric in metrics.items():
            gap, whole = metric.gap, overall.get((attribute, key))
            if gap is None or gap.how not in control.COMBINED or whole is None:
                continue
            if not whole.get("applies", True) or (gap.how == "sum" and len(strata.groups) != TWO):
                continue
            made = control.within(gap, strata, level)
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


def sources_of(
    predictions: Predictions, metrics: Iterable[Metric]
) -> Iterator[tuple[Metric, str, Counts | Rows | NotApplicable]]:
    """Every metric with every attribute and its counts or rows, those of counts first."""
    samples, others = predictions.samples, []
    everyone = {"": predictions.counts_of(all_rows(len(samples)))} if samples.classes else {}
    for metric in metrics:
        if samples.classes and metric.is_counted:
            parts = predictions.counts if GROUPED in metric.needs else everyone
            yield from ((metric, attribute, counts) for attribute, counts in parts.items())
        else:
            others.append(metric)
    if not others:
        return
    per_row = {"y_pred": predictions.prediction}
    if predictions.weight is not None:
        per_row[WEIGHTS] = predictions.weight
    together = [columns for columns in predictions.columns_of.values() if len(columns) > 1]
    independent = predictions.units is None and predictions.replicates is None
    yield from sources(others, samples, predictions.outputs, per_row, None, together, independent)


def _rows(
    metric: Metric,
    attribute: str,
    source: Counts | Rows,
    compared: dict[tuple[str, str], Compared],
    strata: Strata | None,
    small: int,
    level: float,
) -> list[dict[str, Any]]:
    """Rows of a metric with intervals and bounds; no worst group of counts is ``small``."""
    counts = source if isinstance(source, Counts) else None
    if counts is not None and metric.aggregation in WORST and strata is None:
        large = counts.known() >= small
        left_out = [name for name, kept in zip(counts.groups, large, strict=True) if not kept]
        if left_out and large.any():
            rows = _rows(metric, attribute, counts.take(large), compared, None, 0, level)
            note = f"without {', '.join(left_out)}, fewer than {small} rows"
            return [row | {"note": "; ".join(filter(None, (row["note"], note)))} for row in rows]
    scores, comparison = estimated(metric, source, level)
    rows = rows_of(metric.name, attribute, scores)
    row, *others = rows
    if comparison is not None:
        compared[attribute, metric.name] = comparison
        if not comparison.known.all():
            row["note"] = "; ".join(filter(None, (row["note"], _lacking(comparison, metric))))
    if counts is None or others or row["group"]:
        return rows
    if metric.is_measure and row["n"]:
        row["n"], gap = int(counts.known().sum()), metric.gap
        if isinstance(counts, PartlyLabelled) and gap is not None:
            rests_on = sum(int(counts.values(quantity).n.sum()) for quantity in gap.of)
            row["n"] = min(row["n"], max(rests_on, int(counts.n[:-1].sum())))
    if not row["applies"] or GROUPED not in metric.needs:
        return rows
    if strata is not None:
        row["lowest"], row["highest"] = bounds_in_strata(metric, strata)
    elif counts.weight[-1].any():  # rows without a group
        row["lowest"], row["highest"] = bounds_in_counts(metric, counts)
    return rows


def _lacking(compared: Compared, metric: Metric) -> str:
    """Why groups with rows are not known, and the gap without unknown ones; "" if all are."""
    words = [quantity.words for quantity in metric.gap.of] if metric.gap else [metric.quantity]
    rates, reasons = compared.rates, dict[str, str]()
    for place in np.flatnonzero(~compared.known[0] & (rates.n[0] > 0)):
        rate, group = divmod(int(place), len(compared.groups))
        fewest = FEWEST_ROWS if rates.bounded else FEWEST_OF_MEAN
        n, effective = rates.n[0, place], rates.effective[0, place]
        text = f"has {counted({'rows': n})} for the {words[rate % len(words)]}"
        text += f", which count as {effective:.1f}" if effective < n else ""
        text += f", {fewest} are needed" if effective < fewest else " and no known variance"
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
        if not row["group"] and (row["attribute"] in hiding or row.get("small")):
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
            "note": f"{counted({'rows': missing.sum()})} without a value in no group"
            if missing.any() else "",
        }
        for name, missing in lacking.items()
    ]  # fmt: skip


def _share_rows(predictions: Predictions, level: float) -> Iterator[dict[str, Any]]:
    """Share of every group in the rows whose group is known; ``n`` is the size of the group."""
    cells = predictions.counts
    if not cells:  # a continuous target: all rows are of one class
        nothing = np.zeros(len(predictions.samples), np.int64)
        cells = {
            name: Counts.of(of_attribute, nothing, nothing, ("",), predictions.weight)
            for name, of_attribute in predictions.groups.items()
        }
    for attribute, of_attribute in cells.items():
        shares = of_attribute.shares()
        low, high = wilson_interval(shares.value, shares.effective, level)
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
    row: Mapping[str, Any], predictions: Predictions, small: int, is_worst: bool
) -> dict[str, Any]:
    """Whether a value depends on a small group, and on which; a worst group is a large one."""
    groups, classes = predictions.groups, predictions.samples.classes
    if row["attribute"] not in groups or row["metric"] == MISSING:
        return {}
    if row["group"]:
        return {"small": row["n"] < small}
    of_attribute = groups[row["attribute"]]
    counts, names = of_attribute.counts, list(of_attribute.names)
    if is_worst and counts.max() >= small and classes:
        return {"small": False}
    if row["metric"] in OF_CLASSES:
        counts = predictions.counts[row["attribute"]].n[:-1].sum(2).ravel()
        names = [f"{group}, class {label}" for group in of_attribute.names for label in classes]
    least = int(counts.argmin())
    if counts[least] >= small:
        return {"small": False}
    some = counted({"rows": counts[least]})
    problem = f"small group: {names[least]} has {some}"
    return {"small": True, "note": "; ".join(filter(None, (row["note"], problem)))}
