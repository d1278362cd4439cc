"""The training pipeline."""

from typing import Any

from kedro.pipeline import Node, Pipeline

from robust_fairness.core.errors import Failure
from robust_fairness.experiment.grid import DatasetGrid
from robust_fairness.experiment.parameters import CellParameters
from robust_fairness.pipelines._cells import for_every_cell
from robust_fairness.runs.configuration import selected_grid


def train(samples: Any, cell: CellParameters) -> tuple[Any, Any, Any, Any]:
    """Fit all trials and seeds of a cell."""
    from robust_fairness import training

    return training.train(samples, cell)


def select(samples: Any, validation: Any, cell: CellParameters) -> tuple[Any, Any]:
    """Choose trials by their predictions on validation rows, and tell what others would be."""
    from robust_fairness import training

    chosen = training.select(samples, validation, cell)
    return chosen, training.compare(samples, validation, cell)


def collect_choices(**choices: Any) -> Any:
    """Join what criteria choose in a dataset's cells; a cell that failed has left nothing."""
    import pandas as pd

    from robust_fairness.core import tables

    found = [one for one in choices.values() if not isinstance(one, Failure)]
    return pd.concat([tables.table(tables.CHOICES, []), *found], ignore_index=True)


def collect_trials(**trials: Any) -> Any:
    """Join what was tried in a dataset's cells; a cell that failed has left nothing."""
    from robust_fairness.core import tables

    found = [one for one in trials.values() if not isinstance(one, Failure)]
    return tables.join_rows(tables.TRIALS, found)


def create_pipeline() -> Pipeline:
    """Train and select for every cell, collect the choices of every dataset of the grid."""
    collecting = [_collecting(dataset) for dataset in selected_grid().datasets]
    return Pipeline([for_every_cell(_nodes), *collecting])


def _nodes(dataset: DatasetGrid) -> list[Node]:
    return [
        Node(
            train,
            ["samples", "params:cell"],
            ["models", "validation", "history", "trials"],
            name="train",
        ),
        Node(
            select,
            ["samples", "validation", "params:cell"],
            ["selection", "choices"],
            name="select",
        ),
    ]


def _collecting(dataset: DatasetGrid) -> Pipeline:
    joined = {"choices": collect_choices, "trials": collect_trials}
    inputs = {
        part: {cell.label: f"{part} of {cell.label}" for cell in dataset.cells} for part in joined
    }
    return Pipeline(
        [
            Node(function, inputs[part], part, name=f"collect_{part}")
            for part, function in joined.items()
        ],
        namespace=dataset.name,
        inputs={
            f"{part} of {cell.label}": f"{cell.name}.{part}"
            for part in joined
            for cell in dataset.cells
        },
        outputs={part: f"{dataset.name}_{part}" for part in joined},
        tags=[f"dataset.{dataset.name}", "fan_in"],
    )
