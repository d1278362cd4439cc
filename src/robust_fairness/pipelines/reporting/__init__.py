"""Join the rows of all datasets and write the report."""

from robust_fairness.pipelines.reporting.pipeline import create_pipeline

__all__ = ["create_pipeline"]
