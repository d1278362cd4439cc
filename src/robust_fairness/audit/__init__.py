"""Audit of existing predictions: scores, intervals, gates and a page."""

from robust_fairness.audit.predictions import Roles
from robust_fairness.audit.report import AUDIT, audit
from robust_fairness.core.callable_package import make_callable

__all__ = ["AUDIT", "Roles", "audit"]

make_callable(__name__, "robust_fairness.library.auditing", "audit")
