"""From raw files to the report: all the pipelines as one."""

from robust_fairness.pipelines.robust_fairness.pipeline import create_pipeline

__all__ = ["create_pipeline"]
