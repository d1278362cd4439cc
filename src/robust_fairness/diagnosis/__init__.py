"""Why a model does otherwise in another domain: what differs, and how much each part explains."""

from robust_fairness.diagnosis.runs import diagnose
from robust_fairness.diagnosis.unprocessing import frontier

__all__ = ["diagnose", "frontier"]
