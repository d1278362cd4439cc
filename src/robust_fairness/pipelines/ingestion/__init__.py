"""Raw files to ``Samples``, one node a dataset."""

from robust_fairness.pipelines.ingestion.pipeline import create_pipeline

__all__ = ["create_pipeline"]
