"""Audit of existing predictions: scores, intervals, gates and a page."""

from robust_fairness.audit.predictions import Roles
from robust_fairness.audit.report import AUDIT, audit

__all__ = ["AUDIT", "Roles", "audit"]
