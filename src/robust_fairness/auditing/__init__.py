"""Audit of existing predictions: scores, intervals, gates and a page."""

from robust_fairness.auditing.predictions import Options
from robust_fairness.auditing.report import AUDIT
from robust_fairness.auditing.result import Audit, audited

__all__ = ["AUDIT", "Audit", "Options", "audited"]
