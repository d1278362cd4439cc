"""The audit of a file: now, or now and then; gates, tables and page."""

import codecs
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from robust_fairness.auditing.audit import Audit, audited, audited_tables, with_notes_of
from robust_fairness.auditing.changes import MIX, changes, require_comparable, tested_changes
from robust_fairness.auditing.checked import without_labels
from robust_fairness.auditing.door import check, with_bins_of
from robust_fairness.auditing.estimates import ASSUMPTION, ScoredRows, estimate
from robust_fairness.auditing.export import model_card
from robust_fairness.auditing.few_labels import Plan
from robust_fairness.auditing.findings import gates_of
from robust_fairness.auditing.gates import Gate, Rule
from robust_fairness.auditing.metric_names import SELECTIONS, SETS, selected
from robust_fairness.auditing.monitor import Monitor, monitor_of
from robust_fairness.auditing.naming import bins_of, option
from robust_fairness.auditing.periods import Length, periods_of
from robust_fairness.auditing.predictions import Options, Predictions
from robust_fairness.auditing.read.reading import read_columns
from robust_fairness.auditing.scores import scored
from robust_fairness.auditing.who import gap_names
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.core.raw_files import Files
from robust_fairness.numbers.counts import TWO


@dataclass(frozen=True)
class TableFile:
    """A file of predictions and how it is written.

    Attributes:
        path: the file, CSV or Parquet.
        delimiter: column separator of a CSV file; found out if None.
        encoding: of a CSV file; found out if None.
    """

    path: Path
    delimiter: str | None = None
    encoding: str | None = None

    def columns(self, options: Options, period: Sequence[str] = ()) -> pd.DataFrame:
        """The columns of the options; units and periods may have any number of distinct values."""
        names = [*options.columns, *period]
        text = [*period, *([options.unit] if options.unit else [])]
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise InputError(f"delimiter: {self.delimiter!r}, allowed: one character")
        if not self.path.is_file():
            raise InputError(f"{self.path}: no such file")
        try:
            encoding = self.encoding and codecs.lookup(self.encoding).name
        except LookupError:
            raise InputError(
                f"encoding: {self.encoding!r}, allowed: a name such as utf-8, cp1252 or utf-16"
            ) from None
        return read_columns(
            Files(self.path.absolute().parent), self.path.name, list(dict.fromkeys(names)),
            self.delimiter, ("", *options.missing), text, encoding=encoding,
            decimal=options.decimal,
        )  # fmt: skip


@dataclass(frozen=True)
class Monitored:
    """The periods of a table: the last one is compared with those before it, gaps with the first.

    Attributes:
        period: column of periods, see ``periods_of``; None: a table of a single period.
        by: length of a period of dates; None: see ``periods_of``.
        first: number of periods, from the first on, that are the monitor's reference.
        margin: by how much gaps may grow before the monitor says so; None: what is usual between
            periods of the reference.
        state: file of the monitor's counts of earlier periods; none if it does not exist.
    """

    period: str | None = None
    by: Length | None = None
    first: int = 1
    margin: float | None = None
    state: Path | None = None


def audit_file(
    source: TableFile,
    options: Options,
    *,
    gates: Sequence[str] = (),
    rule: Rule = "estimate",
    reference: Path | None = None,
    monitored: Monitored = Monitored(),
) -> Audit:
    """Audit the predictions in a CSV or Parquet file; writes nothing.

    Args:
        source: the file.
        options: its columns, and what is scored; metrics of gates are added.
        gates: conditions that must not hold, such as ``equalized_odds_difference[sex]>0.1``.
        rule: what fails a gate, see ``Gate.judgements``.
        reference: file of the earlier period, written as the other one.
        monitored: the periods of the file, where it has several.

    With ``labels`` ``none`` values are estimated with the reference, or without one only those
    scored that need no labels.
    """
    labels = options.labels
    parsed = gates_of(gates, options)
    _require_fitting(options, parsed, reference, monitored)
    if labels == "none" and reference is None:
        options = replace(options, y_true=None)
    of_gates = [gate.metric for gate in parsed if gate.metric != MIX]
    named = [*(name for name in options.metrics if name not in SETS), *of_gates]
    wanted = replace(options, metrics=[*options.metrics, *of_gates])
    options = replace(options, metrics=selected(wanted))
    if labels == "none" and options.y_true is not None and reference is not None:
        audit = _estimated(source, options, reference)
    elif monitored.period is not None:
        audit = _of_periods(source, options, monitored.period, monitored, named)
    else:
        table, earlier = _tables(source, options, reference)
        names = source.path.name, "" if reference is None else reference.name
        names = ("current", "reference") if names[0] == names[1] else names
        audit = audited_tables(table, options, names[0], earlier, names[1])
    return audit.judged(gates, rule)


def _require_fitting(
    options: Options, gates: Sequence[Gate], reference: Path | None, monitored: Monitored
) -> None:
    """Check that periods, labels and a reference fit what is asked for."""
    alone = reference is None and monitored.period is None
    for gate in gates:
        if gate.change and alone:
            raise InputError(f"gate {gate.text!r}: a change needs --reference or --period")
    if options.y_true is None and options.labels == "all":
        raise InputError(f"target: needs a column (--target); without labels: {without_labels()}")
    if options.features and (options.labels == "none" or alone):
        raise InputError("features: why values changed needs labels and --reference or --period")
    if reference is not None and monitored.period is not None:
        raise InputError("reference and period are both given, allowed: one of them")
    if monitored.state is not None and monitored.period is None:
        raise InputError("state: needs a --period, the column of the periods")
    if monitored.by is not None and monitored.period is None:
        raise InputError("by: needs a --period, the column of the dates")


def files_of(
    audit: Audit, stem: str, also: Collection[str] = (), plan: Plan | None = None
) -> dict[str, str]:
    """Contents of the files to write, by name: the page and the tables.

    Args:
        audit: the audit.
        stem: begins the names.
        also: ``card``: the model card; ``curves``: calibration by group and all thresholds.
        plan: rows to label.
    """
    frames = {"audit": audit.rows, "changes": audit.changed}
    if plan is not None:
        frames["plan"] = plan.rows
    if audit.monitor is not None:
        frames["monitor"] = audit.monitor.to_frame()
    if audit.why is not None:
        frames["why"] = audit.why.to_frame()
    pages = {"audit.html": audit.to_html()}
    if "curves" in also:
        score, probabilities = audit.predictions.score, audit.predictions.kind == "probability"
        frames["calibration"] = audit.calibration() if probabilities else None
        frames["thresholds"] = audit.thresholds() if score.ndim == 1 or not probabilities else None
    if "card" in also:
        pages["model_card.md"] = model_card(audit)
    pages |= {f"{name}.csv": tables.csv(rows) for name, rows in frames.items() if rows is not None}
    return {f"{stem}_{name}": text for name, text in pages.items()}


def _tables(
    source: TableFile, options: Options, reference: Path | None
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """The columns of a file, and those of the reference where there is one."""
    try:
        table = source.columns(options)
    except InputError as error:
        if options.y_true is None or error.unknown != options.y_true:
            raise
        raise InputError(f"{error}; without labels: {without_labels()}") from None
    if reference is None:
        return table, None
    try:
        return table, replace(source, path=reference).columns(options)
    except InputError as error:
        if options.label_probability is None or error.unknown != options.label_probability:
            raise
        # the earlier labels are complete
        without = replace(options, label_probability=None)
        return table, replace(source, path=reference).columns(without)


def _of_periods(
    source: TableFile,
    options: Options,
    period: str,
    monitored: Monitored,
    named: Sequence[str],
) -> Audit:
    """The audit of the last period of a table, compared with all before it, and the monitor."""
    name, state = source.path.name, monitored.state
    if period in options.columns:
        raise InputError(f"column {period} has two roles; the period is a column of its own")
    table = source.columns(options, [period])
    if state is not None:
        _require_fixed_bins(options, table, name)
    periods = periods_of(table[period], monitored.by, f"{name}, column {period}")
    if len(periods.names) == 1 and state is None:
        raise InputError(
            f"{name}, column {period}: all rows are in one period, {periods.names[0]}; at least "
            "two are needed, or a --state"
        )
    every = check(table.drop(columns=period), options, name)
    if state is not None and not every.labelled:
        raise InputError("state: the monitor needs a label of every row (--target)")
    every = replace(every, notes=(*every.notes, *filter(None, [periods.note])))
    now = every.take(np.flatnonzero(periods.last))
    if len(periods.names) == 1:
        audit = audited(now, options, periods.names[-1])
    else:
        then = every.take(np.flatnonzero(~periods.last))
        audit = audited(now, options, periods.names[-1], then, periods.before)
    if not every.labelled or (len(every.samples.classes) != TWO and state is None):
        return audit
    about = {
        "target": str(options.y_true), "prediction": options.predicted[0],
        "threshold": str(options.threshold),
    }  # fmt: skip
    groups = every.groups
    monitor = monitor_of(every, periods, groups, about, monitored.first, named)
    monitor = replace(monitor, margin=monitored.margin)
    if state is not None and state.exists():
        monitor = monitor.after(Monitor.from_json(state.read_bytes(), str(state)), str(state))
    return replace(audit, monitor=monitor)


def _require_fixed_bins(options: Options, table: pd.DataFrame, name: str) -> None:
    """Check that no bins change with the table, which a state of earlier tables continues."""
    for attribute, bins in with_bins_of(options, table, name).bins.items():
        if bins != options.bins.get(attribute):
            raise InputError(
                f"bins of {attribute}: quantiles and spans of dates change with the table; "
                f"give edges, or {bins_of(attribute, 'year')} of dates"
            )


def _estimated(source: TableFile, options: Options, reference: Path) -> Audit:
    """The audit of unlabelled predictions, estimated with a reference and compared with it."""
    earlier = replace(source, path=reference).columns(options)
    options = with_bins_of(options, earlier, reference.name)
    then = check(earlier, options, str(reference))
    if then.kind not in ("probability", "score") or len(then.samples.classes) != TWO:
        raise InputError(
            f"labels none: predictions are of kind {then.kind} for {len(then.samples.classes)} "
            "classes; allowed: probabilities or scores of the positive class of two"
        )
    if options.unit or options.replicate_weights or options.membership or options.control_features:
        raise InputError(
            "labels none: estimates take neither units nor replicate weights nor membership nor "
            "control features"
        )
    unlabelled = replace(options, y_true=None)
    table = source.columns(unlabelled)
    now = with_notes_of(check(table, unlabelled, str(source.path), then), then, str(reference))
    require_comparable(now, then, (source.path.name, reference.name))
    known = then.groups
    for attribute, groups in now.groups.items():
        for group in set(groups.names) - set(known[attribute].names):
            raise InputError(
                f"{source.path.name}: group {group!r} of {attribute} has no labels in "
                f"{reference.name}; allowed: groups of the reference, or missing values "
                f"({option('missing', repr(group))})"
            )
    current = _scored(now)
    labelled = replace(_scored(then), y=then.samples.y)
    estimated = [metric for metric in options.metrics if metric not in SELECTIONS]
    rows = estimate(
        current, labelled, source.path.name, estimated, options.small, options.suppress
    )  # fmt: skip
    selections = [metric for metric in options.metrics if metric in SELECTIONS]
    unestimated = scored(now, replace(unlabelled, metrics=selections), source.path.name)
    rows = pd.concat([rows, unestimated.rows], ignore_index=True)
    metrics = [metric for metric in options.metrics if metric in set(rows["metric"])]
    before = scored(then, replace(options, metrics=metrics), reference.name)
    tested = tested_changes(unestimated.compared, before.compared, gap_names(rows))
    changed = changes(rows, before.rows, tested)
    return Audit(
        rows, now, options, source.path.name, changed, reference.name, ASSUMPTION, earlier=then,
        compared=unestimated.compared,
    )  # fmt: skip


def _scored(predictions: Predictions) -> ScoredRows:
    """Scores, decisions, and groups."""
    decided = predictions.prediction == 1
    return ScoredRows(predictions.score, decided, predictions.groups, predictions.weight)
