"""Values of an audit, for tests."""

from typing import Any

import numpy as np
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


def people(rows: int, seed: int = 0) -> pd.DataFrame:
    """Calibrated probabilities of two groups of which the second is rarer and less often 1."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["m", "f"], rows, p=[0.7, 0.3])
    p = 1 / (1 + np.exp(-1.5 * rng.normal(size=rows) + 0.8 * (sex == "f")))
    return pd.DataFrame({"sex": sex, "p": p, "y": (rng.random(rows) < p).astype(float)})


def few(table: pd.DataFrame, labels: int, seed: int = 1) -> pd.DataFrame:
    """The table with so many labels, at random."""
    hidden = np.random.default_rng(seed).permutation(len(table))[labels:]
    return table.assign(y=table["y"].mask(table.index.isin(hidden)))
