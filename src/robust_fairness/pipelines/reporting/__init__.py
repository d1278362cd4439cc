"""Collect what every dataset made, join its rows and write the report."""

from robust_fairness.pipelines.reporting.pipeline import create_pipeline

__all__ = ["create_pipeline"]
