"""An audit with all that is made of it: tables, charts, the page."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path

import numpy as np
import pandas as pd

from robust_fairness.auditing.changes import changes, require_comparable, tested_changes
from robust_fairness.auditing.control import controlled_name
from robust_fairness.auditing.curves import calibration, thresholds
from robust_fairness.auditing.door import check, with_bins_of
from robust_fairness.auditing.few_labels import Plan, of_labels, planned
from robust_fairness.auditing.findings import AuditFindings
from robust_fairness.auditing.frame import Frame
from robust_fairness.auditing.gates import SIMULTANEOUS, Rule
from robust_fairness.auditing.labelled import label_selection
from robust_fairness.auditing.page import audit_page
from robust_fairness.auditing.power import power_of
from robust_fairness.auditing.predictions import Options, Predictions
from robust_fairness.auditing.scores import scored
from robust_fairness.auditing.search import searched
from robust_fairness.auditing.strata import InStrata, in_strata
from robust_fairness.auditing.verdict import of_strata, worst_group
from robust_fairness.auditing.who import gap_names
from robust_fairness.numbers.estimate import LEVEL
from robust_fairness.numbers.intervals import Compared

SUMMARY = (
    "accuracy", "worst_group_accuracy", "demographic_parity_difference",
    "equal_opportunity_difference", "equalized_odds_difference", "mean_squared_error",
    "worst_group_mean_squared_error", "mean_error", "mean_error_difference",
    "mean_absolute_error_difference", "mean_prediction_difference",
)  # fmt: skip


MOST_CHARACTERS = 150  # of an attribute in names of metrics, of which MLflow takes 250


class Audit(Frame, AuditFindings):
    """What an audit found, as tables, charts and pages; a notebook shows it as a table."""

    def to_frame(self) -> pd.DataFrame:
        """One row per value, with the columns ``scores.AUDIT``."""
        return self.rows.copy()

    def metrics(self) -> dict[str, float]:
        """Values of all rows and between groups, by ``metric`` or ``attribute.metric``.

        The bounds of their 95 % intervals are ``metric.low`` and ``metric.high``, where there are.
        The names are valid in MLflow: characters that it refuses are replaced by ``_``, long
        attributes are cut, and of names that would be equal the later ones end in ``_2``, ``_3``
        and so on. Columns of an
        intersection are separated by dots, and control features follow ``given``. Values that are
        not defined are left out.
        """
        rows = self.rows[(self.rows["group"] == "") & self.rows["value"].notna()]
        columns_of, existing = self.predictions.columns_of, self.predictions.samples.attributes
        control = tuple(map(str, self.predictions.control))
        if control:
            columns_of = columns_of | {
                controlled_name(name, control, existing): (*columns, "given", *control)
                for name, columns in columns_of.items()
            }
        sections: dict[str, str] = {}
        for attribute in rows["attribute"].unique():
            plain = ".".join(columns_of.get(attribute, (attribute,)))
            base = "".join(c if c.isalnum() or c in "_-. " else "_" for c in plain)
            base = ("_" + base[1:] if base[:1] == "." else base)[:MOST_CHARACTERS]
            numbered = (f"{base}_{number}" for number in count(2))
            sections[attribute] = next(
                name for name in chain([base], numbered) if name not in sections.values()
            )
        return {
            ".".join(filter(None, [sections[row["attribute"]], row["metric"], end])): row[column]
            for row in rows.to_dict("records")
            for column, end in (("value", ""), ("low", "low"), ("high", "high"))
            if np.isfinite(row[column])
        }

    def judged(self, conditions: str | Sequence[str], rule: Rule = "estimate") -> "Audit":
        """The audit with the verdicts of conditions that must not hold.

        Where intervals decide, on ``evidence`` or in ``doubt``, all values that are judged together
        have simultaneous intervals, each at the level over their number (Bonferroni): of all
        verdicts that need evidence, one is wrong in at most 5 % of audits. Estimates without labels
        keep their intervals.

        Args:
            conditions: such as ``equalized_odds_difference[sex]>0.1``.
            rule: what fails a gate, see ``Gate.judgements``.
        """
        judgements = self.judgements_of(conditions, rule)
        family = sum(np.isfinite([each.row.low, each.row.high]).any() for each in judgements)
        if rule != "estimate" and family > 1 and self.options.labels != "none":
            options = replace(self.options, search=False)
            wider = audited(
                self.predictions, options, self.name, self.earlier, self.then, LEVEL / family
            )
            judgements = wider.judgements_of(conditions, rule, SIMULTANEOUS)
        return replace(self, judgements=judgements)

    def failures(self, *conditions: str) -> list[str]:
        """What fails of conditions that must not hold, such as ``delta_eo[sex]>0.1``."""
        return self.judged(conditions).failed

    def to_html(self, path: str | Path | None = None, *, fail_if: str | Sequence[str] = ()) -> str:
        """The page as HTML, one file that needs no network; also written to ``path``."""
        page = audit_page(self.judged(fail_if) if fail_if else self)
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def plan(self, rows: int) -> Plan:
        """So many rows to label, and the intervals to expect, see ``few_labels.planned``."""
        return planned(self.predictions, self.options, rows)

    def thresholds(self) -> pd.DataFrame:
        """Accuracy and gaps over every threshold, with the columns ``curves.THRESHOLDS``."""
        return thresholds(self.predictions)

    def calibration(self) -> pd.DataFrame:
        """Probabilities and shares by group and bin, with the columns ``curves.CALIBRATION``."""
        return calibration(self.predictions, self.options.suppress)

    def summary(self) -> pd.DataFrame:
        """The best known measures with their 95 % intervals; ``to_frame`` has all."""
        shown = self.rows[self.rows["metric"].isin(SUMMARY)]
        columns = ["attribute", "metric", "value", "low", "high", "n", "note"]
        return shown.loc[shown["applies"], columns].reset_index(drop=True)

    @property
    def remarks(self) -> list[str]:
        """Warnings of a constant predictor and of strata, hints, and the worst group."""
        said = (self.warning, *of_strata(self), *self.hints, worst_group(self.rows))
        return [*filter(None, said)]

    def _repr_html_(self) -> str:
        table = self.summary().to_html(index=False, float_format="{:.3f}".format, na_rep="")
        return table + "".join(f"<p>{remark}</p>" for remark in self.remarks)

    def __str__(self) -> str:
        text = self.summary().to_string(index=False, float_format="{:.3f}".format, na_rep="")
        return "\n".join([text, *self.remarks])

    __repr__ = __str__


def audited_tables(
    table: pd.DataFrame,
    options: Options,
    name: str,
    reference: pd.DataFrame | None = None,
    reference_name: str = "",
) -> Audit:
    """The audit of a table, compared with an earlier one whose quantiles it is binned by.

    Raises:
        InputError: a table has a column that is missing or does not fit, or both do not have the
            same classes and kinds of columns.
    """
    if options.labels == "none":
        options = replace(options, y_true=None)
    if reference is None:
        return audited(check(table, options, name), options, name)
    earlier = options
    if options.label_probability is not None and options.label_probability not in reference:
        earlier = replace(options, labels="all", label_probability=None)
    earlier = with_bins_of(earlier, reference, reference_name)
    options = replace(options, bins=earlier.bins)
    then = check(reference, earlier, reference_name)
    now = with_notes_of(check(table, options, name), then, reference_name)
    return audited(now, options, name, then, reference_name)


def with_notes_of(now: Predictions, then: Predictions, name: str) -> Predictions:
    """Predictions with the notes of a reference of some name that they lack."""
    further = [note for note in then.notes if note not in now.notes]
    named = [note if note.startswith(name) else f"{name}: {note}" for note in further]
    return replace(now, notes=(*now.notes, *named))


def audited(
    now: Predictions,
    options: Options,
    name: str,
    then: Predictions | None = None,
    then_name: str = "",
    level: float = LEVEL,
) -> Audit:
    """The audit of checked predictions, compared with earlier ones where there are.

    Intervals of values, changes and strata are at ``level``.

    Raises:
        InputError: both do not have the same classes and kinds of columns.
    """
    worst = searched(now, options) if options.search else []
    current = scored(now, options, name, level)
    gaps = gap_names(current.rows)
    attributes = {*now.groups, *now.membership}
    alone = {key: made for key, made in current.compared.items() if key[0] in attributes}
    selection = [] if now.known is None else label_selection(now)
    labels = "" if now.known is None else of_labels(now, options, selection)
    strata: list[InStrata] = []
    if options.control_features:
        shown = [gap for gap in gaps if gap in {*current.rows["metric"]}]
        strata = in_strata(now, shown, level)
    changed: pd.DataFrame | None = None
    compared_then: Mapping[tuple[str, str], Compared] = alone
    if then is not None:
        require_comparable(now, then, (name, then_name))
        earlier = scored(then, options, then_name, level)
        tested = tested_changes(current.compared, earlier.compared, gaps)
        changed, compared_then = changes(current.rows, earlier.rows, tested), earlier.compared
    return Audit(
        current.rows, now, options, name, changed, then_name, labels, earlier=then,
        between=current.between, power=power_of(alone, compared_then, gaps), worst=worst,
        strata=strata, label_selection=selection, compared=current.compared,
    )  # fmt: skip
