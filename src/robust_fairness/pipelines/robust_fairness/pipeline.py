"""The end-to-end pipeline."""

from kedro.pipeline import Pipeline

from robust_fairness.pipelines import evaluation, generation, ingestion, reporting, shifts, training

PARTS = {
    "generation": generation,
    "ingestion": ingestion,
    "shifts": shifts,
    "training": training,
    "evaluation": evaluation,
    "reporting": reporting,
}


def create_pipeline() -> Pipeline:
    """From raw files to the report, for everything in the grid."""
    return Pipeline([part.create_pipeline() for part in PARTS.values()])
