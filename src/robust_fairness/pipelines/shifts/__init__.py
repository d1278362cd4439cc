"""``Samples`` to shifted ``Samples``, one node a test set."""

from robust_fairness.pipelines.shifts.pipeline import create_pipeline

__all__ = ["create_pipeline"]
