"""The training pipeline."""

from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.grid import DatasetGrid
from robust_fairness.parameters import CellParameters
from robust_fairness.pipelines._cells import for_every_cell


def train(samples: Any, cell: CellParameters) -> tuple[Any, Any, Any, Any]:
    """Fit all trials and seeds of a cell."""
    from robust_fairness import training

    return training.train(samples, cell)


def select(samples: Any, validation: Any, cell: CellParameters) -> Any:
    """Choose trials by their predictions on validation rows."""
    from robust_fairness import training

    return training.select(samples, validation, cell)


def create_pipeline() -> Pipeline:
    """Train and select, for every cell of the grid."""
    return for_every_cell(_nodes)


def _nodes(dataset: DatasetGrid) -> list[Node]:
    return [
        Node(
            train,
            ["samples", "params:cell"],
            ["models", "validation", "history", "trials"],
            name="train",
        ),
        Node(select, ["samples", "validation", "params:cell"], "selection", name="select"),
    ]
