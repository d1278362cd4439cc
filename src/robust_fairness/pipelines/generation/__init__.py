"""Generators: trained on real images or read from a file, and what their images are like."""

from robust_fairness.pipelines.generation.pipeline import create_pipeline

__all__ = ["create_pipeline"]
