"""Audit of existing predictions: scores, intervals, gates and a page."""

from robust_fairness.auditing.predictions import Roles
from robust_fairness.auditing.report import AUDIT, audit

__all__ = ["AUDIT", "Roles", "audit"]
