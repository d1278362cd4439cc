"""Generators: trained on real pictures or read from a file, and what their pictures are like."""

from robust_fairness.pipelines.generation.pipeline import create_pipeline

__all__ = ["create_pipeline"]
