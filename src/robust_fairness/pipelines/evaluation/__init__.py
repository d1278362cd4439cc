"""Predict and score."""

from robust_fairness.pipelines.evaluation.pipeline import create_pipeline

__all__ = ["create_pipeline"]
