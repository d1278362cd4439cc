"""Values of an audit, for tests."""

from typing import Any

import pandas as pd

import robust_fairness as rf
from robust_fairness.auditing import gates


def audit(
    table: pd.DataFrame, y_true: str, y_pred: str, sensitive_features: list[str], **options: Any
) -> pd.DataFrame:
    """All values of a table, with every metric unless some are named."""
    columns = {"y_true": y_true, "y_pred": y_pred, "sensitive_features": sensitive_features}
    return rf.audit(table, **columns, **{"metrics": "all", **options}).to_frame()


def failures(gate: str, rows: pd.DataFrame) -> list[str]:
    """A line for each value of a table of values or changes that fails a gate."""
    judgements = gates.parse(gate).judgements(rows)
    return [judgement.reason for judgement in judgements if judgement.verdict == "FAIL"]
