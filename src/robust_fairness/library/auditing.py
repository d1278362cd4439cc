"""``rf.audit``: the audit of a table of predictions, as a notebook shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from robust_fairness.auditing import gates
from robust_fairness.auditing.changes import MIX, changes, require_comparable
from robust_fairness.auditing.page import audit_page
from robust_fairness.auditing.predictions import PredictionKind, Predictions, Roles, check
from robust_fairness.auditing.report import SMALL, offered_names, score
from robust_fairness.auditing.trivial import trivial_predictor
from robust_fairness.auditing.verdict import worst_group
from robust_fairness.core.errors import InputError
from robust_fairness.core.frames import as_pandas, sensitive_columns, with_column, with_columns

SUMMARY = (
    "accuracy", "worst_group_accuracy", "demographic_parity_difference",
    "equal_opportunity_difference", "equalized_odds_difference", "mean_squared_error",
    "worst_group_mean_squared_error",
)  # fmt: skip
NOW, THEN = "current", "reference"


@dataclass(frozen=True)
class Audit:
    """Scores of predictions with their uncertainty; a notebook shows them as a table."""

    rows: pd.DataFrame
    predictions: Predictions
    roles: Roles
    name: str
    small: int
    changed: pd.DataFrame | None = None

    def to_frame(self) -> pd.DataFrame:
        """One row per value, with the columns ``audit.AUDIT``."""
        return self.rows.copy()

    def changes(self) -> pd.DataFrame:
        """Every value then and now, and its change, with the columns ``audit.changes.CHANGES``.

        Raises:
            InputError: the audit has no reference.
        """
        if self.changed is None:
            raise InputError("changes: this audit has no reference; allowed: audit(reference=...)")
        return self.changed.copy()

    def metrics(self) -> dict[str, float]:
        """Values of all rows and between groups, by ``metric`` or ``attribute.metric``.

        The names are valid in MLflow; values that are not defined are left out.
        """
        rows = self.rows[(self.rows["group"] == "") & self.rows["value"].notna()]
        names = [
            ".".join(filter(None, [*attribute.split(" & "), metric]))
            for attribute, metric in zip(rows["attribute"], rows["metric"], strict=True)
        ]
        return dict(zip(names, rows["value"], strict=True))

    def failures(self, *conditions: str) -> list[str]:
        """What fails of conditions that must not hold, such as ``delta_eo[sex]>0.1``."""
        found = self._failures(conditions)
        return [line for lines in found.values() for line in lines]

    def to_html(self, path: str | Path | None = None, *, fail_if: str | Sequence[str] = ()) -> str:
        """The page as HTML, one file that needs no network; also written to ``path``."""
        page = audit_page(
            self.rows,
            self.predictions,
            self.roles,
            name=self.name,
            small=self.small,
            failures=self._failures(_listed(fail_if)),
            changes=self.changed,
            then="" if self.changed is None else THEN,
        )
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def _failures(self, conditions: Sequence[str]) -> dict[gates.Gate, list[str]]:
        found = {}
        for text in conditions:
            gate = gates.parse(text)
            known = [*offered_names(self.roles.continuous), *([MIX] if gate.change else [])]
            gates.require_known(gate, known, set(self.rows["attribute"]) - {""})
            if gate.change:
                self.changes()
            judged = gates.judged(gate, self.rows, self.changed, "estimate")
            found[gate] = [one.reason for one in judged if one.verdict == "FAIL"]
        return found

    def summary(self) -> pd.DataFrame:
        """The best known measures with their 95 % intervals; ``to_frame`` has all."""
        shown = self.rows[self.rows["metric"].isin(SUMMARY)]
        columns = ["attribute", "metric", "value", "low", "high", "n", "note"]
        return shown.loc[shown["applies"], columns].reset_index(drop=True)

    @property
    def remarks(self) -> list[str]:
        """A warning of a constant predictor, and the worst group, where there are."""
        return [*filter(None, (trivial_predictor(self.predictions), worst_group(self.rows)))]

    def _repr_html_(self) -> str:
        table = self.summary().to_html(index=False, float_format="{:.3f}".format, na_rep="")
        return table + "".join(f"<p>{one}</p>" for one in self.remarks)

    def __str__(self) -> str:
        text = self.summary().to_string(index=False, float_format="{:.3f}".format, na_rep="")
        return "\n".join([text, *self.remarks])

    __repr__ = __str__


def audit(
    frame: Any = None,
    *,
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    reference: Any = None,
    metrics: str | Sequence[str] = ("conventional",),
    pos_label: Any = None,
    prediction_is: PredictionKind = "auto",
    threshold: float | None = None,
    continuous: bool = False,
    bins: Mapping[str, Any] | None = None,
    intersections: bool = False,
    small: int = SMALL,
    suppress: int = 0,
    name: str = "table",
) -> Audit:
    """Audit predictions: rates and gaps of every group with 95 % intervals.

    Args:
        frame: a data frame of pandas, polars or Arrow with a row per prediction; not needed where
            the other arguments are values rather than names of columns.
        y_true: name of a column, or one value per row.
        y_pred: likewise.
        sensitive_features: names of columns, a frame, columns by name, or one label per row.
        reference: a frame of earlier predictions with the same columns, to compare with.
        metrics: names of metrics; ``conventional`` and ``all`` are sets of them.
        pos_label: value of the positive class of a binary target; default: 1, True or yes,
            beside 0 or -1, False or no.
        prediction_is: kind of the predictions, see ``robust_fairness.auditing.report.audit``.
        threshold: lowest probability (default 0.5) or score of the positive class.
        continuous: whether the target is continuous.
        bins: bins of numeric attributes: increasing edges, or a number of quantile bins.
        intersections: also score the intersections of all categorical attributes.
        small: groups with fewer rows are flagged.
        suppress: groups with fewer rows are not shown.
        name: name of the table, for the page and for messages.

    Raises:
        InputError: a column does not exist, is constant or has values that do not fit, values have
            a pandas index in another order than the frame, or both frames do not have the same
            classes and kinds of columns.
    """
    if frame is None:
        if isinstance(y_true, str):
            raise InputError(f"y_true: {y_true!r} is the name of a column, which needs a table")
        frame, sensitive_features = {"y_true": y_true}, sensitive_columns(sensitive_features)
    table, target = with_column(as_pandas(frame), "y_true", y_true)
    table, prediction = with_column(table, "y_pred", y_pred)
    table, attributes = with_columns(table, sensitive_features)
    roles = Roles(
        target, prediction, attributes, None if pos_label is None else str(pos_label), continuous,
        prediction_is, threshold, {}, bins or {},
    )  # fmt: skip

    def scored(found: Predictions) -> pd.DataFrame:
        return score(found, intersections, small, name, _listed(metrics), suppress)

    then = None
    if reference is not None:
        earlier = as_pandas(reference)
        roles = roles.with_edges_of(earlier, THEN)
        then = check(earlier, roles, THEN)
    now = check(table, roles, name)
    rows = scored(now)
    if then is None:
        return Audit(rows, now, roles, name, small)
    require_comparable(now, then, (NOW, THEN))
    return Audit(rows, now, roles, name, small, changes(rows, scored(then)))


def _listed(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names
