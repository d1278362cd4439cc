"""The end-to-end pipeline."""

from kedro.pipeline import Pipeline

from robust_fairness.pipelines import evaluation, generation, ingestion, reporting, shifts, training


def create_pipeline() -> Pipeline:
    """From raw files to the report, for everything in the grid."""
    parts = (generation, ingestion, shifts, training, evaluation, reporting)
    return Pipeline([part.create_pipeline() for part in parts])
