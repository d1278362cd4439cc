"""The ingestion pipeline."""

from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.grid import selected_grid
from robust_fairness.parameters import SourceParameters
from robust_fairness.registry import find


def ingest(source: SourceParameters) -> Any:
    """Read a dataset with its named splits."""
    from robust_fairness.datasets._files import Files, default_root

    module = find("dataset", source.source.name)
    return module.load(source.source.parameters, Files(default_root()), source.splits)


def create_pipeline() -> Pipeline:
    """One node a dataset of the grid."""
    return Pipeline(
        [
            Pipeline(
                [Node(ingest, "params:source", "samples", name="ingest")],
                namespace=dataset.name,
                tags=[f"dataset.{dataset.name}"],
            )
            for dataset in selected_grid().datasets
        ]
    )
