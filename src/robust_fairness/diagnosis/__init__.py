"""Why a model does otherwise in another domain: what differs, and how much each part explains."""

from robust_fairness.diagnosis.decomposition import Decomposition, decompose, decompose_by_group
from robust_fairness.diagnosis.domains import Overlap, overlap, two_sample_test
from robust_fairness.diagnosis.effective_robustness import effective_robustness
from robust_fairness.diagnosis.regions import Scored, regions
from robust_fairness.diagnosis.runs import diagnose

__all__ = [
    "Decomposition",
    "Overlap",
    "Scored",
    "decompose",
    "decompose_by_group",
    "diagnose",
    "effective_robustness",
    "overlap",
    "regions",
    "two_sample_test",
]
