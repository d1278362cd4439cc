"""Predict, score, and join the rows of a dataset."""

from robust_fairness.pipelines.evaluation.pipeline import create_pipeline

__all__ = ["create_pipeline"]
