"""Why a model does otherwise in another domain: what differs, and how much each part explains."""

from robust_fairness.diagnosis.columns import Columns, domain_columns
from robust_fairness.diagnosis.decomposition import Decomposition, decompose, decompose_by_group
from robust_fairness.diagnosis.domains import Overlap, overlap, two_sample_test
from robust_fairness.diagnosis.labels import estimated_shares, share_change
from robust_fairness.diagnosis.regions import Scored, regions
from robust_fairness.diagnosis.runs import diagnose
from robust_fairness.diagnosis.unprocessing import frontier

__all__ = [
    "Columns",
    "Decomposition",
    "Overlap",
    "Scored",
    "decompose",
    "decompose_by_group",
    "diagnose",
    "domain_columns",
    "estimated_shares",
    "frontier",
    "overlap",
    "regions",
    "share_change",
    "two_sample_test",
]
