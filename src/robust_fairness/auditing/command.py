"""The audit of a file: now, or now and then; gates, tables and page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from robust_fairness.auditing import gates as gate_texts
from robust_fairness.auditing.changes import MIX, changes, require_comparable
from robust_fairness.auditing.estimates import ASSUMPTION, Reference, Scored, estimate
from robust_fairness.auditing.export import model_card, record
from robust_fairness.auditing.gates import Judgement, Rule
from robust_fairness.auditing.page import audit_page
from robust_fairness.auditing.periods import Length, last_period
from robust_fairness.auditing.predictions import Predictions, Roles, check, check_unlabelled
from robust_fairness.auditing.report import SHARE, SMALL, groups_in, offered_names, score, selected
from robust_fairness.auditing.trivial import trivial_predictor
from robust_fairness.auditing.verdict import console
from robust_fairness.core import tables
from robust_fairness.core.errors import InputError
from robust_fairness.datasets.files import Files
from robust_fairness.datasets.raw.columns import as_numbers, percentages
from robust_fairness.datasets.raw.reading import delimiter_of, read_columns

CONVENTIONAL = ("conventional",)


@dataclass(frozen=True)
class FileAudit:
    """Result of the audit of a file.

    Attributes:
        rows: values, with the columns ``AUDIT``.
        files: contents of the files to write, by name.
        failures: one line per failure of a gate.
        lines: what the console shows, each with whether it is a failure.
        changes: changes since the earlier period, with the columns ``CHANGES``; None without one.
        judgements: the verdicts of all gates.
        record: all of it as JSON types.
    """

    rows: pd.DataFrame
    files: Mapping[str, str]
    failures: list[str]
    lines: Sequence[tuple[str, bool]] = ()
    changes: pd.DataFrame | None = None
    judgements: Sequence[Judgement] = ()
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """A file of predictions and how it is written.

    Attributes:
        path: the file, CSV or Parquet.
        delimiter: column separator of a CSV file; found out if None.
        missing: texts of missing values, besides empty cells.
    """

    path: Path
    delimiter: str | None = None
    missing: Sequence[str] = ()

    def columns(self, names: Sequence[str], text: Sequence[str] = ()) -> pd.DataFrame:
        """These columns; those of ``text`` may have any number of distinct values."""
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise InputError(f"delimiter: {self.delimiter!r}, allowed: one character")
        if not self.path.is_file():
            raise InputError(f"{self.path}: no such file")
        files, wanted = Files(self.path.absolute().parent), list(dict.fromkeys(names))
        delimiter = self.delimiter or delimiter_of(files, self.path.name, wanted)
        missing = ("", *self.missing)
        return read_columns(files, self.path.name, wanted, delimiter, missing, text)


@dataclass(frozen=True)
class Period:
    """The predictions of a period, and its name."""

    name: str
    predictions: Predictions


@dataclass(frozen=True)
class Scoring:
    """What is scored of every period, see ``report.score``."""

    metrics: Sequence[str]
    intersections: bool
    small: int
    suppress: int

    def rows(self, period: Period) -> pd.DataFrame:
        """The rows of a period."""
        return score(
            period.predictions, self.intersections, self.small, period.name, self.metrics,
            self.suppress,
        )  # fmt: skip

    def present(self, rows: pd.DataFrame) -> "Scoring":
        """The same without metrics that these rows do not have."""
        return replace(self, metrics=[one for one in self.metrics if one in set(rows["metric"])])


def audit_file(
    path: Path,
    roles: Roles,
    *,
    gates: Sequence[str] = (),
    intersections: bool = False,
    small: int = SMALL,
    missing: Sequence[str] = (),
    delimiter: str | None = None,
    reference: Path | None = None,
    period: str | None = None,
    by: Length = "month",
    metrics: Sequence[str] = CONVENTIONAL,
    suppress: int = 0,
    rule: Rule = "estimate",
    labels: Literal["all", "none"] = "all",
    card: bool = False,
) -> FileAudit:
    """Score the predictions in a CSV or Parquet file; writes nothing.

    Args:
        path: the file.
        roles: what its columns are.
        gates: conditions that must not hold, such as ``equalized_odds_difference[sex]>0.1``.
        intersections: also score the intersections of all categorical attributes.
        small: groups with fewer rows are flagged.
        missing: texts of missing values, besides empty cells.
        delimiter: column separator of a CSV file; found out if None.
        reference: file of the earlier period, with the same columns.
        period: column of dates; the last period is compared with those before it.
        by: length of a period.
        metrics: names of the metrics, see ``report.selected``; those of gates are added.
        suppress: groups with fewer rows are not shown.
        rule: what fails a gate, see ``Gate.judgements``.
        labels: ``none`` if the file has no labels: its values are estimated with the reference.
        card: also make a model card in Markdown.
    """
    parsed = [gate_texts.parse(gate) for gate in gates]
    for gate in parsed:
        gate_texts.require_known(
            gate,
            [*offered_names(roles.continuous), *([MIX] if gate.change else [])],
            _attributes(roles.attributes, intersections),
        )
        if gate.change and reference is None and period is None:
            raise InputError(f"gate {gate.text!r}: a change needs --reference or --period")
    wanted = [*metrics, *(gate.metric for gate in parsed if gate.metric != MIX)]
    names = selected(wanted, roles.continuous)
    source = Source(path, delimiter, missing)
    every = Scoring(names, intersections, small, suppress)
    then: Period | None
    if labels == "none":
        now, then, rows = _estimated(source, roles, reference, every)
    else:
        now, then = _periods(source, roles, reference, period, by)
        rows = every.rows(now)
    changed = None if then is None else changes(rows, every.present(rows).rows(then))
    judgements = [one for gate in parsed for one in gate_texts.judged(gate, rows, changed, rule)]
    failures = {
        gate: [one.reason for one in judgements if one.gate == gate and one.verdict == "FAIL"]
        for gate in parsed
    }
    facts = {
        "name": now.name,
        "then": then.name if then else "",
        "warning": trivial_predictor(now.predictions),
        "assumption": ASSUMPTION if labels == "none" else "",
    }
    page = audit_page(
        rows, now.predictions, roles, name=now.name, small=small, failures=failures,
        changes=changed, then=facts["then"], assumption=facts["assumption"],
    )  # fmt: skip
    name = path.name.partition(".")[0]
    files = {f"{name}_audit.html": page, f"{name}_audit.csv": tables.csv(rows)}
    if changed is not None:
        files[f"{name}_changes.csv"] = tables.csv(changed)
    if card:
        files[f"{name}_model_card.md"] = model_card(rows, roles, facts, judgements)
    lines = list(
        console(rows, judgements, facts["warning"], facts["assumption"], facts["then"], changed)
    )
    failed = [line for own in failures.values() for line in own]
    return FileAudit(
        rows, files, failed, lines, changed, judgements, record(rows, changed, judgements, **facts)
    )


def _attributes(names: Sequence[str], intersections: bool) -> set[str]:
    """Attributes that a gate may name, whichever of them turn out to be categorical."""
    sizes = range(1, len(names) + 1) if intersections else (1, len(names))
    return {" & ".join(some) for size in sizes for some in combinations(names, size)}


def _periods(
    source: Source, roles: Roles, reference: Path | None, period: str | None, by: Length
) -> tuple[Period, Period | None]:
    """The current predictions and, where there are, the earlier ones."""
    name = source.path.name
    if reference is not None and period is not None:
        raise InputError("reference and period are both given, allowed: one of them")
    if period is not None:
        return _split(source, roles, period, by)
    try:
        table = source.columns(roles.columns)
    except InputError as error:
        if f"unknown column {roles.target!r}" in str(error):
            raise InputError(f"{error}; without labels: --labels none") from None
        raise
    if reference is None:
        return Period(name, check(table, roles, name)), None
    other = replace(source, path=reference)
    earlier = other.columns(roles.columns)
    fixed = roles.with_edges_of(earlier, reference.name)
    names = (name, reference.name) if name != reference.name else ("current", "reference")
    now, then = (
        Period(one, check(cells, fixed, str(file)))
        for one, cells, file in zip(names, (table, earlier), (source.path, reference), strict=True)
    )
    require_comparable(now.predictions, then.predictions, names)
    return now, then


def _split(source: Source, roles: Roles, period: str, by: Length) -> tuple[Period, Period]:
    """The last period of a table, and all before it."""
    name = source.path.name
    if period in roles.columns:
        raise InputError(f"column {period} has two roles; the period is a column of its own")
    table = source.columns([*roles.columns, period], text=[period])
    last = last_period(table[period], by, f"{name}, column {period}")
    every = check(table.drop(columns=period), roles, name)
    now, then = (every.take(np.flatnonzero(rows)) for rows in (last.rows, ~last.rows))
    return Period(last.now, now), Period(last.then, then)


def _estimated(
    source: Source, roles: Roles, reference: Path | None, scoring: Scoring
) -> tuple[Period, Period, pd.DataFrame]:
    """The unlabelled predictions, the reference, and estimated rows."""
    if reference is None:
        raise InputError("labels none: needs a --reference that has the target")
    earlier = replace(source, path=reference).columns(roles.columns)
    fixed = roles.with_edges_of(earlier, reference.name)
    then = Period(reference.name, check(earlier, fixed, str(reference)))
    if then.predictions.kind not in ("probability", "score"):
        raise InputError(
            f"labels none: predictions are of kind {then.predictions.kind}; allowed: probabilities "
            "or scores of the positive class"
        )
    table = source.columns([roles.prediction, *roles.attributes])
    predictions = check_unlabelled(table, fixed, then.predictions, str(source.path))
    now = Period(source.path.name, predictions)
    scored, labelled = (
        _scored(cells, one.predictions, roles, scoring.intersections)
        for cells, one in ((table, now), (earlier, then))
    )
    known = Reference(labelled, then.predictions.samples.y)
    rows = estimate(scored, known, now.name, scoring.small, scoring.suppress)
    return now, then, rows[rows["metric"].isin([*scoring.metrics, SHARE])]


def _scored(
    table: pd.DataFrame, predictions: Predictions, roles: Roles, intersections: bool
) -> Scored:
    """Scores as they are in a table, decisions, and groups."""
    scores = as_numbers(percentages(table[roles.prediction]), f"column {roles.prediction}")
    return Scored(
        scores.to_numpy(), predictions.prediction == 1, groups_in(predictions, intersections)
    )
