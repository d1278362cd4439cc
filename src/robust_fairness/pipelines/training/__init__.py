"""Fit the replicas of every cell and choose trials."""

from robust_fairness.pipelines.training.pipeline import create_pipeline

__all__ = ["create_pipeline"]
