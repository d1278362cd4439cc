"""Audit of existing predictions: scores, intervals, gates and a page."""

from robust_fairness.auditing.audit import Audit, audited
from robust_fairness.auditing.predictions import Options
from robust_fairness.auditing.scores import AUDIT

__all__ = ["AUDIT", "Audit", "Options", "audited"]
